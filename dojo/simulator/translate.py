"""A kernel's basic blocks -> NumPy source, each compiled once, when it is first reached.

The function made from a block takes the register file `R` (a list of arrays, one a register, of any dtype
of the register's width), the machine `M` for memory, and returns what its last instruction needs: the
predicate of a branch, the member mask of a warp barrier, the operands of a warp function. The same source
serves all lanes and a few: only the shapes of the arrays differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
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
    Kernel,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
    Unsupported,
)

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

BARRIERS = ("bar", "barrier")
COLLECTIVES = ("shfl", "vote", "match", "redux")


# what reading an instruction with missing or misplaced operands ends in
MALFORMED = (AssertionError, AttributeError, LookupError, OverflowError, StopIteration, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Site:
    """One memory instruction: where it is and what it does. `bits` is one lane's whole access."""

    number: int
    line: int
    op: str  # load, store, atomic
    space: str
    element: int  # bytes
    count: int  # elements: 1, 2 or 4
    optimistic: bool = False  # the plain read of a compare-and-swap loop, which the swap checks
    joined: int = (
        -1
    )  # bits of the wide load that the assembler makes of it; 0 in a later part, -1 if it stays

    @property
    def bits(self) -> int:
        return 8 * self.element * self.count


@dataclass
class Block:
    """A basic block. `kind` says how it ends: go, branch, switch, exit, barrier, warp_barrier, collective."""

    number: int
    instructions: list[Instruction]
    kind: str = "go"
    next: int = -1
    target: int = -1
    targets: tuple[int, ...] = ()
    counted: int = 0
    fmas: int = 0
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    live_in: frozenset[int] = frozenset()
    live_out: frozenset[int] = frozenset()
    ends_only: bool = False  # nothing but ret
    function: Callable[[list[Any], Any], Any] | None = None
    source: str = ""


@dataclass
class Program:
    """A kernel ready to run: its blocks, its memory instructions, where its variables lie."""

    kernel: Kernel
    blocks: list[Block]
    slots: dict[str, int]  # register name -> index in the register file
    sites: list[Site] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)  # variable -> address
    joined: dict[int, int] | None = None  # loads that the assembler joins (fusing), by id of the instruction
    unset: frozenset[int] = frozenset()  # slots that some path leaves unset; see `masks`
    provenance: dict[str, frozenset[str]] = field(default_factory=dict)
    unset_line: int = 0  # the first use of a register that no instruction has set, 0 if there is none
    optimistic: frozenset[str] = frozenset()  # registers that a compare-and-swap compares with
    uses_fence: bool = False
    uses_warp_barrier: bool = False
    uses_warps: bool = False  # has warp barriers or warp functions

    @cached_property
    def masks(self) -> dict[int, int]:
        """For each slot in `unset` the slot of the array that says in which lanes it is."""
        return {slot: len(self.slots) + n for n, slot in enumerate(sorted(self.unset))}

    @property
    def size(self) -> int:
        return len(self.slots) + len(self.unset)

    def memory_instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            for i in block.instructions:
                if i.parts[0] in ("ld", "ldu", "st", "atom", "red") and "param" not in i.parts:
                    yield i

    def smallest_access(self) -> int:
        """Bytes a place of the race shadow: 4, or less if the kernel makes smaller accesses."""
        return min([4, *(BYTES.get(i.parts[-1], 4) for i in self.memory_instructions())])

    def written_through(self) -> set[str]:
        """Parameters and variables that some store or atomic may write through; "?" if that cannot be
        told.
        """
        found: set[str] = set()
        for i in self.memory_instructions():
            if i.parts[0] in ("st", "atom", "red"):
                address = i.operands[1 if i.parts[0] == "atom" else 0]
                assert isinstance(address, Address)
                if isinstance(address.base, Symbol):
                    found.add(address.base.name)
                elif address.base:
                    found |= self.provenance.get(address.base.name) or {"?"}
        return found

    def code(self, number: int) -> Callable[[list[Any], Any], Any]:
        block = self.blocks[number]
        if block.function is None:
            writer = _Writer(self, block)
            try:
                block.source, constants = writer.write()
            except MALFORMED as error:
                if isinstance(error, InvalidPTX):
                    raise
                raise InvalidPTX(
                    f"{writer.reading.opcode} on line {writer.reading.line} is not PTX"
                ) from error
            space: dict[str, Any] = {**vars(numerics), "F": np.False_, **constants}
            exec(compile(block.source, f"<block {number} of {self.kernel.name}>", "exec"), space)
            block.function = space["block"]
        return block.function


