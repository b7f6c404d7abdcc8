"""How much memory traffic one instruction of a warp makes: sectors and wavefronts.

Global memory moves in sectors of 32 bytes. The 32 lanes of a warp ask together, and each sector that
any of them touches is moved once: 32 neighbouring floats are 4 sectors (coalesced), 32 floats that lie
a row apart are 32 sectors, of which one eighth is used.

Shared memory has 32 banks of 4 bytes; byte address a lies in word a // 4, in bank a // 4 % 32. In one
wavefront each bank serves one word, to all lanes that want that word. A column of a 32 x 32 tile of
floats is 32 words of one bank: 32 wavefronts, 31 of them bank conflicts. 64- and 128-bit accesses are
served a half or a quarter warp at a time, unless a load's neighbouring lanes read the same address,
which lets two such groups share their wavefronts.

Every function takes `address`, int64 byte addresses, and `active`, bool, both of shape (warps, 32), and
returns counts of shape (warps,). Addresses of inactive lanes may be anything. The rules reproduce the
counters of an NVIDIA H200 (`tests/meta/shared_memory_wavefronts.csv`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BANKS = 32
WORD_BITS = 32


def global_sectors(address: Ints, active: Bools | None, bits: int) -> Ints:
    """Distinct 32-byte pieces that each warp touches; `bits` is one lane's whole access, 8 to 128.

    `active` None: every lane's address counts.
    """
    size = bits // 8
    address, any_active = (address, None) if active is None else fill(address, active)
    sector = address >> 5  # shifts: an eighth of the time of //
    if np.any(address & (size - 1)):  # misaligned: a lane may straddle two sectors
        sector = np.concatenate([sector, (address + size - 1) >> 5], axis=1)
    sector, new = _distinct(sector)
    count: Ints = np.count_nonzero(new, axis=1)
    return count if any_active is None else count * any_active


def shared_wavefronts(address: Ints, active: Bools, bits: int, store: bool) -> tuple[Ints, Ints]:
    """Wavefronts of each warp, and how few they would be without conflicts.

    `bits` is one lane's whole access, 8 to 128. The bank conflicts are the difference of the two.
    """
    if bits <= WORD_BITS or store:
        return _serve(address, active, bits)
    for neighbour in (1, 2):  # the lanes i and i ^ neighbour
        pairs = (len(address), 16 // neighbour, 2, neighbour)
        a, b = np.moveaxis(address.reshape(pairs), 2, 0)
        on_a, on_b = np.moveaxis(active.reshape(pairs), 2, 0)
        merged = ((a == b) | ~on_a | ~on_b).all(axis=(1, 2))
        if merged.any():
            either = np.where(on_a, a, b).reshape(-1, 16), (on_a | on_b).reshape(-1, 16)
            if merged.all():
                return _serve(*either, bits)
            wavefronts, ideal = np.empty((2, len(address)), np.int64)
            wavefronts[merged], ideal[merged] = _serve(either[0][merged], either[1][merged], bits)
            rest = ~merged
            wavefronts[rest], ideal[rest] = shared_wavefronts(address[rest], active[rest], bits, store)
            return wavefronts, ideal
    return _serve(address, active, bits)


def _serve(address: Ints, active: Bools, bits: int) -> tuple[Ints, Ints]:
    """Wavefronts and ideal of rows of lanes, each row served in groups that ask for at most 32 words."""
    warps, words = len(address), max(bits // WORD_BITS, 1)
    lanes = min(BANKS // words, address.shape[1])  # of a group
    address, any_active = fill(address.reshape(-1, lanes), active.reshape(-1, lanes))
    cost = _bank_cost(address >> 2, words)
    ideal = np.ones_like(cost)
    if any_active is not None:
        cost *= any_active
        ideal *= any_active
    if len(cost) == warps:
        return cost, ideal
    groups = (warps, address.shape[0] // max(warps, 1))
    return cost.reshape(groups).sum(axis=1), ideal.reshape(groups).sum(axis=1)


def _bank_cost(word: Ints, words: int) -> Ints:
    """For each row of lanes, of which each asks for `words` words: the most distinct ones in one bank."""
    # Words within a span of 32 (contiguous, or all the same) cannot meet in a bank. Seen as unsigned, a word
    # below the first is far away: if it was near after all, the slow way finds the same cost.
    near = (word - word[:, :1]).view(np.uint64) <= BANKS - words
    cost = np.ones(len(word), np.int64)
    if near.all():
        return cost
    far = np.flatnonzero(~near.all(axis=1))
    word = (word[far, :, None] + np.arange(words)).reshape(len(far), -1)
    word, new = _distinct(word)
    bank = (word & 31) + np.arange(0, BANKS * len(far), BANKS)[:, None]
    served = np.bincount(bank[new], minlength=BANKS * len(far))
    cost[far] = served.reshape(-1, BANKS).max(axis=1)
    return cost


def _distinct(row: Ints) -> tuple[Ints, Bools]:
    """The rows, sorted, and which elements are the first of their value."""
    if not np.all(row[:, 1:] >= row[:, :-1]):
        row = np.sort(row, axis=1)
    new = np.ones(row.shape, np.bool_)
    np.not_equal(row[:, 1:], row[:, :-1], out=new[:, 1:])
    return row, new


def fill(address: Ints, active: Bools) -> tuple[Ints, Bools | None]:
    """Each inactive lane gets the address of the active lane before it, or of the row's first active one.

    Also returns which rows have an active lane at all; None means every lane is active.
    """
    if active.all():
        return address, None
    lane = np.where(active, np.arange(active.shape[1]), 0)
    lane[:, 0] = active.argmax(axis=1)
    np.maximum.accumulate(lane, axis=1, out=lane)
    some: Bools = np.logical_or.reduce(active, axis=1)
    return address[np.arange(len(address))[:, None], lane], some
