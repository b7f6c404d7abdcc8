"""What a kata asks for, said once in its test module: the kernel, its launch, its specification, its sizes.

Data and the arguments of a launch; no grading. All functions in a `Task` take their arguments by name, so
that they read like the kernel: `def specification(M, N): return M @ N`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Size = Mapping[str, Any]  # {"Width": 64}: what the scalar parameters are, by name


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


def no_tile(**_: int) -> tuple[int, ...]:
    return ()


@dataclass(frozen=True)
class Precise:
    """A size, for the GPU alone, whose data tell many short sums in float32 from one long one.

    Its values are all positive, so that a long sum grows far above what is added to it.
    """

    size: Size
    low: float
    high: float
    units: float  # the largest error, in units of 2^-24 of the sum of the absolute values


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
    precise: Precise | None = None
    optional: Mapping[str, int] = field(default_factory=dict)  # constants with a default
    # Constants that may be functions of a size: {"rows_per_block": ("cols", "ROWS_PER_BLOCK")}.
    functions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    owner: Callable[[tuple[int, ...], tuple[int, ...]], str | None] = (
        nobody  # (index, block) -> whose element
    )
    stub_works: bool = False  # whether the stub runs and is right, and so is graded in full
    tells_occupancy: bool = False  # whether the card tells how many blocks fit on a multiprocessor
    # (**inputs, **constants) -> what known mistakes yield, by name: the same name at every size, but for what
    # stands in brackets: "the sum without its last phase (k from 16 on)".
    mistakes: Callable[..., dict[str, Array]] = no_mistakes
    tile: Callable[..., tuple[int, ...]] = no_tile  # (**constants) -> rows and columns of a block's output

    demands: Callable[..., str] = no_demands  # (**constants) -> why they do not fit together, or ""
    sums: Callable[..., int] = one_sum  # (**constants) -> elements of the output that a thread computes

    def launch(self, size: Size, constants: Mapping[str, int]) -> Configuration:
        """The launch at this size; `constants` as the compiler tells them, rows_per_block_31 at 31 cols."""
        here = {name: constants[f"{name}_{size[argument]}"] for name, (argument, _) in self.functions.items()}
        return self.configuration(**size, **constants, **here)

    @property
    def all_gpu_sizes(self) -> list[Size]:
        return [*self.gpu_sizes, *([self.precise.size] if self.precise else [])]

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
    units: float  # the largest error that is still rounding, in units of 2^-24 of the magnitude


def random_array(
    generator: np.random.Generator, low: float = -1.0, high: float = 1.0
) -> Callable[..., Array]:
    """A maker of float32 arrays in [low, high) that are equal to none of their mirror images."""
    return lambda *shape: generator.uniform(low, high, shape).astype(np.float32)


def rounding(terms: int) -> float:
    """What a float32 sum of so many products, in any order, is off by at most, in units of 2^-24."""
    return 8 + 2 * math.sqrt(terms)


def draw(task: Task, size: Size, seed: int) -> dict[str, Any]:
    """The inputs of one size by name. The same seed gives the same data."""
    scalars = [round(1000 * value) if isinstance(value, float) else value for value in size.values()]
    generator = np.random.default_rng([seed, *map(abs, scalars)])
    if task.precise and size == task.precise.size:
        return task.inputs(random_array(generator, task.precise.low, task.precise.high), **size)
    return task.inputs(random_array(generator), **size)


def problem(task: Task, size: Size, seed: int) -> Problem:
    """The inputs of one size, and what they should yield."""
    units = task.precise.units if task.precise and size == task.precise.size else 0.0
    return specify(task, size, draw(task, size, seed), units)


def specify(task: Task, size: Size, inputs: Mapping[str, Any], units: float = 0.0) -> Problem:
    """The whole problem that these inputs pose, where so many units of error are allowed, by default the
    usual `rounding`.
    """
    wide = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
    want = task.specification(**wide)
    values = {task.output: unwritten(want.shape), **size, **inputs}
    return Problem(
        size=size,
        args={name: values[name] for name in task.names},
        inputs=wide,
        want=want,
        magnitude=task.specification(**{name: np.abs(value) for name, value in wide.items()}),
        terms=size[task.terms],
        units=units or rounding(size[task.terms]),
    )


def unwritten(shape: tuple[int, ...]) -> Array:
    """What an output holds before the launch, here and on the card: NaN, all bits one.

    Arithmetic on a card does not yield this NaN, so that what is never written is known afterwards.
    """
    return np.full(shape, 0xFFFFFFFF, np.uint32).view(np.float32)


def spell(size: Size) -> str:
    """{"Width": 64, "beta": 2.0} -> "Width 64, beta 2"."""
    return ", ".join(f"{name} {value:.15g}" for name, value in size.items())


def spell_short(size: Size) -> str:
    """{"M": 3, "N": 5, "beta": 2.0} -> "3 x 5, beta 2"."""
    scalars = {name: value for name, value in size.items() if isinstance(value, float)}
    extents = " x ".join(str(value) for name, value in size.items() if name not in scalars)
    return ", ".join(filter(None, [extents, spell(scalars)]))


def spell_all(sizes: Sequence[Size]) -> str:
    """ "11 widths from 1 to 129", or "11 sizes" where a size has several names."""
    if len(sizes[0]) > 1:
        return f"{len(sizes)} sizes"
    ((name, _),) = sizes[0].items()
    values = [size[name] for size in sizes]
    return f"{len(sizes)} {name.lower()}s from {min(values)} to {max(values)}"


def transposed_tiles(matrix: Array, tile: int) -> Array:
    """The matrix with zeros up to whole tiles of tile x tile, each tile transposed in its place."""
    rows, columns = (ceil_div(extent, tile) * tile for extent in matrix.shape)
    whole = np.zeros((rows, columns), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    tiles = whole.reshape(rows // tile, tile, columns // tile, tile)
    return np.asarray(tiles.swapaxes(1, 3).reshape(rows, columns))


def ceil_div(a: int, b: int) -> int:
    """The number of tiles of b that cover a."""
    return -(-a // b)