# Operands


def registers_of(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Register | Special):
        yield operand.name
    elif isinstance(operand, Negated):
        yield operand.register.name
    elif isinstance(operand, Address):
        yield from registers_of(operand.base) if isinstance(operand.base, Register) else ()
    elif isinstance(operand, Group):
        for item in operand.items:
            yield from registers_of(item)


_NO_RESULT = {
    "cp",
    "__assertfail",
    "st",
    "red",
    "bra",
    "brx",
    "ret",
    "exit",
    "bar",
    "barrier",
    "membar",
    "fence",
    "trap",
    "call",
    "skip",
    "prefetch",
    "prefetchu",
    "brkpt",
    "discard",
    "applypriority",
    "nanosleep",
}


def _has_result(i: Instruction) -> bool:
    return i.parts[0] not in _NO_RESULT or (i.parts[0] in BARRIERS and "red" in i.parts)


def results(i: Instruction) -> list[str]:
    return list(registers_of(i.operands[0])) if i.operands and _has_result(i) else []


def sources(i: Instruction) -> list[str]:
    operands = i.operands[1:] if _has_result(i) else i.operands
    names = [name for operand in operands for name in registers_of(operand)]
    if i.parts[0] in ("addc", "subc", "madc"):
        names.append("CC")
    return names + ([i.guard[0].name] if i.guard else [])


# Blocks


def _is_barrier(i: Instruction) -> bool:
    return i.parts[0] in BARRIERS and i.parts[1:2] != ("warp",)


def _ending(i: Instruction) -> str:
    name = i.parts[0]
    if name in ("bra", "skip"):
        return "branch" if i.guard else "go"
    if name == "brx":
        return "switch"
    if name in ("ret", "exit", "trap", "__assertfail"):
        return "exit"
    if name in BARRIERS:
        return "warp_barrier" if i.parts[1:2] == ("warp",) else "barrier"
    return "collective" if name in COLLECTIVES else ""


def _expand_guards(kernel: Kernel) -> tuple[list[Instruction], dict[str, int]]:
    """`@p X` becomes a jump over X where p is false, for everything but branches: lanes, not masks."""
    out: list[Instruction] = []
    moved: dict[int, int] = {}
    labels: dict[str, int] = {}
    for index, i in enumerate(kernel.instructions):
        moved[index] = len(out)
        if i.guard and i.parts[0] not in ("bra", "brx"):
            label = f"~{index}"
            out.append(Instruction("skip", ("skip",), (Symbol(label),), (i.guard[0], not i.guard[1]), i.line))
            out.append(Instruction(i.opcode, i.parts, i.operands, None, i.line))
            labels[label] = len(out)
        else:
            out.append(i)
    moved[len(kernel.instructions)] = len(out)
    labels.update({name: moved[index] for name, index in kernel.labels.items()})
    return out, labels


