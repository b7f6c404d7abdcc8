"""The arithmetic that NumPy does not do as the PTX manual says: one function an instruction, arrays in,
arrays out.

Arguments are arrays (or NumPy scalars) of one dtype, the instruction's type; so are the results. Rounding:
IEEE nearest-even unless a `mode` of "rz", "rm" or "rp" is given. A NaN result of a 32-bit or 16-bit
operation is the canonical one (0x7fffffff, 0x7fff), as the manual says for `add.f32` and the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Array = Any  # an ndarray or a NumPy scalar: both have .view, .astype and .shape

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64
UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64}
SIGNED = {1: I8, 2: I16, 4: I32, 8: I64}
NAN32 = U32(0x7FFFFFFF).view(F32)
NAN16 = U16(0x7FFF).view(F16)


def _bits(x: Array) -> int:
    return int(x.dtype.itemsize) * 8


def canonical(x: Array) -> Array:
    """`x` with every NaN replaced by the one that the hardware writes (f32, f16)."""
    nan = x != x
    if not np.count_nonzero(nan):  # much faster than .any() on small arrays
        return x
    return np.where(nan, NAN32 if x.dtype == F32 else NAN16, x)


def ftz(x: Array) -> Array:
    """Subnormal values (f32, f16) flushed to a zero of their sign."""
    small = np.abs(x) < x.dtype.type(2.0**-126 if x.dtype == F32 else 2.0**-14)
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if small.any() else x


def ftz_before_rounding(r: Array, exact: Array) -> Array:
    """`r` flushed to zero where the exact result (float64) was subnormal, even if it rounded up to a normal
    one.
    """
    small = np.abs(exact) < (2.0**-126 if r.dtype == F32 else 2.0**-14)
    return np.where(small, np.copysign(r.dtype.type(0), r), r) if small.any() else r


def saturate(x: Array) -> Array:
    """Clamped to [0, 1]; NaN and -0 become +0."""
    one = x.dtype.type(1)
    return np.where(x > 0, np.minimum(x, one), x.dtype.type(0))


# Rounding a sum whose float64 value is inexact


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """float64 s = a + b and the exact error (Knuth): a + b = s + error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def round_to(s: Array, error: Array, dtype: Any, mode: str) -> Array:
    """The exact value s + error (float64 s, |error| under half its last place) rounded once to float32 or
    float16.
    """
    r = s.astype(dtype)
    limit = F64(2.0**128 if dtype == F32 else 2.0**16)  # where an infinite result stands on the number line
    place = np.where(np.isinf(r) & np.isfinite(s), np.copysign(limit, s), r.astype(F64))
    rest = s - place
    side = np.where(rest != 0, np.sign(rest), np.sign(error))  # is the exact value above or below r?
    side = np.where(np.isinf(r) & np.isfinite(s), -np.sign(r), side)
    if mode == "rn":
        other = np.nextafter(r, np.copysign(dtype(np.inf), rest).astype(dtype))
        other_place = np.where(np.isinf(other), np.copysign(limit, other).astype(F64), other.astype(F64))
        tie = (rest != 0) & (rest * 2 == other_place - place)
        return np.where(tie & (np.sign(error) == np.sign(rest)), other, r)
    down = {"rm": side < 0, "rp": np.False_, "rz": (side < 0) & (s > 0)}[mode]
    up = {"rm": np.False_, "rp": side > 0, "rz": (side > 0) & (s < 0)}[mode]
    r = np.where(down, np.nextafter(r, dtype(-np.inf)), r)
    return np.where(up, np.nextafter(r, dtype(np.inf)), r)


# 32-bit and 16-bit floating point


