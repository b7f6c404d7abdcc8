"""Atomics: every lane in turn, in the order of lane numbers; each gets what it found."""

from __future__ import annotations

from typing import Any

import numpy as np

FEW = 8  # so many lanes at one place are served turn by turn, more place by place

_COMBINE: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def update(view: Any, index: Any, what: str, values: list[Any]) -> Any:
    """`view[index]` combined with `values` one lane after the other; returns the old values.

    `what` is add, min, max, exch, cas (values: compare, new), and, or, xor, inc or dec (values: the bound to
    wrap at). Lanes that meet in one place take turns in their order.
    """
    old = np.empty(len(index), view.dtype)
    order = np.argsort(index, kind="stable")
    place = index[order]
    start = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    size = np.diff(np.r_[start, len(index)])
    if size.max() <= FEW:  # the k-th lanes of all places at once
        for k in range(int(size.max())):
            lanes = order[start[size > k] + k]
            old[lanes], view[index[lanes]] = _step(what, view[index[lanes]], [v[lanes] for v in values])
        return old
    for first, count in zip(start.tolist(), size.tolist(), strict=True):
        lanes = order[first : first + count]
        old[lanes], view[place[first]] = _chain(what, view[place[first]], [v[lanes] for v in values])
    return old


def _step(what: str, found: Any, values: list[Any]) -> tuple[Any, Any]:
    """What one lane finds at each place, and what it leaves there."""
    b, one, zero = values[0], found.dtype.type(1), found.dtype.type(0)
    if what == "exch":
        return found, b
    if what == "cas":
        return found, np.where(found == b, values[1], found)
    if what == "inc":
        return found, np.where(found >= b, zero, found + one)
    if what == "dec":
        return found, np.where((found == zero) | (found > b), b, found - one)
    return found, _COMBINE[what](found, b)


def _chain(what: str, found: Any, values: list[Any]) -> tuple[Any, Any]:
    """What all lanes find at one place, one after the other, and what the last one leaves."""
    b = values[0]
    if what in _COMBINE:  # sums in the order of the lanes, rounded at each
        seen = _COMBINE[what].accumulate(np.r_[found, b].astype(b.dtype))
        return seen[:-1], seen[-1]
    if what == "exch":
        return np.r_[found, b[:-1]], b[-1]
    state, seen_list = found.item(), []
    compare, new = b.tolist(), values[-1].tolist()
    for n in range(len(b)):
        seen_list.append(state)
        if what == "cas":
            state = new[n] if state == compare[n] else state
        elif what == "inc":
            state = 0 if state >= compare[n] else state + 1
        else:
            state = compare[n] if state == 0 or state > compare[n] else state - 1
    return np.array(seen_list, b.dtype), state
