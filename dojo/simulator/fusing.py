"""Which neighbouring shared accesses the assembler (ptxas) joins into one wide one, as seen on sm_90 code.

It joins loads of 16, 32 or 64 bits whose addresses are one register plus adjacent numbers: into 128 bits,
also where one of four is not wanted, else into 64 or 32. A load so joined costs the wavefronts of an LDS.128,
LDS.64 or LDS, once, where the first of its parts stands. Three things must be proven:

- The joint address is aligned. Of a register ptxas knows how many low bits are zero, and no more: not that
  a value is 4 modulo 8. Of a shared variable it knows the address.
- Nothing is stored in between, on any way from the first part to another, and no loop is entered or left:
  both find the same version of shared memory (and of the register).
- The first part is loaded wherever another one is: its block dominates theirs. So a load in a branch joins
  one before the branch, but not one in another branch or after it.

Stores are joined where no other shared access stands between them and none is missing. A short loop with a
constant number of rounds is unrolled first, so loads of several rounds are joined too.

Found by giving ptxas 12.9 small kernels, one question each (tests/meta/test_fusing.py has them), and reading
what it made of them; held to what is recorded in tests/meta/hardware. Not followed: where it unrolls a loop
in part, and its doubts whether a load that only some lanes want is worth the while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .addresses import growth, root, unrolled, zero_bits
from .flow import Flow
from .parse import BYTES, Address, Instruction
from .program import Program, results, sources

WIDEST = 16  # bytes of an access
CUTS = ("bar", "barrier", "membar", "fence", "call", "vprintf", "nanosleep")
CALLS = ("div", "rem", "rcp", "sqrt")  # functions of ptxas's own, but for the short forms of these:
SHORT = ("approx", "full", "s16", "u16", "s32", "u32")
ELSEWHERE = {"global", "local", "param", "const"}  # not in shared memory


class Place(NamedTuple):
    """What accesses that are joined have in common."""

    base: str
    element: int  # bytes
    wide: int  # bytes: what the base is known to be a multiple of
    register: int  # the version of the base
    memory: int  # of loads the version of shared memory, of stores the first of those that follow one another
    piece: int = 0  # of stores, in units of `wide`


class Part(NamedTuple):
    """One access that may be joined with others, in one round of an unrolled loop."""

    round: int
    offset: int  # bytes
    elements: int
    block: int
    instruction: Instruction


def fused_widths(program: Program, symbols: Mapping[str, int]) -> dict[int, int]:
    """For each joined load or store, by id(instruction): the bits of the wide access that it begins, 0 if it
    is a later part. Negative bits if it begins one in some rounds of a loop, where its address is a multiple
    of that, and is a later part in the others.

    `symbols`: the addresses of the shared variables.
    """
    instructions = [i for block in program.blocks for i in block.instructions]
    halves = {name for i in instructions if "f16" in i.parts for name in sources(i)}
    accesses = {id(i): size for i in instructions if (size := _element(i, halves))}
    if not accesses:
        return {}
    flow = Flow(program.blocks)
    found: dict[int, int] = {}
    for place, parts in _places(program, flow, accesses, symbols).items():
        widths: dict[tuple[int, int], int] = {}
        _join(sorted(parts, key=lambda part: part.round), place.element, place.wide, flow, widths)
        rounds: dict[int, list[Part]] = {}
        for part in parts:
            rounds.setdefault(id(part.instruction), []).append(part)
        for name, alike in rounds.items():
            bits = [widths.get((name, part.round), -1) for part in alike]
            most = max(bits)
            if most == min(bits) != -1:
                found[name] = most
            elif most > 0 and bits == [0 if 8 * part.offset % most else most for part in alike]:
                found[name] = -most
    return found


def _places(
    program: Program, flow: Flow, accesses: Mapping[int, int], symbols: Mapping[str, int]
) -> dict[Place, list[Part]]:
    """The accesses that may be joined with others, sorted by what they have in common."""
    instructions = [i for block in program.blocks for i in block.instructions]
    zeros = zero_bits(instructions, symbols)
    definitions: dict[str, list[Instruction]] = {}
    for i in instructions:
        for name in results(i):
            definitions.setdefault(name, []).append(i)
    loops = unrolled(program, definitions)
    memory = flow.versions({id(i) for i in instructions if _cuts(i)})
    registers: dict[str, dict[int, int]] = {}  # versions of those that are set more than once
    places: dict[Place, list[Part]] = {}
    for block in flow.order:
        rounds = loops.get(block.number, 0)
        run: Place | None = None  # of the stores just before
        for i in block.instructions:
            if id(i) not in accesses:
                run = None if _cuts(i) or _loads_shared(i) else run
                continue
            address = next((operand for operand in i.operands if isinstance(operand, Address)), Address(None))
            name = address.base.name if address.base else ""
            if len(definitions.get(name, ())) > 1 and name not in registers:
                registers[name] = flow.versions(set(map(id, definitions[name])))
            start, step = growth(name, block, definitions) if rounds else (None, 0)
            base, offset = root(address, start, definitions, symbols)
            wide = min(WIDEST, 1 << zeros.get(base, 0)) if base else WIDEST
            place = Place(base, accesses[id(i)], wide, registers.get(name, {}).get(id(i), 0), memory[id(i)])
            if i.parts[0] == "ld":
                run = None
            else:
                place = place._replace(memory=id(i), piece=offset // wide)
                run = place = run if run and run._replace(memory=id(i)) == place else place
            for n in range(rounds if step % WIDEST else 1):
                part = Part(n, offset + n * step, 2 if "v2" in i.parts else 1, block.number, i)
                places.setdefault(place, []).append(part)
    return places


def _element(i: Instruction, halves: set[str]) -> int:
    """The bytes of one element of a shared access that may be joined with others, else 0."""
    if i.parts[0] not in ("ld", "st") or "shared" not in i.parts or {"volatile", "v4"} & set(i.parts):
        return 0
    size = BYTES.get(i.parts[-1], 0)
    if i.parts[0] == "ld" and size == 2 and halves.isdisjoint(results(i)):
        return 0  # an integer, which LDS.U16 makes 32 bits wide
    return size if 2 <= size <= (4 if "v2" in i.parts else 8) else 0


def _loads_shared(i: Instruction) -> bool:
    return i.parts[0] == "ld" and ELSEWHERE.isdisjoint(i.parts)


def _cuts(i: Instruction) -> bool:
    """Whether shared memory may be another one after this instruction."""
    name = i.parts[0]
    if name in ("st", "atom", "red"):
        return ELSEWHERE.isdisjoint(i.parts)
    if name == "cp":
        return "commit_group" not in i.parts
    return name in CUTS or (name in CALLS and set(SHORT).isdisjoint(i.parts))


def _join(
    parts: Sequence[Part], element: int, wide: int, flow: Flow, widths: dict[tuple[int, int], int]
) -> None:
    """Accesses that stand at `offset` from a multiple of `wide` bytes."""
    count = wide // element
    if count < 2:
        return
    pieces: dict[int, list[Part]] = {}
    for part in parts:
        pieces.setdefault(part.offset // wide, []).append(part)
    for piece in pieces.values():
        while piece:
            first = piece[0]
            joint = [part for part in piece if flow.dominates(first.block, part.block)]
            piece = [part for part in piece if part not in joint]
            found = {part.offset + element * n for part in joint for n in range(part.elements)}
            enough = 3 if count == 4 and first.instruction.parts[0] == "ld" else count
            if count > 4 or len(found) < enough:
                _join(joint, element, wide // 2, flow, widths)
            elif len(joint) > 1:
                widths.update(((id(part.instruction), part.round), 0) for part in joint)
                widths[id(first.instruction), first.round] = 8 * wide
