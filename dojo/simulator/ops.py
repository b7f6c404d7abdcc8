"""The instruction table: a row an instruction family, in the PTX manual's order and spelling.

A row says which types the instruction takes, the types of its sources and of its result, and the result as
NumPy: `a`, `b`, `c` are the source arrays, MODE the rounding mode. `t` stands for the instruction's own
type. The functions are those of `numerics`. What moves data or changes the flow (`ld`, `st`, `atom`, `bra`,
`bar`, `shfl`) is not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .parse import BYTES, Instruction, Unsupported

INTEGER = "u16 s16 u32 s32 u64 s64"
BITS = "pred b16 b32 b64"
ROUNDING = ("rn", "rz", "rm", "rp")
_MODIFIERS = {*ROUNDING, "ftz", "sat", "approx", "full", "uni"}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    types: str
    sources: str
    result: str
    expression: str
    directed: str = ""  # the expression for .rz .rm .rp, where the instruction has them


ROWS = [
    # Integer arithmetic
    Row("add", INTEGER, "t t", "t", "a + b"),
    Row("add.sat", "s32", "t t", "t", "add_sat(a, b)"),
    Row("sub", INTEGER, "t t", "t", "a - b"),
    Row("sub.sat", "s32", "t t", "t", "sub_sat(a, b)"),
    Row("mul.lo", INTEGER, "t t", "t", "a * b"),
    Row("mul.hi", INTEGER, "t t", "t", "mul_hi(a, b)"),
    Row("mul.wide", "u16 s16 u32 s32", "wide wide", "wide", "a * b"),
    Row("mad.lo", INTEGER, "t t t", "t", "a * b + c"),
    Row("mad.hi", INTEGER, "t t t", "t", "mul_hi(a, b) + c"),
    Row("mad.wide", "u16 s16 u32 s32", "wide wide =wide", "wide", "a * b + c"),
    Row("sad", INTEGER, "t t t", "t", "sad(a, b, c)"),
    Row("div", INTEGER, "t t", "t", "div_int(a, b)"),
    Row("rem", INTEGER, "t t", "t", "rem_int(a, b)"),
    Row("abs", "s16 s32 s64", "t", "t", "abs_int(a)"),
    Row("neg", "s16 s32 s64", "t", "t", "-a"),
    Row("min", INTEGER, "t t", "t", "np.minimum(a, b)"),
    Row("max", INTEGER, "t t", "t", "np.maximum(a, b)"),
    Row("popc", "b32 b64", "t", "u32", "popc(a)"),
    Row("clz", "b32 b64", "t", "u32", "clz(a)"),
    Row("bfind", "u32 s32 u64 s64", "t", "u32", "bfind(a)"),
    Row("bfind.shiftamt", "u32 s32 u64 s64", "t", "u32", "bfind(a, True)"),
    Row("brev", "b32 b64", "t", "t", "brev(a)"),
    Row("bfe", "u32 s32 u64 s64", "t u32 u32", "t", "bfe(a, b, c)"),
    Row("bfi", "b32 b64", "t t u32 u32", "t", "bfi(a, b, c, d)"),
    # Floating point
    Row("testp.finite", "f32 f64", "t", "pred", "testp(a, 'finite')"),
    Row("testp.infinite", "f32 f64", "t", "pred", "testp(a, 'infinite')"),
    Row("testp.number", "f32 f64", "t", "pred", "testp(a, 'number')"),
    Row("testp.notanumber", "f32 f64", "t", "pred", "testp(a, 'notanumber')"),
    Row("testp.normal", "f32 f64", "t", "pred", "testp(a, 'normal')"),
    Row("testp.subnormal", "f32 f64", "t", "pred", "testp(a, 'subnormal')"),
    Row("copysign", "f32 f64", "t t", "t", "np.copysign(b, a)"),
    Row("add", "f32", "t t", "t", "canonical(a + b)", "add(a, b, MODE)"),
    Row("add", "f16", "t t", "t", "canonical(a + b)"),
    Row("add", "f64", "t t", "t", "a + b"),
    Row("sub", "f32", "t t", "t", "canonical(a - b)", "add(a, -(b), MODE)"),
    Row("sub", "f16", "t t", "t", "canonical(a - b)"),
    Row("sub", "f64", "t t", "t", "a - b"),
    Row("mul", "f32", "t t", "t", "canonical(a * b)", "mul(a, b, MODE)"),
    Row("mul", "f16", "t t", "t", "canonical(a * b)"),
    Row("mul", "f64", "t t", "t", "a * b"),
    Row("fma", "f32", "t t t", "t", "fma(a, b, c)", "fma(a, b, c, MODE)"),
    Row("fma", "f16", "t t t", "t", "fma(a, b, c)"),
    Row("fma", "f64", "t t t", "t", "fma64(a, b, c)"),
    Row("mad", "f32", "t t t", "t", "fma(a, b, c)", "fma(a, b, c, MODE)"),
    Row("mad", "f64", "t t t", "t", "fma64(a, b, c)"),
    Row("div", "f32", "t t", "t", "canonical(a / b)", "div(a, b, MODE)"),
    Row("div", "f64", "t t", "t", "a / b"),
    Row("abs", "f32 f64 f16", "t", "t", "np.abs(a)"),
    Row("neg", "f32 f64 f16", "t", "t", "-a"),
    Row("min", "f32 f64 f16", "t t", "t", "minimum(a, b)"),
    Row("min.NaN", "f32 f16", "t t", "t", "minimum(a, b, True)"),
    Row("max", "f32 f64 f16", "t t", "t", "maximum(a, b)"),
    Row("max.NaN", "f32 f16", "t t", "t", "maximum(a, b, True)"),
    Row("rcp", "f32", "t", "t", "canonical(1 / a)", "div(np.ones_like(a), a, MODE)"),
    Row("rcp", "f64", "t", "t", "1 / a"),
    Row("sqrt", "f32", "t", "t", "canonical(np.sqrt(a))", "sqrt(a, MODE)"),
    Row("sqrt", "f64", "t", "t", "np.sqrt(a)"),
    Row("rsqrt", "f32", "t", "t", "approximate(rsqrt64, a)"),
    Row("rsqrt", "f64", "t", "t", "rsqrt64(a)"),
    Row("sin", "f32", "t", "t", "approximate(np.sin, a)"),
    Row("cos", "f32", "t", "t", "approximate(np.cos, a)"),
    Row("lg2", "f32", "t", "t", "approximate(np.log2, a)"),
    Row("ex2", "f32", "t", "t", "approximate(np.exp2, a)"),
    Row("tanh", "f32", "t", "t", "approximate(np.tanh, a)"),
    # Half precision, two at a time
    Row("add", "f16x2", "t t", "t", "pairs(add16, a, b)"),
    Row("sub", "f16x2", "t t", "t", "pairs(sub16, a, b)"),
    Row("mul", "f16x2", "t t", "t", "pairs(mul16, a, b)"),
    Row("fma", "f16x2", "t t t", "t", "pairs(fma, a, b, c)"),
    Row("neg", "f16x2", "t", "t", "a ^ U32(0x80008000)"),
    Row("abs", "f16x2", "t", "t", "a & U32(0x7fff7fff)"),
    Row("min", "f16x2", "t t", "t", "pairs(minimum, a, b)"),
    Row("max", "f16x2", "t t", "t", "pairs(maximum, a, b)"),
    # Selection
    Row("slct", "b16 b32 b64 u16 s16 u32 s32 u64 s64 f32 f64", "t t s32", "t", "np.where(c >= 0, a, b)"),
    # Logic and shift
    Row("and", BITS, "t t", "t", "a & b"),
    Row("or", BITS, "t t", "t", "a | b"),
    Row("xor", BITS, "t t", "t", "a ^ b"),
    Row("not", BITS, "t", "t", "~a"),
    Row("cnot", "b16 b32 b64", "t", "t", "(a == 0).astype(a.dtype)"),
    Row("shf.l.wrap", "b32", "t t u32", "t", "shf_left(a, b, c, True)"),
    Row("shf.l.clamp", "b32", "t t u32", "t", "shf_left(a, b, c, False)"),
    Row("shf.r.wrap", "b32", "t t u32", "t", "shf_right(a, b, c, True)"),
    Row("shf.r.clamp", "b32", "t t u32", "t", "shf_right(a, b, c, False)"),
    Row("shl", "b16 b32 b64", "t u32", "t", "shl(a, b)"),
    Row("shr", "b16 b32 b64 u16 s16 u32 s32 u64 s64", "t u32", "t", "shr(a, b)"),
    Row("prmt", "b32", "t t t", "t", "prmt(a, b, c)"),
]

_TABLE = {(row.name, kind): row for row in ROWS for kind in row.types.split()}

COMPARISONS = {
    "eq": "a == b",
    "ne": "(a != b)",
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "lo": "a < b",
    "ls": "a <= b",
    "hi": "a > b",
    "hs": "a >= b",
}
FLOAT_COMPARISONS = {
    **COMPARISONS,
    "ne": "(a < b) | (a > b)",
    "equ": "~((a < b) | (a > b))",
    "neu": "a != b",
    "ltu": "~(a >= b)",
    "leu": "~(a > b)",
    "gtu": "~(a <= b)",
    "geu": "~(a < b)",
    "num": "(a == a) & (b == b)",
    "nan": "(a != a) | (b != b)",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What one instruction computes: `expression` over sources of these types, giving a value of type
    `result`.
    """

    sources: tuple[str, ...]
    result: str
    expression: str


