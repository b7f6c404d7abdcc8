"""Atomics: every lane in turn, in the order of lane numbers; each gets what it found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
    "exch": lambda a, b: b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def update(view: Any, index: Any, what: str, values: list[Any]) -> Any:
    """`view[index]` combined with `values` one lane after the other; returns the old values.

    Lanes that meet in one place take turns: turn k is every place's k-th lane. `what` is add, min, max,
    exch, cas (values: compare, new), and, or, xor, inc or dec (values: the bound to wrap at).
    """
    if what == "add" and view.dtype.kind in "iu":
        return _add(view, index, values[0])
    one = view.dtype.type(1)
    old = np.empty(len(index), view.dtype)
    order, turn = _turns(index)
    for k in range(int(turn.max()) + 1):
        lanes = order[turn == k]
        place = index[lanes]
        found = view[place]
        old[lanes] = found
        b = values[0][lanes]
        if what == "cas":
            view[place] = np.where(found == b, values[1][lanes], found)
        elif what == "inc":
            view[place] = np.where(found >= b, view.dtype.type(0), found + one)
        elif what == "dec":
            view[place] = np.where((found == 0) | (found > b), b, found - one)
        else:
            view[place] = _COMBINE[what](found, b)
    return old


def _turns(index: Any) -> tuple[Any, Any]:
    """Lanes sorted by place, and for each of them how many lanes before it have the same place."""
    order = np.argsort(index, kind="stable")
    place = index[order]
    start = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    return order, np.arange(len(index)) - np.repeat(start, np.diff(np.r_[start, len(index)]))


def _add(view: Any, index: Any, values: Any) -> Any:
    """Integer addition wraps, so the turns of a place are one running sum."""
    order, turn = _turns(index)
    place, value = index[order], values[order]
    total = np.cumsum(value, dtype=view.dtype)
    before = total - value  # of all lanes sorted before this one ...
    before -= before[np.arange(len(order)) - turn]  # ... in its own place only
    old = np.empty(len(index), view.dtype)
    old[order] = view[place] + before
    last = np.r_[place[1:] != place[:-1], True]
    view[place[last]] = (old[order] + value)[last]
    return old
