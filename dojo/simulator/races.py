"""Who touched which word last: the shadow of a memory, and the races that it shows.

Two accesses to one place by different threads, one of them a write, are a race unless a barrier orders
them. The shadow keeps, for every place, two writers and two readers, so its size does not grow with the
run. Two readers are enough: whoever writes next races with at least one of two different threads. The two
are chosen as far apart as may be (two blocks, else two warps, else two lanes), because a `__syncwarp()`
orders only threads of one warp, and a `__syncthreads()` those of one block. A `__syncwarp(mask)` orders some
lanes of a warp and not others: for a kernel that has one, the last access of every lane is kept beside.

Atomics do not race with atomics; nor does the plain read that a compare-and-swap loop begins with. Time is
a counter that the machine advances at every barrier; an access is ordered before a later one if a barrier
that both threads joined lies between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[Any]
NOBODY = -1
Ordered = Callable[[Index, Index, Index], Index]  # (earlier threads, their times, positions) -> bool
Apart = Callable[[Index, Any, Index], Index]  # (threads, times of their accesses, other threads) -> ranks
LANES = 32


@dataclass(frozen=True, slots=True)
class Conflict:
    """Positions in the access whose place `threads` had touched before, at the memory instructions
    `sites`.
    """

    kind: str  # "read after write", "write after read", "write after write"
    positions: Index
    threads: Index
    sites: Index


class Last:
    """One remembered access a place: thread, memory instruction, time."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, NOBODY, np.int32)
        self.site = np.zeros(size, np.int32)
        self.time = np.zeros(size, np.int64)

    def repeat(self, columns: int) -> None:
        self.thread = np.repeat(self.thread, columns)
        self.site = np.repeat(self.site, columns)
        self.time = np.repeat(self.time, columns)


def in_two_warps(threads: Index, times: Any, others: Index) -> Index:
    """`Apart` for the threads of one block, between two of its barriers."""
    ranks: Index = threads // LANES != others // LANES
    return ranks


