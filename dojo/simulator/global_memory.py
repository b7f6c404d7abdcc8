"""Global and constant memory: serves loads, stores and atomics of all lanes, checks them and counts their
sectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import traffic
from .findings import EARLIER, OVERWRITES, VERB, Counts, Log
from .lanes import Lanes
from .memory import ONES, SLOT_BITS, Buffer, exempt, merge
from .numerics import I64, U64, UNSIGNED
from .order import Order
from .program import Site
from .races import NOBODY, Apart, Last

Array = Any
Atomic = Callable[
    [Any, Any, Any], Any
]  # (flat view of the memory's words, index, which lanes or None) -> old values
ALL_LANES = np.ones(32, np.bool_)
MOST_MASKED = 1 << 17  # places of an array whose shadow keeps every lane: a KiB each
MASKED = "races inside a warp were judged by two lanes a word in large arrays: a __syncwarp() has a mask"
READ_ONLY = "what __ldg or a const __restrict__ pointer reads must not change while the kernel runs"
NOTE = "races between blocks were not judged: the kernel uses a memory fence"


def _in_the_grid(log: Log, order: Order, judges_blocks: bool) -> Apart:
    """How far threads are from threads of this chunk: 1 another lane, 2 another warp, 3 another block; 0
    where a barrier of the block, or nobody's judging, makes the two accesses no race.
    """

    def apart(threads: Any, times: Any, others: Any) -> Any:
        block = others // log.threads
        warp = threads % log.threads // 32 != others % log.threads // 32
        fresh = (times >= order.block_time[block - log.first_block]) & (threads != others)
        return np.where(threads // log.threads == block, fresh * (1 + warp), 3 * judges_blocks)

    return apart


class GlobalMemory:
    """`buffers` by slot (address >> SLOT_BITS); `origins`: by the parameter or variable that points to
    them.
    """

    def __init__(
        self,
        buffers: dict[int, Buffer],
        origins: dict[str, Buffer],
        log: Log,
        counts: dict[int, Counts],
        sites: list[Site],
        judges_blocks: bool,
        every_lane: bool,
    ) -> None:
        self.buffers, self.origins, self.log, self.counts, self.sites = buffers, origins, log, counts, sites
        self.judges_blocks = judges_blocks
        self.unset: list[Array] = [np.False_] * 4  # where the last load found what nobody wrote, by element
        self.order: Order
        for buffer in buffers.values():
            if buffer.shadow is not None and every_lane:
                if buffer.shadow.places <= MOST_MASKED:
                    buffer.shadow.every_lane = True
                    buffer.shadow.clear()
                else:
                    log.note(MASKED)

    def begin(self, order: Order) -> None:
        """A chunk of blocks begins; `order` knows its barriers."""
        self.order = order
        for buffer in self.buffers.values():
            if buffer.shadow is not None:
                buffer.shadow.apart = _in_the_grid(self.log, order, self.judges_blocks)

    def access(
        self,
        site: Site,
        lanes: Lanes,
        base: Array,
        offset: int,
        origin: str,
        values: tuple[Array, ...] | None,
        atomic: Atomic | None = None,
    ) -> list[Array] | None:
        """What the lanes load (or find, if `atomic`) at base + offset, or None for a store.

        `base` is a u64 array of the lanes' shape, or one that broadcasts to it; `origin` the name of the
        parameter or variable that it was made from, if that is known.
        """
        address = base.view(I64)
        first = address if address.shape == () else address.reshape(-1)[0]
        buffer = self.buffers.get((int(first) + offset) >> SLOT_BITS)
        width = site.element * site.count
        if buffer is not None:
            at = address - (buffer.base - offset)
            inside = int(at.min()) >= 0 and int(at.max()) + width <= buffer.size
        if buffer is None or not inside or (width > 1 and (at & (width - 1)).any()):
            return self._astray(site, lanes, base, offset, origin, values, atomic)
        self._count(site, lanes, at, buffer.name)
        if atomic is not None:
            self._judge(site, buffer, at, lanes, None)
            view = buffer.data.view(UNSIGNED[site.element])
            buffer.changed = True
            return [atomic(view, lanes.spread(at) // site.element, None).reshape(lanes.shape)]
        if values is None:
            self.unset = [np.False_] * site.count
            self._judge(site, buffer, at, lanes, None)
            return buffer.read(at, site.element, site.count)
        contents = tuple(lanes.spread(value) for value in values)
        self._judge(site, buffer, at, lanes, contents)
        return None

    def _astray(
        self, site: Site, lanes: Lanes, base: Array, offset: int, origin: str, values: Any, atomic: Any
    ) -> list[Array] | None:
        """Some lanes are out of bounds, misaligned or in another buffer: each buffer in turn, the bad lanes
        dropped.
        """
        address = lanes.spread(base.view(I64)) + offset
        width = site.element * site.count
        slots = address >> SLOT_BITS
        parts = []
        for slot in np.unique(slots):
            buffer = self.buffers.get(int(slot))
            here = slots == slot
            at = address - (int(slot) << SLOT_BITS)
            outside = here & (at + width > (buffer.size if buffer else 0))
            crooked = here & ~outside & ((address & (width - 1)) != 0)
            if outside.any():
                k = int(np.flatnonzero(outside)[0])
                self._report_outside(site, int(lanes.numbers[k]), int(address[k]), origin)
            if buffer and crooked.any():
                k = int(np.flatnonzero(crooked)[0])
                element = f"{buffer.name}[{int(at[k]) // buffer.itemsize}]"
                self.log.misaligned(site, int(lanes.numbers[k]), element, int(at[k]), buffer.name)
            parts.append(here & ~outside & ~crooked)

        def serve(good: Any, some: Lanes, part: Any, inner: Any) -> Any:
            return self.access(site, some, address[good].view(U64), 0, origin, part, inner)

        found = merge(site, lanes, parts, values, atomic, serve)
        self.unset = [np.False_] * site.count
        return found

    def _report_outside(self, site: Site, number: int, address: int, origin: str) -> None:
        """Names the buffer that the address was made from, or else the nearest, and the element that it
        would be.
        """
        half = 1 << SLOT_BITS - 1  # an address just before a buffer lies in the slot of the one before
        buffer = self.origins.get(origin) or self.buffers.get((address + half) >> SLOT_BITS)
        who = f"{self.log.place(number)} {VERB[site.op]}"
        if buffer is None:
            self.log.add("bounds", site.line, f"{who} address 0x{address & ONES[8]:x}, which is in no array")
            return
        index = (address - buffer.base) // buffer.itemsize
        size = buffer.size // buffer.itemsize
        side = "before its start" if index < 0 else f"past its {size:,} element{'s' if size != 1 else ''}"
        size_told = (
            f"{site.bits // 8} bytes at " if 0 <= index < size else ""
        )  # they begin inside, and end outside
        self.log.add("bounds", site.line, f"{who} {size_told}{buffer.name}[{index}], {side}")

    def _count(self, site: Site, lanes: Lanes, at: Array, array: str) -> None:
        counts = self.counts.setdefault(site.number, Counts())
        counts.bytes += lanes.count * site.element * site.count
        if lanes.full and lanes.threads % 32 == 0:
            warps = lanes.threads // 32
            if at.ndim < 2 or at.shape[0] == 1:  # one address a warp
                counts.requests += warps * lanes.blocks
                counts.sectors += warps * lanes.blocks
                if not counts.worst:
                    counts.keep(1, np.full(32, at.reshape(-1)[0]), ALL_LANES, array)
                return
            sector = (at >> 5).reshape(warps, 32, -1)
            step = sector[:, 1:] - sector[:, :-1]
            if step.min() >= 0:  # rising along each warp: a new sector wherever it steps
                requests, stands_for = warps * lanes.blocks, lanes.blocks // at.shape[1]
                sectors = (int(np.count_nonzero(step)) + warps * at.shape[1]) * stands_for
                counts.requests += requests
                counts.sectors += sectors
                if sectors > counts.worst_cost * requests:
                    each = np.count_nonzero(step, axis=1) + 1
                    warp, block = np.unravel_index(each.argmax(), each.shape)
                    address = at.reshape(warps, 32, -1)[warp, :, block]
                    counts.keep(int(each[warp, block]), address, ALL_LANES, array)
                return
        rows, active, times = lanes.by_warp(at)
        # An inactive lane repeats an active one's address, which costs nothing.
        each = traffic.global_sectors(rows, None, site.bits)
        requests, sectors = len(rows), int(each.sum())
        counts.requests += requests * times
        counts.sectors += sectors * times
        if sectors > counts.worst_cost * requests:
            k = int(each.argmax())
            counts.keep(int(each[k]), rows[k], active[k], array)

    def _judge(self, site: Site, buffer: Buffer, at: Array, lanes: Lanes, contents: Any) -> None:
        """Was it written, and who else touched it with no barrier between? Then stores what a store
        writes.
        """
        shadow = buffer.shadow
        if shadow is None and buffer.written is None and contents is None:
            return
        offset = lanes.spread(at)
        column, thread = lanes.numbers % lanes.blocks, lanes.numbers // lanes.blocks
        in_grid = (column + self.log.first_block) * lanes.threads + thread
        ordered = self._ordered(thread, column, lanes.threads)
        exempt = self._exempt(site)

        def unchanged() -> Any:
            stored = buffer.read(offset, site.element, site.count)
            return np.all([have == want for have, want in zip(stored, contents, strict=True)], axis=0)

        places = [
            offset // buffer.grain + n for n in range(max(1, site.element * site.count // buffer.grain))
        ]
        clashes = []
        for n, place in enumerate(places):
            if buffer.written is not None:
                self._judge_written(site, buffer, place, n, offset, lanes)
            if shadow is None:
                continue
            if site.read_only or (buffer.read_only is not None and site.op != "load"):
                self._judge_read_only(site, buffer, place, offset, lanes, in_grid)
            if site.op == "load":
                conflicts = shadow.read(place, in_grid, site.number, self.order.now, ordered, exempt)
            else:
                conflicts, beside = shadow.write(
                    place,
                    in_grid,
                    site.number,
                    self.order.now,
                    ordered,
                    exempt=exempt,
                    unchanged=unchanged if contents is not None else None,
                )
                if len(beside) and contents is not None:
                    clashes.append((place, beside))
            for conflict in conflicts:
                k, other = int(conflict.positions[0]), self.sites[int(conflict.sites[0])]
                if not self.log.has_race(site, other, conflict.kind):
                    name = f"{buffer.name}[{int(offset[k]) // buffer.itemsize}]"
                    self._report_race(site, other, conflict.kind, lanes, k, int(conflict.threads[0]), name)
        if contents is not None:
            buffer.write(offset, site.element, contents)
        for place, beside in clashes:
            assert shadow is not None
            self._judge_clash(site, buffer, offset, lanes, contents, beside, shadow.writer.thread[place])

    def _judge_read_only(
        self, site: Site, buffer: Buffer, place: Any, offset: Any, lanes: Lanes, in_grid: Any
    ) -> None:
        """What ld.global.nc reads nobody may write in the same launch, before it or after it."""
        assert buffer.shadow is not None
        if buffer.read_only is None:
            buffer.read_only = Last(buffer.shadow.places)
        other = buffer.shadow.writer if site.op == "load" else buffer.read_only
        if site.op == "load":
            buffer.read_only.thread[place], buffer.read_only.site[place] = in_grid, site.number
        touched = np.flatnonzero(other.thread[place] != NOBODY)
        if not len(touched):
            return
        k = int(touched[0])
        earlier, before = int(other.thread[place[k]]), self.sites[int(other.site[place[k]])]
        who = self.log.place(int(lanes.numbers[k]))
        name = f"{buffer.name}[{int(offset[k]) // buffer.itemsize}]"
        whose = "the same thread" if earlier == int(in_grid[k]) else self.log.thread_of_grid(earlier)
        if site.op == "load":
            text = (
                f"{who} reads {name} through the read-only cache, which may still hold what was there before "
                f"{whose} {EARLIER[before.op]} it on line {before.line}: {READ_ONLY} (read after write)"
            )
        else:
            text = (
                f"{who} {OVERWRITES[site.op]} {name}, which {whose} read through the read-only cache on line "
                f"{before.line}: {READ_ONLY} (write after read)"
            )
        self.log.add("race", site.line, text, before.line, "read-only")

    def _judge_written(
        self, site: Site, buffer: Buffer, place: Any, n: int, offset: Any, lanes: Lanes
    ) -> None:
        assert buffer.written is not None
        if site.op != "store":
            fresh = ~buffer.written[place]
            if fresh.any():
                k = int(np.flatnonzero(fresh)[0])
                name = f"{buffer.name}[{int(offset[k]) // buffer.itemsize}]"
                who = self.log.place(int(lanes.numbers[k]))
                text = f"{who} {VERB[site.op]} {name}, which was never written"
                if site.op == "load":
                    self.log.unset_read(site.line, text)
                    element = n * buffer.grain // site.element
                    self.unset[element] = self.unset[element] | fresh.reshape(lanes.shape)
                else:
                    self.log.add("uninitialised", site.line, text)
        if site.op != "load":
            buffer.written[place] = True

    def _ordered(self, thread: Any, column: Any, threads: int) -> Callable[[Any, Any, Any], Any]:
        """Threads of one block are ordered by its barriers; of two blocks never, or not judged if there are
        fences.
        """

        def ordered(before: Any, time: Any, positions: Any) -> Any:
            mine = column[positions]
            same = before // threads == mine + self.log.first_block
            met = self.order.settled(self.log.note, before % threads, time, thread[positions], mine, same)
            if self.judges_blocks:
                return same & met
            if not same.all():
                self.log.note(NOTE)
            return met | ~same

        return ordered

    def _exempt(self, site: Site) -> NDArray[np.bool_] | None:
        return exempt(self.sites, site)

    def _report_race(
        self, site: Site, other: Site, order: str, lanes: Lanes, k: int, earlier: int, name: str
    ) -> None:
        number = int(lanes.numbers[k])
        if earlier // lanes.threads == number % lanes.blocks + self.log.first_block:
            who, barrier = self.log.thread_name(earlier % lanes.threads), "with no __syncthreads() between"
        else:
            who, barrier = self.log.thread_of_grid(earlier), "and nothing orders two blocks"
        self.log.race(site, other, order, self.log.place(number), who, name, barrier)

    def _judge_clash(
        self, site: Site, buffer: Buffer, offset: Any, lanes: Lanes, contents: Any, beside: Any, writer: Any
    ) -> None:
        """Lanes of one store in one place: equal values are harmless, different ones are a race."""
        stored = buffer.read(offset[beside], site.element, site.count)
        differ = np.zeros(len(beside), bool)
        for have, content in zip(stored, contents, strict=True):
            differ |= have != content[beside]
        if differ.any():
            k = int(beside[np.flatnonzero(differ)[0]])
            name = f"{buffer.name}[{int(offset[k]) // buffer.itemsize}]"
            self.log.clash(
                site, self.log.place(int(lanes.numbers[k])), self.log.thread_of_grid(int(writer[k])), name
            )
