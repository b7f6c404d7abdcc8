"""Sectors and wavefronts: against an H200's counters, hand-made patterns and a slow definition."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from dojo.simulator.traffic import global_sectors, shared_wavefronts

MEASURED = Path(__file__).with_name("shared_memory_wavefronts.csv")
LANE = np.arange(32)
ALL = np.ones(32, bool)


def sectors(address, active=ALL, bits=32):
    return int(global_sectors(np.asarray(address, np.int64)[None], np.asarray(active)[None], bits)[0])


def wavefronts(address, active=ALL, bits=32, store=False):
    """(wavefronts, conflicts) of one warp."""
    address, active = np.asarray(address, np.int64)[None], np.asarray(active)[None]
    served, ideal = shared_wavefronts(address, active, bits, store)
    return int(served[0]), int(served[0] - ideal[0])


def test_measured_wavefronts():
    """Row: op, bits, wavefronts, conflicts, then each lane's element index, -1 where it is inactive."""
    rows = list(csv.reader(MEASURED.read_text().splitlines()))[1:]
    assert len(rows) == 1200
    for (op, bits), group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        number = np.array([row[2:] for row in group], np.int64)
        index = number[:, 2:]
        served, ideal = shared_wavefronts(index * (int(bits) // 8), index >= 0, int(bits), op == "st")
        np.testing.assert_array_equal(served, number[:, 0], f"wavefronts of {op} {bits}")
        np.testing.assert_array_equal(served - ideal, number[:, 1], f"conflicts of {op} {bits}")


@pytest.mark.parametrize(
    ("address", "active", "bits", "want"),
    [
        (LANE * 4, ALL, 32, 4),  # coalesced
        (LANE * 4 + 4, ALL, 32, 5),  # the same, not from a sector's start
        (LANE * 0 + 100, ALL, 32, 1),  # broadcast
        (LANE * 8, ALL, 32, 8),  # every second float
        (LANE * 1024, ALL, 32, 32),  # a column
        (-LANE * 4 + 4096, ALL, 32, 5),
        (LANE // 16 * 64 + LANE % 16 * 4, ALL, 32, 4),  # two rows of 16
        (LANE * 16, ALL, 128, 16),
        (LANE, ALL, 8, 1),
        (LANE * 4, LANE < 8, 32, 1),
        (LANE * 4, LANE % 8 == 7, 32, 4),
        (LANE * 4, LANE < 0, 32, 0),
        (np.where(LANE == 9, 64, LANE * 10**12), LANE == 9, 32, 1),  # an inactive lane's address
        (LANE * 0 + 30, ALL, 32, 2),  # a misaligned lane straddles two sectors
    ],
)
def test_sectors(address, active, bits, want):
    assert sectors(address, active, bits) == want


@pytest.mark.parametrize(
    ("address", "active", "bits", "store", "want"),
    [
        (LANE * 4, ALL, 32, False, (1, 0)),
        (LANE * 4 + 64, ALL, 32, True, (1, 0)),
        (LANE[::-1] * 4, ALL, 32, False, (1, 0)),
        (LANE * 0, ALL, 32, True, (1, 0)),
        (LANE * 128, ALL, 32, False, (32, 31)),  # a column of float [32][32]
        (LANE * 132, ALL, 32, False, (1, 0)),  # the same, padded to [32][33]
        (LANE * 128, LANE < 5, 32, False, (5, 4)),
        (LANE * 128, LANE < 0, 32, False, (0, 0)),
        (LANE // 16 * 64 + LANE % 16 * 4, ALL, 32, False, (1, 0)),  # two rows of float [16][16]
        (LANE // 16 * 128 + LANE % 16 * 4, ALL, 32, False, (2, 1)),  # two rows of float [.][32]
        (LANE, ALL, 8, False, (1, 0)),  # four lanes a word
        (LANE * 2, ALL, 16, True, (1, 0)),
        (LANE * 128 + LANE % 4, ALL, 8, False, (32, 31)),
        (LANE * 8, ALL, 64, False, (2, 0)),
        (LANE * 8, LANE < 16, 64, False, (1, 0)),  # a group without active lanes costs nothing
        (LANE * 0, ALL, 64, False, (1, 0)),
        (LANE * 0, ALL, 64, True, (2, 0)),  # stores never merge
        (LANE // 2 * 8, ALL, 64, False, (1, 0)),  # lanes i and i ^ 1 read the same
        ((LANE & 1) * 8 + LANE // 4 * 16, ALL, 64, False, (1, 0)),  # lanes i and i ^ 2
        (LANE // 4 * 8 + LANE * 0, LANE % 4 == 0, 64, False, (1, 0)),
        (LANE * 16, ALL, 128, False, (4, 0)),
        (LANE * 16, ALL, 128, True, (4, 0)),
        (LANE // 2 * 16, ALL, 128, False, (2, 0)),
        (LANE * 16, LANE % 2 == 0, 128, False, (4, 2)),  # merged: 8 lanes x 4 words, 8 words apart: 2 each
        (LANE * 512, ALL, 128, False, (32, 28)),
    ],
)
def test_wavefronts(address, active, bits, store, want):
    assert wavefronts(address, active, bits, store) == want


def slow_sectors(address, active, bits):
    touched = set()
    for first in address[active].tolist():
        touched |= {byte // 32 for byte in range(first, first + bits // 8)}
    return len(touched)


def slow_wavefronts(address, active, bits, store):
    """The rule as one would say it, one warp, one lane, one word at a time."""

    def alike(i, j):
        return not active[i] or not active[j] or address[i] == address[j]

    merged = not store and bits > 32 and any(all(alike(i, i ^ n) for i in range(32)) for n in (1, 2))
    group = min(32, 32 // (bits / 32) * (2 if merged else 1))
    served = ideal = 0
    for first in range(0, 32, int(group)):
        banks = [set() for _ in range(32)]
        for lane in range(first, first + int(group)):
            for word in range(address[lane] // 4, (address[lane] + bits // 8 - 1) // 4 + 1):
                if active[lane]:
                    banks[word % 32].add(word)
        cost = max(map(len, banks))
        served, ideal = served + cost, ideal + (cost > 0)
    return served, ideal


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
def test_against_the_slow_definition(bits):
    """Random lanes, some in pairs, some masked; warps of every sort in one call."""
    random = np.random.default_rng(bits)
    span = random.choice([4, 40, 400], (60, 1))
    index = random.integers(0, span, (60, 32))
    index[10:20] = index[10:20, LANE & ~1]
    index[20:30] = index[20:30, LANE & ~2]
    index[30:35] = np.sort(index[30:35], axis=1)
    active = random.random((60, 32)) < random.choice([0.0, 0.1, 0.6, 1.0], (60, 1), p=[0.05, 0.15, 0.3, 0.5])
    address = index * (bits // 8)
    junk = np.where(active, address, random.integers(-(2**40), 2**40, address.shape))

    warps = list(zip(address, active, strict=True))
    want = [slow_sectors(a, on, bits) for a, on in warps]
    np.testing.assert_array_equal(global_sectors(junk, active, bits), want)
    for store in (False, True):
        want = [slow_wavefronts(a, on, bits, store) for a, on in warps]
        np.testing.assert_array_equal(np.transpose(shared_wavefronts(junk, active, bits, store)), want)
