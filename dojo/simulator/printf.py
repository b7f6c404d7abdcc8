"""printf on the device: a C format with the arguments as the compiler packs them, each at a multiple of its
size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

_DIRECTIVE = re.compile(r"%([-+ #0]*)(\d*|\*)(?:\.(\d*|\*))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")
_WIDE = ("ll", "l", "z", "j", "t")


def formatted(text: str, packed: bytes, string: Callable[[int], str]) -> str:
    """`text` with its directives filled in from the packed arguments; `string(address)` is a %s's text."""
    offset = 0

    def taken(dtype: Any) -> Any:
        """The next argument, None if there is no more."""
        nonlocal offset
        step = np.dtype(dtype).itemsize
        offset = -(-offset // step) * step
        if offset + step > len(packed):
            return None
        offset += step
        return np.frombuffer(packed, dtype, 1, offset - step)[0]

    def number(digits: str | None) -> str:
        """A width or a precision, perhaps given as an argument: `*`."""
        return str(taken(np.int32) or 0) if digits == "*" else digits or ""

    def fill(match: re.Match[str]) -> str:
        flags, width, precision, size, kind = match.groups()
        if kind == "%":
            return "%"
        flags += number(width)  # a negative width: C's flag "-"
        if precision is not None and not (digits := number(precision)).startswith("-"):
            flags += f".{digits}"
        wide = kind in "fFeEgGaAsp" or size in _WIDE
        dtype: Any = np.float64 if kind in "fFeEgGaA" else (np.uint64 if wide else np.uint32)
        if kind in "di":
            dtype = np.int64 if wide else np.int32
        value = taken(dtype)
        if value is None:
            return "?"
        if kind == "s":
            return f"%{flags}s" % string(int(value))
        if kind == "c":
            return f"%{flags}s" % chr(int(value) & 255)
        if kind == "p":
            return f"0x{int(value):x}"
        if kind in "aA":
            return float(value).hex()
        form = f"%{flags}{'d' if kind in 'iu' else kind}"
        return form % (float(value) if kind in "fFeEgG" else int(value))

    return _DIRECTIVE.sub(fill, text).rstrip("\n")