def fma(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """a * b + c rounded once, for f32 and f16.

    The product is exact in float64. Its sum with c is rounded to float64, then to the result: wrong only if
    that sum falls on a tie of the result, or the result is subnormal; those lanes are done again with the
    error kept.
    """
    dtype = a.dtype.type
    product = a.astype(F64) * b
    s = product + c
    if dtype is F32 and mode == "rn":
        r = s.astype(F32)
        bits = s.view(U64)
        again = (bits & U64(0x1FFFFFFF)) == U64(0x10000000)
        tiny = np.abs(s) < 2.0**-126
        if np.count_nonzero(tiny):
            again = again | (tiny & (s != 0))
        if np.count_nonzero(again):
            total, error = two_sum(product, c.astype(F64))
            r = np.where(again & np.isfinite(s), round_to(total, error, F32, mode), r)
        return canonical(r)
    total, error = two_sum(product, c.astype(F64))
    r = round_to(total, np.where(np.isfinite(total), error, 0), dtype, mode)
    if mode == "rm":  # x - x is -0
        r = np.where((total == 0) & (np.signbit(product) != np.signbit(c)), -np.abs(r), r)
    return canonical(r)


def add(a: Array, b: Array, mode: str) -> Array:
    """f32 a + b in a directed rounding mode."""
    return fma(a, a.dtype.type(1), b, mode)


def mul(a: Array, b: Array, mode: str) -> Array:
    """f32 a * b in a directed rounding mode: the float64 product is exact."""
    s = a.astype(F64) * b
    return canonical(round_to(s, s * 0, F32, mode))


def div(a: Array, b: Array, mode: str) -> Array:
    """f32 a / b in a directed rounding mode; the remainder tells on which side of an f32 quotient the truth
    lies.
    """
    q = a.astype(F64) / b
    error = np.where(np.isfinite(q), (a - q * b) * np.sign(b), 0).astype(F64)
    return canonical(round_to(q, error, F32, mode))


def sqrt(a: Array, mode: str) -> Array:
    """f32 square root in a directed rounding mode."""
    q = np.sqrt(a.astype(F64))
    return canonical(round_to(q, np.where(np.isfinite(q), a - q * q, 0), F32, mode))


def minimum(a: Array, b: Array, nan: bool = False) -> Array:
    """The smaller; a NaN loses (unless `nan`), -0 is below +0."""
    unsigned = UNSIGNED[a.dtype.itemsize]
    r = (np.minimum if nan else np.fmin)(a, b)
    both = (a.view(unsigned) | b.view(unsigned)).view(a.dtype)
    r = np.where((a == b) & (a == 0), both, r)
    return canonical(r) if r.dtype != F64 else r


def maximum(a: Array, b: Array, nan: bool = False) -> Array:
    unsigned = UNSIGNED[a.dtype.itemsize]
    r = (np.maximum if nan else np.fmax)(a, b)
    both = (a.view(unsigned) & b.view(unsigned)).view(a.dtype)
    r = np.where((a == b) & (a == 0), both, r)
    return canonical(r) if r.dtype != F64 else r


def approximate(function: Any, a: Array) -> Array:
    """ex2, lg2, sin, cos, tanh, rsqrt: computed in float64 and rounded; the card may differ by the manual's
    bound.
    """
    return canonical(function(a.astype(F64)).astype(F32))


def rsqrt64(a: Array) -> Array:
    return 1 / np.sqrt(a)


# Double precision


def fma64(a: Array, b: Array, c: Array) -> Array:
    """f64 a * b + c rounded once: exact product (Dekker), then a sum whose low part is rounded to odd
    (Boldo and Melquiond, 2008). Lanes near overflow or underflow are done with rational numbers."""
    a, b, c = np.broadcast_arrays(a, b, c)
    p = a * b
    s = p + c
    size = np.abs(p)
    plain = (size < 1e280) & (size > 1e-250) & (np.abs(a) < 1e280) & (np.abs(b) < 1e280) & (np.abs(c) < 1e280)
    error = _product_error(a, b, p)
    low_high, low_low = two_sum(c, error)
    high, middle = two_sum(p, low_high)
    z, rest = two_sum(low_low, middle)
    even = (z.view(I64) & 1) == 0
    odd = np.where(
        even & (rest != 0), np.where((rest > 0) == (z > 0), z.view(I64) + 1, z.view(I64) - 1), z.view(I64)
    )
    zero = (a == 0) | (b == 0)  # the sum is exact then
    r = np.where(plain & ~zero, high + odd.view(F64), s)
    r = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, r)
    for i in np.flatnonzero(~plain & ~zero & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        r.reshape(-1)[i] = _exact_fma(float(a.flat[i]), float(b.flat[i]), float(c.flat[i]), float(s.flat[i]))
    return r


def _product_error(a: Array, b: Array, p: Array) -> Array:
    split = F64(134217729.0)
    a_high = a * split - (a * split - a)
    b_high = b * split - (b * split - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _exact_fma(a: float, b: float, c: float, s: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return s  # a signed zero: the plain sum has the right sign
    try:
        return float(exact)
    except OverflowError:
        return float(np.copysign(np.inf, float(exact > 0) - 0.5))


# Integers


def div_int(a: Array, b: Array) -> Array:
    """Truncating quotient. Division by zero gives all ones, as on the hardware; the manual leaves it open."""
    q, _ = _divide(a, b)
    return q


def rem_int(a: Array, b: Array) -> Array:
    """The remainder that goes with `div_int`: it has the sign of a. By zero: a."""
    _, r = _divide(a, b)
    return r


def _divide(a: Array, b: Array) -> tuple[Array, Array]:
    unsigned = UNSIGNED[a.dtype.itemsize]
    size_a, size_b = abs_int(a).view(unsigned), abs_int(b).view(unsigned)
    zero = size_b == 0
    divisor = np.where(zero, unsigned(1), size_b)
    q, r = size_a // divisor, size_a % divisor
    if a.dtype.kind == "i":
        q = np.where((a < 0) != (b < 0), ~q + unsigned(1), q)
        r = np.where(a < 0, ~r + unsigned(1), r)
    q = np.where(zero, ~unsigned(0), q)
    return q.view(a.dtype), np.where(zero, a, r.view(a.dtype))


def abs_int(a: Array) -> Array:
    """|a|; the most negative number stays as it is."""
    return np.abs(a) if a.dtype.kind == "i" else a


def mul_hi(a: Array, b: Array) -> Array:
    """The upper half of the double-width product."""
    width = a.dtype.itemsize
    if width < 8:
        wide = (SIGNED if a.dtype.kind == "i" else UNSIGNED)[2 * width]
        return (a.astype(wide) * b.astype(wide) >> wide(8 * width)).astype(a.dtype)
    x, y = a.view(U64), b.view(U64)
    low, shift = U64(0xFFFFFFFF), U64(32)
    x0, x1, y0, y1 = x & low, x >> shift, y & low, y >> shift
    middle = x1 * y0 + (x0 * y0 >> shift)
    middle2 = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> shift) + (middle2 >> shift)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, U64(0)) - np.where(b < 0, x, U64(0))
    return high.view(a.dtype)


def add_sat(a: Array, b: Array) -> Array:
    return np.clip(a.astype(I64) + b.astype(I64), -(2**31), 2**31 - 1).astype(I32)


def sub_sat(a: Array, b: Array) -> Array:
    return np.clip(a.astype(I64) - b.astype(I64), -(2**31), 2**31 - 1).astype(I32)


def sad(a: Array, b: Array, c: Array) -> Array:
    """c + |a - b|."""
    return c + np.where(a > b, a - b, b - a)


def shl(a: Array, b: Array) -> Array:
    """a << b; 0 from the type's width on."""
    width = a.dtype.type(_bits(a))
    n = np.minimum(b, U32(_bits(a))).astype(a.dtype)
    return np.where(n < width, a << np.minimum(n, width - a.dtype.type(1)), a.dtype.type(0))


def shr(a: Array, b: Array) -> Array:
    """a >> b, filled with the sign for signed types; a shift of the width or more fills everything."""
    width = _bits(a)
    n = np.minimum(b, U32(width))
    shifted = a >> np.minimum(n, U32(width - 1)).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(n < width, shifted, a.dtype.type(0))


def shf_left(a: Array, b: Array, c: Array, wrap: bool) -> Array:
    """The upper word of the 64-bit value {b, a} shifted left by c (c & 31, or c clamped to 32)."""
    n = (c & U32(31) if wrap else np.minimum(c, U32(32))).astype(U64)
    both = b.astype(U64) << U64(32) | a
    return ((both << n) >> U64(32)).astype(U32)


def shf_right(a: Array, b: Array, c: Array, wrap: bool) -> Array:
    """The lower word of the 64-bit value {b, a} shifted right by c."""
    n = (c & U32(31) if wrap else np.minimum(c, U32(32))).astype(U64)
    both = b.astype(U64) << U64(32) | a
    return (both >> n).astype(U32)


def popc(a: Array) -> Array:
    return np.bitwise_count(a).astype(U32)


def _smear(a: Array) -> Array:
    """Ones from the highest set bit down."""
    step = 1
    while step < _bits(a):
        a = a | a >> a.dtype.type(step)
        step *= 2
    return a


def clz(a: Array) -> Array:
    return U32(_bits(a)) - popc(_smear(a))


def bfind(a: Array, shift_amount: bool = False) -> Array:
    """The position of the highest bit that differs from the sign (of the highest 1 if unsigned); -1 if
    none.
    """
    unsigned = UNSIGNED[a.dtype.itemsize]
    x = np.where(a < 0, ~a, a).view(unsigned) if a.dtype.kind == "i" else a
    position = popc(_smear(x)) - U32(1)
    if shift_amount:
        return np.where(x == 0, U32(0xFFFFFFFF), U32(_bits(a) - 1) - position)
    return position


def brev(a: Array) -> Array:
    step, width = 1, _bits(a)
    full = (1 << width) - 1
    while step < width:
        mask = a.dtype.type(full // ((1 << step) + 1))
        n = a.dtype.type(step)
        a = (a >> n) & mask | (a & mask) << n
        step *= 2
    return a


def _field(number: Array, width: int) -> Array:
    """A position or length, which the manual restricts to 255; of more the card takes 8 bits, or all for
    64-bit fields.
    """
    return number & U32(255) if width == 32 else np.minimum(number, U32(255))


def bfe(a: Array, b: Array, c: Array) -> Array:
    """The c bits of a from bit b on, sign-extended for signed types."""
    width = _bits(a)
    unsigned = UNSIGNED[width // 8]
    position, length = _field(b, width), _field(c, width)
    bits = shr(a, position).view(unsigned)
    mask = shl(np.full_like(bits, 1), length) - unsigned(1)
    if a.dtype.kind != "i":
        return bits & mask
    last = np.minimum(position + length - np.minimum(length, U32(1)), U32(width - 1))
    sign = (shr(a.view(unsigned), last) & unsigned(1)).astype(bool) & (length > 0)
    return (bits & mask | np.where(sign, ~mask, unsigned(0))).view(a.dtype)


def bfi(a: Array, b: Array, c: Array, d: Array) -> Array:
    """b with the low d bits of a put in at bit c."""
    position, length = _field(c, _bits(a)), _field(d, _bits(a))
    one = np.full_like(b, 1)
    mask = shl(shl(one, length) - b.dtype.type(1), position)
    return b & ~mask | shl(a, position) & mask


def prmt(a: Array, b: Array, c: Array) -> Array:
    """Four bytes picked from {b, a} by the nibbles of c; a nibble's top bit replicates the byte's sign."""
    both = b.astype(U64) << U64(32) | a
    r = U32(0)
    for i in range(4):
        nibble = c >> U32(4 * i)
        byte = ((both >> ((nibble & U32(7)) * U32(8)).astype(U64)) & U64(0xFF)).astype(U32)
        sign = np.where(byte & U32(0x80), U32(0xFF), U32(0))
        r = r | np.where(nibble & U32(8), sign, byte) << U32(8 * i)
    return r


def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Any logic function of three inputs: bit (4a + 2b + c) of `table`."""
    r = a & U32(0)
    for i in range(8):
        if table >> i & 1:
            r = r | (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return r


def testp(a: Array, what: str) -> Array:
    smallest = np.finfo(a.dtype).tiny
    answers = {
        "finite": lambda: np.isfinite(a),
        "infinite": lambda: np.isinf(a),
        "number": lambda: ~np.isnan(a),
        "notanumber": lambda: np.isnan(a),
        "normal": lambda: np.isfinite(a) & ((np.abs(a) >= smallest) | (a == 0)),  # as the card says of a zero
        "subnormal": lambda: (np.abs(a) < smallest) & (a != 0),
    }
    return answers[what]()


# Conversions


def to_int(a: Array, dtype: Any, mode: str) -> Array:
    """Float to integer: rounded by mode ("rni", "rzi", "rmi", "rpi"), then clamped; NaN as the manual
    says.
    """
    wide = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](a.astype(F64))
    info = np.iinfo(dtype)
    high = F64(2.0 ** (info.bits - (info.min < 0)))
    inside = (wide >= F64(info.min)) & (wide < high)
    r = np.where(inside, wide, 0).astype(dtype)
    r = np.where(wide < F64(info.min), dtype(info.min), np.where(wide >= high, dtype(info.max), r))
    wide_types = a.dtype == F64 or info.bits == 64
    nan = (
        dtype(1 << (info.bits - 1)) if wide_types and info.min == 0 else dtype(info.min if wide_types else 0)
    )
    return np.where(np.isnan(a), nan, r)


def int_to_f32(a: Array, mode: str) -> Array:
    if mode == "rn":
        return a.astype(F32)
    if a.dtype.itemsize < 8:
        s = a.astype(F64)
        return round_to(s, s * 0, F32, mode)
    high = (a >> a.dtype.type(32)).astype(F64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(F64)
    return round_to(*two_sum(high, low), F32, mode)


def narrow(a: Array, dtype: Any, mode: str) -> Array:
    """f64 or f32 to a narrower float, rounded by mode; NaN becomes the canonical one."""
    if mode == "rn":
        return canonical(a.astype(dtype))
    s = a.astype(F64)
    return canonical(round_to(s, s * 0, dtype, mode))


def widen(a: Array, dtype: Any) -> Array:
    r = a.astype(dtype)
    return canonical(r) if dtype == F32 else r


def round_float(a: Array, mode: str) -> Array:
    """`cvt.rni.f32.f32` and the like: to an integral value of the same type."""
    r = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](a)
    return canonical(r) if a.dtype != F64 else r


def clamp_int(a: Array, dtype: Any) -> Array:
    """`cvt.sat` between integers."""
    info = np.iinfo(dtype)
    if a.dtype.kind == "u":
        return np.minimum(a, a.dtype.type(min(info.max, np.iinfo(a.dtype).max))).astype(dtype)
    low = max(info.min, np.iinfo(a.dtype).min)
    high = min(info.max, np.iinfo(a.dtype).max)
    return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(dtype)


# Two halves in one register


def join16(low: Array, high: Array) -> Array:
    return low.view(U16).astype(U32) | high.view(U16).astype(U32) << U32(16)


def pairs(function: Callable[..., Array], *operands: Array) -> Array:
    """An f16 function on both halves of f16x2 operands (u32)."""
    low = [(x & U32(0xFFFF)).astype(U16).view(F16) for x in operands]
    high = [(x >> U32(16)).astype(U16).view(F16) for x in operands]
    return join16(function(*low), function(*high))


def add16(a: Array, b: Array) -> Array:
    return canonical(a + b)


def sub16(a: Array, b: Array) -> Array:
    return canonical(a - b)


def mul16(a: Array, b: Array) -> Array:
    return canonical(a * b)


# Which lanes of a predicate are unset (ua, ub: where the operands a, b are)


def unset_and(a: Array, ua: Array, b: Array, ub: Array) -> Array:
    """Unset, unless the other operand is known to be false."""
    return (ua | ub) & (ua | a) & (ub | b)


def unset_or(a: Array, ua: Array, b: Array, ub: Array) -> Array:
    """Unset, unless the other operand is known to be true."""
    return (ua | ub) & (ua | ~a) & (ub | ~b)
