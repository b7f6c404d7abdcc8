"""The special registers: `%tid.x` and the like, as arrays of all lanes of a chunk of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numerics import U32, U64

Extent = tuple[int, int, int]
# (block shape, grid shape, first block of the chunk, its blocks) -> (threads, 1), (1, blocks) or () array
Special = Callable[[Extent, Extent, int, int], Any]


def _position(linear: Any, extent: Extent, axis: int) -> Any:
    x, y, _ = extent
    return (linear % x, linear // x % y, linear // (x * y))[axis].astype(U32)


def _tid(axis: int) -> Special:
    def value(block: Extent, grid: Extent, first: int, blocks: int) -> Any:
        return U32(0) if block[axis] == 1 else _position(np.arange(np.prod(block)), block, axis)[:, None]

    return value


def _ctaid(axis: int) -> Special:
    def value(block: Extent, grid: Extent, first: int, blocks: int) -> Any:
        return U32(0) if grid[axis] == 1 else _position(first + np.arange(blocks), grid, axis)[None, :]

    return value


def _of_lane(make: Callable[[Any], Any]) -> Special:
    """From the lane index in the warp; 64-bit inside, so that a shift by 32 is a shift."""
    return lambda block, grid, first, blocks: (
        make(np.arange(np.prod(block)).astype(U64) % U64(32)) & U64(0xFFFFFFFF)
    ).astype(U32)[:, None]


_1 = U64(1)
SPECIALS: dict[str, Special] = {
    "%laneid": _of_lane(lambda lane: lane),
    "%lanemask_eq": _of_lane(lambda lane: _1 << lane),
    "%lanemask_lt": _of_lane(lambda lane: (_1 << lane) - _1),
    "%lanemask_le": _of_lane(lambda lane: (_1 << lane + _1) - _1),
    "%lanemask_gt": _of_lane(lambda lane: ~((_1 << lane + _1) - _1)),
    "%lanemask_ge": _of_lane(lambda lane: ~((_1 << lane) - _1)),
    "%warpid": lambda block, grid, first, blocks: (np.arange(np.prod(block)) // 32).astype(U32)[:, None],
    "%nwarpid": lambda block, grid, first, blocks: U32(-(-int(np.prod(block)) // 32)),
}
for _axis, _name in enumerate("xyz"):
    SPECIALS[f"%tid.{_name}"] = _tid(_axis)
    SPECIALS[f"%ctaid.{_name}"] = _ctaid(_axis)
    SPECIALS[f"%ntid.{_name}"] = lambda block, grid, first, blocks, axis=_axis: U32(block[axis])  # type: ignore[misc]
    SPECIALS[f"%nctaid.{_name}"] = lambda block, grid, first, blocks, axis=_axis: U32(grid[axis])  # type: ignore[misc]
