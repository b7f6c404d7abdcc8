"""Address spaces: where the bytes are, what is in bounds, what has been written.

Global memory is a set of buffers, each in an address range of its own (2**36 bytes apart), so that an index
that runs out of one buffer never lands in another. Shared and local memory are arrays of 32-bit words with
a column a block, or a lane. Fresh memory holds 0xff bytes: NaN as a float, -1 as an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Lanes
from .numerics import U8, U32, U64, UNSIGNED
from .program import Site
from .races import Last, Shadow

SLOT_BITS = 36

Array = Any
ONES = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}


class Buffer:
    """One global array: its bytes, and for every place of `grain` bytes whether it was written and who
    touched it.
    """

    def __init__(
        self, name: str, slot: int, content: NDArray[Any], grain: int, known: bool, shadowed: bool
    ) -> None:
        self.name, self.base, self.size, self.grain = name, slot << SLOT_BITS, content.nbytes, grain
        self.itemsize = content.itemsize
        self.changed = False
        self.data = np.full(-(-max(content.nbytes, 1) // 16) * 16, 0xFF, U8)
        self.data[: content.nbytes] = np.ascontiguousarray(content).reshape(-1).view(U8)
        places = len(self.data) // grain
        self.written = None if known else np.zeros(places, bool)
        self.shadow: Shadow | None = Shadow(places, 1) if shadowed else None
        self.read_only: Last | None = None  # who last read a place by ld.global.nc

    def read(self, offset: Array, element: int, count: int) -> list[Array]:
        """`count` neighbouring elements of `element` bytes at byte `offset` (in bounds and aligned)."""
        view = self.data.view(UNSIGNED[element])
        index = offset // element if element > 1 else offset
        return [view.take(index + n if n else index, mode="clip") for n in range(count)]

    def write(self, offset: Array, element: int, values: Sequence[Array]) -> None:
        view = self.data.view(UNSIGNED[element])
        index = offset // element if element > 1 else offset
        self.changed = True
        for n, value in enumerate(values):
            view[index + n] = value


class Words:
    """Shared memory (a column a block) or local memory (a column a lane): `data` is (words, columns) of
    u32.
    """

    def __init__(self, size: int, columns: int) -> None:
        self.size, self.columns = size, columns
        self.data = np.full((-(-max(size, 1) // 16) * 4, columns), 0xFFFFFFFF, U32)
        self.flat = self.data.reshape(-1)

    def word(self, index: Array, column: Array | None) -> Array:
        """The words at `index` of all columns (None: one row an index) or of the given ones."""
        if column is None:
            return self.data.take(index, axis=0, mode="clip")
        return self.flat.take(index * self.columns + column, mode="clip")

    def set_word(self, index: Array, column: Array | None, value: Array) -> None:
        if column is None:
            self.data[index] = value
        else:
            self.flat[index * self.columns + column] = value

    def column_bytes(self, column: int, start: int) -> bytes:
        """The bytes of one column from byte `start` on."""
        return np.ascontiguousarray(self.data[:, column]).tobytes()[max(start, 0) :]

    def read(self, address: Array, column: Array | None, element: int, count: int) -> list[Array]:
        """Elements at byte `address`. With `column` None the address is one-dimensional and the result has
        a row each.
        """
        first = address >> 2
        if element == 4:
            return [self.word(first + n if n else first, column) for n in range(count)]
        if element == 8:
            low_high = [self.word(first + n, column).astype(U64) for n in range(2 * count)]
            return [low_high[2 * n] | low_high[2 * n + 1] << U64(32) for n in range(count)]
        found = []
        for n in range(count):
            byte = address + n * element
            shift = ((byte & 3) << 3).astype(U32)
            word = self.word(byte >> 2, column)
            if column is None:
                shift = shift[:, None]
            found.append((word >> shift).astype(UNSIGNED[element]))
        return found

    def write(self, address: Array, column: Array | None, element: int, values: Sequence[Array]) -> None:
        first = address >> 2
        for n, value in enumerate(values):
            if element == 4:
                self.set_word(first + n if n else first, column, value)
            elif element == 8:
                self.set_word(first + 2 * n, column, (value & U64(0xFFFFFFFF)).astype(U32))
                self.set_word(first + 2 * n + 1, column, (value >> U64(32)).astype(U32))
            else:
                self._write_part(address + n * element, column, element, value)

    def _write_part(self, address: Array, column: Array | None, element: int, value: Array) -> None:
        """8- and 16-bit stores, one byte position after the other so that lanes sharing a word keep their
        parts.
        """
        for byte in range(0, 4, element):
            at = np.flatnonzero((address & 3) == byte)
            if len(at):
                mask = U32((256**element - 1) << 8 * byte)
                where, columns = address[at] >> 2, None if column is None else column[at]
                old = self.word(where, columns)
                self.set_word(where, columns, old & ~mask | value[at].astype(U32) << U32(8 * byte) & mask)


def exempt(sites: list[Site], site: Site) -> NDArray[np.bool_] | None:
    """The memory instructions, by number, that `site` does not race with: atomics with each other and with
    the plain read that a compare-and-swap loop begins with.
    """
    if site.op == "atomic":
        return np.array([other.op == "atomic" or other.optimistic for other in sites])
    return np.array([other.op == "atomic" for other in sites]) if site.optimistic else None


def merge(
    site: Site, lanes: Lanes, parts: list[Array], values: Any, atomic: Any, serve: Callable[..., Any]
) -> list[Array] | None:
    """Serves disjoint parts of the lanes (one-dimensional masks) one by one; lanes in none of them load all
    ones.

    `serve(which, lanes, values, atomic)` does one part; the result is that of the whole access.
    """
    result = [np.full(lanes.count, ONES[site.element], UNSIGNED[site.element]) for _ in range(site.count)]
    for good in parts:
        if not good.any():
            continue
        some = None if values is None else tuple(lanes.spread(value)[good] for value in values)
        inner = atomic and (lambda view, index, which, good=good: atomic(view, index, good))
        found = serve(good, lanes.only(good), some, inner)
        for whole, piece in zip(result, found or (), strict=bool(found)):
            whole[good] = piece
    return [whole.reshape(lanes.shape) for whole in result] if values is None else None
