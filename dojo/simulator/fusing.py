"""Which neighbouring shared loads the assembler (ptxas) joins into one wide load, as seen on sm_90 code.

It joins loads of one width in one basic block that have one base register and adjacent offsets, if it can
prove that the joint address is aligned and nothing may have written in between: into 128 bits, also where
one of four words is not wanted, else into 64. A load so joined costs the wavefronts of an LDS.64 or
LDS.128, once. The proof needs to know register values modulo a power of two: a small congruence analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .parse import BYTES, Address, Immediate, Instruction, Operand, Register, Symbol
from .program import results

WIDEST = 16  # bytes of a load
BARRIERS = (
    "bar",
    "barrier",
    "st",
    "atom",
    "red",
    "cp",
    "membar",
    "fence",
    "call",
    "shfl",
    "vote",
    "match",
    "redux",
)
UNKNOWN = (0, 0)
EXACT = 16  # bits of an address that are followed

Congruence = tuple[int, int]  # (k, c): the value is c modulo 2**k


def fused_widths(blocks: Iterable[list[Instruction]], symbols: Mapping[str, int]) -> dict[int, int]:
    """For each joined load, by id(instruction): the bits of the wide load that it begins, 0 if it is a later
    part.

    `blocks`: the basic blocks' instructions; `symbols`: the addresses of the shared variables.
    """
    lists = [list(block) for block in blocks]
    known = _congruences([i for block in lists for i in block], symbols)
    widths: dict[int, int] = {}
    for block in lists:
        window: Window = {}
        for i in block:
            if size := _joinable(i):
                address = i.operands[1]
                assert isinstance(address, Address)
                base = address.base.name if address.base else ""
                window.setdefault((base, size), {}).setdefault(address.offset, i)
            elif i.parts[0] in BARRIERS and "global" not in i.parts:
                _join_all(window, known, symbols, widths)
                window = {}
            for name in results(i):
                gone = {key: loads for key, loads in window.items() if key[0] == name}
                _join_all(gone, known, symbols, widths)
                window = {key: loads for key, loads in window.items() if key not in gone}
        _join_all(window, known, symbols, widths)
    return widths


Window = dict[tuple[str, int], dict[int, Instruction]]  # (base register, bytes of a load) -> offset -> load


def _joinable(i: Instruction) -> int:
    """The bytes of a shared load that may be joined with others, else 0."""
    if i.parts[0] != "ld" or "shared" not in i.parts or {"volatile", "v4"} & set(i.parts):
        return 0
    size = BYTES.get(i.parts[-1], 0) * (2 if "v2" in i.parts else 1)
    return size if 2 <= size < WIDEST else 0


def _join_all(
    window: Window, known: Mapping[str, Congruence], symbols: Mapping[str, int], widths: dict[int, int]
) -> None:
    for (base, size), loads in window.items():
        operand: Operand = Symbol(base) if base in symbols else Register(base, "")
        _join(loads, size, _value(operand, known, symbols), widths)


def _join(loads: dict[int, Instruction], size: int, base: Congruence, widths: dict[int, int]) -> None:
    """Loads of `size` bytes: 16 bytes where the address is provably a multiple of 16, then 8."""
    bits, rest = base
    free = set(loads)
    for wide in (16, 8):
        count = wide // size
        if count < 2 or count > 4 or 1 << bits < wide:
            continue
        for first in sorted({offset - (rest + offset) % wide for offset in free}):
            part = [first + n * size for n in range(count) if first + n * size in free]
            if len(part) > count // 2:  # two of two, three of four
                free.difference_update(part)
                for n, offset in enumerate(part):
                    widths[id(loads[offset])] = 8 * wide if n == 0 else 0


# What is known of registers modulo a power of two


def _congruences(instructions: list[Instruction], symbols: Mapping[str, int]) -> dict[str, Congruence]:
    """From the top down: every register starts as anything at all and loses what its definitions do not
    share.
    """
    known: dict[str, Congruence] = {}
    changed = True
    while changed:
        changed = False
        for i in instructions:
            for name in results(i):
                value = _result(i, known, symbols)
                if value is None:
                    continue  # of a register that has no value yet
                old = known.get(name)
                new = value if old is None else _common(old, value)
                if new != old:
                    known[name], changed = new, True
    return known


def _common(a: Congruence, b: Congruence) -> Congruence:
    bits = min(a[0], b[0])
    while bits and (a[1] - b[1]) % (1 << bits):
        bits -= 1
    return bits, a[1] % (1 << bits)


def _value(operand: Operand, known: Mapping[str, Congruence], symbols: Mapping[str, int]) -> Congruence:
    if isinstance(operand, Immediate) and not operand.type:
        return EXACT, operand.value % (1 << EXACT)
    if isinstance(operand, Symbol) and operand.name in symbols:
        return EXACT, (symbols[operand.name] + operand.offset) % (1 << EXACT)
    return known.get(operand.name, UNKNOWN) if isinstance(operand, Register) else UNKNOWN


def _result(i: Instruction, known: Mapping[str, Congruence], symbols: Mapping[str, int]) -> Congruence | None:
    name = i.parts[0]
    if name not in ("mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "and", "selp"):
        return UNKNOWN
    operands = i.operands[1:]
    if any(isinstance(o, Register) and o.name not in known for o in operands[: 2 if name == "selp" else 3]):
        return None
    a, b, c = ([_value(o, known, symbols) for o in operands] + [UNKNOWN] * 3)[:3]
    if name in ("mov", "cvt", "cvta"):
        return a
    if name == "selp":
        return _common(a, b)
    if name in ("add", "sub"):
        bits = min(a[0], b[0])
        return bits, (a[1] + (b[1] if name == "add" else -b[1])) % (1 << bits)
    if name in ("mul", "mad"):
        if "hi" in i.parts:
            return UNKNOWN
        product = _times(a, b)
        if name == "mul":
            return product
        bits = min(product[0], c[0])
        return bits, (product[1] + c[1]) % (1 << bits)
    if name == "shl":
        count = operands[1]
        return _times(a, (EXACT, 1 << min(count.value, EXACT))) if isinstance(count, Immediate) else UNKNOWN
    mask = operands[1]
    if name == "and" and isinstance(mask, Immediate):
        bits = EXACT if a[0] == EXACT else max(a[0], _trailing_zeros(mask.value))
        return bits, a[1] & mask.value & ((1 << bits) - 1) if bits > a[0] else (a[1] & mask.value) % (
            1 << bits
        )
    return UNKNOWN


def _times(a: Congruence, b: Congruence) -> Congruence:
    """(ca + 2**ka x) * (cb + 2**kb y): known modulo the lowest of the mixed terms."""
    bits = min(a[0] + b[0], a[0] + _trailing_zeros(b[1]), b[0] + _trailing_zeros(a[1]), EXACT)
    return bits, a[1] * b[1] % (1 << bits)


def _trailing_zeros(value: int) -> int:
    return EXACT if value % (1 << EXACT) == 0 else (value & -value).bit_length() - 1