class Shadow:
    """The shadow of `places` (words, or smaller if the kernel makes smaller accesses) in `columns` blocks.

    `apart` ranks how far a thread is from another one, from 0 on: the farther, the fewer barriers order the
    two. `every_lane`: keep what each lane of a warp did last, too. Threads are numbered
    below 2**31.
    """

    def __init__(
        self,
        places: int,
        columns: int,
        apart: Apart = in_two_warps,
        every_lane: bool = False,
    ) -> None:
        self.places, self.columns = places, columns
        self.apart, self.every_lane = apart, every_lane
        self.clear()

    def clear(self) -> None:
        size = self.places * self.columns
        self.writer, self.other_writer, self.reader, self.other_reader = (Last(size) for _ in range(4))
        # a row of places for each lane, of whichever warp: for accesses of two warps the two above are enough
        self.lane_writer, self.lane_reader = (Last(LANES * size if self.every_lane else 0) for _ in range(2))
        self.touched = False

    def clear_columns(self, columns: Index) -> None:
        for last in self._all():
            last.thread.reshape(-1, self.columns)[:, columns] = NOBODY

    def widen(self, columns: int) -> None:
        """From one column that stands for all blocks to one column each."""
        for last in self._all():
            last.repeat(columns)
        self.columns = columns

    def _all(self) -> list[Last]:
        return [
            *(self.writer, self.other_writer, self.lane_writer),
            *(self.reader, self.other_reader, self.lane_reader),
        ]

    def read(
        self,
        place: Index,
        thread: Index,
        site: int,
        time: int,
        ordered: Ordered | None,
        exempt: Index | None = None,
    ) -> list[Conflict]:
        """Threads `thread` read `place` (flat index: place * columns + column), one element each.

        `exempt`: by memory instruction, whether this access does not race with it.
        """
        conflicts = [
            conflict
            for last, at in self._kept(self.writer, self.other_writer, self.lane_writer, place)
            for conflict in self._against(last, "read after write", at, thread, ordered, exempt)
        ]
        self._remember(self.reader, self.other_reader, self.lane_reader, place, thread, site, time)
        return conflicts

    def _kept(self, last: Last, other: Last, lane: Last, place: Index) -> list[tuple[Last, Index]]:
        """Every access that is remembered of these places: where, and the index there."""
        found = [(last, place), (other, place)]
        if self.every_lane:
            size = self.places * self.columns
            found += [(lane, place + row * size) for row in range(LANES)]
        return found

    def _remember(
        self, last: Last, other: Last, lane: Last, place: Index, thread: Index, site: int, time: int
    ) -> Index:
        """Notes the access; returns who stands for it in each place, where several lanes of it meet."""
        before = last.thread[place]
        last.thread[place] = thread
        now = last.thread[place]
        if np.count_nonzero((before != NOBODY) & (before != now)) or np.count_nonzero(thread != now):
            self._keep_two(last, other, place, thread, before, now, site, time)
        last.site[place] = site
        last.time[place] = time
        if self.every_lane:
            at = thread % LANES * (self.places * self.columns) + place
            lane.thread[at], lane.site[at], lane.time[at] = thread, site, time
        self.touched = True
        return now

    def _keep_two(
        self,
        last: Last,
        other: Last,
        place: Index,
        thread: Index,
        before: Index,
        now: Index,
        site: int,
        time: int,
    ) -> None:
        """Chooses the second thread: the one before, or another lane of this very access, whichever is
        farthest from the first, and the later one of two equally far.
        """
        second = other.thread[place]
        kept = self.apart(second, other.time[place], now) * (second != NOBODY)
        far = self.apart(before, last.time[place], now)
        at = np.flatnonzero((before != NOBODY) & (before != now) & (far >= kept))
        if len(at):
            other.thread[place[at]] = before[at]
            other.site[place[at]] = last.site[place[at]]
            other.time[place[at]] = last.time[place[at]]
        beside = thread != now  # lanes of one access share a place: the last one stands, another comes second
        if np.count_nonzero(beside):
            far = self.apart(thread, time, now)
            second = other.thread[place]
            kept = self.apart(second, other.time[place], now) * (second != NOBODY)
            for rank in range(int(far.max()) + 1):
                at = np.flatnonzero(beside & (far == rank) & (kept <= rank))
                other.thread[place[at]] = thread[at]
                other.site[place[at]] = site
                other.time[place[at]] = time
        same = other.thread[place] == now
        if np.count_nonzero(same):  # the second one must be somebody else
            other.thread[place[same]] = NOBODY

    def write(
        self,
        place: Index,
        thread: Index,
        site: int,
        time: int,
        ordered: Ordered | None,
        *,
        exempt: Index | None = None,
        unchanged: Callable[[], Index] | None = None,
    ) -> tuple[list[Conflict], Index]:
        """Threads write places; also returns the positions of lanes that wrote a place beside another lane.

        `unchanged` says where the very value stood there already: writing it again does not race with the
        write that put it there.
        """
        conflicts: list[Conflict] = []
        for last, at in self._kept(self.writer, self.other_writer, self.lane_writer, place):
            conflicts += self._against(last, "write after write", at, thread, ordered, exempt)
        if conflicts and unchanged is not None:
            same = unchanged()
            conflicts = [c for c in (_only(c, ~same[c.positions]) for c in conflicts) if len(c.positions)]
        for last, at in self._kept(self.reader, self.other_reader, self.lane_reader, place):
            conflicts += self._against(last, "write after read", at, thread, ordered, exempt)
        now = self._remember(self.writer, self.other_writer, self.lane_writer, place, thread, site, time)
        return conflicts, np.flatnonzero(now != thread)

    def _against(
        self,
        last: Last,
        kind: str,
        place: Index,
        thread: Index,
        ordered: Ordered | None,
        exempt: Index | None = None,
    ) -> list[Conflict]:
        before = last.thread[place]
        clash = (before != NOBODY) & (before != thread)
        if not np.count_nonzero(clash):
            return []
        at = np.flatnonzero(clash)
        if exempt is not None:
            at = at[~exempt[last.site[place[at]]]]
        if ordered is not None and len(at):
            at = at[~ordered(before[at], last.time[place[at]], at)]
        if not len(at):
            return []
        return [Conflict(kind, at, before[at], last.site[place[at]])]


def _only(conflict: Conflict, which: Index) -> Conflict:
    return Conflict(conflict.kind, conflict.positions[which], conflict.threads[which], conflict.sites[which])
