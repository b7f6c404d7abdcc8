"""Requests, sectors, wavefronts and conflicts of strided, masked and vector kernels, beside a slow count.

Here the counts are right if the machine hands the right addresses of the right lanes to `traffic`, however it
keeps them; `test_traffic.py` holds the rules themselves to an H200.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from dojo import simulate

N = 4096
SOURCE = """
extern "C" __global__ void moves(const TYPE *x, TYPE *o, int n) {
    int b = blockIdx.x, t = threadIdx.x + blockDim.x * threadIdx.y;
    if (MASK) o[TO] = x[FROM];
}
extern "C" __global__ void shares(const TYPE *x, TYPE *o, int n) {
    __shared__ TYPE s[1024];
    int b = blockIdx.x, t = threadIdx.x + blockDim.x * threadIdx.y;
    TYPE zero{};
    for (int i = t; i < 1024; i += blockDim.x * blockDim.y) s[i] = zero;
    __syncthreads();
    if (MASK) o[t] = s[FROM];
    __syncthreads();
    if (MASK) s[TO] = o[t];
}
"""


class Pattern(NamedTuple):
    """Element indices and a condition, as C++ and Python both read them."""

    load: str
    store: str
    mask: str = "n > 0"
    type: str = "float"
    block: tuple[int, ...] = (64,)
    grid: int = 3


PATTERNS = {
    "neighbours": Pattern("t + b", "t"),
    "chunks": Pattern("(t + 64 * b) % 1000", "(t + 64 * b) % 1024", grid=300),
    "stride 3, ragged": Pattern("3 * t + 1", "7 * t % 100", "t % 5 != 2 && t < 93", block=(100,)),
    "a column": Pattern("32 * t % 1024", "33 * t % 1024", block=(32,)),
    "backwards": Pattern("99 - t", "t * t % 128", block=(100,)),
    "one address": Pattern("5", "t % 2", block=(7,)),
    "blocks alike": Pattern("t / 4 * 8", "t ^ 5", "t % 3 == 1"),
    "some blocks": Pattern("t * 9 % 512", "t * 2", "b % 2 == 1", grid=5),
    "some of some": Pattern("(t + b * 7) * 5 % 512", "t * 2", "(t + b) % 4 < 3", grid=5, block=(50,)),
    "rows of 16": Pattern("t % 16 + t / 16 * 32", "t / 16 + t % 16 * 32", block=(16, 8)),
    "bytes": Pattern("t * 3", "t", type="char"),
    "shorts": Pattern("t * 66 % 1024", "t * 2", "t != 9", type="short"),
    "float2": Pattern("t * 5 % 300", "t ^ 3", type="float2"),
    "float4": Pattern("t / 2", "t * 7 % 256", type="float4"),
    "doubles, masked": Pattern("t * 16 % 512", "t", "t % 7 < 3 && b != 1", type="double"),
}
BYTES = {"char": 1, "short": 2, "float": 4, "float2": 8, "double": 8, "float4": 16}


def warps(pattern, index):
    """The byte address of each lane of each warp; None for a lane that does not take part."""
    # C's && and / of whole numbers, for eval
    mask, index = (text.replace("&&", "and").replace("/", "//") for text in (pattern.mask, index))
    threads, size = int(np.prod(pattern.block)), BYTES[pattern.type]
    for b in range(pattern.grid):
        for first in range(0, threads, 32):
            lanes = [{"t": t, "b": b, "n": N} for t in range(first, min(first + 32, threads))]
            yield [size * eval(index, {}, at) if eval(mask, {}, at) else None for at in lanes]


def slow_sectors(lanes, size):
    return len({byte // 32 for a in lanes if a is not None for byte in range(a, a + size)})


def slow_wavefronts(lanes, size, store):
    """(wavefronts, how few they could be)."""
    lanes = lanes + [None] * (32 - len(lanes))
    pairs = [[(lanes[i], lanes[i ^ k]) for i in range(32)] for k in (1, 2)]
    merged = not store and size > 4 and any(all(None in p or p[0] == p[1] for p in pair) for pair in pairs)
    group = min(32, 128 // size * (2 if merged else 1))
    served = least = 0
    for first in range(0, 32, group):
        words = {
            a // 4 + k for a in lanes[first : first + group] if a is not None for k in range(-(-size // 4))
        }
        banks = [sum(word % 32 == bank for word in words) for bank in range(32)]
        served, least = served + max(banks), least + bool(words)
    return served, least


def counted(report, space, op, line):
    found = [a for a in report.accesses if (a.space, a.op, a.line) == (space, op, line)]
    return [
        sum(getattr(a, name) for a in found)
        for name in ("requests", "bytes", "sectors", "wavefronts", "conflicts")
    ]


def simulated(pattern, kernel):
    source = SOURCE
    for word, text in zip(
        ("TYPE", "MASK", "FROM", "TO"), (pattern.type, pattern.mask, pattern.load, pattern.store), strict=True
    ):
        source = source.replace(word, text)
    x = np.zeros(N * BYTES[pattern.type] * 8, np.uint8)
    return simulate(source, kernel, pattern.grid, pattern.block, [x, x.copy(), N])


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_global(pattern):
    report, size = simulated(pattern, "moves"), BYTES[pattern.type]
    for op, index in (("load", pattern.load), ("store", pattern.store)):
        active = [lanes for lanes in warps(pattern, index) if any(a is not None for a in lanes)]
        asked = sum(size for lanes in active for a in lanes if a is not None)
        sectors = sum(slow_sectors(lanes, size) for lanes in active)
        assert counted(report, "global", op, 4) == [len(active), asked, sectors, 0, 0], op


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_shared(pattern):
    report, size = simulated(pattern, "shares"), BYTES[pattern.type]
    for op, index, line in (("load", pattern.load, 12), ("store", pattern.store, 14)):
        active = [lanes for lanes in warps(pattern, index) if any(a is not None for a in lanes)]
        asked = sum(size for lanes in active for a in lanes if a is not None)
        served, least = np.sum([slow_wavefronts(lanes, size, op == "store") for lanes in active], axis=0)
        assert counted(report, "shared", op, line) == [len(active), asked, 0, served, served - least], op
