"""Shared memory: serves loads, stores and atomics, checks them and counts their wavefronts.

Where all blocks of the chunk do the same (addresses without a block's column) everything but the values is
worked out once for one block. What was worked out for an instruction is kept as a `Plan` and used again
while its base register and its lanes are the very same objects, as in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import traffic
from .findings import IN_WARP, OVERWRITES, VERB, Counts, Log
from .lanes import Lanes
from .memory import Words, exempt, merge
from .numerics import I64, U64
from .order import Order
from .program import Site
from .races import Conflict, Shadow

Array = Any


@dataclass(slots=True)
class Plan:
    base: Array
    lanes: Lanes
    address: NDArray[np.int64]  # bytes; one a thread (alike) or one a lane
    thread: NDArray[np.intp]  # index in the block, of each address
    column: NDArray[np.intp] | None  # the block of each address; None: the same for all blocks
    counts: Counts  # with what the assembler joins
    unjoined: Counts  # as the PTX has it


class SharedMemory:
    """The shared memory of a chunk of `blocks` blocks, `size` bytes each.

    `grain`: bytes a place of the race shadow. `extents`: (start, end) of each variable. `element(variable,
    byte)` words an element for a message. `every_lane`: of the race shadow.
    """

    def __init__(
        self,
        size: int,
        blocks: int,
        grain: int,
        extents: dict[str, tuple[int, int]],
        log: Log,
        counts: dict[int, Counts],
        unjoined: dict[int, Counts],
        sites: list[Site],
        order: Order,
        element: Callable[[str, int], str],
        every_lane: bool,
    ) -> None:
        self.size, self.blocks, self.grain, self.extents = size, blocks, grain, extents
        self.log, self.counts, self.sites, self.order, self.element = log, counts, sites, order, element
        self.unjoined = unjoined
        self.words = Words(size, blocks)
        places = self.words.data.shape[0] * 4 // grain
        self.written = np.zeros((places, 1), bool)  # one column stands for all blocks while they are alike
        self.shadow = Shadow(places, 1, every_lane=every_lane)
        self.plans: dict[int, Plan] = {}
        self.unset: list[Array] = [np.False_] * 4  # where the last load found what nobody wrote, by element
        self.judges = True  # until the first race between warps
        self.in_flight: NDArray[np.bool_] | None = None  # the places that a cp.async may still write
        self.copied: NDArray[np.int32]  # and the last such instruction of each

    def barrier(self, columns: NDArray[np.intp] | None) -> None:
        """All threads of these blocks (None: of all) have met: nothing from before can race any more."""
        if columns is not None:
            self._widen()
            self.shadow.clear_columns(columns)
            return
        if self.shadow.columns > 1:
            self.shadow = Shadow(self.shadow.places, 1, every_lane=self.shadow.every_lane)
        elif self.shadow.touched:
            self.shadow.clear()
        if self.written.shape[1] > 1 and (self.written == self.written[:, :1]).all():
            self.written = self.written[:, :1].copy()

    def forget(self, site: Site, lanes: Lanes, base: Array, offset: int, unset: Sequence[Array]) -> None:
        """What a store has just put there is no value: where its operands were unset, by element."""
        address = lanes.spread(base.view(I64)) + offset
        column = lanes.numbers % self.blocks
        self._widen()
        for n, mask in enumerate(unset):
            which = lanes.spread(mask)
            first = (address[which] + n * site.element) // self.grain
            for step in range(max(1, site.element // self.grain)):
                inside = (first >= 0) & (first + step < len(self.written))
                self.written[(first + step)[inside], column[which][inside]] = False

    def landed(self, places: Array, lanes: Array, site: int) -> None:
        """Copies of cp.async that their threads have waited for: from now on like stores of these threads,
        made at the wait.
        """
        assert self.in_flight is not None
        self._widen()
        self.in_flight[places] = False
        threads = np.broadcast_to(lanes // self.blocks, places.shape).reshape(-1)
        self.shadow.write(places.reshape(-1), threads, site, self.order.now, None)

    def _judge_in_flight(self, site: Site, plan: Plan, place: Any) -> None:
        assert self.in_flight is not None
        column = np.arange(self.blocks) if plan.column is None else plan.column
        index = place[:, None] * self.blocks + column if plan.column is None else place * self.blocks + column
        at = np.argwhere(self.in_flight[index])
        if len(at):
            k = int(at[0][0])
            block = int(at[0][-1]) if plan.column is None else int(plan.column[k])
            other = self.sites[int(self.copied[index[tuple(at[0])]])]
            who = self.log.place(int(plan.thread[k]) * self.blocks + block)
            name = self._name(int(place[k]) * self.grain)
            text = (
                f"{who} {OVERWRITES[site.op]} {name}, which the cp.async on line {other.line} may still be "
                f"copying: nobody has waited for it ({'read' if site.op == 'load' else 'write'} after write)"
            )
            self.log.add("race", site.line, text, other.line, "in flight")

    def _widen(self) -> None:
        """From what is the same for all blocks to a column each."""
        if self.shadow.columns < self.blocks:
            self.shadow.widen(self.blocks)
        if self.written.shape[1] < self.blocks:
            self.written = np.repeat(self.written, self.blocks, axis=1)

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
        """As `GlobalMemory.access`. `origin`: the variable that the address was made from, if that is
        known.
        """
        plan = self.plans.get(site.number)
        if plan is None or plan.base is not base or plan.lanes is not lanes:
            plan = self._plan(site, lanes, base, offset, origin)
            if plan is None:
                return self._astray(site, lanes, base, offset, origin, values, atomic)
            self.plans[site.number] = plan
        self.counts.setdefault(site.number, Counts()).add(plan.counts)
        if site.joined != -1:
            self.unjoined.setdefault(site.number, Counts()).add(plan.unjoined)
        if atomic is not None:
            self._judge(site, plan)
            return [self._atomic(site, plan, atomic)]
        if values is None:
            self.unset = [np.False_] * site.count
            self._judge(site, plan)
            found = self.words.read(plan.address, plan.column, site.element, site.count)
            return found if plan.column is None else [value.reshape(lanes.shape) for value in found]
        shape = lanes.shape if plan.column is None else (lanes.count,)
        contents = [
            np.broadcast_to(value if plan.column is None else lanes.spread(value), shape) for value in values
        ]
        self._judge(site, plan, contents)
        return None

    def _plan(self, site: Site, lanes: Lanes, base: Array, offset: int, origin: str) -> Plan | None:
        """None if a lane is out of bounds or misaligned."""
        address = base.view(I64) + offset
        width = site.element * site.count
        start, end = self.extents.get(origin, (0, self.size))
        if int(address.min()) < start or int(address.max()) + width > end or (address & (width - 1)).any():
            return None
        unjoined = counts = _cost(*lanes.by_warp(address), site.bits, site.op != "load", lanes.count)
        if site.joined != -1:
            counts = self._joined(site, lanes, address)
        alike = lanes.flat is None and lanes.columns is None and (address.ndim < 2 or address.shape[1] == 1)
        if alike and site.op != "atomic":
            thread = lanes.thread[:, 0]
            return Plan(
                base,
                lanes,
                np.broadcast_to(address.reshape(-1), thread.shape),
                thread,
                None,
                counts,
                unjoined,
            )
        column, thread = lanes.numbers % self.blocks, lanes.numbers // self.blocks
        return Plan(base, lanes, lanes.spread(address), thread, column, counts, unjoined)

    def _joined(self, site: Site, lanes: Lanes, address: Array) -> Counts:
        """What the wide access costs that the assembler makes of this one and its neighbours."""
        if site.joined == 0:
            return Counts()
        bits = abs(site.joined)
        rows, active, times = lanes.by_warp(address)
        if site.joined < 0:
            active = active & (rows % (bits // 8) == 0)
        rows = rows & ~(bits // 8 - 1)  # the first part may be missing
        return _cost(rows, active, times, bits, site.op != "load", int(active.sum()) * times)

    def _astray(
        self, site: Site, lanes: Lanes, base: Array, offset: int, origin: str, values: Any, atomic: Any
    ) -> list[Array] | None:
        address = lanes.spread(base.view(I64)) + offset
        width = site.element * site.count
        start, end = self.extents.get(origin, (0, self.size))
        outside = (address < start) | (address + width > end)
        crooked = ~outside & ((address & (width - 1)) != 0)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            who = f"{self.log.place(int(lanes.numbers[k]))} {VERB[site.op]}"
            if origin in self.extents:
                variable = plain_name(origin)
                name = self.element(variable, int(address[k]) - start)
                text = f"{who} {name}, outside the {end - start:,} bytes of {variable}"
                if end == start:
                    text = f"{who} {name}, but the launch gives {variable} no dynamic shared memory"
            else:
                text = f"{who} shared memory at byte {int(address[k])} of {self.size:,}"
            self.log.add("bounds", site.line, text)
        if crooked.any():
            k = int(np.flatnonzero(crooked)[0])
            place = int(address[k])
            self.log.misaligned(site, int(lanes.numbers[k]), self._name(place), place, "shared memory")

        def serve(good: Any, some: Lanes, part: Any, inner: Any) -> Any:
            return self.access(site, some, address[good].view(U64), 0, origin, part, inner)

        found = merge(site, lanes, [~outside & ~crooked], values, atomic, serve)
        self.unset = [np.False_] * site.count
        return found

    def _atomic(self, site: Site, plan: Plan, atomic: Any) -> Array:
        assert plan.column is not None
        if site.element == 4:
            old = atomic(self.words.flat, (plan.address >> 2) * self.blocks + plan.column, None)
        else:  # the halves of a 64-bit word lie in two rows
            places, index = np.unique((plan.address >> 3) * self.blocks + plan.column, return_inverse=True)
            address, column = places // self.blocks << 3, places % self.blocks
            view = self.words.read(address, column, 8, 1)[0]
            old = atomic(view, index, None)
            self.words.write(address, column, 8, [view])
        return old.reshape(plan.lanes.shape)

    def _judge(self, site: Site, plan: Plan, contents: Any = None) -> None:
        """Has the place been written, and who touched it since the last barrier? Then stores what a store
        writes.
        """
        grain = self.grain
        if plan.column is not None:
            self._widen()
        places = [plan.address // grain + n for n in range(site.element * site.count // grain)]
        clashes = []
        for n, place in enumerate(places):
            self._judge_written(site, plan, place, n)
            if self.in_flight is not None:
                self._judge_in_flight(site, plan, place)
            if self.judges and self._judge_races(site, plan, place, contents):
                clashes.append(place)
        if contents is not None:
            self.words.write(plan.address, plan.column, site.element, contents)
        for place in clashes:
            self._judge_clash(site, plan, contents, place)

    def _judge_races(self, site: Site, plan: Plan, place: Any, contents: Any) -> bool:
        """Whether lanes of one store meet in a place."""
        blocks, columns = self.blocks, self.shadow.columns
        column: Any
        if plan.column is not None:
            at, who, column = place * columns + plan.column, plan.thread, plan.column
        elif columns > 1:  # all blocks alike again, but their shadows have become different
            column = np.tile(np.arange(blocks), len(place))
            at, who = np.repeat(place, blocks) * blocks + column, np.repeat(plan.thread, blocks)
        else:
            at, who, column = place, plan.thread, np.zeros(len(place), np.intp)

        def ordered(before: Any, time: Any, positions: Any) -> Any:
            return self.order.settled(self.log.note, before, time, who[positions], column[positions])

        def unchanged() -> Any:
            stored = self.words.read(plan.address, plan.column, site.element, site.count)
            same = np.all([have == want for have, want in zip(stored, contents, strict=True)], axis=0)
            return same.reshape(-1) if plan.column is not None or columns > 1 else same.all(axis=1)

        judge = ordered if self.order.warp_barriers or self.order.hands_on else None
        free = exempt(self.sites, site)
        beside: Any = ()
        if site.op == "load":
            conflicts = self.shadow.read(at, who, site.number, self.order.now, judge, free)
        else:
            conflicts, beside = self.shadow.write(
                at,
                who,
                site.number,
                self.order.now,
                judge,
                exempt=free,
                unchanged=unchanged if contents is not None else None,
            )
        for conflict in conflicts:
            self._report_race(site, conflict, at, who, column)
        return len(beside) > 0 and contents is not None

    def _judge_written(self, site: Site, plan: Plan, place: Any, n: int) -> None:
        index = place if plan.column is None else (place, plan.column if self.written.shape[1] > 1 else 0)
        if site.op != "store":
            fresh = ~self.written[index]
            if np.count_nonzero(fresh):
                where = np.argwhere(fresh)[0]
                k = int(where[0])
                column = int(where[-1]) if self.written.shape[1] > 1 else 0
                if plan.column is not None:
                    column = int(plan.column[k])
                who = self.log.place(int(plan.thread[k]) * self.blocks + column)
                name = self._name(int(place[k]) * self.grain)
                text = f"{who} {VERB[site.op]} {name}, which no thread has written"
                if site.op == "load":
                    self.log.unset_read(site.line, text)
                    shape = (len(place), -1) if plan.column is None else plan.lanes.shape
                    element = n * self.grain // site.element
                    self.unset[element] = self.unset[element] | fresh.reshape(shape)
                else:
                    self.log.add("uninitialised", site.line, text)
        if site.op != "load":
            self.written[index] = True

    def _report_race(self, site: Site, conflict: Conflict, at: Any, thread: Any, column: Any) -> None:
        """Names the first pair of threads of two warps, if there is one: the missing barrier is then a
        block's.
        """
        other = self.sites[int(conflict.sites[0])]
        if self.log.has_race(site, other, conflict.kind):
            return
        self.judges = not (conflict.threads // 32 != thread[conflict.positions] // 32).any()
        apart = conflict.threads // 32 != thread[conflict.positions] // 32
        n = int(apart.argmax())
        k, earlier = int(conflict.positions[n]), int(conflict.threads[n])
        other = self.sites[int(conflict.sites[n])]
        who, index, barrier = self.log.thread_name(earlier), int(at[k]) // self.shadow.columns, "between"
        if other.op == "wait":
            copy = self.sites[int(self.copied[index * self.blocks + int(column[k])])]
            who, barrier = f"{who} copied on line {copy.line} and", "after that"
        self.log.race(
            site,
            other,
            conflict.kind,
            self.log.place(int(thread[k]) * self.blocks + int(column[k])),
            who,
            self._name(index * self.grain),
            f"{'with no __syncthreads()' if apart.any() else IN_WARP} {barrier}",
        )

    def _judge_clash(self, site: Site, plan: Plan, contents: Any, place: Any) -> None:
        """Lanes of one store in one place: equal values are harmless, different ones are a race."""
        stored = self.words.read(plan.address, plan.column, site.element, site.count)
        differ = np.zeros(np.shape(contents[0]), bool)
        for have, want in zip(stored, contents, strict=True):
            differ |= have != want
        if not differ.any():
            return
        where = np.argwhere(differ)[0]
        k = int(where[0])
        column = int(where[1]) if plan.column is None else int(plan.column[k])
        writer = self.shadow.writer.thread.reshape(-1, self.shadow.columns)
        other = int(writer[int(place[k]), column if self.shadow.columns > 1 else 0])
        self.log.clash(
            site,
            self.log.place(int(plan.thread[k]) * self.blocks + column),
            self.log.thread_name(other),
            self._name(int(place[k]) * self.grain),
        )

    def _name(self, offset: int) -> str:
        for name, (start, end) in self.extents.items():
            if start <= offset < end:
                return self.element(plain_name(name), offset - start)
        return f"shared memory at byte {offset}"


def _cost(rows: Array, active: Array, times: int, bits: int, store: bool, lanes: int) -> Counts:
    """Of one access at these (warps, 32) addresses, by `times` blocks alike."""
    wavefronts, ideal = traffic.shared_wavefronts(rows, active, bits, store)
    used, least = int(wavefronts.sum()) * times, int(ideal.sum()) * times
    counts = Counts(int(active.any(axis=1).sum()) * times, 0, used, used - least, lanes * bits // 8)
    if used > least:
        conflicts = wavefronts - ideal
        k = int(conflicts.argmax())
        counts.keep(int(conflicts[k]), rows[k], active[k])
    return counts


def plain_name(symbol: str) -> str:
    """`_ZZ12matmul_tiledE3Nds` -> `Nds`: the last name of a mangled symbol (a digit count, then that many
    letters).
    """
    if symbol.startswith("_Z"):
        for match in re.finditer(r"(?=(\d+)([A-Za-z_]\w*?)(?:_\$?_?\d+)*$)", symbol):
            if len(match[2]) == int(match[1]):
                return match[2]
    return symbol
