"""When two accesses are ordered: time goes on at every barrier, and every lane knows up to when the others
came before.

For the lanes of a warp that is a vector clock (Mattern, 1989): a lane that meets another in a __syncwarp()
is after all that the other had done until then, and after all that the other was after.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Lanes

EVERY_LANE = 0xFFFFFFFF


class Order:
    """The barriers of a chunk of blocks so far. `now` is stamped on every access that a shadow remembers."""

    def __init__(self, threads: int, blocks: int, warp_barriers: bool, start: int) -> None:
        self.now, self.blocks, self.warp_barriers = start, blocks, warp_barriers
        self.block_time = np.zeros(blocks, np.int64)  # of each block's last __syncthreads()
        # row thread * blocks + column, column k: up to when lane k of the warp came before this thread
        self.before = np.zeros((threads * blocks if warp_barriers else 0, 32), np.int64)

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

    def ordered(self, before: Any, time: Any, thread: Any, column: Any) -> Any:
        """Of pairs of threads of one block (column): did a barrier join both since `time`?"""
        met = self.block_time[column] > time
        if self.warp_barriers:
            same_warp = before // 32 == thread // 32
            met = met | (same_warp & (self.before[thread * self.blocks + column, before % 32] > time))
        return met