def operation(instruction: Instruction) -> Operation:
    """The meaning of an arithmetic instruction. Raises `Unsupported` if the table has no row for it."""
    name = instruction.parts[0]
    if name in ("setp", "set"):
        return _comparison(instruction)
    if name == "cvt":
        return _conversion(instruction)
    if name == "lop3":
        table = instruction.operands[4]
        return Operation(("b32", "b32", "b32"), "b32", f"lop3(a, b, c, {getattr(table, 'value', 0)})")
    *words, kind = instruction.parts
    if name == "slct":
        words, kind, third = list(instruction.parts[:-2]), instruction.parts[-2], instruction.parts[-1]
    modifiers = {w for w in words if w in _MODIFIERS}
    plain = ".".join(w for w in words if w not in _MODIFIERS)
    floating = kind.startswith("f")
    if "sat" in modifiers and not floating:
        plain += ".sat"
    row = _TABLE.get((plain, kind))
    if row is None:
        raise Unsupported(instruction.opcode, instruction.line)
    if kind == "f16x2" and modifiers & {"ftz", "sat", "rz", "rm", "rp"}:
        raise Unsupported(instruction.opcode, instruction.line)
    sources = tuple(_type(s, kind) for s in row.sources.split())
    expression = row.expression
    if name == "slct":
        sources = (kind, kind, third)
        if "ftz" in modifiers:
            expression = expression.replace("c >= 0", "ftz(c) >= 0")
    mode = next((m for m in ROUNDING if m in modifiers), "rn")
    if floating and mode != "rn":
        if not row.directed:
            raise Unsupported(instruction.opcode, instruction.line)
        expression = row.directed.replace("MODE", repr(mode))
    if floating and "ftz" in modifiers and name != "slct":
        exact = {"mul": "a.astype(F64) * b", "fma": "a.astype(F64) * b + c"}.get(name)
        if exact:
            expression = f"ftz_before_rounding({expression}, {exact})"
        elif row.result == "t":
            expression = f"ftz({expression})"
        expression = _each_source(expression, len(sources), "ftz({})")
    if floating and "sat" in modifiers:
        expression = f"saturate({expression})"
    result = _type(row.result, kind).rpartition(">")[2]
    return Operation(sources, result, expression)


