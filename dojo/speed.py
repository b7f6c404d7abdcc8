"""The speed point: who is timed beside the learner's kernel, and what the ratios say.

All run in turns on the same card in one go (dojo/gpu.py), and bars are ratios: fair on any card.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dojo import compare, gpu
from dojo.compile import Compiled, read_source
from dojo.launch import compile_for
from dojo.simulator import Report
from dojo.task import Problem, Size, Task, draw, rounding, specify
from dojo.timing import Check, Timings

SOLUTION, CUBLAS, PROBE = "the solution", "cuBLAS", "the read probe"
PERIOD = 4_194_301  # a prime: no row of a long stream is another one
BIGGEST = 1 << 30  # bytes of a long stream, ten times the largest L2; less where memory is small


@dataclass(frozen=True)
class Rival:
    """Another kernel for the same task: same parameters, same constants' names."""

    file: Path
    kernel: str


@dataclass(frozen=True)
class Data:
    """What a timed launch gets: every parameter by name, and whether the output is an input too."""

    size: Size
    args: Mapping[str, Any]
    filled: bool = False


@dataclass(frozen=True)
class Contest:
    """One size, the rivals by name, and the bars: at least so many times as fast as one of them, any one."""

    size: Size
    flop: int  # floating-point operations of one launch
    rivals: Mapping[str, Rival]  # beside the kata's own solution
    cublas: gpu.CuBLAS
    bars: Mapping[str, float]  # {"naive": 1.2}; {"cuBLAS": 0.05} is 5 % of it
    unit: ClassVar[str] = "TFLOP/s"

    def rate(self, size: Size, seconds: float) -> float:
        """In `unit`."""
        return self.flop / seconds / 1e12

    def flop_of(self, report: Report, size: Size) -> int:
        """Floating-point operations of a simulated launch: a product's are multiply-adds."""
        return 2 * report.fma

    def sizes(self, card: gpu.Card) -> list[Size]:
        """The sizes that are timed, each of which must have been seen to end well."""
        return [self.size]

    def run(
        self, task: Task, compiled: Compiled, solution: Path, seed: int, size: Size, card: gpu.Card
    ) -> Timings:
        """Time everybody on the same data."""
        data = self.data(task, size, seed)
        rivals: dict[str, gpu.Launch | gpu.CuBLAS] = {
            name: launch_of(task, self.compile(task, rival, compiled.arch), rival.kernel, data)
            for name, rival in {**self.rivals, SOLUTION: Rival(solution, task.kernel)}.items()
        }
        return gpu.compare(launch_of(task, compiled, task.kernel, data), {**rivals, **self.limit(data, card)})

    def limit(self, data: Data, card: gpu.Card) -> dict[str, gpu.Launch | gpu.CuBLAS]:
        """What everybody is timed beside."""
        return {CUBLAS: self.cublas}

    def data(self, task: Task, size: Size, seed: int) -> Data:
        """The operands, and a product that is NaN unless it is an input too; no specification is computed."""
        inputs = draw(task, size, seed)
        a, b = (inputs[task.names[index]] for index in (self.cublas.a, self.cublas.b))
        shape = len(a), len(b) if self.cublas.transpose_b else b.shape[1]
        values = {task.output: np.full(shape, np.nan, np.float32), **size, **inputs}
        return Data(size, {name: values[name] for name in task.names}, filled=task.output in inputs)

    def compile(self, task: Task, rival: Rival, arch: str) -> Compiled:
        source = read_source(rival.file)
        return compile_for(task, source, rival.file.name, arch, [self.size], kernel=rival.kernel)

    def wanted(self, task: Task, size: Size, check: Check) -> Problem:
        """What a timed launch should have computed."""
        args = dict(zip(task.names, check.args, strict=True))
        given = {
            name: value
            for name, value in args.items()
            if name != task.output and not isinstance(size.get(name), int)
        }
        return specify(task, size, given)

    def judge(self, timed: Sequence[tuple[Size, Timings]]) -> tuple[bool | None, str]:
        """Whether a bar is passed, None where that cannot be told, and the figures, or why it cannot.

        "8.1 TFLOP/s: 1.57x naive (bar 1.20), 0.99x the solution, 16 % of cuBLAS"
        """
        ((_, timings),) = timed
        rate = self.rate(self.size, timings.seconds(timings.candidate))
        others = [name for name in timings.times if name != timings.candidate]
        ratios = [figure(name, timings.ratio(name), self.bars.get(name)) for name in others]
        figures = f"{rate:.1f} TFLOP/s: {', '.join(ratios)}"
        there = [name for name in self.bars if name in others]
        noisy = [name for name in there if timings.too_noisy(name)]
        if any(timings.ratio(name) >= self.bars[name] for name in there if name not in noisy):
            return True, figures
        if not there:
            return (
                None,
                f"not graded: {'; '.join(timings.missing.get(name, f'no {name}') for name in self.bars)}",
            )
        if noisy:
            return None, f"{too_noisy(timings, noisy[0])}; {figures}"
        return False, f"reaches {figures}; it should pass {'a bar' if len(self.bars) > 1 else 'the bar'}"


