"""A kernel's basic blocks -> NumPy source, each compiled once, when it is first reached.

The function made from a block takes the register file `R` (a list of arrays, one a register, of any dtype
of the register's width), the machine `M` for memory, and returns what its last instruction needs: the
predicate of a branch, the member mask of a warp barrier, the operands of a warp function. The same source
serves all lanes and a few: only the shapes of the arrays differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from . import numerics
from .ops import Operation, operation
from .parse import (
    BYTES,
    Address,
    Group,
    Immediate,
    Instruction,
    InvalidPTX,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
    Unsupported,
)
from .program import Block, Program, Site, registers_of
from .specials import SPECIALS

DTYPES: dict[str, Any] = {
    "pred": np.bool_,
    "b8": np.uint8,
    "u8": np.uint8,
    "s8": np.int8,
    "b16": np.uint16,
    "u16": np.uint16,
    "s16": np.int16,
    "f16": np.float16,
    "b32": np.uint32,
    "u32": np.uint32,
    "s32": np.int32,
    "f32": np.float32,
    "f16x2": np.uint32,
    "b64": np.uint64,
    "u64": np.uint64,
    "s64": np.int64,
    "f64": np.float64,
}
_NAMES = {
    kind: f"{kind[0].upper().replace('S', 'I').replace('B', 'U')}{kind[1:]}"
    for kind in DTYPES
    if kind[1:].isdigit()
}
_NAMES["f16x2"] = "U32"

SHARED_WINDOW = 1 << 60  # generic addresses of shared memory begin here
LOCAL_WINDOW = 1 << 61

# what reading an instruction with missing or misplaced operands ends in
MALFORMED = (AssertionError, AttributeError, LookupError, OverflowError, StopIteration, TypeError, ValueError)


def code(program: Program, block: Block) -> Callable[[list[Any], Any], Any]:
    """The function of a basic block, made when it is first asked for. Raises `Unsupported` and
    `InvalidPTX`.
    """
    if block.function is None:
        writer = _Writer(program, block)
        try:
            block.source, constants = writer.write()
        except MALFORMED as error:
            if isinstance(error, InvalidPTX):
                raise
            reading = writer.reading
            raise InvalidPTX(f"{reading.opcode} on line {reading.line} is not PTX") from error
        space: dict[str, Any] = {**vars(numerics), "F": np.False_, **constants}
        exec(_bytecode(block.source, f"<block {block.number} of {program.kernel.name}>"), space)
        block.function = space["block"]
    return block.function


@lru_cache(maxsize=4096)
def _bytecode(source: str, name: str) -> CodeType:
    return compile(source, name, "exec")


class _Writer:
    def __init__(self, program: Program, block: Block) -> None:
        self.program, self.block, self.reading = program, block, block.instructions[0]
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.loaded: set[str] = set()
        self.dtype: dict[str, str] = {}  # register -> the PTX type its local variable is known to have
        self.written: dict[str, None] = {}

    def write(self) -> tuple[str, dict[str, Any]]:
        if call := next((i for i in self.block.instructions if i.parts[0] == "call"), None):
            name = getattr(call.operands[0], "name", "")
            mangled = re.match(r"_Z(\d+)(\w+)", name)
            name = mangled[2][: int(mangled[1])] if mangled else name
            raise Unsupported(f"a call of {name}", call.line, "it calls itself, or is not in this file")
        value = ""
        for i in self.block.instructions:
            self.reading = i
            value = self.instruction(i) or ""
        for name in self.written:
            self.lines.append(f"R[{self.program.slots[name]}] = {self.local(name)}")
            if self.slot_unset(name) is not None:
                self.lines.append(f"R[{self.slot_unset(name)}] = u{self.program.slots[name]}")
        if value:
            self.lines.append(f"return {value}")
        body = "\n    ".join(self.lines) or "pass"
        return f"def block(R, M):\n    {body}\n", self.constants

    # registers and constants

    def local(self, name: str) -> str:
        return f"r{self.program.slots[name]}"

    def slot_unset(self, name: str) -> int | None:
        slot = self.program.slots[name]
        return self.program.masks.get(slot)

    def load(self, name: str) -> str:
        """The local variable of a register, fetched from the file the first time."""
        local = self.local(name)
        if name not in self.loaded and name not in self.written:
            self.loaded.add(name)
            self.lines.append(f"{local} = R[{self.program.slots[name]}]")
            if (mask := self.slot_unset(name)) is not None:
                self.lines.append(f"u{self.program.slots[name]} = R[{mask}]")
        return local

    def constant(self, value: Any) -> str:
        for name, have in self.constants.items():
            if have.dtype == value.dtype and have.tobytes() == value.tobytes():
                return name
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    def immediate(self, literal: Immediate, kind: str) -> str:
        dtype = np.dtype(DTYPES[kind])
        if literal.type and literal.type != kind and kind[0] == "f":  # a double literal for a float operand
            wide = np.array(literal.value, np.uint64 if literal.type == "f64" else np.uint32)
            value = wide.view(DTYPES[literal.type]).astype(dtype)
        elif kind[0] == "f" and not literal.type:
            value = np.array(literal.value).astype(dtype)
        elif kind == "pred":
            value = np.array(bool(literal.value))
        else:
            bits = literal.value & (256**dtype.itemsize - 1)
            value = np.array(bits, numerics.UNSIGNED[dtype.itemsize]).view(dtype)
        return self.constant(value[()])

    def source(self, operand: Operand, kind: str, line: int, effect: bool = False) -> str:
        """An expression for `operand` as type `kind`; "s32>s64" reads it as s32 and widens it."""
        kind, _, wide = kind.partition(">")
        if isinstance(operand, Register | Special):
            text = self.register(operand, kind, line, effect)
        elif isinstance(operand, Negated):
            text = f"(~{self.register(operand.register, 'pred', line, effect)})"
        elif isinstance(operand, Immediate):
            text = self.immediate(operand, kind)
        elif isinstance(operand, Symbol):
            if operand.name not in self.program.symbols:
                raise Unsupported(f"the address of {operand.name}", line)
            address = self.program.symbols[operand.name] + operand.offset
            text = self.constant(DTYPES[kind](address))
        else:
            raise Unsupported(f"the operand {operand}", line)
        return f"{text}.astype({_NAMES[wide]})" if wide else text

    def register(self, operand: Register | Special, kind: str, line: int, effect: bool = False) -> str:
        """Its local variable as type `kind`. `effect`: an unset value would decide something here."""
        name = operand.name
        if isinstance(operand, Special) and name not in SPECIALS:
            raise Unsupported(name, line)
        text = self.load(name)
        if effect and isinstance(operand, Register) and self.slot_unset(name) is not None:
            mask = f"u{self.program.slots[name]}"
            self.lines.append(f"if {mask} is not F: M.check_set({mask}, {line})")
        have = operand.type if isinstance(operand, Register) else "u32"
        if (have == "pred") != (kind == "pred"):
            raise InvalidPTX(f"{self.reading.opcode} on line {line} reads {name} as .{kind}")
        if kind == "pred":
            return text
        if BYTES[have] != BYTES[kind]:
            if BYTES[have] < BYTES[kind]:
                if isinstance(operand, Special):
                    return f"{text}.astype({_NAMES[kind]})"
                raise Unsupported(f"a {have} register where {kind} is read", line)
            narrow = _NAMES[f"u{8 * BYTES[kind]}"]
            text = f"{text}.view({_NAMES[f'u{8 * BYTES[have]}']}).astype({narrow})"
            return text if _NAMES[kind] == narrow else f"{text}.view({_NAMES[kind]})"
        known = self.dtype.get(name)
        if known and _NAMES.get(known) == _NAMES.get(kind):
            return text
        return f"{text}.view({_NAMES[kind]})"

    def assign(self, operand: Operand, kind: str, expression: str, line: int, unset: str = "F") -> None:
        """Sets a register to a value of type `kind`, extended to the register's width if that is larger."""
        if operand is None:
            self.lines.append(expression)
            return
        if not isinstance(operand, Register):
            raise Unsupported(f"the destination {operand}", line)
        local = self.local(operand.name)
        if (operand.type == "pred") != (kind == "pred"):
            raise InvalidPTX(f"{self.reading.opcode} on line {line} writes .{kind} to {operand.name}")
        if kind == "pred" or BYTES[operand.type] == BYTES[kind]:
            self.dtype[operand.name] = kind
        elif BYTES[operand.type] > BYTES[kind]:
            wide = f"{'s' if kind[0] == 's' else 'u'}{8 * BYTES[operand.type]}"
            expression = f"({expression}).astype({_NAMES[wide]})"
            self.dtype[operand.name] = wide
        else:
            raise Unsupported(f"a {kind} result in a {operand.type} register", line)
        self.lines.append(f"{local} = {expression}")
        self.written[operand.name] = None
        if self.slot_unset(operand.name) is not None:
            self.lines.append(f"u{self.program.slots[operand.name]} = {unset}")

    # instructions

    def instruction(self, i: Instruction) -> str | None:
        """Adds the lines of one instruction; for the last of a block, returns what the machine wants from
        it.
        """
        special = getattr(self, f"do_{i.parts[0]}", None)
        if "cc" in i.parts or i.parts[0] in ("addc", "subc", "madc"):
            self.do_carry(i)
            return None
        if special is not None:
            answer: str | None = special(i)
            return answer
        meaning = operation(i)
        text, unset = self.expression(meaning, i), self.unset_mask(*i.operands[1:])
        if unset != "F" and i.parts[0] in ("and", "or") and i.parts[-1] == "pred":
            unset = self.unset_logic(i.parts[0], *i.operands[1:])
        self.assign(i.operands[0], meaning.result, text, i.line, unset)
        return None

    def unset_logic(self, name: str, a: Operand, b: Operand) -> str:
        """A known false decides an `and`, a known true an `or`, whatever the other operand is."""
        return (
            f"unset_{name}({self.source(a, 'pred', 0)}, {self.unset_mask(a)}, "
            f"{self.source(b, 'pred', 0)}, {self.unset_mask(b)})"
        )

    def expression(self, meaning: Operation, i: Instruction) -> str:
        operands = i.operands[1:]
        if i.parts[0] in ("shl", "shr") and isinstance(operands[1], Immediate):
            kind = meaning.sources[0]
            if 0 <= operands[1].value < 8 * BYTES[kind]:
                sign = "<<" if i.parts[0] == "shl" else ">>"
                return f"{self.source(operands[0], kind, i.line)} {sign} {self.immediate(operands[1], kind)}"
        texts = dict(
            zip(
                "abcd",
                (self.source(o, k, i.line) for o, k in zip(operands, meaning.sources, strict=False)),
                strict=False,
            )
        )
        return re.sub(r"(?<![\w.'])[abcd](?![\w('])", lambda match: texts[match[0]], meaning.expression)

    def do_mov(self, i: Instruction) -> None:
        to, value = i.operands
        kind = i.parts[-1]
        if isinstance(value, Group):
            self.pack(to, value, kind, i.line)
        elif isinstance(to, Group):
            self.unpack(to, value, kind, i.line)
        else:
            text = self.source(value, kind, i.line)
            self.assign(to, kind, text, i.line, self.unset_mask(value))

    def unset_mask(self, *operands: Operand) -> str:
        """Where one of the operands is unset: "F" if none can be."""
        names = [name for operand in operands for name in registers_of(operand)]
        for name in names:
            self.load(name)
        masks = [f"u{self.program.slots[name]}" for name in names if self.slot_unset(name) is not None]
        return " | ".join(dict.fromkeys(masks)) or "F"

    def pack(self, to: Operand, group: Group, kind: str, line: int) -> None:
        width = 8 * BYTES[kind] // len(group.items)
        big = _NAMES[f"u{8 * BYTES[kind]}"]
        parts = [
            f"({self.source(item, f'u{width}', line)}.astype({big}) << {big}({width * n}))"
            for n, item in enumerate(group.items)
        ]
        self.assign(to, f"u{8 * BYTES[kind]}", " | ".join(parts), line, self.unset_mask(group))

    def unpack(self, group: Group, value: Operand, kind: str, line: int) -> None:
        width = 8 * BYTES[kind] // len(group.items)
        big = _NAMES[f"u{8 * BYTES[kind]}"]
        text = self.source(value, f"u{8 * BYTES[kind]}", line)
        self.lines.append(f"whole, unset = {text}, {self.unset_mask(value)}")
        for n, item in enumerate(group.items):
            if item is not None:
                part = f"(whole >> {big}({width * n})).astype({_NAMES[f'u{width}']})"
                self.assign(item, f"u{width}", part, line, "unset")

    def do_selp(self, i: Instruction) -> None:
        to, a, b, p = i.operands
        kind = i.parts[-1]
        condition = self.source(p, "pred", i.line)
        yes, no = self.source(a, kind, i.line), self.source(b, kind, i.line)
        unset = self.unset_mask(a, b, p)
        if unset != "F":
            unset = (
                f"np.where({condition}, {self.unset_mask(a)}, {self.unset_mask(b)}) | {self.unset_mask(p)}"
            )
        self.assign(to, kind, f"np.where({condition}, {yes}, {no})", i.line, unset)

    def do_setp(self, i: Instruction) -> None:
        meaning = operation(i)
        to = i.operands[0]
        expression, unset = self.expression(meaning, i), self.unset_mask(*i.operands[1:])
        combine = next((w for w in i.parts if w in ("and", "or")), "")
        if unset != "F" and combine:
            compare, c = expression.rpartition(") ")[0] + ")", i.operands[3]
            unset = (
                f"unset_{combine}({compare}, {self.unset_mask(*i.operands[1:3])}, "
                f"{self.source(c, 'pred', i.line)}, {self.unset_mask(c)})"
            )
        if isinstance(to, Group):
            self.lines.append(f"unset = {unset}")
            self.assign(to.items[0], "pred", expression, i.line, "unset")
            if to.items[1] is not None:
                inverse = _second_result(i, meaning)
                self.assign(to.items[1], "pred", self.expression(inverse, i), i.line, "unset")
        else:
            self.assign(to, "pred", expression, i.line, unset)

    def do_carry(self, i: Instruction) -> None:
        """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry (or borrow) is a register of its own."""
        kind = i.parts[-1]
        unsigned = f"u{8 * BYTES[kind]}"
        reads = i.parts[0] in ("addc", "subc", "madc")
        line = i.line
        if reads:
            self.load("CC")
        carry = f"{self.local('CC')}.astype({_NAMES[unsigned]})" if reads else f"{_NAMES[unsigned]}(0)"
        if i.parts[0] in ("mad", "madc"):
            half = "hi" if "hi" in i.parts else "lo"
            a, b = (self.source(o, kind, line) for o in i.operands[1:3])
            product = f"mul_hi({a}, {b})" if half == "hi" else f"({a} * {b})"
            self.lines.append(
                f"x, y, carry = {product}.view({_NAMES[unsigned]}), "
                f"{self.source(i.operands[3], unsigned, line)}, {carry}"
            )
        else:
            a, b = (self.source(o, unsigned, line) for o in i.operands[1:3])
            self.lines.append(f"x, y, carry = {a}, {b}, {carry}")
        if i.parts[0].startswith("sub"):
            self.lines.append("total = x - y - carry")
            after = "(x < y) | ((x == y) & (carry != 0))"
        else:
            self.lines.append("total = x + y + carry")
            after = (
                "(total < x) | ((total == x) & (carry != 0) & (y != 0)) | ((carry != 0) & (y + carry == 0))"
            )
        self.assign(i.operands[0], unsigned, "total", line, self.unset_mask(*i.operands[1:]))
        if "cc" in i.parts:
            self.lines.append(f"{self.local('CC')} = {after}")
            self.written["CC"] = None

    def do_cvta(self, i: Instruction) -> None:
        """Between a space's own addresses and generic ones."""
        space = next(p for p in i.parts if p in ("global", "shared", "local", "const", "param"))
        kind = i.parts[-1]
        text = self.source(i.operands[1], kind, i.line)
        base = {"shared": "SHARED_WINDOW", "local": "LOCAL_WINDOW"}.get(space)
        if base and kind == "u64":
            text = f"{text} {'-' if 'to' in i.parts else '+'} {base}"
            self.constants.setdefault("SHARED_WINDOW", np.uint64(SHARED_WINDOW))
            self.constants.setdefault("LOCAL_WINDOW", np.uint64(LOCAL_WINDOW))
        self.assign(i.operands[0], kind, text, i.line, self.unset_mask(i.operands[1]))

    # memory

    def site(self, i: Instruction, op: str, optimistic: bool = False) -> tuple[str, Site]:
        words = set(i.parts[1:-1])
        space = next(
            (s for s in ("global", "shared", "local", "const") if s in words or f"{s}::cta" in words),
            "generic",
        )
        count = next((n for n in (2, 4) if f"v{n}" in words), 1)
        known = {
            "global",
            "shared",
            "shared::cta",
            "local",
            "const",
            "volatile",
            "relaxed",
            "weak",
            "gpu",
            "cta",
            "sys",
            "nc",
            "v2",
            "v4",
            "ca",
            "cg",
            "cs",
            "cv",
            "lu",
            "wb",
            "wt",
            "acquire",
            "release",
            "acq_rel",
            "L1::evict_last",
            "L1::evict_first",
            "L1::no_allocate",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L2::128B",
            "L2::256B",
            "L2::64B",
            "noftz",
        }
        if op == "atomic":
            known |= {"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"}
        if not words <= known or i.parts[-1] not in BYTES:
            raise Unsupported(i.opcode, i.line)
        joined = (self.program.joined or {}).get(id(i), -1)
        element, read_only = BYTES[i.parts[-1]], "nc" in words
        name = self.add_site(i.line, op, space, element, count, optimistic, joined, read_only)
        return name, self.program.sites[-1]

    def add_site(
        self,
        line: int,
        op: str,
        space: str,
        element: int,
        count: int,
        optimistic: bool = False,
        joined: int = -1,
        read_only: bool = False,
    ) -> str:
        """A new memory instruction; returns the name of its constant."""
        number = len(self.program.sites)
        site = Site(number, line, op, space, element, count, optimistic, joined, read_only)
        self.program.sites.append(site)
        self.constants[f"S{site.number}"] = _Named(site)
        return f"S{site.number}"

    def address(self, operand: Operand, site: Site, line: int) -> str:
        """`base, offset, origin`: the base as it stands in the register file, so that the machine can know
        it again.
        """
        assert isinstance(operand, Address)
        origin: frozenset[str] = frozenset()
        if isinstance(operand.base, Register):
            if BYTES[operand.base.type] < 4 or operand.base.type == "pred":
                raise InvalidPTX(
                    f"{self.reading.opcode} on line {line} has {operand.base.name} for an address"
                )
            base = self.register(operand.base, operand.base.type, line, effect=True)
            origin = self.program.provenance.get(operand.base.name, frozenset())
            if BYTES[operand.base.type] == 4:
                base = f"{base}.astype(U64)"
            else:
                base = self.local(operand.base.name)
        elif isinstance(operand.base, Symbol):
            base = self.source(operand.base, "u64", line)
            origin = frozenset({operand.base.name})
        else:
            base = self.constant(np.uint64(0))
        variable = next(iter(origin)) if len(origin) == 1 else ""
        return f"{base}, {operand.offset}, {variable!r}"

    def do_ld(self, i: Instruction) -> None:
        kind = i.parts[-1]
        to, address = i.operands
        if "param" in i.parts:
            assert isinstance(address, Address)
            if not isinstance(address.base, Symbol) or "v2" in i.parts or "v4" in i.parts:
                raise Unsupported(i.opcode, i.line)
            self.assign(
                to, kind, f"M.parameter({address.base.name!r}, {address.offset}, {_NAMES[kind]})", i.line
            )
            return
        optimistic = any(name in self.program.optimistic for name in registers_of(to))
        name, site = self.site(i, "load", optimistic)
        raw = f"u{8 * site.element}"
        call = f"M.load({name}.site, {self.address(address, site, i.line)})"
        items = to.items if isinstance(to, Group) else (to,)
        self.lines.append(f"loaded = {call}")
        for n, item in enumerate(items):
            if item is not None:
                text = f"loaded[{n}]" if _NAMES[kind] == _NAMES[raw] else f"loaded[{n}].view({_NAMES[kind]})"
                marked = any(self.slot_unset(name) is not None for name in registers_of(item))
                self.assign(item, kind, text, i.line, f"M.unset[{n}]" if marked else "F")

    do_ldu = do_ld

    def do_st(self, i: Instruction) -> None:
        address, value = i.operands
        if "param" in i.parts:
            raise Unsupported(i.opcode, i.line)
        name, site = self.site(i, "store")
        raw = f"u{8 * site.element}"
        items = value.items if isinstance(value, Group) else (value,)
        carries = site.space in ("shared", "local")  # an unset value makes its place unwritten there
        values = ", ".join(self.source(item, raw, i.line, effect=not carries) for item in items)
        marks = [self.unset_mask(item) for item in items]
        unset = f", ({', '.join(marks)},)" if carries and set(marks) != {"F"} else ""
        self.lines.append(f"M.store({name}.site, {self.address(address, site, i.line)}, ({values},){unset})")

    def do_atom(self, i: Instruction) -> None:
        kind = i.parts[-1]
        name, site = self.site(i, "atomic")
        what = next(
            (
                p
                for p in i.parts
                if p in ("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
            ),
            "",
        )
        if kind not in ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
            raise Unsupported(i.opcode, i.line)
        to, address, *values = (None, *i.operands) if i.parts[0] == "red" else i.operands
        texts = ", ".join(self.source(v, kind, i.line, effect=True) for v in values)
        place = self.address(address, site, i.line)
        self.assign(to, kind, f"M.atomic({name}.site, {place}, {what!r}, ({texts},))", i.line)
        if self.program.uses_any_fence:
            self.lines.append("M.order.atomic(M.lanes)")

    do_red = do_atom

    def do_cp(self, i: Instruction) -> None:
        """cp.async.ca.shared.global [dst], [src], cp-size{, src-size}; .commit_group; .wait_group N;
        .wait_all
        """
        words = i.parts[1:]
        if words == ("async", "commit_group"):
            self.lines.append("M.commit_copies()")
        elif words in (("async", "wait_all"), ("async", "wait_group")):
            latest = None if words[1] == "wait_all" else getattr(i.operands[0], "value", 0)
            name = self.add_site(i.line, "wait", "shared", 4, 1)
            self.lines.append(f"M.wait_for_copies({latest}, {name}.site)")
        elif (
            words[0] == "async" and words[1] in ("ca", "cg") and "global" in words and "mbarrier" not in words
        ):
            size = i.operands[2]
            if not isinstance(size, Immediate) or size.value not in (4, 8, 16) or len(i.operands) > 4:
                raise Unsupported(i.opcode, i.line)
            load, store = (
                self.add_site(i.line, op, space, 4, size.value // 4)
                for op, space in (("load", "global"), ("store", "shared"))
            )
            to, source = (self.address(i.operands[n], self.program.sites[-1], i.line) for n in (0, 1))
            given = self.source(i.operands[3], "u32", i.line) if len(i.operands) > 3 else "None"
            self.lines.append(f"M.copy_async({load}.site, {store}.site, ({to}), ({source}), {given})")
        else:
            raise Unsupported(i.opcode, i.line)

    def do_membar(self, i: Instruction) -> None:
        """A fence orders a thread's own accesses; the machine does them in order anyway."""
        self.lines.append("M.order.fence(M.lanes)")

    do_fence = do_membar

    def do_prefetch(self, i: Instruction) -> None:
        pass

    do_prefetchu = do_nanosleep = do_prefetch

    # control

    def do_bra(self, i: Instruction) -> str | None:
        if not i.guard:
            return None
        text = self.register(i.guard[0], "pred", i.line, effect=True)
        return f"~{text}" if i.guard[1] else text

    do_skip = do_bra

    def do_brx(self, i: Instruction) -> str:
        return self.source(i.operands[0], "u32", i.line, effect=True)

    def do_ret(self, i: Instruction) -> None:
        pass

    do_exit = do_ret

    def do_trap(self, i: Instruction) -> None:
        self.lines.append(f"M.trap({i.line})")

    def do___assertfail(self, i: Instruction) -> None:
        """The message, file, line, function and character size of a failed assert."""
        self.lines.append(f"M.assertion({self.source(i.operands[1], 'u64', i.line)}, {i.line})")

    def do_vprintf(self, i: Instruction) -> None:
        to, text, values = i.operands
        place = f"{self.source(text, 'u64', i.line)}, {self.source(values, 'u64', i.line)}"
        self.assign(to, "b32", f"M.print({place})", i.line)

    def do_bar(self, i: Instruction) -> str | None:
        if "warp" in i.parts:
            return self.source(i.operands[0], "b32", i.line, effect=True)
        words = set(i.parts[1:])
        votes = "red" in words
        if not words <= {"sync", "cta", "aligned", "red", "popc", "and", "or", "pred", "u32"} or not (
            votes or "sync" in words
        ):
            raise Unsupported(i.opcode, i.line)
        numbers = i.operands[1:-1] if votes else i.operands
        if votes:
            self.source(i.operands[-1], "pred", i.line, effect=True)
        if not all(isinstance(operand, Immediate) for operand in numbers):
            raise Unsupported(i.opcode, i.line, "a barrier number that is not a constant")
        if len(numbers) > 1:
            count = numbers[1]
            assert isinstance(count, Immediate)
            return self.constant(np.uint32(count.value))
        return None

    do_barrier = do_bar

    def do_shfl(self, i: Instruction) -> str:
        """shfl.sync.mode.b32 d|p, a, b, c, membermask."""
        if i.parts[1:2] != ("sync",) or i.parts[2:] not in [
            (m, "b32") for m in ("up", "down", "bfly", "idx")
        ]:
            raise Unsupported(i.opcode, i.line)
        a = self.source(i.operands[1], "b32", i.line)
        b, c, mask = (self.source(o, "b32", i.line, effect=True) for o in i.operands[2:5])
        return f"('shfl', {i.parts[2]!r}, {mask}, {a}, {b}, {c}, {self.unset_mask(i.operands[1])})"

    def do_vote(self, i: Instruction) -> str:
        """vote.sync.mode.pred d, {!}a, membermask and vote.sync.ballot.b32."""
        if i.parts[1:2] != ("sync",) or i.parts[2] not in ("all", "any", "uni", "ballot"):
            raise Unsupported(i.opcode, i.line)
        mask = self.source(i.operands[2], "b32", i.line, effect=True)
        return f"('vote', {i.parts[2]!r}, {mask}, {self.source(i.operands[1], 'pred', i.line, effect=True)})"

    def do_match(self, i: Instruction) -> str:
        """match.any.sync.type d, a, membermask and match.all.sync.type d|p."""
        mask = self.source(i.operands[2], "b32", i.line, effect=True)
        value = self.source(i.operands[1], i.parts[-1], i.line, effect=True)
        return f"('match', {i.parts[1]!r}, {mask}, {value})"

    def do_redux(self, i: Instruction) -> str:
        """redux.sync.op.type d, a, membermask."""
        if i.parts[2] not in ("add", "min", "max", "and", "or", "xor") or i.parts[-1] not in (
            "u32",
            "s32",
            "b32",
        ):
            raise Unsupported(i.opcode, i.line)
        mask = self.source(i.operands[2], "b32", i.line, effect=True)
        value = self.source(i.operands[1], i.parts[-1], i.line, effect=True)
        return f"('redux', {i.parts[2]!r}, {mask}, {value})"

    def do_activemask(self, i: Instruction) -> None:
        self.assign(i.operands[0], "b32", "M.active_mask()", i.line)

    def do_isspacep(self, i: Instruction) -> None:
        """Whether a generic address lies in a space's window."""
        space = i.parts[1].partition("::")[0]
        window = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)
        if window is None:
            raise Unsupported(i.opcode, i.line)
        text = self.source(i.operands[1], "u64", i.line)
        text = f"({text} >> U64(60)) == U64({window >> 60})"
        self.assign(i.operands[0], "pred", text, i.line, self.unset_mask(i.operands[1]))


class _Named:
    """Lets a `Site` stand among the constants, which are compared by their bytes."""

    dtype = None

    def __init__(self, site: Site) -> None:
        self.site = site

    def tobytes(self) -> int:
        return self.site.number


def _second_result(i: Instruction, compare: Operation) -> Operation:
    """The q of `setp p|q`: the comparison inverted, then combined like the first."""
    combine = next((w for w in i.parts if w in ("and", "or", "xor")), None)
    if not combine:
        return Operation(compare.sources, "pred", f"~({compare.expression})")
    first, _, rest = compare.expression.rpartition(") ")
    return Operation(compare.sources, "pred", f"(~{first})) {rest}")
