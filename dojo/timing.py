"""What the times of a comparison mean: paired ratios, noise, and pytest-benchmark's table on a device clock.

Nothing here touches a card (dojo/device.py measures) and nothing here knows a bar (dojo/grader.py judges).
"""

import copy
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NOISE = 0.05  # a baseline whose times spread wider than this cannot judge anyone


@dataclass(frozen=True)
class Check:
    """One timed launch of the candidate, picked in secret, to be compared with the specification.

    `before` are the candidate's arguments as that launch found them: every input rolled, so that no earlier
    launch saw these values. `args` are the same arguments after it, with `outputs[index]` for each array that
    the kernel may write.
    """

    given: Sequence[Any]
    shifts: Mapping[int, int]
    outputs: Mapping[int, Any]

    @property
    def before(self) -> list[Any]:
        return [np.roll(arg, self.shifts[i]) if i in self.shifts else arg for i, arg in enumerate(self.given)]

    @property
    def args(self) -> list[Any]:
        return [self.outputs.get(i, arg) for i, arg in enumerate(self.before)]


@dataclass(frozen=True)
class Timings:
    """Device times of a candidate and its baselines, taken in turns in one run.

    `times[name][i]` is the time in seconds of `name` in round `i`; `candidate` is the candidate's name in it.
    `missing[name]` says in a sentence why a baseline was not measured (no cuBLAS, TF32 not off, it failed).
    `checks` are timed launches whose results the caller must still compare with the specification: a speed
    counts only if every one is right. `clocks` is what nvidia-smi told while all of them ran, see clocks.py.
    With `problem` (kind, message) set there are no times.
    """

    candidate: str
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    problem: tuple[str, str] | None = None
    clocks: Mapping[str, str | float] = field(default_factory=dict)

    def seconds(self, name: str) -> float:
        """The median time of one launch."""
        return statistics.median(self.times[name])

    def ratio(self, baseline: str) -> float:
        """The candidate's speed in units of the baseline's, 2.0 being twice as fast: see `paired_ratio`."""
        return paired_ratio(self.times[self.candidate], self.times[baseline])

    def spread(self, name: str) -> float:
        """The noise of one time, as a fraction of it: see `spread`."""
        return spread(self.times[name])

    def too_noisy(self, baseline: str) -> bool:
        """Whether the baseline's own noise is over 5 %: the verdict is then "too noisy to judge"."""
        return self.spread(baseline) > NOISE


def paired_ratio(candidate: Sequence[float], baseline: Sequence[float]) -> float:
    """Median of baseline / candidate over the rounds: what drifts between rounds (clocks, heat) cancels."""
    return statistics.median(b / c for c, b in zip(candidate, baseline, strict=True))


def spread(times: Sequence[float]) -> float:
    """(90th - 10th percentile) of each time over the one before it, divided by the square root of 2.

    Neighbours, because a clock that drifts slowly cancels in a paired ratio and is no noise there; the root,
    because a ratio carries the noise of two times. Infinite below five rounds.
    """
    if len(times) < 5:
        return float("inf")
    ratios = np.asarray(times[1:]) / np.asarray(times[:-1])
    low, high = np.percentile(ratios, [10, 90])
    return float((high - low) / np.sqrt(2))


class Clock:
    """A clock that stands still but for the device: `advance` moves it by the length of a launch.

    It adds up in integer picoseconds, so that a short launch measured late keeps its digits. A timer for
    `benchmark.pedantic(..., iterations=1)` only: `benchmark(f)` calibrates itself and waits for time to pass.
    """

    def __init__(self) -> None:
        self.picoseconds = 0

    def __call__(self) -> float:
        return self.picoseconds * 1e-12

    def advance(self, seconds: float) -> None:
        self.picoseconds += round(seconds * 1e12)


def tabulate(benchmark: Any, timings: Timings, group: str, **extra_info: Any) -> None:
    """Put the times into pytest-benchmark's table and JSON: a row for the candidate, one for each baseline.

    `benchmark` is the fixture of the running test. Its public interface has one row a test, hence the copies.
    A row is found again in another run by the test, its name and its group. `extra_info` goes into the saved
    JSON beside the candidate's ratios.
    """
    benchmark._mode = "replayed"  # else it warns that it was not used
    for name, times in timings.times.items():
        row = copy.copy(benchmark)
        row.name, row.group, row.fullname = name, group, f"{benchmark.fullname}::: {name}, {group}"
        row.extra_info = {**extra_info, "spread": timings.spread(name)}
        if name != timings.candidate:
            row.extra_info["candidate's speed in units of this"] = timings.ratio(name)
        replay(row, times)


def replay(row: Any, times: Sequence[float]) -> None:
    """Run a benchmark whose every round takes the next of these times."""
    clock = Clock()
    rest: Iterator[float] = iter(times)
    row._timer = clock
    row._mode = None
    row.pedantic(lambda: clock.advance(next(rest)), rounds=len(times), iterations=1)
