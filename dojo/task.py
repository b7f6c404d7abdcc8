"""What a kata asks for, said once in its test module: the kernel, its launch, its specification, its sizes.

Data and the arguments of a launch; no grading. All functions in a `Task` take their arguments by name, so
that they read like the kernel: `def specification(M, N): return M @ N`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Size = Mapping[str, Any]  # {"Width": 64}: what the scalar parameters are, by name
Index3 = tuple[int, int, int]  # (x, y, z), as CUDA writes it


@dataclass(frozen=True)
class Configuration:
    """What stands between <<< and >>>: grid and block as (x,), (x, y) or (x, y, z), dynamic shared bytes."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads in one block."""
        return int(np.prod(self.block))


def nobody(index: tuple[int, ...], block: tuple[int, ...]) -> None:
    """The owner where no thread owns an element of the output alone."""


def in_tiles(index: tuple[int, ...], block: tuple[int, ...]) -> str:
    """Who computes P[row][column] when Row comes from y and Col from x."""
    row, column = index
    x, y = block[:2]
    return f"thread {(column % x, row % y)} of block {(column // x, row // y)}"


def no_demands(**_: int) -> str:
    return ""


def one_sum(**_: int) -> int:
    return 1


def no_mistakes(**_: Any) -> dict[str, Array]:
    return {}


@dataclass(frozen=True)
class Task:
    """One kata, as its test module describes it."""

    title: str  # "P = M·N in shared-memory tiles"
    kernel: str  # "matmul_tiled"
    parameters: str  # "const float *M, const float *N, float *P, int Width"
    constants: Sequence[str]  # those that the .cu file must define: ("TILE_WIDTH",)
    output: str  # the parameter that the kernel writes: "P"
    terms: str  # the name of the size that says how many products one sum has: "Width"
    inputs: Callable[..., dict[str, Any]]  # (random, **size) -> the other parameters by name
    specification: Callable[..., Array]  # (**inputs in float64) -> the output in float64
    configuration: Callable[..., Configuration]  # (**size, **constants)
    sizes: Sequence[Size]  # for the simulator, smallest first
    random_size: Callable[[np.random.Generator], Size]  # one more of them, drawn by the seed
    gpu_sizes: Sequence[Size] = ()
    optional: Mapping[str, int] = field(default_factory=dict)  # constants with a default
    owner: Callable[[tuple[int, ...], tuple[int, ...]], str | None] = (
        nobody  # (index, block) -> whose element
    )
    stub_works: bool = False  # whether the stub runs and is right, and so is graded in full
    tells_occupancy: bool = False  # whether the card tells how many blocks fit on a multiprocessor
    mistakes: Callable[..., dict[str, Array]] = no_mistakes  # (**inputs, **constants) -> name: what it yields

    demands: Callable[..., str] = no_demands  # (**constants) -> why they do not fit together, or ""
    sums: Callable[..., int] = one_sum  # (**constants) -> elements of the output that a thread computes

    @property
    def names(self) -> list[str]:
        """The kernel's parameters in order: ["M", "N", "P", "Width"]."""
        return [parameter.split()[-1].lstrip("*") for parameter in self.parameters.split(",")]


@dataclass(frozen=True)
class Problem:
    """The data of one launch: arguments by name, and what the output should be."""

    size: Size
    args: Mapping[str, Any]  # every parameter in order; the output is NaN unless it is an input too
    inputs: Mapping[str, Any]  # as they were before the launch, float arrays widened to float64
    want: Array
    magnitude: Array  # the specification of the absolute values: |A|·|B|, the scale of rounding errors
    terms: int


def random_array(generator: np.random.Generator) -> Callable[..., Array]:
    """A maker of float32 arrays in [-1, 1) that are equal to none of their mirror images."""
    return lambda *shape: generator.uniform(-1.0, 1.0, shape).astype(np.float32)


def problem(task: Task, size: Size, seed: int) -> Problem:
    """Arguments for one size. The same seed gives the same data."""
    scalars = [round(1000 * value) if isinstance(value, float) else value for value in size.values()]
    generator = np.random.default_rng([seed, *scalars])
    return specify(task, size, task.inputs(random_array(generator), **size))


def specify(task: Task, size: Size, inputs: Mapping[str, Any]) -> Problem:
    """The whole problem that these inputs pose."""
    wide = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
    want = task.specification(**wide)
    values = {task.output: np.full(want.shape, np.nan, np.float32), **size, **inputs}
    return Problem(
        size=size,
        args={name: values[name] for name in task.names},
        inputs=wide,
        want=want,
        magnitude=task.specification(**{name: np.abs(value) for name, value in wide.items()}),
        terms=size[task.terms],
    )


def spell(size: Size) -> str:
    """{"Width": 64} -> "Width 64"."""
    return ", ".join(f"{name} {value}" for name, value in size.items())


def spell_all(sizes: Sequence[Size]) -> str:
    """ "11 widths from 1 to 129", or "11 sizes" where a size has several names."""
    if len(sizes[0]) > 1:
        return f"{len(sizes)} sizes"
    ((name, _),) = sizes[0].items()
    values = [size[name] for size in sizes]
    return f"{len(sizes)} {name.lower()}s from {min(values)} to {max(values)}"


def ceil_div(a: int, b: int) -> int:
    """The number of tiles of b that cover a."""
    return -(-a // b)
