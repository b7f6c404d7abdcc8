"""The forms of the instruction tests: a row, a small kernel, the PTX module made of them, makers of rows.

The rows stand in `instructions.py`, the kernels in `kernels.py`. Each test becomes an entry of two arrays
of u64, inputs and outputs, and judges the outputs that it gets back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import copysign, inf, isnan, nan
from typing import Any

from exact import FLOATS, Number, add, decode, encode, fma, neg, width

Spec = Callable[..., Any]  # values of the operands -> the exact result
NAN = -1  # as a wanted pattern: any NaN
PREFIX = {1: "%p", 8: "%rs", 16: "%rs", 32: "%r", 64: "%rd"}
WIDTH = {"p": 1, "rs": 16, "r": 32, "rd": 64}
FLOAT_OF = {16: "f16", 32: "f32", 64: "f64"}


@dataclass(frozen=True)
class Row:
    """An instruction, and for each case its operands and what it must give, as bit patterns.

    With a bound, what it must give is a number, and the result is a float32 near it.
    """

    ptx: str
    cases: tuple[tuple[tuple[int, ...], int | float], ...]
    bound: tuple[str, float] | None = None  # None: bit for bit

    def __str__(self) -> str:
        return self.ptx

    @property
    def registers(self) -> dict[int, str]:
        """Number -> "rd", of the result (0) and the operands."""
        found = {int(n): kind for kind, n in re.findall(r"%(rs|rd|r|p)(\d+)\b", self.ptx)}
        return {n: found[n] for n in sorted(found) if n < 10}

    @property
    def threads(self) -> int:
        return len(self.cases)

    @property
    def inputs(self) -> list[int]:
        return [operand for operands, _ in self.cases for operand in operands] or [0]

    @property
    def outputs(self) -> int:
        return len(self.cases)

    def entry(self, name: str) -> str:
        operands = {n: kind for n, kind in self.registers.items() if n}
        lines = [f"mul.wide.u32 %rd22, %r20, {8 * len(operands)};", "add.s64 %rd20, %rd20, %rd22;"]
        for place, (n, kind) in enumerate(operands.items()):
            if kind == "p":
                lines += [f"ld.global.u32 %r22, [%rd20+{8 * place}];", f"setp.ne.s32 %p{n}, %r22, 0;"]
            else:
                lines.append(f"ld.global.u{WIDTH[kind]} %{kind}{n}, [%rd20+{8 * place}];")
        store = {
            "p": "selp.u64 %rd23, 1, 0, %p0;",
            "rs": "cvt.u64.u16 %rd23, %rs0;",
            "r": "cvt.u64.u32 %rd23, %r0;",
            "rd": "mov.u64 %rd23, %rd0;",
        }[self.registers[0]]
        return entry(name, [*lines, self.ptx, store, "st.global.u64 [%rd21], %rd23;"])

    def disagreements(self, got: Sequence[int]) -> Iterator[str]:
        for (operands, want), pattern in zip(self.cases, got, strict=True):
            if not self.agrees(want, int(pattern)):
                given = ", ".join(map(hex, operands))
                should = want if isinstance(want, float) else "NaN" if want == NAN else hex(want)
                yield f"{self.ptx}  of {given} = {int(pattern):#x}, but should be {should}"

    def agrees(self, want: int | float, pattern: int) -> bool:
        bits = WIDTH[self.registers[0]]
        if self.bound is None:
            return isnan(decode(pattern, FLOAT_OF[bits])) if want == NAN else pattern == want
        got = decode(pattern, "f32")
        if isnan(want) or isnan(got):
            return isnan(want) and isnan(got)
        if want == 0 or math.isinf(want):
            return got == want and copysign(1, got) == copysign(1, want)
        if math.isinf(got):
            return False
        kind, size = self.bound
        unit = {"abs": 1, "rel": abs(want), "ulp": 2.0 ** max(math.frexp(want)[1] - 24, -149)}[kind]
        return abs(Fraction(got) - Fraction(want)) <= Fraction(size) * Fraction(unit)


@dataclass(frozen=True)
class Kernel:
    """A small kernel. It finds tid in %r1, the inputs' and outputs' addresses in %rd1 and %rd2,
    and those of its own 8 bytes in %rd3 and %rd4."""

    name: str
    body: str
    want: tuple[int, ...]
    inputs: tuple[int, ...] = (0,)
    threads: int = 32
    declarations: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def outputs(self) -> int:
        return len(self.want)

    def entry(self, name: str) -> str:
        start = [
            "mov.u32 %r1, %tid.x;",
            "cvta.to.global.u64 %rd1, %rd18;",
            "cvta.to.global.u64 %rd2, %rd19;",
            "mul.wide.u32 %rd22, %r1, 8;",
            "add.s64 %rd3, %rd1, %rd22;",
            "add.s64 %rd4, %rd2, %rd22;",
        ]
        return self.declarations + entry(name, [*start, self.body])

    def disagreements(self, got: Sequence[int]) -> Iterator[str]:
        for place, (want, pattern) in enumerate(zip(self.want, got, strict=True)):
            if want != int(pattern):
                yield f"{self.name}: output {place} = {int(pattern):#x}, but should be {want:#x}"


def entry(name: str, lines: Iterable[str]) -> str:
    text = "\n    ".join(lines)
    return f"""
