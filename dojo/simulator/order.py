"""When two accesses are ordered: time goes on at every barrier, and every lane knows up to when the others
came before.

For the lanes of a warp that is a vector clock (Mattern, 1989): a lane that meets another in a __syncwarp()
is after all that the other had done until then, and after all that the other was after.

A fence alone orders no two threads. But a thread that has accessed a word, made a fence and then an atomic
may have handed the word on to one that has since made an atomic and then a fence, as at a lock. What the
atomics mean nobody knows here: such a pair is not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Lanes

Note = Callable[[str], None]
EVERY_LANE = 0xFFFFFFFF
HANDED_ON = "races were not judged where a fence and an atomic may hand data on"


class Order:
    """The barriers of a chunk of blocks so far. `now` is stamped on every access that a shadow remembers."""

    def __init__(self, threads: int, blocks: int, warp_barriers: bool, start: int) -> None:
        self.now, self.blocks, self.warp_barriers = start, blocks, warp_barriers
        self.lanes, self.hands_on = threads * blocks, False
        self.block_time = np.zeros(blocks, np.int64)  # of each block's last __syncthreads()
        # row thread * blocks + column, column k: up to when lane k of the warp came before this thread
        self.before = np.zeros((threads * blocks if warp_barriers else 0, 32), np.int64)
        # by thread * blocks + column, once `hands_on`: when it made its last fence, its last atomic, the last
        # fence with an atomic after it and the last atomic with a fence after it
        self.fence_time, self.atomic_time, self.released, self.acquired = np.zeros((4, 0), np.int64)

    def syncthreads(self, columns: NDArray[np.intp] | slice) -> None:
        self.now += 1
        self.block_time[columns] = self.now

    def syncwarp(self, lanes: Lanes, mask: Any) -> None:
        """`lanes` meet, each with those that its mask names (all of them are among `lanes`, or have
        ended).
        """
        self.now += 1
        numbers, masks = lanes.numbers, lanes.spread(mask).astype(np.int64)
        if (masks == EVERY_LANE).all():
            self.before[numbers] = self.now
            return
        thread, column = numbers // self.blocks, numbers % self.blocks
        base = (thread // 32 * 32) * self.blocks + column  # the row of each lane's lane 0
        known = self.before[numbers]
        for k in range(32):
            named = np.flatnonzero(masks >> k & 1)
            rows = base[named] + k * self.blocks
            inside = rows < len(self.before)
            named, rows = named[inside], rows[inside]
            known[named] = np.maximum(known[named], self.before[rows])
            known[named, k] = self.now
        self.before[numbers] = known

    def fence(self, lanes: Lanes) -> None:
        self._begin()
        self.fence_time[lanes.numbers] = self.now
        self.acquired[lanes.numbers] = self.atomic_time[lanes.numbers]

    def atomic(self, lanes: Lanes) -> None:
        """In a kernel that has fences."""
        self._begin()
        self.atomic_time[lanes.numbers] = self.now
        self.released[lanes.numbers] = self.fence_time[lanes.numbers]

    def _begin(self) -> None:
        self.now += 1
        if not self.hands_on:
            self.hands_on = True
            every = np.zeros((4, self.lanes), np.int64)
            self.fence_time, self.atomic_time, self.released, self.acquired = every

    def settled(
        self, note: Note, before: Any, time: Any, thread: Any, column: Any, judged: Any = True
    ) -> Any:
        """As `ordered`, or else fences and atomics may have done it: of a `judged` pair that is noted."""
        met = self.ordered(before, time, thread, column)
        if not self.hands_on:
            return met
        mine, theirs = thread * self.blocks + column, before * self.blocks + column
        handed_on = judged & ~met & (self.released[theirs] > time) & (self.acquired[mine] > time)
        if handed_on.any():
            note(HANDED_ON)
        return met | handed_on

    def ordered(self, before: Any, time: Any, thread: Any, column: Any) -> Any:
        """Of pairs of threads of one block (column): did a barrier join both since `time`?"""
        met = self.block_time[column] > time
        if self.warp_barriers:
            same_warp = before // 32 == thread // 32
            met = met | (same_warp & (self.before[thread * self.blocks + column, before % 32] > time))
        return met
