"""Which lanes run: all threads of all blocks of a chunk, some of them, or any set.

Values of all lanes are arrays of shape (threads, blocks). What is the same for all threads has shape (1,
blocks), for all blocks (threads, 1), for both (): NumPy broadcasting then does once what every lane would
do alike. Under a divergent branch the lanes are a subset: whole rows and columns of that shape where
possible, else a flat list of lane numbers (thread * blocks + block), and their values one-dimensional.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .traffic import Bools, fill

Array = Any
Index = NDArray[np.intp]


class Lanes:
    """A set of lanes of a chunk of `threads` x `blocks`. `rows` or `columns` None: all of them."""

    def __init__(
        self,
        threads: int,
        blocks: int,
        rows: Index | None = None,
        columns: Index | None = None,
        flat: Index | None = None,
    ) -> None:
        self.threads, self.blocks, self.rows, self.columns, self.flat = threads, blocks, rows, columns, flat
        if flat is not None:
            self.count = len(flat)
        else:
            self.count = (threads if rows is None else len(rows)) * (
                blocks if columns is None else len(columns)
            )
        self.full = flat is None and rows is None and columns is None

    @cached_property
    def thread(self) -> Index:
        """Linear thread index in its block, broadcastable over the lanes' values."""
        if self.flat is not None:
            return self.flat // self.blocks
        return (np.arange(self.threads) if self.rows is None else self.rows)[:, None]

    @cached_property
    def block(self) -> Index:
        """Index of the block in the chunk, broadcastable over the lanes' values."""
        if self.flat is not None:
            return self.flat % self.blocks
        return (np.arange(self.blocks) if self.columns is None else self.columns)[None, :]

    @cached_property
    def numbers(self) -> Index:
        """thread * blocks + block of every lane, one-dimensional."""
        return self.flat if self.flat is not None else (self.thread * self.blocks + self.block).reshape(-1)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        if self.flat is not None:
            return (self.count,)
        return len(self.thread), self.block.shape[1]

    def spread(self, value: Array) -> Array:
        """`value` with one element a lane, one-dimensional, in the order of `numbers`."""
        return (value if value.shape == self.shape else np.broadcast_to(value, self.shape)).reshape(-1)

    def by_warp(self, value: Array) -> tuple[Array, Array, int]:
        """`value` as (warps, 32), of the warps that have lanes here; which of those are active; and how many
        blocks each row stands for. An inactive lane has the value of the active one before it, or of the
        first.
        """
        if self.flat is None and self.columns is None and (value.ndim < 2 or value.shape[1] == 1):
            (source, active), times = self._warps_of_a_block, self.blocks
            value = value.reshape(-1)
            if len(value) == 1:
                value = np.broadcast_to(value, len(self.thread))
        else:
            (source, active), times = self._warps, 1
            value = self.spread(value)
        return value[source], active, times

    @cached_property
    def _warps_of_a_block(self) -> tuple[Index, Bools]:
        return _by_warp(self.thread[:, 0], -(-self.threads // 32))

    @cached_property
    def _warps(self) -> tuple[Index, Bools]:
        warps = -(-self.threads // 32)
        place = self.numbers % self.blocks * (warps * 32) + self.numbers // self.blocks
        return _by_warp(place, warps * self.blocks)

    def only(self, which: Array) -> Lanes:
        """The lanes where the one-dimensional `which` (in the order of `numbers`) holds."""
        return Lanes(self.threads, self.blocks, flat=self.numbers[which])

    def take(self, whole: Array) -> Array:
        """The part of a register of all lanes that belongs to these."""
        if self.full or whole.shape == ():
            return whole
        if self.flat is not None:
            if whole.shape[0] != 1 and whole.shape[1] != 1:
                return whole.reshape(-1)[self.flat]
            thread = self.thread if whole.shape[0] != 1 else 0
            block = self.block if whole.shape[1] != 1 else 0
            return whole[thread, block]
        if self.rows is not None and whole.shape[0] != 1:
            whole = whole[self.rows]
        if self.columns is not None and whole.shape[1] != 1:
            whole = whole[:, self.columns]
        return whole

    def put(self, whole: Array | None, part: Array) -> Array:
        """A register of all lanes, with these lanes' values replaced by `part`."""
        if self.full or part is whole:
            return part
        if whole is None:
            whole = np.zeros((), part.dtype)
        part = part.view(whole.dtype)
        if self.flat is None:
            rows = part.shape[0] if part.shape else 1
            columns = part.shape[1] if part.shape else 1
            old = whole.shape or (1, 1)
            # stays the same for all blocks (or threads) if every block (thread) takes part alike
            tall = self.rows is not None or rows != 1 or old[0] != 1
            wide = self.columns is not None or columns != 1 or old[1] != 1
            new = np.array(
                np.broadcast_to(whole, (self.threads if tall else 1, self.blocks if wide else 1)), order="C"
            )
            row_index: Any = slice(None) if self.rows is None else self.rows
            if self.columns is None:
                new[row_index] = part
            elif self.rows is None:
                new[:, self.columns] = part
            else:
                new[np.ix_(self.rows, self.columns)] = part
            return new
        new = np.array(np.broadcast_to(whole, (self.threads, self.blocks)), order="C")
        new.reshape(-1)[self.flat] = part
        return new

    def where(self, condition: Array) -> tuple[Lanes | None, Lanes | None]:
        """These lanes split by a predicate: (true, false); None for an empty part."""
        if condition.all():
            return self, None
        if not condition.any():
            return None, self
        return self._select(condition), self._select(~condition)

    def _select(self, condition: Array) -> Lanes:
        if self.flat is not None:
            return Lanes(self.threads, self.blocks, flat=self.flat[condition])
        if condition.shape[1] == 1:
            rows = self.thread[:, 0][condition[:, 0]]
            return Lanes(self.threads, self.blocks, rows, self.columns)
        if condition.shape[0] == 1:
            columns = self.block[0][condition[0]]
            return Lanes(self.threads, self.blocks, self.rows, columns)
        return Lanes(self.threads, self.blocks, flat=self.numbers[condition.reshape(-1)])


def union(parts: list[Lanes]) -> Lanes:
    """All lanes of disjoint sets."""
    first = parts[0]
    if len(parts) == 1:
        return first
    threads, blocks = first.threads, first.blocks
    if sum(part.count for part in parts) == threads * blocks:
        return Lanes(threads, blocks)
    whole = [part for part in parts if part.flat is None]
    rows = [part.rows for part in whole if part.rows is not None and part.columns is None]
    columns = [part.columns for part in whole if part.columns is not None and part.rows is None]
    if len(rows) == len(parts):
        return Lanes(threads, blocks, rows=np.sort(np.concatenate(rows)))
    if len(columns) == len(parts):
        return Lanes(threads, blocks, columns=np.sort(np.concatenate(columns)))
    return Lanes(threads, blocks, flat=np.sort(np.concatenate([part.numbers for part in parts])))


def _by_warp(place: Index, warps: int) -> tuple[Index, Bools]:
    """Which of the lanes at these places of (warps, 32) each place takes its value from, as `Lanes.by_warp`
    says, and where the lanes are; of warps that have any.
    """
    source = np.full((warps, 32), -1)
    source.reshape(-1)[place] = np.arange(len(place))
    active = source >= 0
    some = active.any(axis=1)
    source, active = source[some], active[some]
    return fill(source, active)[0], active
