"""When two accesses are ordered: time goes on at every barrier, and remembers whom it joined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Lanes
from .numerics import U32


class Order:
    """The barriers of a chunk of blocks so far. `now` is stamped on every access that a shadow remembers."""

    def __init__(self, threads: int, blocks: int, warp_barriers: bool, start: int) -> None:
        self.now = start
        self.block_time = np.zeros(blocks, np.int64)  # of each block's last __syncthreads()
        shape = (threads, blocks) if warp_barriers else (0, 0)
        self.warp_time = np.zeros(shape, np.int64)  # of each lane's last __syncwarp()
        self.warp_mask = np.zeros(shape, U32)  # and the lanes that it joined
        self.warp_barriers = warp_barriers

    def syncthreads(self, columns: NDArray[np.intp] | slice) -> None:
        self.now += 1
        self.block_time[columns] = self.now

    def syncwarp(self, lanes: Lanes, mask: Any) -> None:
        self.now += 1
        self.warp_time.reshape(-1)[lanes.numbers] = self.now
        self.warp_mask.reshape(-1)[lanes.numbers] = lanes.spread(mask)

    def ordered(self, before: Any, time: Any, thread: Any, column: Any) -> Any:
        """Of pairs of threads of one block (column): did a barrier join both since `time`?"""
        met = self.block_time[column] > time
        if self.warp_barriers:
            same_warp = before // 32 == thread // 32
            named = (self.warp_mask[thread, column] >> (before % 32).astype(U32)) & U32(1)
            met = met | (same_warp & (self.warp_time[thread, column] > time) & (named != 0))
        return met
