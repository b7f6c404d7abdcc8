"""A kernel cut into basic blocks, and what is known of it before it runs: what lives where, which registers
may be unset, which variable an address was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .order import EVERY_LANE
from .parse import (
    BYTES,
    Address,
    Group,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
)
from .specials import SPECIALS

BARRIERS = ("bar", "barrier")
COLLECTIVES = ("shfl", "vote", "match", "redux")


@dataclass(frozen=True, slots=True)
class Site:
    """One memory instruction: where it is and what it does. `bits` is one lane's whole access."""

    number: int
    line: int
    op: str  # load, store, atomic, wait (for copies of cp.async)
    space: str
    element: int  # bytes
    count: int  # elements: 1, 2 or 4
    optimistic: bool = False  # the plain read of a compare-and-swap loop, which the swap checks
    # Bits of the wide access that the assembler makes of it: 0 in a later part, -1 if none; negative bits if
    # it begins one only where its address is a multiple of that, and is a later part elsewhere.
    joined: int = -1
    read_only: bool = False  # ld.global.nc: nobody may write there in this launch

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
    joined: dict[int, int] | None = None  # what the assembler joins (fusing), by id of the instruction
    unset: frozenset[int] = frozenset()  # slots that some path leaves unset; see `masks`
    provenance: dict[str, frozenset[str]] = field(default_factory=dict)
    unset_line: int = 0  # the first use of a register that no instruction has set, 0 if there is none
    optimistic: frozenset[str] = frozenset()  # registers that a compare-and-swap compares with
    uses_fence: bool = False  # other than of one block
    uses_any_fence: bool = False
    uses_warp_barrier: bool = False
    uses_warp_mask: bool = False  # some __syncwarp() may be for a part of a warp
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

    @cached_property
    def ahead(self) -> list[int]:
        """For each basic block, as bits, those that can follow it before a loop begins anew."""
        found = [0] * len(self.blocks)
        begun, done = {0}, set[int]()
        path = [(0, iter(successors(self.blocks[0])))]
        while path:
            number, rest = path[-1]
            new = next((n for n in rest if n not in begun), None)
            if new is not None:
                begun.add(new)
                path.append((new, iter(successors(self.blocks[new]))))
                continue
            path.pop()
            done.add(number)
            for n in successors(self.blocks[number]):
                if n in done and n != number:  # else a step back to where a loop begins
                    found[number] |= 1 << n | found[n]
        return found

    @cached_property
    def smallest_access(self) -> int:
        """Bytes a place of the race shadow: 4, or less if the kernel makes smaller accesses."""
        return min([4, *(BYTES.get(i.parts[-1], 4) for i in self.memory_instructions())])

    @cached_property
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


def _with_lines(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Gives an instruction of `.loc 1 0` a line. The compiler says 0 of what it has moved to where no line
    of the source is: mostly a value that does not change in a loop, worked out before it. There the first
    line that uses the value says what the source says; the line before is the head of the loop. Where no
    line uses it, it is the line before, else the next.
    """
    lines = [i.line for i in instructions]
    users: dict[str, list[int]] = {}  # by register, the nearest last
    for n in range(len(instructions) - 1, -1, -1):
        for name in () if lines[n] else results(instructions[n]):
            lines[n] = lines[n] or next(
                (lines[user] for user in reversed(users.get(name, ())) if lines[user]), 0
            )
        for name in sources(instructions[n]):
            users.setdefault(name, []).append(n)
    for n in range(1, len(lines)):
        lines[n] = lines[n] or lines[n - 1]
    for n in range(len(lines) - 2, -1, -1):
        lines[n] = lines[n] or lines[n + 1]
    return [
        i if i.line == line else replace(i, line=line) for i, line in zip(instructions, lines, strict=True)
    ]


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
    for index, i in enumerate(_with_lines(kernel.instructions)):
        moved[index] = len(out)
        if i.guard and i.parts[0] not in ("bra", "brx"):
            label = f"~{index}"
            out.append(Instruction("skip", ("skip",), (Symbol(label),), (i.guard[0], not i.guard[1]), i.line))
            out.append(replace(i, guard=None))
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
    fences = [i for i in instructions if i.parts[0] in ("membar", "fence")]
    program.uses_fence, program.uses_any_fence = any("cta" not in i.parts for i in fences), bool(fences)
    program.uses_warp_barrier = any(_ending(i) == "warp_barrier" for i in instructions)
    program.uses_warp_mask = any(
        _ending(i) == "warp_barrier" and getattr(i.operands[0], "value", 0) not in (-1, EVERY_LANE)
        for i in instructions
    )
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
    set_at = [everything] * len(program.blocks)
    set_at[0] = frozenset(name for name in program.slots if name in SPECIALS)
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