def build(kernel: Kernel, unknown: frozenset[str] = frozenset()) -> Program:
    """Cuts the kernel into basic blocks and works out what lives where. `unknown`: parameters that point to
    memory which counts as never written.
    """
    instructions, labels = _expand_guards(kernel)
    starts = {0, *labels.values()}
    for index, i in enumerate(instructions):
        if ending := _ending(i):
            starts.add(index + 1)
            if ending in ("collective", "warp_barrier") or "red" in i.parts[1:]:
                starts.add(index)  # executed again if some of its lanes come later
    order = sorted(s for s in starts if s < len(instructions))
    number = {start: n for n, start in enumerate(order)}
    blocks = []
    for n, start in enumerate(order):
        stop = order[n + 1] if n + 1 < len(order) else len(instructions)
        block = Block(n, instructions[start:stop])
        last = block.instructions[-1]
        block.kind = _ending(last) or "go"
        block.next = n + 1 if n + 1 < len(order) else -1

        def index_of(label: str) -> int:
            return number.get(labels[label], -1)

        if last.parts[0] in ("bra", "skip"):
            assert isinstance(last.operands[0], Symbol)
            block.target = index_of(last.operands[0].name)
            if not last.guard:
                block.next = block.target
        elif block.kind == "switch":
            table = last.operands[1]
            assert isinstance(table, Symbol)
            block.targets = tuple(index_of(label) for label in kernel.branch_targets[table.name])
        block.ends_only = [i.parts[0] for i in block.instructions] in (["ret"], ["exit"])
        block.counted = sum(i.parts[0] != "skip" for i in block.instructions)
        block.fmas = sum(
            2 if i.parts[-1] == "f16x2" else 1
            for i in block.instructions
            if i.parts[0] in ("fma", "mad") and i.parts[-1].startswith("f")
        )
        blocks.append(block)
    names = dict.fromkeys(name for i in instructions for name in [*results(i), *sources(i)])
    if any(
        i.parts[0] in ("add", "sub", "addc", "subc", "mad", "madc") and "cc" in i.parts for i in instructions
    ):
        names["CC"] = None
    program = Program(kernel, blocks, {name: n for n, name in enumerate(names)})
    program.uses_fence = any(i.parts[0] in ("membar", "fence") and "cta" not in i.parts for i in instructions)
    program.uses_warp_barrier = any(_ending(i) == "warp_barrier" for i in instructions)
    program.uses_warps = any(_ending(i) in ("warp_barrier", "collective") for i in instructions)
    program.provenance = _provenance(instructions)
    program.optimistic = _compared(instructions)
    program.unset = _maybe_unset(program, unknown)
    _liveness(program)
    return program


def successors(block: Block) -> list[int]:
    if block.kind == "exit":
        return []
    found = [*block.targets] if block.kind == "switch" else [block.next]
    if block.kind == "branch":
        found.append(block.target)
    return [n for n in found if n >= 0]


def _written(i: Instruction) -> list[str]:
    return results(i) + (["CC"] if "cc" in i.parts else [])


def _maybe_unset(program: Program, unknown: frozenset[str]) -> frozenset[int]:
    """Registers that may hold what nobody set: read before any instruction sets them on some path from the
    entry (a forward must-analysis), loaded, shuffled, or computed from such.
    """
    everything = frozenset(program.slots)
    always = {name for name in program.slots if name.startswith("%") and _SPECIALS.match(name)}
    set_at = [everything] * len(program.blocks)
    set_at[0] = frozenset(always)
    work = [0]
    seen = {0}
    while work:
        n = work.pop()
        after = set(set_at[n])
        for i in program.blocks[n].instructions:
            after.update(_written(i))
        for successor in successors(program.blocks[n]):
            merged = set_at[successor] & after
            if merged != set_at[successor] or successor not in seen:
                seen.add(successor)
                set_at[successor] = merged
                work.append(successor)
    maybe: set[str] = set()
    for n in sorted(seen):
        now = set(set_at[n])
        for i in program.blocks[n].instructions:
            fresh = {name for name in sources(i) if name not in now}
            if fresh and not program.unset_line and i.parts[0] not in ("mov", "selp"):
                program.unset_line = i.line
            maybe |= fresh
            now.update(_written(i))
    every = [i for block in program.blocks for i in block.instructions]
    for i in every:  # what comes out of memory or from another lane may be unset too
        if i.parts[0] == "shfl" or (i.parts[0] in ("ld", "ldu") and _may_read_unset(program, i, unknown)):
            maybe.update(results(i))
    carries = [i for i in every if i.parts[0] not in _STOPS]
    grew = bool(maybe)
    while grew:
        new = {name for i in carries if maybe & set(sources(i)) for name in results(i)} - maybe
        maybe |= new
        grew = bool(new)
    return frozenset(program.slots[name] for name in maybe)


# instructions whose results are set even where an operand is not: that is a finding at the instruction itself
_STOPS = ("bar", "barrier", "ld", "ldu", "atom", "vote", "match", "redux", "activemask", "vprintf")


def _may_read_unset(program: Program, i: Instruction, unknown: frozenset[str]) -> bool:
    if "param" in i.parts or "const" in i.parts:
        return False
    address = i.operands[1]
    if "global" not in i.parts or not isinstance(address, Address):
        return True
    if not isinstance(address.base, Register):
        return False
    origin = program.provenance.get(address.base.name, frozenset())
    return not origin or "?" in origin or bool(origin & unknown)


