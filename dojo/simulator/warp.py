"""What the lanes of a warp tell each other: shuffles, votes, matches and reductions.

Every function takes arrays of shape (warps, 32): the lanes' operands, their member masks (the lanes that
each of them talks to) and which lanes take part, and returns results of the same shape. Lanes that take no
part hold zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .numerics import I64, U32

Array = Any
LANES = np.arange(32)
BITS = U32(1) << LANES.astype(U32)


def shuffle_source(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """shfl.sync.mode d|p, a, b, c: the lane that each lane reads from, and p: whether that was in range.

    c holds the segment mask in bits 8 to 12 and the clamp value in bits 0 to 4; out of range a lane reads
    itself.
    """
    b, c = b.astype(I64) & 31, c.astype(I64)
    segment, clamp = c >> 8 & 31, c & 31
    bound = (LANES & segment) | (clamp & ~segment)
    if mode == "up":
        source = LANES - b
    elif mode == "down":
        source = LANES + b
    elif mode == "bfly":
        source = LANES ^ b
    else:
        source = LANES & segment | b & ~segment
    inside = source >= bound if mode == "up" else source <= bound
    return np.where(inside, source, LANES), inside


def ballot(a: Array, masks: Array, present: Array) -> Array:
    """One bit a lane: those of the mask whose predicate is true."""
    votes = np.where(a & present, BITS, U32(0)).sum(axis=1, dtype=U32)
    return votes[:, None] & masks


def vote(mode: str, a: Array, masks: Array, present: Array) -> Array:
    """vote.sync.all, .any, .uni: a predicate over the lanes of the mask."""
    yes, no = ballot(a, masks, present), ballot(~a, masks, present)
    return {"all": no == 0, "any": yes != 0, "uni": (yes == 0) | (no == 0)}[mode]


def match_any(a: Array, masks: Array, present: Array) -> Array:
    """match.any.sync: the lanes of the mask that hold the same value as this one."""
    found = np.zeros(a.shape, U32)
    for lane in range(32):
        found |= np.where(present[:, lane : lane + 1] & (a == a[:, lane : lane + 1]), BITS[lane], U32(0))
    return found & masks


def match_all(a: Array, masks: Array, present: Array) -> tuple[Array, Array]:
    """match.all.sync d|p: the mask, and true, if all its lanes hold one value; else zero and false."""
    everyone = np.where(present, BITS, U32(0)).sum(axis=1, dtype=U32)[:, None] & masks
    same = match_any(a, masks, present) == everyone
    return np.where(same, everyone, U32(0)), same


def reduce(what: str, a: Array, masks: Array, present: Array) -> Array:
    """redux.sync.op over the lanes of the mask; sums wrap."""
    combine: Any = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[what]
    result, started = a.copy(), np.zeros(a.shape, bool)
    for lane in range(32):
        joins = present[:, lane : lane + 1] & (masks & BITS[lane] != 0)
        value = np.broadcast_to(a[:, lane : lane + 1], a.shape)
        result = np.where(joins, np.where(started, combine(result, value), value), result)
        started |= joins
    return result
