"""PTX on the CPU: runs a kernel, checks every access, counts what it costs. Imports NumPy and nothing else
of dojo.

`run` is the whole interface. Inside, text becomes a `Kernel` (parse) and that a `Program` of basic blocks
(program), which become NumPy (ops, numerics, translate); the machine runs them over lanes. The memories
(global, shared, local) serve the accesses and watch: races says who touched what, order which barriers lie
between, traffic what an access costs, fusing (with flow and addresses) which accesses the assembler
joins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .findings import Access, Finding, Report
from .fusing import fused_widths
from .machine import Machine
from .memory import Buffer
from .parse import BYTES, InvalidPTX, Parameter, Unsupported, Variable, parse, symbols
from .program import Program, build
from .shared_memory import plain_name
from .translate import MALFORMED

__all__ = ["Access", "Finding", "InvalidPTX", "Report", "Unsupported", "run"]

MAX_BLOCK_THREADS = 1024
MAX_BLOCK_Z = 64
MAX_GRID_YZ = 65_535
LEAST_BUDGET, BUDGET_OF_A_THREAD = 100_000_000, 50_000  # instructions
MAX_THREADS = 1 << 27  # of a launch
MAX_SHARED = 227 * 1024  # bytes of a block, on the card that has most
MAX_VARIABLE = 1 << 26  # bytes; what is kept about them takes twenty times as much


def run(
    ptx: str,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    uninitialised: Collection[int] = (),
    parameters: Sequence[str] = (),
    element: Callable[[str, int], str] | None = None,
    budget: int = 0,
) -> Report:
    """Launches `kernel` of a PTX module and reports what it did.

    `grid`, `block`: one to three ints. `args`: NumPy arrays, updated in place as device buffers would be,
    and scalars. `uninitialised`: the indices of array arguments whose contents count as never written.
    `parameters`: the kernel's parameter names for messages. `element(variable, byte offset)` words an
    element of a shared array. `budget`: thread instructions before the launch is ended with a `timeout`
    finding; 0: as many as a launch of this size should ever need.

    Raises `Unsupported` for an instruction that the simulator lacks, `KeyError` if there is no such kernel,
    `TypeError` for arguments that do not fit the parameters and `ValueError` for an impossible grid or
    block.
    """
    program = _program(ptx, kernel, frozenset(uninitialised))
    grid, block = _three(grid, "grid"), _three(block, "block")
    threads = block[0] * block[1] * block[2]
    if threads > MAX_BLOCK_THREADS:
        raise ValueError(f"a block has at most {MAX_BLOCK_THREADS:,} threads, not {threads:,}")
    if block[2] > MAX_BLOCK_Z or max(grid[1:]) > MAX_GRID_YZ:
        raise ValueError(
            f"a block has at most {MAX_BLOCK_Z} threads in z, a grid at most {MAX_GRID_YZ:,} blocks in y and "
            f"z: not {block} and {grid}"
        )
    if 0 < program.kernel.max_threads < threads:
        raise ValueError(
            f"its __launch_bounds__ allow {program.kernel.max_threads:,} threads, not {threads:,}"
        )
    if grid[0] * grid[1] * grid[2] * threads >= MAX_THREADS:
        raise ValueError(f"more than {MAX_THREADS:,} threads in one launch are too many to simulate")
    expected = program.kernel.parameters
    if len(args) != len(expected):
        raise TypeError(f"{kernel} takes {len(expected)} arguments, {len(args)} were given")
    variables = program.kernel.variables
    grain = program.smallest_access
    written = program.written_through
    arguments: dict[str, bytes] = {}
    origins: dict[str, Buffer] = {}
    arrays: list[tuple[np.ndarray[Any, Any], Buffer]] = []

    buffers: dict[int, Buffer] = {}

    def new_buffer(name: str, content: np.ndarray[Any, Any], origin: str, known: bool) -> Buffer:
        slot = len(buffers) + 1
        shadowed = "?" in written or bool(written & {origin, *aliases.get(id(content), ())})
        buffers[slot] = origins[origin] = Buffer(name, slot, content, grain, known, shadowed)
        return buffers[slot]

    aliases: dict[int, list[str]] = {}  # the parameters that one array is passed for
    for argument, parameter in zip(args, expected, strict=True):
        aliases.setdefault(id(argument), []).append(parameter.name)
    for (
        name,
        variable,
    ) in variables.items():  # before the arguments: their addresses are in the translated code
        if variable.space in ("global", "const"):
            content = np.frombuffer(variable.initial or bytes(variable.size), np.uint8)
            buffer = new_buffer(plain_name(name), content, name, True)
            buffer.itemsize = variable.align if variable.align in (1, 2, 4, 8) else 4
            program.symbols[name] = buffer.base
    for n, (argument, parameter) in enumerate(zip(args, expected, strict=True)):
        name = parameters[n] if n < len(parameters) else f"argument {n}"
        if not isinstance(argument, np.ndarray):
            arguments[parameter.name] = _parameter_bytes(parameter, argument)
            continue
        if parameter.size != 8:
            raise TypeError(f"{name} is an array, but the kernel takes a .{parameter.type} there")
        same = next((found for array, found in arrays if array is argument), None)
        if same is None:
            if any(_overlap(array, argument) for array, _ in arrays):
                raise ValueError(f"{name} overlaps another argument: pass the whole array twice, or a copy")
            same = new_buffer(name, argument, parameter.name, n not in uninitialised)
            arrays.append((argument, same))
        origins[parameter.name] = same
        arguments[parameter.name] = same.base.to_bytes(8, "little")
    static, local = _layout(variables.values(), program.symbols)
    if program.joined is None:
        addresses = {v.name: program.symbols[v.name] for v in variables.values() if v.space == "shared"}
        program.joined = fused_widths(program, addresses)
    shared = static + shared_bytes
    if shared > MAX_SHARED or shared_bytes < 0:
        raise ValueError(f"{shared:,} bytes of shared memory: a block has at most {MAX_SHARED:,}")
    extents = {
        v.name: (program.symbols[v.name], program.symbols[v.name] + v.size if v.size else shared)
        for v in variables.values()
        if v.space == "shared"
    }
    machine = Machine(
        program,
        grid,
        block,
        arguments,
        buffers,
        origins,
        grain=grain,
        shared_size=shared,
        local_size=local,
        extents=extents,
        element=element or (lambda name, offset: f"{name}, byte {offset}"),
        budget=budget or max(LEAST_BUDGET, BUDGET_OF_A_THREAD * grid[0] * grid[1] * grid[2] * threads),
    )
    report = machine.run()
    for array, buffer in arrays:
        if buffer.changed:
            array[...] = buffer.data[: array.nbytes].view(array.dtype).reshape(array.shape)
    return report


def _overlap(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether they share an element; interleaved views of one array do not."""
    return np.may_share_memory(a, b) and np.shares_memory(a, b)