def _type(word: str, kind: str) -> str:
    wide = kind[0] + str(2 * int(kind[1:])) if kind[1:].isdigit() and kind[0] in "us" else kind
    return {"t": kind, "wide": f"{kind}>{wide}", "=wide": wide}.get(word, word)


def _each_source(expression: str, count: int, wrap: str) -> str:
    names = "abcd"[:count]
    return re.sub(rf"\b[{names}]\b", lambda match: wrap.format(match[0]), expression)


def _comparison(i: Instruction) -> Operation:
    """`setp.CmpOp{.BoolOp}{.ftz}.type p{|q}, a, b{, {!}c}` and `set.CmpOp{.BoolOp}{.ftz}.dtype.stype`."""
    words = [w for w in i.parts[1:] if w != "ftz"]
    compare, kind = words[0], words[-1]
    floating = kind.startswith("f")
    expression = (FLOAT_COMPARISONS if floating else COMPARISONS).get(compare)
    combine = next((w for w in words[1:-1] if w in ("and", "or", "xor")), None)
    if expression is None or kind not in BYTES:
        raise Unsupported(i.opcode, i.line)
    if "ftz" in i.parts:
        expression = _each_source(expression, 2, "ftz({})")
    if floating and compare in ("eq", "lt", "le", "gt", "ge"):
        expression = f"({expression})"
    sources: tuple[str, ...] = (kind, kind)
    if combine:
        expression = f"({expression}) {({'and': '&', 'or': '|', 'xor': '^'})[combine]} c"
        sources = (kind, kind, "pred")
    if i.parts[0] == "setp":
        return Operation(sources, "pred", expression)
    result = words[-2]
    if result not in ("u32", "s32", "f32"):
        raise Unsupported(i.opcode, i.line)
    if result == "f32":
        return Operation(sources, "f32", f"({expression}).astype(F32)")
    return Operation(sources, "u32", f"U32(0) - ({expression}).astype(U32)")