@dataclass(frozen=True)
class Bandwidth:
    """How fast a kernel reads the matrix X to sum its rows, beside the read probe, at several widths.

    X is too large to send to the card and is made there; the bar is a share of the probe's speed at each
    width. The widths are among the task's GPU sizes, where the kernel was seen to end well.
    """

    widths: Sequence[int]
    bar: float
    unit: ClassVar[str] = "GB/s"

    def rate(self, size: Size, seconds: float) -> float:
        """In `unit`."""
        return 4e-9 * int(size["rows"]) * int(size["cols"]) / seconds

    def flop_of(self, report: Report, size: Size) -> int:
        """Floating-point operations of a simulated launch: an addition an element."""
        return int(size["rows"] * size["cols"])

    def sizes(self, card: gpu.Card) -> list[Size]:
        size = min(BIGGEST, card.memory_bytes // 8)
        return [{"rows": size // (4 * cols), "cols": cols} for cols in self.widths]

    def run(
        self, task: Task, compiled: Compiled, solution: Path, seed: int, size: Size, card: gpu.Card
    ) -> Timings:
        """Time the kernel and the probe on the same matrix."""
        data = self.data(task, size, seed)
        candidate = launch_of(task, compiled, task.kernel, data)
        return gpu.compare(candidate, self.limit(data, card), seconds=0.3)

    def limit(self, data: Data, card: gpu.Card) -> dict[str, gpu.Launch | gpu.CuBLAS]:
        """What everybody is timed beside."""
        return {PROBE: gpu.read_probe(data.args["X"], card.arch)}

    def data(self, task: Task, size: Size, seed: int) -> Data:
        rows, cols = size["rows"], size["cols"]
        period = np.random.default_rng([seed, cols]).uniform(-1.0, 1.0, PERIOD).astype(np.float32)
        X = gpu.Stream(period, rows * cols)
        return Data(size, {"X": X, task.output: np.empty(rows, np.float32), **size})

    def wanted(self, task: Task, size: Size, check: Check) -> Problem:
        """The sums of the rows that a timed launch was given, by sums of all that stands before each row."""
        (at,) = check.shifts
        X, cols = check.given[at], size["cols"]
        edges = cols * np.arange(size["rows"] + 1)
        want, magnitude = (
            np.diff(X.sums(edges, check.shifts[at], values)) for values in (X.period, np.abs(X.period))
        )
        return Problem(size, {}, {}, want, magnitude, cols, rounding(cols))

    def judge(self, timed: Sequence[tuple[Size, Timings]]) -> tuple[bool | None, str]:
        """Whether the bar is passed at every width, None where that cannot be told, and the figures.

        "4,365 GB/s at 32 columns (96 % of the read probe), 4,616 at 256 (101 %); bar 70 %"
        """
        figures: list[str] = []
        shares: list[float] = []
        for size, timings in timed:
            if PROBE in timings.missing:
                return None, f"not graded: {timings.missing[PROBE]}"
            shares.append(timings.ratio(PROBE))
            rate = self.rate(size, timings.seconds(timings.candidate))
            unit, columns, of = ("", "", "") if figures else (" GB/s", " columns", f" of {PROBE}")
            figures.append(f"{rate:,.0f}{unit} at {size['cols']:,}{columns} ({100 * shares[-1]:.0f} %{of})")
        text = f"{', '.join(figures)}; bar {100 * self.bar:.0f} %"
        if noisy := [timings for _, timings in timed if timings.too_noisy(PROBE)]:
            return None, f"{too_noisy(noisy[0], PROBE)}; {text}"
        return (True, text) if min(shares) >= self.bar else (False, f"reaches {text} at every width")


def launch_of(task: Task, compiled: Compiled, kernel: str, data: Data) -> gpu.Launch:
    """A launch of a kernel with the task's parameters."""
    configuration = task.launch(data.size, compiled.constants)
    output = (task.names.index(task.output),)
    return gpu.Launch(
        compiled.cubin,
        compiled.entry(kernel),
        configuration.grid,
        configuration.block,
        [data.args[name] for name in task.names],
        outputs=() if data.filled else output,
        inout=output if data.filled else (),
        shared_bytes=configuration.shared_bytes,
        names=task.names,
    )


def wrong(contest: Contest | Bandwidth, task: Task, compiled: Compiled, size: Size, timings: Timings) -> str:
    """A sentence about the first timed launch whose output is not right, else ""."""
    configuration = task.launch(size, compiled.constants)
    output = task.names.index(task.output)
    for check in timings.checks:
        wanted = contest.wanted(task, size, check)
        if what := compare.sentence(task, wanted, check.outputs[output], configuration):
            return what
    return ""


def number(rate: float) -> str:
    """8.2 TFLOP/s, 4,556 GB/s: without the unit."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.1f}"


def too_noisy(timings: Timings, name: str) -> str:
    return f"too noisy to judge: {name} varies by {timings.spread(name):.0%}"


def figure(name: str, ratio: float, bar: float | None) -> str:
    """ "1.57x naive (bar 1.20)"; against cuBLAS "16 % of cuBLAS (bar 5 %)"."""
    if name == CUBLAS:
        return f"{100 * ratio:.0f} % of {name}" + (f" (bar {100 * bar:.0f} %)" if bar else "")
    return f"{ratio:.2f}x {name}" + (f" (bar {bar:.2f})" if bar else "")
