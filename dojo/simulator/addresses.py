"""What the assembler (ptxas) knows of addresses before a kernel runs: what they are counted from, how they
grow in a loop, how many of their low bits are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .parse import Address, Immediate, Instruction, Operand, Register, Symbol
from .program import Block, Program, results

UNROLLED = 320  # instructions of all rounds together; some longer loops of short rounds ptxas unrolls too
ALL = 16  # zero bits of zero

Definitions = Mapping[str, Sequence[Instruction]]  # what sets each register


def root(
    address: Address, start: Instruction | None, definitions: Definitions, symbols: Mapping[str, int]
) -> tuple[str, int]:
    """The register that an address is counted from, and the distance; "" for the start of shared memory.

    `start`: what sets the address's register before an unrolled loop.
    """

    def only(name: str) -> Instruction | None:
        return definitions[name][0] if len(definitions.get(name, ())) == 1 else None

    base, offset = address.base, address.offset
    for _ in range(8):  # not without end: a register that nothing else sets may be its own root
        definition = start or (only(base.name) if isinstance(base, Register) else None)
        if not definition:
            break
        match definition.parts[0], *definition.operands[1:]:
            case "mov", Symbol() as variable:
                base = variable
            case "mov", Register() as other if only(other.name):
                base = other
            case "add", Register() as other, Immediate() as number if only(other.name):
                base, offset = other, offset + number.value
        start = None
    if isinstance(base, Symbol):
        return "", symbols.get(base.name, 0) + base.offset + offset
    return base.name if base else "", offset


def growth(name: str, block: Block, definitions: Definitions) -> tuple[Instruction | None, int]:
    """Of a register that a loop of one block makes grow: what sets it before, and by how much it grows."""
    here = set(map(id, block.instructions))
    inside = [i for i in definitions.get(name, ()) if id(i) in here]
    before = [i for i in definitions.get(name, ()) if id(i) not in here]
    if len(inside) == len(before) == 1:
        match inside[0].parts[0], *inside[0].operands[1:]:
            case "add", Register() as register, Immediate() as step if register.name == name:
                return before[0], step.value
    return None, 0


def unrolled(program: Program, definitions: Definitions) -> dict[int, int]:
    """How often each loop of one block runs, by the block's number, if that is constant and ptxas unrolls all
    of it.
    """
    rolled = {id(i) for n, i in enumerate(program.kernel.instructions) if n in program.kernel.rolled}
    found = {}
    for block in program.blocks:
        guard = block.instructions[-1].guard
        if block.target == block.number and guard and rolled.isdisjoint(map(id, block.instructions)):
            rounds = 0 if guard[1] else _rounds(guard[0].name, block, definitions)
            if 0 < rounds * len(block.instructions) <= UNROLLED:
                found[block.number] = rounds
    return found


def _rounds(predicate: str, block: Block, definitions: Definitions) -> int:
    """Of a loop that runs while the predicate holds, 0 if that cannot be told."""
    for i in definitions.get(predicate, ()):
        match i.parts[:2], *i.operands[1:]:
            case ("setp", "ne" | "lt"), Register() as counter, Immediate() as end:
                before, step = growth(counter.name, block, definitions)
                if step > 0 and before and before.parts[0] == "mov":
                    first = before.operands[-1]
                    return -((first.value - end.value) // step) if isinstance(first, Immediate) else 0
    return 0


def zero_bits(instructions: Sequence[Instruction], symbols: Mapping[str, int]) -> dict[str, int]:
    """How many low bits of each register are zero.

    From the top down: a register starts as zero and keeps what all that is put into it has in common.
    """
    known: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for i in instructions:
            for name in results(i):
                zeros = _zeros_of(i, known, symbols)
                if zeros < known.get(name, ALL + 1):
                    known[name], changed = zeros, True
    return known


def _zeros_of(i: Instruction, known: Mapping[str, int], symbols: Mapping[str, int]) -> int:
    name = i.parts[0]
    if not {"f16", "f32", "f64"}.isdisjoint(i.parts):
        return 0

    def of(operand: Operand) -> int:
        if isinstance(operand, Immediate):
            return _trailing_zeros(operand.value)
        if isinstance(operand, Symbol) and operand.name in symbols:
            return _trailing_zeros(symbols[operand.name] + operand.offset)
        return known.get(operand.name, ALL) if isinstance(operand, Register) else 0

    a, b, c = [*map(of, i.operands[1:4]), ALL, ALL, ALL][:3]
    if name in ("mov", "cvt", "cvta"):
        return a
    if name in ("add", "sub", "or", "xor", "selp"):
        return min(a, b)
    if name == "and":
        return max(a, b)
    if name in ("mul", "mad") and "hi" not in i.parts:
        return min(a + b, c)
    if name == "shl" and isinstance(i.operands[-1], Immediate):
        return max(0, min(a + i.operands[-1].value, ALL))
    return 0


def _trailing_zeros(value: int) -> int:
    return min((value & -value).bit_length() - 1, ALL) if value else ALL