def _compared(instructions: list[Instruction]) -> frozenset[str]:
    """The registers that reach, by moves alone, what a compare-and-swap compares with."""
    swaps = [i for i in instructions if i.parts[0] == "atom" and "cas" in i.parts]
    moves = [i for i in instructions if i.parts[0] == "mov"]
    found = {name for i in swaps for name in registers_of(i.operands[2])}
    grew = bool(found)
    while grew:
        new = {name for i in moves if found & set(results(i)) for name in sources(i)} - found
        found |= new
        grew = bool(new)
    return frozenset(found)


_SPECIALS = re.compile(r"%(?:n?tid|n?ctaid)\.[xyz]$|%(?:laneid|warpid|nwarpid|lanemask_\w\w)$")


def _liveness(program: Program) -> None:
    """Backward: which slots (and unset masks) a block's successors still read."""
    masks = program.masks

    def with_masks(slots: set[int]) -> set[int]:
        return slots | {masks[s] for s in slots if s in masks}

    for block in program.blocks:
        reads: set[int] = set()
        writes: set[int] = set()
        for i in block.instructions:
            reads |= {program.slots[name] for name in sources(i)} - writes
            writes |= {program.slots[name] for name in _written(i)}
        block.reads, block.writes = frozenset(with_masks(reads)), frozenset(with_masks(writes))
    changed = True
    while changed:
        changed = False
        for block in reversed(program.blocks):
            out = frozenset().union(*(program.blocks[n].live_in for n in successors(block)))
            into = block.reads | (out - block.writes)
            if out != block.live_out or into != block.live_in:
                block.live_out, block.live_in, changed = out, into, True


def _provenance(instructions: list[Instruction]) -> dict[str, frozenset[str]]:
    """For each register, the kernel parameters and variables that its value may be an address into.

    "?" stands for a pointer that came out of memory. Flow-insensitive: one set a register.
    """
    origin: dict[str, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for i in instructions:
            outs = results(i)
            if not outs:
                continue
            found: set[str] = set()
            if i.parts[0] in ("ld", "ldu", "atom"):
                address = i.operands[1]
                if (
                    i.parts[1:2] == ("param",)
                    and isinstance(address, Address)
                    and isinstance(address.base, Symbol)
                ):
                    if BYTES.get(i.parts[-1]) == 8:
                        found.add(address.base.name)
                elif BYTES.get(i.parts[-1]) == 8:
                    found.add("?")
            else:
                for operand in i.operands[1:]:
                    if isinstance(operand, Symbol):
                        found.add(operand.name)
                    for name in registers_of(operand):
                        found |= origin.get(name, set())
            for name in outs:
                have = origin.setdefault(name, set())
                if not found <= have:
                    have |= found
                    changed = True
    return {name: frozenset(found) for name, found in origin.items()}


# Writing a block's source


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
        if isinstance(operand, Special) and not _SPECIALS.match(name) and name != "WARP_SZ":
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
        name = self.add_site(i.line, op, space, BYTES[i.parts[-1]], count, optimistic, joined)
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
    ) -> str:
        """A new memory instruction; returns the name of its constant."""
        site = Site(len(self.program.sites), line, op, space, element, count, optimistic, joined)
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
        name, _ = self.site(i, "atomic")
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
        place = self.address(address, self.program.sites[-1], i.line)
        self.assign(to, kind, f"M.atomic({name}.site, {place}, {what!r}, ({texts},))", i.line)

    do_red = do_atom

    def do_cp(self, i: Instruction) -> None:
        """cp.async.ca.shared.global [dst], [src], cp-size{, src-size}; .commit_group; .wait_group N;
        .wait_all
        """
        words = i.parts[1:]
        if words == ("async", "commit_group"):
            self.lines.append("M.commit_copies()")
        elif words == ("async", "wait_all"):
            self.lines.append("M.wait_for_copies(None)")
        elif words == ("async", "wait_group"):
            self.lines.append(f"M.wait_for_copies({getattr(i.operands[0], 'value', 0)})")
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

    do_fence = do_prefetch = do_prefetchu = do_nanosleep = do_membar

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