def _three(size: Sequence[int] | int, what: str) -> tuple[int, int, int]:
    values = [int(n) for n in ([size] if isinstance(size, int) else size)]
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise ValueError(f"{what} must be one to three positive numbers, not {tuple(values)}")
    x, y, z = [*values, 1, 1][:3]
    return x, y, z


_parsed = lru_cache(maxsize=32)(parse)


@lru_cache(maxsize=32)
def _program(ptx: str, kernel: str, uninitialised: frozenset[int]) -> Program:
    parsed = _parsed(ptx, kernel)
    for variable in parsed.variables.values():
        if variable.size > MAX_VARIABLE:
            raise Unsupported(
                f"the {variable.size:,} bytes of {plain_name(variable.name)}",
                why=f"a variable can have {MAX_VARIABLE:,}",
            )
        if variable.has_address:
            named = (i.line for i in parsed.instructions for o in i.operands if variable.name in symbols(o))
            if variable.name.startswith("_ZTV"):
                raise Unsupported("virtual functions", next(named))
            name = plain_name(variable.name)
            raise Unsupported(f"the variable {name}", next(named), "its initial value is an address")
    unknown = frozenset(p.name for n, p in enumerate(parsed.parameters) if n in uninitialised)
    try:
        program = build(parsed, unknown)
        _ = program.written_through  # kept, and read here where what is not PTX is caught
        return program
    except MALFORMED as error:
        raise InvalidPTX(f"the flow of {kernel} is not PTX: {error!r}") from error


def _layout(variables: Collection[Variable], symbols: dict[str, int]) -> tuple[int, int]:
    """Gives shared and local variables their addresses; returns the static shared and the local bytes.

    Extern arrays all begin where the static part ends.
    """
    used = {"shared": 0, "local": 0}
    for variable in sorted(variables, key=lambda v: v.size == 0):
        if variable.space in used:
            align = variable.align if variable.size else max(variable.align, 16)
            start = -(-used[variable.space] // align) * align
            symbols[variable.name] = start
            used[variable.space] = start + variable.size
    return used["shared"], used["local"]


def _parameter_bytes(parameter: Parameter, value: Any) -> bytes:
    """A scalar argument as the bytes of the kernel's parameter. Raises `TypeError` for what does not fit."""
    floats = {
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "b16": np.float16,
        "b32": np.float32,
        "b64": np.float64,
    }
    size = parameter.size
    if size != BYTES[parameter.type]:  # a structure, or a __half
        data = value.tobytes() if isinstance(value, np.generic) else value
        if isinstance(data, bytes) and len(data) == size:
            return data
        raise TypeError(f"a parameter of {size} bytes takes a NumPy scalar or bytes of that size")
    if isinstance(value, float | np.floating):
        if parameter.type not in floats:
            raise TypeError(f"a float cannot be passed for a .{parameter.type} parameter")
        return np.array(value, floats[parameter.type]).tobytes()
    if isinstance(value, bool | int | np.integer | np.bool_):
        if parameter.type[0] == "f":
            return np.array(value, floats[parameter.type]).tobytes()
        whole = int(value)
        if not -(1 << (8 * size - 1)) <= whole < 1 << 8 * size:
            raise TypeError(f"{whole} does not fit a .{parameter.type} parameter")
        bits: bytes = (whole & (256**size - 1)).to_bytes(size, "little")
        return bits
    raise TypeError(f"a {type(value).__name__} cannot be passed to a kernel: use a NumPy array or a number")