.visible .entry {name}(
    .param .u64 {name}_param_0,
    .param .u64 {name}_param_1
)
{{
    .reg .pred %p<32>;
    .reg .b16 %rs<32>;
    .reg .b32 %r<64>;
    .reg .b64 %rd<32>;

    ld.param.u64 %rd18, [{name}_param_0];
    ld.param.u64 %rd19, [{name}_param_1];
    mov.u32 %r20, %tid.x;
    mul.wide.u32 %rd17, %r20, 8;
    cvta.to.global.u64 %rd20, %rd18;
    cvta.to.global.u64 %rd21, %rd19;
    add.s64 %rd21, %rd21, %rd17;
    {text}
    ret;
}}
"""


def ptx_for(tests: Sequence[Row | Kernel]) -> str:
    """One module with an entry for each: t0, t1, ..., of two u64 arrays, inputs and outputs."""
    entries = (test.entry(f"t{n}") for n, test in enumerate(tests))
    return ".version 7.8\n.target sm_80\n.address_size 64\n" + "".join(entries)


# Makers of rows


def row(ptx: str, *cases: tuple[float, ...]) -> list[Row]:
    """A row by hand: each case the operands and the result, a float standing for its bit pattern."""
    numbered = Row(ptx, ()).registers
    kinds = [WIDTH[numbered[n]] for n in sorted(numbered, key=lambda n: n or 99)]
    done = []
    for case in cases:
        *operands, want = (pattern(value, bits) for value, bits in zip(case, kinds, strict=True))
        done.append((tuple(operands), NAN if isnan(case[-1]) else want))
    return [Row(ptx, tuple(done))]


def plus(a: Number, b: Number, mode: str) -> Number:
    return add(a, b, mode)


def minus(a: Number, b: Number, mode: str) -> Number:
    return add(a, neg(b), mode)


def fused(a: Number, b: Number, c: Number, mode: str) -> Number:
    return fma(a, b, c, mode)


ROUNDED = {plus, minus, fused}  # these want to know the rounding mode, for the sign of a zero


def each(name: str, kinds: str, signature: str, spec: Spec, *pools: Sequence[int]) -> list[Row]:
    """A row for each of `kinds`, "rn.ftz.f32 f64", over all combinations of operands.

    `signature`, "t u32 -> t": the operands' types and the result's; t is the last type of the kind, w the one
    of twice its width, b the bits of t. `spec` gives the exact result, which is then rounded, or wrapped, to
    the result's type; None where the manual leaves it open.
    """
    rows = []
    for kind in kinds.split():
        parts = [*name.split("."), *kind.split(".")]
        t = parts[-1]
        names = {"t": t, "w": f"{t[0]}{2 * width(t)}", "b": f"b{width(t)}"}
        *types, _, result = (names.get(token, token) for token in signature.split())
        mode = next((part for part in parts if part in ("rn", "rz", "rm", "rp")), "rn")
        ftz, sat = "ftz" in parts, "sat" in parts
        operands = [f"{PREFIX[width(type)]}{n}" for n, type in enumerate([result, *types])]
        cases = []
        for patterns in product(*(pools or [POOL[type] for type in types])):
            values = [decode(p, type, ftz and type != "f64") for p, type in zip(patterns, types, strict=True)]
            value = spec(*values, mode) if spec in ROUNDED else spec(*values)
            if value is not None:
                given = tuple(p & register_mask(type) for p, type in zip(patterns, types, strict=True))
                cases.append((given, finish(value, result, mode, ftz, sat)))
        rows.append(Row(f"{name}.{kind} {', '.join(operands)};", tuple(cases)))
    return rows


def finish(value: Number, type: str, mode: str, ftz: bool, sat: bool) -> int:
    """An exact result as a pattern of its register."""
    if type[0] == "f":
        if sat:
            value = 0.0 if isnan(value) or value <= 0 else min(value, Fraction(1))
        return encode(value, type, mode, ftz and type != "f64")
    if sat:
        value = min(max(value, least(type)), most(type))
    return int(decode(int(value), type)) & register_mask(type)


def register_mask(type: str) -> int:
    """All ones of the register that holds this type: 16 bits for a byte."""
    return (1 << (1 if type == "pred" else max(width(type), 16))) - 1


def pattern(value: float, bits: int) -> int:
    """An integer is a pattern already; a float becomes the one of the register's width."""
    if isinstance(value, int):
        return value & (1 << bits) - 1
    if isnan(value):
        return (1 << bits - 1) - 1
    return encode(Fraction(value) if value and math.isfinite(value) else value, FLOAT_OF[bits])


