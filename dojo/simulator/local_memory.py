"""Local memory: arrays of one thread that do not fit its registers. Only the thread itself can see them: no
races.

The hardware interleaves it: word w of a warp's 32 lanes lies in 128 neighbouring bytes, which is what the
sectors are counted from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import traffic
from .findings import VERB, Counts, Log
from .lanes import Lanes
from .memory import Words, merge
from .numerics import I64, U64
from .parse import Unsupported
from .program import Site

Array = Any


class LocalMemory:
    """`size` bytes for each of `lanes` lanes."""

    def __init__(self, size: int, lanes: int, log: Log, counts: dict[int, Counts]) -> None:
        self.size, self.log, self.counts = size, log, counts
        self.words = Words(size, lanes if size else 1)
        self.written = np.zeros((size, lanes), bool)
        self.unset: list[Array] = [np.False_] * 4  # where the last load found what nobody wrote, by element

    def access(
        self,
        site: Site,
        lanes: Lanes,
        base: Array,
        offset: int,
        origin: str,
        values: tuple[Array, ...] | None,
        atomic: Any = None,
    ) -> list[Array] | None:
        """As `GlobalMemory.access`, without atomics."""
        if atomic is not None:
            raise Unsupported("an atomic on local memory", site.line)
        address = base.view(I64) + offset
        width = site.element * site.count
        at, lane = lanes.spread(address), lanes.numbers
        bad = (at < 0) | (at + width > self.size) | ((at & (width - 1)) != 0)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            self.log.add(
                "bounds",
                site.line,
                f"{self.log.place(int(lane[k]))} {VERB[site.op]} byte {int(at[k])} of its "
                f"local arrays, which have {self.size}",
            )

            def serve(good: Any, some: Lanes, part: Any, inner: Any) -> Any:
                return self.access(site, some, at[good].view(U64), 0, origin, part)

            return merge(site, lanes, [~bad], values, None, serve)
        self._count(site, lanes, address)
        if values is not None:
            for n in range(width):
                self.written[at + n, lane] = True
            self.words.write(at, lane, site.element, [lanes.spread(value) for value in values])
            return None
        self.unset = [np.False_] * site.count
        for n in range(site.count):
            start = at + n * site.element
            fresh = ~np.all([self.written[start + byte, lane] for byte in range(site.element)], axis=0)
            if fresh.any():
                self.unset[n] = fresh.reshape(lanes.shape)
                who = self.log.place(int(lane[int(np.flatnonzero(fresh)[0])]))
                self.log.unset_read(site.line, f"{who} reads an element of a local array that it never wrote")
        found = self.words.read(at, lane, site.element, site.count)
        return [value.reshape(lanes.shape) for value in found]

    def forget(self, site: Site, lanes: Lanes, base: Array, offset: int, unset: Sequence[Array]) -> None:
        """What a store has just put there is no value: where its operands were unset, by element."""
        address = lanes.spread(base.view(I64)) + offset
        for n, mask in enumerate(unset):
            which = lanes.spread(mask)
            for byte in range(site.element):
                at = address[which] + n * site.element + byte
                inside = (at >= 0) & (at < self.size)
                self.written[at[inside], lanes.numbers[which][inside]] = False

    def _count(self, site: Site, lanes: Lanes, address: Array) -> None:
        counts = self.counts.setdefault(site.number, Counts())
        width = site.element * site.count
        rows, active, times = lanes.by_warp(address)
        counts.bytes += lanes.count * width
        counts.requests += int(active.any(axis=1).sum()) * times
        physical = (rows >> 2) * 128 + np.arange(32) * 4 + (rows & 3)
        for word in range(max(1, width // 4)):
            counts.sectors += int(traffic.global_sectors(physical + 128 * word, active, 8).sum()) * times
