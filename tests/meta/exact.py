"""Exact arithmetic on bit patterns: what the instruction table expects, worked out without NumPy.

A number is a Fraction; zeros, infinities and NaN are Python floats, which keep the sign of a zero. `decode`
reads a bit pattern, the operations are exact (a square root: exact enough to round), `encode` rounds once.
"""

from __future__ import annotations

from fractions import Fraction
from math import copysign, inf, isinf, isnan, isqrt, nan

Number = Fraction | float
# bits, fraction bits, least exponent
FLOATS = {"f16": (16, 10, -14), "f32": (32, 23, -126), "f64": (64, 52, -1022)}


def width(type: str) -> int:
    """Bits of a PTX type: 32 for s32."""
    return 1 if type == "pred" else int(type[1:])


def decode(pattern: int, type: str, ftz: bool = False) -> int | Number:
    """What a bit pattern means as a value of this PTX type; wider patterns lose their upper bits."""
    bits = width(type)
    pattern &= (1 << bits) - 1
    if type[0] == "s":
        return pattern - (pattern >> bits - 1 << bits)
    if type[0] != "f":
        return pattern
    _, fraction, least = FLOATS[type]
    sign = -1 if pattern >> bits - 1 else 1
    exponent, significand = divmod(pattern & (1 << bits - 1) - 1, 1 << fraction)
    if exponent == (1 << bits - 1 - fraction) - 1:
        return nan if significand else sign * inf
    if exponent:
        significand, exponent = significand + (1 << fraction), exponent - 1
    elif ftz:
        significand = 0
    if not significand:
        return sign * 0.0
    return sign * significand * Fraction(2) ** (exponent + least - fraction)


def to_integer(value: Fraction, mode: str) -> int:
    """`value` rounded to an integer: rn or rni (ties to even), rz, rm (down), rp (up)."""
    floor = value.numerator // value.denominator
    rest = value - floor
    up = {
        "n": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1),
        "z": rest > 0 and value < 0,
        "m": False,
        "p": rest > 0,
    }[mode[1]]
    return floor + up


def encode(value: Number, type: str, mode: str = "rn", ftz: bool = False) -> int:
    """The bit pattern of the float type's value that `value` rounds to. A NaN becomes -1."""
    bits, fraction, least = FLOATS[type]
    infinity = (1 << bits - 1) - (1 << fraction)
    negative = copysign(1, value) < 0 if isinstance(value, float) else value < 0
    sign = negative << bits - 1
    if isinstance(value, float):
        return -1 if isnan(value) else sign + (infinity if isinf(value) else 0)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()  # right, or one too much
    exponent = max(exponent - (size < Fraction(2) ** exponent), least)
    if negative:  # round the size: down becomes up
        mode = mode.translate(str.maketrans("mp", "pm"))
    significand = to_integer(size / Fraction(2) ** (exponent - fraction), mode)
    pattern = (exponent - least << fraction) + significand  # the leading 1 counts the exponent up by one
    if pattern >= infinity:
        pattern = infinity if mode[1] in "np" else infinity - 1
    if ftz and size < Fraction(2) ** least:  # the card looks before it rounds
        pattern = 0
    return sign + pattern


def neg(a: Number) -> Number:
    return -a


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b or (-0.0 if mode == "rm" else 0.0)
    if isinstance(a, Fraction) or isinstance(b, Fraction):  # the other one is a zero, an infinity or NaN
        special, number = (b, a) if isinstance(a, Fraction) else (a, b)
        return number if special == 0 else special
    if a == b == 0 and copysign(1, a) != copysign(1, b):
        return -0.0 if mode == "rm" else 0.0
    return a + b


def mul(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return sign_and_class(a) * sign_and_class(b)


def fma(a: Number, b: Number, c: Number, mode: str = "rn") -> Number:
    return add(mul(a, b), c, mode)


def div(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a / b
    if b == 0:
        return nan if a == 0 or isnan(a) else copysign(inf, a) * copysign(1, b)
    return sign_and_class(a) / sign_and_class(b)


def sqrt(a: Number) -> Number:
    if isinstance(a, float):
        return nan if a == -inf else a
    if a < 0:
        return nan
    scale = 1 << 2 * 1200  # 1,200 bits after the point, and one more that says whether it came out even
    root = isqrt(a.numerator * scale // a.denominator)
    exact = Fraction(root * root, scale) == a
    return Fraction(2 * root + (not exact), 2 << 1200)


def sign_and_class(a: Number) -> float:
    """A float that multiplies and divides like `a` where the other one is a zero, an infinity or NaN."""
    return copysign(1, a) if isinstance(a, Fraction) else a


def order(a: Number) -> tuple[Number, float]:
    """A key for min and max, which put -0 before +0."""
    return a, copysign(1, a)