def least(type: str) -> int:
    return -(1 << width(type) - 1) if type[0] == "s" else 0


def most(type: str) -> int:
    return (1 << width(type) - (type[0] == "s")) - 1


def integers(bits: int) -> list[int]:
    top = 1 << bits - 1
    return [0, 1, 7, 2 * top - 7, 2 * top - 1, top, top - 1, 0x9E3779B97F4A7C15 >> 64 - bits]


def floats(type: str) -> list[int]:
    """Zeros, ones and their neighbours, the ends of the normal and subnormal numbers, infinities, NaN."""
    _, fraction, low = FLOATS[type]
    ulp, tiny = Fraction(1, 2**fraction), Fraction(2) ** low
    greatest = (2 - ulp) * 2 ** (1 - low)
    near = [1, Fraction(-3, 2), 1 + ulp, -1 + ulp / 2, ulp / 2, 3, -2 / ulp - 2]
    ends = [tiny, tiny * ulp, -tiny * (1 - ulp), greatest, -greatest]
    values = [0.0, -0.0, *map(Fraction, near + ends), inf, -inf, nan]
    return [pattern(v, width(type)) if isinstance(v, float) else encode(v, type) for v in values]


POOL = {
    "pred": [0, 1],
    **{f"{kind}{bits}": integers(bits) for kind in "sub" for bits in (16, 32, 64)},
    **{f"{kind}8": [0, 1, 0x7F, 0x80, 0xFF, 0x5A80, 0xFF7F] for kind in "su"},
    **{type: floats(type) for type in FLOATS},
}


def approximate(
    name: str, kinds: str, bound: tuple[str, float], spec: Spec, *cases: float | tuple[float, ...]
) -> list[Row]:
    """Like `each`, of these float32 operands, within a bound; zeros, infinities, NaN come out as they are."""
    rows = []
    for kind in kinds.split():
        done = []
        for case in cases:
            patterns = tuple(pattern(x, 32) for x in (case if isinstance(case, tuple) else (case,)))
            done.append((patterns, spec(*(float(decode(p, "f32", "ftz" in kind)) for p in patterns))))
        operands = [f"%r{n}" for n in range(len(done[0][0]) + 1)]
        rows.append(Row(f"{name}.{kind} {', '.join(operands)};", tuple(done), bound))
    return rows
