"""Kernels under the two roofs of a card: how fast memory feeds, how fast the FP32 lanes multiply.

In here: the roofs, measured; where a kernel stands from left to right, by the simulator's counters; the chart
in 80 columns, log-log. What the kernels reach is measured elsewhere (versus.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2

import numpy as np

from dojo import gpu
from dojo.compile import compile_cuda, read_source
from dojo.katas import ROOT
from dojo.simulator import Report
from dojo.speed import BIGGEST, PERIOD, PROBE

FMA_PROBE = ROOT / "dojo/fma_probe.cu"
FMA_STEPS = 500  # some 2 ms on any card
LEFT, RIGHT = -3, 7  # from 1/8 to 128 FLOP/B: a point further out stands at the edge
TALLEST = 10  # doublings from the lowest line to the highest
COLUMNS, ROWS = 6, 2  # of the chart, for each doubling


@dataclass(frozen=True)
class Roofs:
    """What one card can do: bytes read and floating-point operations in a second."""

    bandwidth: float
    compute: float

    def at(self, intensity: float) -> float:
        """The most FLOP/s that so many FLOP a byte allow."""
        return min(self.bandwidth * intensity, self.compute)


@dataclass(frozen=True)
class Point:
    """A kernel in the chart. `intensity` in FLOP for each byte that its threads load."""

    mark: str
    name: str
    intensity: float
    tflops: float
    own: bool = False


def measure(card: gpu.Card) -> Roofs | str:
    """Both roofs in one run, or why there are none, in a clause."""
    elements = min(BIGGEST, card.memory_bytes // 8) // 4
    period = np.random.default_rng(1).uniform(-1.0, 1.0, PERIOD).astype(np.float32)
    read = gpu.read_probe(gpu.Stream(period, elements), card.arch)
    code = compile_cuda(read_source(FMA_PROBE), FMA_PROBE.name, arch=card.arch, constants=("THREADS", "FMAS"))
    block = code.constants["THREADS"]
    grid = card.multiprocessors * (card.threads_per_multiprocessor // block)
    multiply_args = [np.empty(grid * block, np.float32), np.float32(0.5), np.float32(1.0), FMA_STEPS]
    multiply = gpu.Launch(code.cubin, code.entry("fma_probe"), (grid,), (block,), multiply_args, outputs=(0,))
    times = gpu.compare(multiply, {PROBE: read}, name="FMA", seconds=0.3)
    if times.problem or PROBE in times.missing:
        return times.problem[1] if times.problem else times.missing[PROBE]
    flop = 2 * grid * block * FMA_STEPS * code.constants["FMAS"]
    return Roofs(4 * elements / times.seconds(PROBE), flop / times.seconds("FMA"))


def intensity(report: Report, flop: int) -> float:
    """FLOP for each byte that threads load from global memory, 0 if they load none.

    Stores are left out: where sums are long, as in what is timed, they do not count.
    """
    loads = [a for a in report.accesses if (a.space, a.op) == ("global", "load")]
    loaded = sum(access.bytes for access in loads)
    return flop / loaded if loaded else 0.0


def chart(points: Sequence[Point], roofs: Roofs, *, colour: bool = False) -> list[str]:
    """The lines of the chart; of points at one place the last one is seen."""
    rates = [point.tflops for point in points]
    top = ceil(log2(max(roofs.compute / 1e12, *rates, 0)))
    bottom = floor(log2(min(roofs.at(2.0**LEFT) / 1e12, *rates, 2.0**top)))
    bottom = max(bottom, top - TALLEST)
    width, height = (RIGHT - LEFT) * COLUMNS + 1, (top - bottom) * ROWS + 1
    cells = [[" "] * width for _ in range(height)]

    def place(flop_per_byte: float, tflops: float) -> tuple[int, int]:
        column = round((log2(flop_per_byte) - LEFT) * COLUMNS)
        row = round((top - log2(tflops)) * ROWS)
        return min(max(row, 0), height - 1), min(max(column, 0), width - 1)

    ridge = roofs.compute / roofs.bandwidth
    for column in range(width):
        at = 2.0 ** (LEFT + column / COLUMNS)
        if at >= ridge:
            cells[place(at, roofs.compute / 1e12)[0]][column] = "-"
    for row in range(height):
        at = 2.0 ** (top - row / ROWS) * 1e12 / roofs.bandwidth
        if 2.0**LEFT <= at < ridge:
            cells[row][place(at, 1.0)[1]] = "/"
    for point in points:
        row, column = place(point.intensity, point.tflops)
        cells[row][column] = f"\033[32m{point.mark}\033[0m" if colour and point.own else point.mark

    lines = ["TFLOP/s"]
    for row, line in enumerate(cells):
        label = "" if row % ROWS else f"{2.0 ** (top - row // ROWS):.3g}"
        lines.append(f"{label:>7} |{''.join(line)}".rstrip())
    ticks = "".join(f"{tick(exponent):<{COLUMNS}}" for exponent in range(LEFT, RIGHT + 1))
    return [*lines, f"{'':>7} +{'-' * width}", f"{'':>9}{ticks.rstrip()}  FLOP/B"]


def tick(exponent: int) -> str:
    return f"{2**exponent}" if exponent >= 0 else f"1/{2**-exponent}"


def legend(points: Sequence[Point]) -> list[str]:
    """A line for each point."""
    width = max((len(point.name) for point in points), default=0)
    return [
        f"{point.mark}  {point.name:<{width}}  {point.intensity:>7.3g} FLOP/B {point.tflops:>7.1f} TFLOP/s"
        for point in points
    ]