def _conversion(i: Instruction) -> Operation:
    """`cvt{.rounding}{.ftz}{.sat}.dtype.atype`."""
    to, source = i.parts[-2:]
    words = set(i.parts[1:-2])
    if (to, source) == ("f16x2", "f32") and words == {"rn"}:
        return Operation(("f32", "f32"), "f16x2", "join16(narrow(b, F16, 'rn'), narrow(a, F16, 'rn'))")
    known = {*ROUNDING, "rni", "rzi", "rmi", "rpi", "ftz", "sat"}
    numeric = [t for t in BYTES if t[0] in "usf" and t != "f16x2"]
    if not words <= known or to not in numeric or source not in numeric:
        raise Unsupported(i.opcode, i.line)
    rounding = next((w for w in i.parts[1:-2] if w[0] == "r"), "")
    target = f"{to[0].upper().replace('S', 'I')}{to[1:]}"
    if source[0] == "f" and to[0] == "f":
        expression = "a"
        if rounding.endswith("i"):
            expression = f"round_float(a, {rounding!r})"
        if BYTES[to] > BYTES[source]:
            expression = f"widen({expression}, {target})"
        elif BYTES[to] < BYTES[source]:
            expression = f"narrow({expression}, {target}, {rounding[:2] or 'rn'!r})"
    elif source[0] == "f":
        expression = f"to_int(a, {target}, {rounding!r})"
    elif to[0] == "f":
        mode = rounding or "rn"
        if to == "f32":
            expression = f"int_to_f32(a, {mode!r})"
        elif mode == "rn":
            expression = f"a.astype({target})"
        else:
            raise Unsupported(i.opcode, i.line)
    else:
        expression = f"clamp_int(a, {target})" if "sat" in words else f"a.astype({target})"
    if "ftz" in words:
        if source == "f32":
            expression = _each_source(expression, 1, "ftz({})")
        if to == "f32":
            expression = f"ftz({expression})"
    if "sat" in words and to[0] == "f":
        expression = f"saturate({expression})"
    return Operation((source,), to, expression)
