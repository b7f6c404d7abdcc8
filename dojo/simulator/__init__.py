"""PTX on the CPU: runs a kernel, checks every access, counts what it costs. Imports NumPy and nothing else of dojo.

`run` is the whole interface. `parse` reads the text, `ops` says what instructions mean, `translate` turns basic blocks
into NumPy, `machine` runs them over lanes, `memory`, `races` and `traffic` watch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .machine import Access, Finding, Machine, Report, parameter_bytes, plain_name
from .memory import SLOT_BITS, Buffer
from .parse import Unsupported, parse
from .translate import Program, build

__all__ = ["Access", "Finding", "Report", "Unsupported", "run"]

MAX_THREADS = 1 << 31


def run(ptx: str, kernel: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_bytes: int = 0,
        uninitialised: Collection[int] = (), parameters: Sequence[str] = (),
        element: Callable[[str, int], str] | None = None, budget: int = 2_000_000_000) -> Report:  # fmt: skip
    """Launches `kernel` of a PTX module and reports what it did.

    `grid`, `block`: one to three ints. `args`: NumPy arrays, updated in place as device buffers would be, and scalars.
    `uninitialised`: the indices of array arguments whose contents count as never written. `parameters`: the kernel's
    parameter names for messages. `element(variable, byte offset)` names an element of a shared array. `budget`: thread
    instructions before the launch is ended with a `timeout` finding.

    Raises `Unsupported` for an instruction that the simulator lacks, `KeyError` if there is no such kernel, `TypeError`
    for arguments that do not fit the parameters and `ValueError` for an impossible grid or block.
    """
    program = _program(ptx, kernel)
    sizes = _three(grid, "grid"), _three(block, "block")
    threads = int(np.prod(sizes[1]))
    if threads > 1024:
        raise ValueError(f"a block has at most 1,024 threads, not {threads:,}")
    if int(np.prod(sizes[0], dtype=object)) * threads >= MAX_THREADS:
        raise ValueError("more than 2**31 threads in one launch are too many to simulate")
    expected = program.kernel.parameters
    if len(args) != len(expected):
        raise TypeError(f"{kernel} takes {len(expected)} arguments, {len(args)} were given")
    names = [parameters[n] if n < len(parameters) else f"argument {n}" for n in range(len(args))]
    arguments: dict[str, bytes] = {}
    buffers: dict[int, Buffer] = {}
    by_parameter: dict[str, Buffer] = {}
    grain = _grain(program)
    written = _written_origins(program)
    arrays: list[tuple[np.ndarray[Any, Any], Buffer]] = []
    for n, (argument, parameter) in enumerate(zip(args, expected, strict=True)):
        if not isinstance(argument, np.ndarray):
            arguments[parameter.name] = parameter_bytes(parameter, argument)
            continue
        if parameter.size != 8:
            raise TypeError(f"{names[n]} is an array, but the kernel takes a .{parameter.type} there")
        shadowed = parameter.name in written or "?" in written
        buffer = Buffer(names[n], n + 1, argument, grain, n not in uninitialised, shadowed)
        buffers[n + 1] = by_parameter[parameter.name] = buffer
        arguments[parameter.name] = buffer.base.to_bytes(8, "little")
        arrays.append((argument, buffer))
    static = 0
    local = 0
    for slot, (name, variable) in enumerate(sorted(program.kernel.variables.items()), start=len(args) + 1):
        if variable.space in ("global", "const"):
            content = np.frombuffer(variable.initial or bytes(variable.size), np.uint8).copy()
            buffer = Buffer(plain_name(name), slot, content, grain, True, name in written or "?" in written)
            buffer.itemsize = min(4, max(1, variable.size))
            buffers[slot] = by_parameter[name] = buffer
            program.symbols[name] = slot << SLOT_BITS
    static, local = _layout(program)
    machine = Machine(program, sizes[0], sizes[1], arguments, buffers, static_shared=static, shared_bytes=shared_bytes,
                      local_bytes=local, parameter_buffers=by_parameter, element=element or _element,
                      budget=budget)  # fmt: skip
    machine.run()
    for array, buffer in arrays:
        array[...] = buffer.data[: array.nbytes].view(array.dtype).reshape(array.shape)
    return machine.report()


def _three(size: Sequence[int] | int, what: str) -> tuple[int, int, int]:
    values = [int(n) for n in ([size] if isinstance(size, int) else size)]
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise ValueError(f"{what} must be one to three positive numbers, not {tuple(values)}")
    x, y, z = [*values, 1, 1][:3]
    return x, y, z


@lru_cache(maxsize=32)
def _program(ptx: str, kernel: str) -> Program:
    return build(parse(ptx, kernel))


def _grain(program: Program) -> int:
    from .parse import BYTES

    widths = [BYTES.get(i.parts[-1], 4) for b in program.blocks for i in b.instructions
              if i.parts[0] in ("ld", "st", "atom", "red") and "param" not in i.parts]  # fmt: skip
    return min([4, *widths])


def _written_origins(program: Program) -> set[str]:
    """Parameters and variables that some store or atomic may write through."""
    from .parse import Address, Register, Symbol

    found: set[str] = set()
    for block in program.blocks:
        for i in block.instructions:
            if i.parts[0] in ("st", "atom", "red"):
                address = i.operands[1 if i.parts[0] == "atom" else 0]
                if isinstance(address, Address) and isinstance(address.base, Register):
                    found |= program.provenance.get(address.base.name, frozenset("?")) or {"?"}
                elif isinstance(address, Address) and isinstance(address.base, Symbol):
                    found.add(address.base.name)
    return found


def _layout(program: Program) -> tuple[int, int]:
    """Gives shared and local variables their addresses; returns the static shared and the local bytes."""
    shared = local = 0
    variables = program.kernel.variables
    for name, variable in variables.items():
        if variable.space == "shared" and variable.size:
            shared = -(-shared // variable.align) * variable.align
            program.symbols[name] = shared
            shared += variable.size
        elif variable.space == "local":
            local = -(-local // variable.align) * variable.align
            program.symbols[name] = local
            local += variable.size
    for name, variable in variables.items():
        if variable.space == "shared" and not variable.size:
            shared = -(-shared // max(variable.align, 16)) * max(variable.align, 16)
            program.symbols[name] = shared
    return shared, local


def _element(name: str, offset: int) -> str:
    return f"{name}, byte {offset}"
