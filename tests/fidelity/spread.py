"""How far a speed grade can be trusted: every speed point taken again and again on this card.

    python tests/fidelity/spread.py [--runs 20] [kata ...]

A run does what a grade does, with the solution as the learner's kernel: a new process on the card, then the
comparison of every size. In turns with it run two kernels made of the solution, which stand 5 % above and
5 % below a bar: some of their blocks are launched twice. The first two runs find out how many. Of each ratio
the table has the smallest, the median and the largest, the spread (largest - smallest) / median, and how
often the bar was passed.

Ends with 1 if a spread is over 3 %, if a kernel 5 % clear of its bar was ever judged otherwise, or if a
baseline was ever too noisy to judge. Ctrl-C shows the runs so far.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/meta")]

from grading import MODULES  # noqa: E402

from dojo import gpu, katas  # noqa: E402
from dojo.compile import read_source  # noqa: E402
from dojo.katas import Kata  # noqa: E402
from dojo.launch import compile_for  # noqa: E402
from dojo.speed import PROBE, Contest  # noqa: E402
from dojo.task import Size, spell  # noqa: E402
from dojo.timing import Timings, paired_ratio  # noqa: E402

CLEAR = 1.05  # how far a kernel must stand from its bar for the verdict to be sure
MOST = 0.03  # the spread that a ratio may have
SEED = 7


@dataclass
class Point:
    """One size of one kata's speed point: what is timed, and the ratios that every run gave."""

    kata: Kata
    size: Size
    candidate: gpu.Launch
    baselines: dict[str, gpu.Launch | gpu.CuBLAS]
    settings: Mapping[str, Any]
    rival: str  # whom the bar is about
    bar: float
    ratios: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # (who, to whom) -> run by run
    slowed: dict[str, float] = field(default_factory=dict)  # how many times the solution's blocks
    noisy: int = 0

    def run(self) -> None:
        timings: Timings = gpu.compare(self.candidate, self.baselines, **self.settings)
        if timings.problem or self.rival in timings.missing:
            raise SystemExit(f"{self.kata.stem}: {timings.problem or timings.missing}")
        self.noisy += timings.too_noisy(self.rival)
        for name, times in timings.times.items():
            made = name.endswith("its bar")
            who, whom = (name, self.rival) if made else (timings.candidate, name)
            if who != whom:
                ratio = paired_ratio(timings.times[who], timings.times[self.rival] if made else times)
                self.ratios.setdefault((who, whom), []).append(ratio)

    def stand_near_the_bar(self) -> None:
        """Make the two kernels by the solution's ratio; the second time, by their own."""
        own = self.ratios["yours", self.rival][0]
        for name, ratio in (("5 % above its bar", CLEAR * self.bar), ("5 % below its bar", self.bar / CLEAR)):
            if measured := self.ratios.pop((name, self.rival), None):
                self.slowed[name] *= measured[0] / ratio
            elif own > ratio:
                self.slowed[name] = own / ratio
        for name, factor in self.slowed.items():
            self.baselines[name] = slower(self.kata, self.size, self.candidate, factor)

    def rows(self) -> Iterator[tuple[str, bool]]:
        """A line of the table for each ratio, and whether it is as it should be."""
        for (who, whom), ratios in self.ratios.items():
            spread = (max(ratios) - min(ratios)) / median(ratios)
            good, verdict = spread <= MOST, ""
            if whom == self.rival:
                passed = sum(ratio >= self.bar for ratio in ratios)
                good = good and passed in (0, len(ratios)) and not self.noisy
                verdict = f"{passed} of {len(ratios)} pass {self.bar:.3g}" + ", noisy" * bool(self.noisy)
            low, middle, high = min(ratios), median(ratios), max(ratios)
            name = f"{self.kata.name} {spell(self.size)[:24]}"
            figures = f"{low:8.4f}{middle:8.4f}{high:8.4f}{spread:8.2%}"
            yield f"{name:<34}{who:<18}{whom:<15}{figures}  {verdict}{'' if good else '  !'}", good


def slower(kata: Kata, size: Size, launch: gpu.Launch, factor: float) -> gpu.Launch:
    """The solution with so many times as many blocks: those beyond its grid do the first ones' work again."""
    blocks = launch.grid[0]
    text = read_source(kata.solution).replace("blockIdx.x", f"(blockIdx.x % {blocks})")
    card, task = gpu.card(), MODULES[kata.stem].TASK
    assert card
    code = compile_for(task, text, kata.solution.name, card.arch, [size])
    return replace(
        launch,
        cubin=code.cubin,
        entry=code.entry(task.kernel),
        grid=(round(factor * blocks), *launch.grid[1:]),
    )


def points(kata: Kata, card: gpu.Card) -> Iterator[Point]:
    """What the kata's grade would time."""
    module = MODULES[kata.stem]
    task, contest = module.TASK, module.CONTEST
    sizes = contest.sizes(card)
    compiled = compile_for(task, read_source(kata.solution), kata.solution.name, card.arch, sizes)
    for size in sizes:
        with patch.object(gpu, "compare", lambda *args, **settings: (args, settings)):
            (candidate, baselines), settings = contest.run(task, compiled, kata.solution, SEED, size, card)
        if isinstance(contest, Contest):
            rival, bar = next(iter(contest.bars.items()))
        else:
            rival, bar = PROBE, contest.bar
        yield Point(kata, size, candidate, dict(baselines), settings, rival, bar)


def repeat(every: Sequence[Point], runs: int) -> None:
    started = time.monotonic()
    for run in range(runs):
        gpu.stop()  # a grade begins with a process of its own
        for point in every:
            point.run()
            if run < 2:
                point.stand_near_the_bar()
        print(f"run {run + 1} of {runs}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kata", nargs="*")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    card = gpu.card()
    if not card:
        print(f"spread.py needs a GPU: {gpu.why_not()}")
        return 1
    chosen = [katas.find(name) for name in options.kata] or katas.all_katas()
    every = [point for kata in chosen for point in points(kata, card)]
    try:
        repeat(every, options.runs)
    except KeyboardInterrupt:
        pass
    print(f"{card.name}\n{'':34}{'':18}{'':15}{'min':>8}{'median':>8}{'max':>8}{'spread':>8}")
    rows = [row for point in every for row in point.rows()]
    print("\n".join(line for line, _ in rows))
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
