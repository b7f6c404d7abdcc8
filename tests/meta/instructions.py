"""What each PTX instruction must do: a table in the order and the spelling of the PTX ISA manual.

A row is one instruction with cases: bit patterns of its operands, and of the result that the manual asks
for. The results come from Python's integers and `exact.py`, never from the simulator or NumPy. Registers are
spelled as NVRTC spells them, and tell the width: %rs 16, %r 32, %rd 64 bits, %p a predicate. Number 0 is the
result, 1, 2, 3 are the operands, those from 10 on are for use in between.

A result that is NaN may be any NaN. Where the manual leaves a result open (a division by zero), no case
asks for it. An approximate instruction has a bound from the manual: ulp, relative or absolute.

What is more than a row (memory, atomics, shuffles, control) stands in `kernels.py`. Both run on the simulator
and on a GPU (`test_instructions.py`). To run them all on a GPU:

    python tests/meta/instructions.py --gpu
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import copysign, inf, isnan, nan

from exact import FLOATS, Number, div, mul, neg, order, sqrt, to_integer, width
from kernels import KERNELS
from table import (
    POOL,
    Kernel,
    Row,
    Spec,
    approximate,
    each,
    fused,
    integers,
    least,
    minus,
    most,
    pattern,
    plus,
    ptx_for,
    row,
)

SHIFTS = [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 255, 0x80000000, 0xFFFFFFFF]
ALL = "s16 u16 s32 u32 s64 u64"
SIGNED = "s16 s32 s64"

ROWS: list[Row] = []

# Integer arithmetic -------------------------------------------------------------------------------------


def truncated(a: int, b: int) -> int | None:
    """The quotient, toward zero; open for a division by zero and for the one that overflows."""
    if b == 0 or (b == -1 and a in (least("s16"), least("s32"), least("s64"))):
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int | None:
    quotient = truncated(a, b)
    return None if quotient is None else a - b * quotient


def high(bits: int) -> Spec:
    return lambda a, b, c=0: (a * b >> bits) + c


ROWS += each("add", ALL, "t t -> t", lambda a, b: a + b)
ROWS += each("add", "sat.s32", "t t -> t", lambda a, b: a + b)
ROWS += each("sub", ALL, "t t -> t", lambda a, b: a - b)
ROWS += each("sub", "sat.s32", "t t -> t", lambda a, b: a - b)
ROWS += each("mul.lo", ALL, "t t -> t", lambda a, b: a * b)
ROWS += each("mul.wide", "s16 u16 s32 u32", "t t -> w", lambda a, b: a * b)
ROWS += each("mad.lo", ALL, "t t t -> t", lambda a, b, c: a * b + c)
ROWS += each("mad.wide", "s16 u16 s32 u32", "t t w -> w", lambda a, b, c: a * b + c)
for bits in (16, 32, 64):
    ROWS += each("mul.hi", f"s{bits} u{bits}", "t t -> t", high(bits))
    ROWS += each("mad.hi", f"s{bits} u{bits}", "t t t -> t", high(bits))
ROWS += each("sad", ALL, "t t t -> t", lambda a, b, c: c + abs(a - b))
ROWS += each("div", ALL, "t t -> t", truncated)
ROWS += each("rem", ALL, "t t -> t", remainder)
ROWS += each("abs", SIGNED, "t -> t", abs)
ROWS += each("neg", SIGNED, "t -> t", lambda a: -a)
ROWS += each("min", ALL, "t t -> t", min)
ROWS += each("max", ALL, "t t -> t", max)
ROWS += each("popc", "b32 b64", "t -> u32", lambda a: a.bit_count())
ROWS += each("clz", "b32", "t -> u32", lambda a: 32 - a.bit_length())
ROWS += each("clz", "b64", "t -> u32", lambda a: 64 - a.bit_length())
ROWS += each("bfind", "u32 u64", "t -> u32", lambda a: a.bit_length() - 1)
ROWS += each("bfind", "s32 s64", "t -> u32", lambda a: (a if a >= 0 else ~a).bit_length() - 1)
ROWS += each("bfind.shiftamt", "u32", "t -> u32", lambda a: 32 - a.bit_length() if a else -1)
ROWS += each("bfind.shiftamt", "u64", "t -> u32", lambda a: 64 - a.bit_length() if a else -1)
ROWS += each("brev", "b32", "t -> t", lambda a: int(f"{a:032b}"[::-1], 2))
ROWS += each("brev", "b64", "t -> t", lambda a: int(f"{a:064b}"[::-1], 2))

FIELD = [0, 1, 3, 8, 31, 32, 33, 63, 64, 255, 256 + 3]


# Above 255 the manual leaves position and length open; the card takes 8 bits, but all for 64-bit fields.
FIELD_MASK = {32: 0xFF, 64: 0xFFFFFFFF}


def extract(bits: int, signed: bool) -> Spec:
    """A field of `length` bits from `start`; beyond the top, the sign (or zeros) goes on."""

    def spec(a: int, start: int, length: int) -> int:
        start, length = start & FIELD_MASK[bits], length & FIELD_MASK[bits]
        field = (a >> start) & (1 << length) - 1  # Python's integers go on with their sign by themselves
        if signed and length:
            top = min(start + length, bits) - 1
            if a >> top & 1:
                field |= -1 << max(top - start, 0)
        return field

    return spec


def insert(bits: int) -> Spec:
    """The low `length` bits of a put into b from `start` on."""

    def spec(a: int, b: int, start: int, length: int) -> int:
        start, length = start & FIELD_MASK[bits], length & FIELD_MASK[bits]
        mask = (1 << length) - 1 << start
        return b & ~mask | a << start & mask

    return spec


for bits in (32, 64):
    some = integers(bits)[-3:]  # the top bit alone, all the others, a mixture
    ROWS += each("bfe", f"u{bits}", "t u32 u32 -> t", extract(bits, False), some, FIELD, FIELD)
    ROWS += each("bfe", f"s{bits}", "t u32 u32 -> t", extract(bits, True), some, FIELD, FIELD)
    ROWS += each("bfi", f"b{bits}", "t t u32 u32 -> t", insert(bits), some[1:], [0, some[0]], FIELD, FIELD)

# Floating point arithmetic ------------------------------------------------------------------------------


def with_nan(result: float, spec: Spec) -> Spec:
    """`spec`, but `result` where one of the two operands is NaN."""
    return lambda a, b: result if isnan(a) or isnan(b) else spec(a, b)


def smaller(a: Number, b: Number) -> Number:
    return b if isnan(a) else a if isnan(b) else min(a, b, key=order)


def greater(a: Number, b: Number) -> Number:
    return b if isnan(a) else a if isnan(b) else max(a, b, key=order)


for type in ("f32", "f64"):
    tiny = Fraction(2) ** FLOATS[type][2]  # the least normal number
    sign = 1 << width(type) - 1
    ROWS += each("testp.finite", type, "t -> pred", math.isfinite)
    ROWS += each("testp.infinite", type, "t -> pred", math.isinf)
    ROWS += each("testp.number", type, "t -> pred", lambda a: not isnan(a))
    ROWS += each("testp.notanumber", type, "t -> pred", isnan)
    ROWS += each("testp.normal", type, "t -> pred", lambda a, tiny=tiny: a == 0 or tiny <= abs(a) < inf)
    ROWS += each("testp.subnormal", type, "t -> pred", lambda a, tiny=tiny: 0 < abs(a) < tiny)
    ROWS += each("copysign", type, "b b -> b", lambda a, b, s=sign: a & s | b & ~s, POOL[type], POOL[type])

EVERY = "f32 rn.f32 rz.f32 rm.f32 rp.f32 ftz.f32 sat.f32 rn.ftz.sat.f32 f64 rn.f64 rz.f64 rm.f64 rp.f64"
IEEE = "rn.f32 rz.f32 rm.f32 rp.f32 rn.ftz.f32 rn.f64 rz.f64 rm.f64 rp.f64"
SOME = {type: 3 * [[POOL[type][n] for n in (0, 1, 2, 3, 4, 6, 9, 12, 14)]] for type in FLOATS}
ROWS += each("add", EVERY, "t t -> t", plus)
ROWS += each("sub", EVERY, "t t -> t", minus)
ROWS += each("mul", EVERY, "t t -> t", mul)
for kind in "rn.f32 rz.f32 rm.f32 rp.f32 rn.ftz.f32 rn.sat.f32 rn.f64 rz.f64 rm.f64 rp.f64".split():
    ROWS += each("fma", kind, "t t t -> t", fused, *SOME[kind[-3:]])
# The last two cases: in float64 the sum would land on a tie, and be rounded the wrong way from there.
ROWS += row(
    "fma.rn.f32 %r0, %r1, %r2, %r3;",
    (1 + 2.0**-12, 1 + 2.0**-12, -1.0 - 2.0**-11, 2.0**-24),
    (3.0, nan, 1.0, nan),
    (inf, 0.0, 1.0, nan),
    (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80, 0x3F801001),
    (2.0**-24 + 2.0**-47, 1 - 2.0**-23, 1 + 2.0**-23, 0x3F800001),
)
ROWS += row(
    "fma.rn.f64 %rd0, %rd1, %rd2, %rd3;",
    (1 + 2.0**-27, 1 + 2.0**-27, -1.0 - 2.0**-26, 2.0**-54),
    (1 + 2.0**-52, 1 - 2.0**-52, -1.0, -(2.0**-104)),
)
ROWS += row("mad.rn.f32 %r0, %r1, %r2, %r3;", (2.0, 3.0, 4.0, 10.0), (inf, 1.0, -inf, nan))
ROWS += each("div", IEEE, "t t -> t", div)
ROWS += each("abs", "f32 ftz.f32 f64", "t -> t", abs)
ROWS += each("neg", "f32 ftz.f32 f64", "t -> t", neg)
ROWS += each("min", "f32 ftz.f32 f64", "t t -> t", smaller)
ROWS += each("max", "f32 ftz.f32 f64", "t t -> t", greater)
ROWS += each("min", "NaN.f32", "t t -> t", with_nan(nan, smaller))
ROWS += each("max", "NaN.f32", "t t -> t", with_nan(nan, greater))
ROWS += each("rcp", IEEE, "t -> t", lambda a: div(Fraction(1), a))
ROWS += each("sqrt", IEEE, "t -> t", sqrt)


# The approximate ones: what they are near to, in float64.


def quotient(a: float, b: float) -> float:
    return div(Fraction(a) if a and math.isfinite(a) else a, Fraction(b) if b and math.isfinite(b) else b)


MIXED = [0.0, -0.0, 1.0, -1.5, 3.14159, 1e-30, -7e20, inf, -inf, nan]
NORMAL = [0.3, 0.9999999, 1.0000001, 1.7, 2.0, 123.456, 1e-37, 1e10, 3.4e38, 2.0**-126]
PAIRS = [pair for pair in product(MIXED, MIXED) if not 3e38 < abs(quotient(*pair)) < inf]


def inverse(a: float) -> float:
    return quotient(1.0, a)


def root(a: float) -> float:
    return nan if a < 0 else a if a == 0 else math.sqrt(a)


def inverse_root(a: float) -> float:
    return nan if a < 0 else copysign(inf, a) if a == 0 else 1 / math.sqrt(a)


def logarithm(a: float) -> float:
    return nan if a < 0 else -inf if a == 0 else math.log2(a)


def power(a: float) -> float:
    return inf if a >= 128 else 0.0 if a < -160 else 2.0**a


def power_or_zero(a: float) -> float:
    return 0.0 if a < -126 else power(a)


def wave(f: Callable[[float], float]) -> Spec:
    return lambda a: f(a) if math.isfinite(a) else nan


TURN = [0.0, -0.0, 0.1, -0.5, 1.0, 1.5707964, 2.5, 3.1415927, -4.0, 6.28, inf, nan]
TURNS = [10.0, -100.0, 314.0]
POWERS = [0.0, -0.0, 1.0, 0.3, -7.7, 100.9, -125.5, -130.0, -148.0, 127.99, 128.0, -1000.0, inf, -inf, nan]
BOTH = "approx.f32 approx.ftz.f32"
SMALL, LEAST = 2.0**-130, 2.0**-149  # subnormal: zeros for .ftz

ROWS += approximate("div", "full.f32", ("ulp", 2), quotient, *PAIRS, (1.0, 2.0**126), (2.0**126, 2.0**127))
ROWS += approximate("div", "approx.f32", ("ulp", 2), quotient, *PAIRS, (1e30, 2.0**-20), (1.0, 2.0**126))
for kind in ("full.ftz.f32", "approx.ftz.f32"):
    ROWS += approximate("div", kind, ("ulp", 2), quotient, (1.0, 3.0), (SMALL, 5.0), (9.0, SMALL))
ROWS += approximate("rcp", BOTH, ("ulp", 1), inverse, *MIXED, *NORMAL[:-2])
ROWS += approximate("rcp", "approx.ftz.f32", ("ulp", 1), inverse, SMALL, -LEAST)
ROWS += approximate("sqrt", BOTH, ("rel", 2.0**-23), root, *MIXED, *NORMAL, SMALL, LEAST)
ROWS += approximate("rsqrt", BOTH, ("rel", 2.0**-22.9), inverse_root, *MIXED, *NORMAL, SMALL)
ROWS += approximate("sin", BOTH, ("abs", 2.0**-20.5), wave(math.sin), *TURN)
ROWS += approximate("cos", BOTH, ("abs", 2.0**-20.5), wave(math.cos), *TURN)
ROWS += approximate("sin", "approx.f32", ("abs", 2.0**-14.7), wave(math.sin), *TURNS)
ROWS += approximate("cos", "approx.f32", ("abs", 2.0**-14.7), wave(math.cos), *TURNS)
ROWS += approximate("lg2", BOTH, ("rel", 2.0**-22), logarithm, *MIXED, *NORMAL[4:], SMALL)
ROWS += approximate("lg2", "approx.f32", ("abs", 2.0**-22), logarithm, 0.51, 0.9, 1.0000001, 1.3, 1.99)
ROWS += approximate("ex2", "approx.f32", ("ulp", 2), power, *POWERS)
ROWS += approximate("ex2", "approx.ftz.f32", ("ulp", 2), power_or_zero, *POWERS)
ROWS += approximate("tanh", "approx.f32", ("rel", 2.0**-11), math.tanh, *TURN, 20.0, -inf)

# Half precision -----------------------------------------------------------------------------------------

ROWS += each("add", "f16 rn.f16 ftz.f16 sat.f16", "t t -> t", plus)
ROWS += each("sub", "f16 rn.f16 ftz.f16 sat.f16", "t t -> t", minus)
ROWS += each("mul", "f16 rn.f16 ftz.f16 sat.f16", "t t -> t", mul)
ROWS += each("fma", "rn.f16 rn.ftz.f16 rn.sat.f16", "t t t -> t", fused, *SOME["f16"])
# Without c, a tie that goes to even, 0x3c30.
ROWS += row("fma.rn.f16 %rs0, %rs1, %rs2, %rs3;", (1 + 2.0**-6, 1 + 2.0**-5, 2.0**-24, 0x3C31))
ROWS += each("neg", "f16", "t -> t", neg)
ROWS += each("abs", "f16", "t -> t", abs)
ROWS += each("min", "f16 ftz.f16", "t t -> t", smaller)
ROWS += each("max", "f16 ftz.f16", "t t -> t", greater)

# Comparison and selection -------------------------------------------------------------------------------

COMPARE: dict[str, Spec] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

ORDERED = {name: with_nan(False, compare) for name, compare in COMPARE.items()}
UNORDERED = {name + "u": with_nan(True, compare) for name, compare in COMPARE.items()}
NUM_NAN = {"num": with_nan(False, lambda a, b: True), "nan": with_nan(True, lambda a, b: False)}
FLOAT_COMPARE = {**ORDERED, **UNORDERED, **NUM_NAN}
for name, compare in COMPARE.items():
    ROWS += each(f"setp.{name}", ALL, "t t -> pred", compare)
    ROWS += each(f"set.{name}", "u32.s32", "s32 s32 -> s32", lambda a, b, c=compare: -c(a, b))
for name in ("eq", "ne"):
    ROWS += each(f"setp.{name}", "b16 b32 b64", "t t -> pred", COMPARE[name])
for name, like in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
    ROWS += each(f"setp.{name}", "u32", "t t -> pred", COMPARE[like])
for name, compare in FLOAT_COMPARE.items():
    ROWS += each(f"setp.{name}", "f32 f64", "t t -> pred", compare)
for name in ("lt", "eq", "neu", "nan"):
    ROWS += each(f"setp.{name}", "f16 ftz.f32", "t t -> pred", FLOAT_COMPARE[name])
ROWS += each("set.lt", "f32.f32", "f32 f32 -> f32", lambda a, b: Fraction(1) if a < b else 0.0)
ROWS += each("set.geu", "u32.f32", "f32 f32 -> s32", lambda a, b: -UNORDERED["geu"](a, b))
ROWS += each("set.gt", "u32.f64", "f64 f64 -> s32", lambda a, b: -(a > b))
ROWS += each("setp.lt.and", "s32", "t t pred -> pred", lambda a, b, c: a < b and c)
ROWS += each("setp.lt.or", "u32", "t t pred -> pred", lambda a, b, c: a < b or c)
ROWS += each("setp.lt.xor", "f32", "t t pred -> pred", lambda a, b, c: (a < b) != c)
ROWS += each("set.ge.or", "u32.u32", "u32 u32 pred -> s32", lambda a, b, c: -(a >= b or bool(c)))
LESS = [(1, 2), (2, 1), (2, 2), (-1, 1)]
ROWS += row(
    "setp.lt.and.s32 %p0, %r1, %r2, !%p3;",
    *((a, b, c, int(a < b and not c)) for (a, b), c in product(LESS, (0, 1))),
)
BOTH_PREDICATES = " selp.u32 %r10, 1, 0, %p10; selp.u32 %r0, 2, 0, %p11; or.b32 %r0, %r0, %r10;"
ROWS += row(  # the second predicate: not (a < b), combined with the same one
    "setp.lt.and.s32 %p10|%p11, %r1, %r2, %p3;" + BOTH_PREDICATES,
    *((a, b, c, (1 if a < b else 2) if c else 0) for (a, b), c in product(LESS, (0, 1))),
)
ROWS += row(
    "setp.gt.f32 %p10|%p11, %r1, %r2;" + BOTH_PREDICATES,
    (2.0, 1.0, 1),
    (1.0, 2.0, 2),
    (nan, 2.0, 2),
)
ROWS += each("selp", "b16 b32 b64 u16 s32 u64", "t t pred -> t", lambda a, b, c: a if c else b)
ROWS += each("selp", "f32 f64", "b b pred -> b", lambda a, b, c: a if c else b)
ROWS += row("slct.u32.s32 %r0, %r1, %r2, %r3;", (5, 6, 0, 5), (5, 6, 1, 5), (5, 6, 0x80000000, 6))
ROWS += row("slct.b64.s32 %rd0, %rd1, %rd2, %r3;", (5, 6, 0, 5), (1 << 40, -1, -1, -1))
ROWS += row("slct.f32.f32 %r0, %r1, %r2, %r3;", (5, 6, -0.0, 5), (5, 6, -(2.0**-149), 6), (5, 6, nan, 6))
ROWS += row("slct.ftz.f32.f32 %r0, %r1, %r2, %r3;", (5, 6, -(2.0**-149), 5), (5, 6, -1.0, 6), (5, 6, inf, 5))

# Logic and shift ----------------------------------------------------------------------------------------

ROWS += each("and", "b16 b32 b64 pred", "t t -> t", lambda a, b: a & b)
ROWS += each("or", "b16 b32 b64 pred", "t t -> t", lambda a, b: a | b)
ROWS += each("xor", "b16 b32 b64 pred", "t t -> t", lambda a, b: a ^ b)
ROWS += each("not", "b16 b32 b64 pred", "t -> t", lambda a: ~a)
ROWS += each("cnot", "b16 b32 b64", "t -> t", lambda a: a == 0)


def lookup(table: int) -> Spec:
    """Bit i of the result is bit 4 a + 2 b + c of the table, of the bits i of a, b and c."""
    return lambda a, b, c: sum(
        (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
    )


for table in (0x80, 0x96, 0xE8, 0xCA, 0x01, 0x6A):
    words = [(0xF0F0AA12, 0xCCCC3355, 0xAAAA5577), (0, 0, 0), (0x12345678, 0x9ABCDEF0, 0x0F1E2D3C)]
    ROWS += row(f"lop3.b32 %r0, %r1, %r2, %r3, {table};", *((*w, lookup(table)(*w)) for w in words))


def funnel(left: bool, amount: Callable[[int], int]) -> Spec:
    """b above a, 64 bits, shifted: the upper word after a left shift, the lower one after a right shift."""
    if left:
        return lambda a, b, c: (b << 32 | a) << amount(c) >> 32
    return lambda a, b, c: (b << 32 | a) >> amount(c)


WORDS = 2 * [integers(32)]
for mode, amount in (("wrap", lambda c: c & 31), ("clamp", lambda c: min(c, 32))):
    ROWS += each(f"shf.l.{mode}", "b32", "t t u32 -> t", funnel(True, amount), *WORDS, SHIFTS)
    ROWS += each(f"shf.r.{mode}", "b32", "t t u32 -> t", funnel(False, amount), *WORDS, SHIFTS)
for bits in (16, 32, 64):
    some = integers(bits)
    ROWS += each("shl", f"b{bits}", "t u32 -> t", lambda a, n: a << min(n, 64), some, SHIFTS)
    ROWS += each("shr", f"u{bits} s{bits} b{bits}", "t u32 -> t", lambda a, n: a >> min(n, 64), some, SHIFTS)

# Data movement and conversion ---------------------------------------------------------------------------

ROWS += row("mov.u32 %r0, %r1;", (0xDEADBEEF, 0xDEADBEEF))
ROWS += row("mov.b64 %rd0, %rd1;", (0x0123456789ABCDEF, 0x0123456789ABCDEF))
ROWS += row("mov.u16 %rs0, %rs1;", (0xBEEF, 0xBEEF))
ROWS += row("mov.f32 %r0, %r1;", (-0.0, 0x80000000), (0x7F812345, 0x7F812345))  # a move keeps a NaN's payload
ROWS += row("mov.pred %p0, %p1;", (0, 0), (1, 1))
ROWS += row("mov.u32 %r0, 4294967295;", (-1,))
ROWS += row("mov.u32 %r0, -5;", (-5,))
ROWS += row("mov.b32 %r0, 0xCafe;", (0xCAFE,))
ROWS += row("mov.u32 %r0, 0x80000000U;", (0x80000000,))
ROWS += row("mov.u32 %r0, 017;", (15,))
ROWS += row("mov.u32 %r0, 0b101;", (5,))
ROWS += row("mov.b64 %rd0, 0x8000000000000001;", (1 << 63 | 1,))
ROWS += row("mov.s64 %rd0, -1;", (-1,))
ROWS += row("mov.f32 %r0, 0f3F800000;", (1.0,))
ROWS += row("mov.f32 %r0, 0fFF800000;", (-inf,))
ROWS += row("mov.f64 %rd0, 0d400921FB54442D18;", (math.pi,))
ROWS += row("mov.u16 %rs0, -2;", (0xFFFE,))
ROWS += row("add.s32 %r0, %r1, -7;", (3, -4), (0x80000000, 0x7FFFFFF9))
ROWS += row("add.f32 %r0, %r1, 0f3F000000;", (0.25, 0.75))
ROWS += row("mul.f64 %rd0, %rd1, 0d3FE0000000000000;", (3.0, 1.5))
ROWS += row("and.b32 %r0, %r1, 0xFF00;", (0x12345678, 0x5600))
ROWS += row("sub.s64 %rd0, 1, %rd1;", (5, -4))
ROWS += row("mul.wide.s32 %rd0, %r1, -4;", (3, -12), (-1, 4))
ROWS += row("setp.gt.s32 %p0, %r1, -1;", (0, 1), (-1, 0), (0x80000000, 0))
ROWS += row("setp.ne.s16 %p0, %rs1, 0;", (0, 0), (-1, 1))
ROWS += row("selp.f32 %r0, 0f3F800000, 0f00000000, %p1;", (0, 0.0), (1, 1.0))
ROWS += row("mov.b32 %r0, {%rs1, %rs2};", (0x1234, 0xABCD, 0xABCD1234))
ROWS += row("mov.b64 %rd0, {%r1, %r2};", (0x12345678, 0x9ABCDEF0, 0x9ABCDEF012345678))
ROWS += row("mov.b64 %rd0, {%rs1, %rs2, %rs3, %rs4};", (1, 2, 3, 0xFFFF, 0xFFFF000300020001))
ROWS += row("mov.b64 {%r0, %r10}, %rd1;", (0x9ABCDEF012345678, 0x12345678))
ROWS += row("mov.b64 {%r10, %r0}, %rd1;", (0x9ABCDEF012345678, 0x9ABCDEF0))
ROWS += row("mov.b32 {%rs0, %rs10}, %r1;", (0xABCD1234, 0x1234))
ROWS += row("mov.b32 {%rs10, %rs0}, %r1;", (0xABCD1234, 0xABCD))
ROWS += row("mov.b64 {%rs10, %rs11, %rs0, %rs12}, %rd1;", (0x0004000300020001, 3))
ROWS += row("{ .reg .b32 low; mov.b64 {low, %r0}, %rd1; }", (0x9ABCDEF012345678, 0x9ABCDEF0))
ROWS += row("{ .reg .b16 high; mov.b32 {%rs0, high}, %r1; }", (0xABCD1234, 0x1234))
ROWS += row("mov.u32 %r0, %r1; @%p2 add.s32 %r0, %r0, 1; @!%p2 neg.s32 %r0, %r0;", (5, 1, 6), (5, 0, -5))

A, B = 0x33221100, 0x77665544
ROWS += row(
    "prmt.b32 %r0, %r1, %r2, %r3;",
    (A, B, 0x3210, A),
    (A, B, 0x7654, B),
    (A, B, 0x0123, 0x00112233),
    (A, B, 0x5410, 0x55441100),
    (A, B, 0x7531, 0x77553311),
    (0x80FF7F00, 0, 0xBA98, 0xFFFF0000),  # bit 3 of a selector: the byte's sign, eight times
    (0x80FF7F00, 0x01, 0xC3A1, 0x0080FF7F),
    (A, B, 0xFFFF0000, 0),  # only the lower 16 bits of the selectors count
)
ROWS += row("prmt.b32 %r0, %r1, %r2, 0x1032;", (0x33221100, 0, 0x11003322))
PRMT = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
for mode, selectors in PRMT.items():
    picked = [int("".join(2 * digit for digit in f"{s:04x}"), 16) for s in selectors]  # 0x3210 -> 0x33221100
    ROWS += row(f"prmt.b32.{mode} %r0, %r1, %r2, %r3;", *((A, B, c, want) for c, want in enumerate(picked)))

INTEGERS = "s8 u8 s16 u16 s32 u32 s64 u64".split()
for to, source in product(INTEGERS, INTEGERS):
    if to != source:
        ROWS += each("cvt", f"{to}.{source}", f"{source} -> {to}", lambda a: a)
for kind in "s8.s32 u8.s32 u8.u32 s16.s32 u16.s32 u16.u32 s32.s64 u32.s64 u32.u64 u32.s32".split():
    to, source = kind.split(".")
    ROWS += each("cvt.sat", kind, f"{source} -> {to}", lambda a: a)
ROWS += row("cvt.s32.s8 %r0, %r1;", (0x1234_5680, -128), (0x7F, 127))  # a register may be wider than the type
ROWS += row("cvt.u32.u8 %r0, %r1;", (0x1234_5680, 0x80))
ROWS += row("cvt.s8.s32 %r0, %r1;", (0x1234_56F0, -16))
ROWS += row("cvt.u16.u32 %r0, %r1;", (0x1234_56F0, 0x56F0))
ROWS += row("cvt.s64.s16 %rd0, %r1;", (0x1234_8000, -32768))


def to_whole(mode: str, to: str, source: str) -> Spec:
    """A float as an integer of type `to`: out of range, the nearest end; NaN: 0, or only the top bit."""

    def spec(a: Number) -> int:
        if isnan(a):
            return 1 << width(to) - 1 if "64" in to + source else 0
        whole = a if a in (inf, -inf) else to_integer(Fraction(a), mode)
        return int(min(max(whole, least(to)), most(to)))

    return spec


HALVES = [0.5, -0.5, 1.5, -1.5, 2.5, 0.99, -0.99, 32767.5, 65535.0, 65504.0, -129.0]
ENDS = [2.0**31 - 128, 2.0**31, -(2.0**31), 2.0**32 - 256, 2.0**32, 2.0**63, -(2.0**63), 2.0**64]
ENDS64 = [2.0**31 - 0.5, -(2.0**31) - 0.5, 2.0**32 - 0.5, 2.0**53 + 2, 2.0**63 - 1024, 2.0**64 - 2048]
AROUND = {"f16": HALVES, "f32": HALVES + ENDS, "f64": HALVES + ENDS + ENDS64}
for source, to, mode in product(AROUND, INTEGERS[2:], ("rni", "rzi", "rmi", "rpi")):
    if mode == "rzi" or to == "s32":
        pool = [*POOL[source], *(pattern(x, width(source)) for x in AROUND[source])]
        ROWS += each(f"cvt.{mode}", f"{to}.{source}", f"{source} -> {to}", to_whole(mode, to, source), pool)
ROWS += row("cvt.rzi.ftz.s32.f32 %r0, %r1;", (-1.9, -1), (2.0**-149, 0), (3e9, 0x7FFFFFFF), (nan, 0))
ROWS += row("cvt.rpi.ftz.s32.f32 %r0, %r1;", (2.0**-149, 0), (2.0**-126, 1))  # a subnormal counts as zero


def real(a: int) -> Number:
    return Fraction(a) if a else 0.0


NEAR = [2049, 65519, 65520, 2**24 + 1, 2**31 - 64, 2**53 + 1, 2**60 + 2**36 + 1, -(2**24) - 1, -65520]
for source, to, mode in product(INTEGERS, FLOATS, ("rn", "rz", "rm", "rp")):
    if mode == "rn" or (source, to) in (("s32", "f32"), ("u64", "f32"), ("s32", "f16")):
        pool = [*POOL[source], *(pattern(x, max(width(source), 16)) for x in NEAR)]
        ROWS += each(f"cvt.{mode}", f"{to}.{source}", f"{source} -> {to}", real, pool)


def same(a: Number) -> Number:
    return a


def whole(mode: str) -> Spec:
    """Rounded to an integer; a zero keeps the sign of what became it."""
    return lambda a: a if isinstance(a, float) else Fraction(to_integer(a, mode)) or copysign(0.0, a)


for mode in ("rni", "rzi", "rmi", "rpi"):
    for type in ("f32", "f64"):
        pool = [*POOL[type], *(pattern(x, width(type)) for x in HALVES + ENDS)]
        ROWS += each(f"cvt.{mode}", f"{type}.{type}", "t -> t", whole(mode), pool)
ROWS += each("cvt.rni", "f16.f16", "t -> t", whole("rni"), [*POOL["f16"], *(pattern(x, 16) for x in HALVES)])
ROWS += row("cvt.rni.ftz.f32.f32 %r0, %r1;", (2.5, 2.0), (-(2.0**-149), -0.0))
ROWS += row("cvt.rpi.ftz.f32.f32 %r0, %r1;", (2.0**-149, 0.0), (2.0**-126, 1.0))
ROWS += each("cvt.sat", "f32.f32 f64.f64", "t -> t", same)
ROWS += each("cvt", "f64.f32", "f32 -> f64", same)
ROWS += each("cvt", "f32.f16", "f16 -> f32", same)
ROWS += each("cvt", "f64.f16", "f16 -> f64", same)
FINE = [1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-50, 1 + 2.0**-11 + 2.0**-40, 2.0**-126 - 2.0**-152, 2.0**-150]
LARGE = [65519.0, 65520.0, 2.0**128 - 2.0**103, -(2.0**128) + 2.0**103 + 2.0**80, 1e300]
FINE32, FINE64 = (POOL[f"f{n}"] + [pattern(x, n) for x in [*FINE, 2.0**-25, 3e-5, *LARGE]] for n in (32, 64))
for mode in ("rn", "rz", "rm", "rp"):
    ROWS += each(f"cvt.{mode}", "f32.f64", "f64 -> f32", same, FINE64)
    ROWS += each(f"cvt.{mode}", "f16.f32", "f32 -> f16", same, FINE32)
ROWS += each("cvt.rn", "f16.f64", "f64 -> f16", same, FINE64)
ROWS += each("cvt.rn.sat", "f16.f32", "f32 -> f16", same)
ROWS += row("cvt.rn.ftz.f32.f64 %r0, %rd1;", (2.0**-130, 0.0), (-(2.0**-130), -0.0), (2.0**-126, 2.0**-126))
ROWS += row("cvt.ftz.f64.f32 %rd0, %r1;", (2.0**-130, 0.0), (2.0**-126, 2.0**-126))

TESTS: list[Row | Kernel] = [*ROWS, *KERNELS]

# Rare ones, which the simulator refuses: the GPU alone runs these rows.
REFUSED = r"(add|sub|mul|fma|div|rcp|sqrt)\.r[zmp]\.f64|prmt\.b32\.[a-z]|cvt\.r[zmp]\.f16\.s32"

# Beyond the edge: each must be refused by its name and source line, never guessed.
UNSUPPORTED = [
    "dp4a.s32.s32 %r10, %r1, %r1, %r1;",
    "mov.u32 %r10, %clock;",
    "fma.rn.bf16 %rs10, %rs1, %rs1, %rs1;",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];",
]


def run_on_gpu() -> Iterator[tuple[Row | Kernel, list[str]]]:
    """Each test with its disagreements, on the first GPU, through CuPy."""
    import tempfile
    from pathlib import Path

    import cupy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "instructions.ptx")
        path.write_text(ptx_for(TESTS))
        module = cupy.RawModule(path=str(path))
        for n, test in enumerate(TESTS):
            inputs = cupy.array(test.inputs, dtype=cupy.uint64)
            outputs = cupy.zeros(test.outputs, dtype=cupy.uint64)
            module.get_function(f"t{n}")((1,), (test.threads,), (inputs, outputs))
            yield test, list(test.disagreements(outputs.get().tolist()))


def main() -> int:
    if sys.argv[1:] != ["--gpu"]:
        print(ptx_for(TESTS))
        return 0
    wrong = 0
    for _, disagreements in run_on_gpu():
        wrong += bool(disagreements)
        print(*disagreements[:5], sep="\n", end="\n" if disagreements else "")
    print(f"{len(TESTS)} tests, {sum(test.outputs for test in TESTS)} results, {wrong} tests disagree")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
