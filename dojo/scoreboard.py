"""`make scoreboard`: times every solution on this card, and writes the READMEs' table between its marks.

Each is timed in turns with cuBLAS, or with the read probe, and its result is checked. Nothing is written
unless all of it was measured and right.
"""

import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dojo import card, compare, gpu, katas, nvrtc, tables
from dojo.compile import Compiled, CompileError
from dojo.entrants import Entrant, solutions
from dojo.katas import Kata
from dojo.pair import module_of
from dojo.speed import PROBE, Bandwidth, Contest, number, wrong
from dojo.task import Size, Task, specify, spell
from dojo.timing import Check, Timings

PRODUCTS = (  # of kata 04: M, N, K
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4097, 4095, 4093),
)
COLUMNS = (32, 256, 1024, 4096, 65536)  # of kata 05
SAMPLE = 64  # rows of a product that are checked
SEED = 1


class Unwritten(Exception):
    """The table was not measured, or has no place: str(e) says why, in a line."""


@dataclass(frozen=True)
class Row:
    """One solution at one size, beside one baseline."""

    solution: Path
    size: str  # "4096 x 4096 x 4096"
    rate: float
    unit: str
    beside: str  # "cuBLAS 50.3", or why there is none
    ratio: float | None

    def __str__(self) -> str:
        share = f"{100 * self.ratio:.1f} %" if self.ratio else "-"
        link = f"[{self.solution.name.removesuffix('.cu')}](solutions/{self.solution.name})"
        return f"| {link} | {self.size} | {number(self.rate)} {self.unit} | {self.beside} | {share} |"


def measure(found: gpu.Card) -> Iterator[tuple[Row, Timings]]:
    """Every solution at every size, in the table's order. Raises Unwritten."""
    for kata in katas.all_katas():
        task = module_of(kata).TASK
        for contest in contests(kata):
            for size in contest.sizes(found):
                data = contest.data(task, size, SEED)
                for entrant in solutions(kata, task):
                    try:
                        code = entrant.compile(found.arch, [size])
                    except CompileError as error:
                        raise Unwritten(f"{str(error).splitlines()[0]}; nothing was written") from None
                    launch = entrant.launch(code, contest, task, data)
                    with card.progress(f"timing {entrant.file.name} at {spell(size)}"):
                        times = gpu.compare(launch, contest.limit(data, found), name=entrant.name)
                        if why := trouble(contest, task, code, size, times):
                            raise Unwritten(
                                f"{entrant.file.name} at {spell(size)}: {why}; nothing was written"
                            )
                    yield row(entrant, contest, size, times), times


def contests(kata: Kata) -> list[Contest | Bandwidth]:
    """The kata's own, or more sizes of it."""
    contest: Contest | Bandwidth = module_of(kata).CONTEST
    if isinstance(contest, Bandwidth):
        return [replace(contest, widths=COLUMNS)]
    if kata.name == "register":
        return [product(contest, m, n, k) for m, n, k in PRODUCTS]
    return [contest]


def product(contest: Contest, m: int, n: int, k: int) -> Contest:
    """The same contest at another size."""
    size = {**contest.size, "M": m, "N": n, "K": k}
    return replace(contest, size=size, flop=2 * m * n * k, cublas=replace(contest.cublas, m=m, n=n, k=k))


def trouble(contest: Contest | Bandwidth, task: Task, code: Compiled, size: Size, times: Timings) -> str:
    """What went wrong, or is wrong with a timed launch's result, or ""."""
    if times.problem:
        return times.problem[1]
    if isinstance(contest, Bandwidth):
        return wrong(contest, task, code, size, times)
    return "" if right(contest, task, size, times.checks[0]) else "a timed launch computed something else"


def right(contest: Contest, task: Task, size: Size, check: Check) -> bool:
    """Whether some rows of a product are right: all of a large one takes the CPU minutes."""
    args = dict(zip(task.names, check.args, strict=True))
    first, out = task.names[contest.cublas.a], args[task.output]
    rows = np.sort(np.random.default_rng().choice(len(out), min(SAMPLE, len(out)), replace=False))
    given: dict[str, Any] = {name: value for name, value in args.items() if name != task.output}
    given = {name: value for name, value in given.items() if not isinstance(size.get(name), int)}
    given[first] = given[first][rows]
    return not compare.wrong_elements(out[rows], specify(task, size, given)).any()


def row(entrant: Entrant, contest: Contest | Bandwidth, size: Size, times: Timings) -> Row:
    rate = contest.rate(size, times.seconds(times.candidate))
    if isinstance(contest, Bandwidth):
        where = " x ".join(f"{value:,}" for value in size.values())
    else:
        product = contest.cublas
        where = f"{product.m} x {product.n} x {product.k}"
    others = [name for name in times.times if name != times.candidate]
    if not others:
        return Row(entrant.file, where, rate, contest.unit, "-", None)
    (other,) = others
    name = "`read_probe`" if other == PROBE else other
    beside = f"{name} {number(contest.rate(size, times.seconds(other)))}"
    return Row(entrant.file, where, rate, contest.unit, beside, times.ratio(other))


def main(found: gpu.Card) -> None:
    """The whole command. Raises Unwritten."""
    for path in filled([], ""):  # said before all that takes minutes
        if not os.access(path, os.W_OK):
            raise Unwritten(f"{path.name} cannot be written")
    rows, driver = [], f"CUDA {found.driver}"
    for row, times in measure(found):
        rows.append(str(row))
        driver = str(times.clocks.get("driver", driver))
        print(row, flush=True)
    measured_on = f"{found.name}, driver {driver}, NVRTC {nvrtc.version()}, {datetime.date.today()}"
    for path, text in filled(rows, measured_on).items():
        path.write_text(text, encoding="utf-8")
    print(f"written into {' and '.join(tables.FILES)}")


def filled(rows: Sequence[str], measured_on: str) -> dict[Path, str]:
    """The READMEs as they are now, with these rows in the table. Raises Unwritten."""
    texts = {}
    for path in map(katas.ROOT.joinpath, tables.FILES):
        try:
            texts[path] = tables.put(path.read_text(encoding="utf-8"), "scoreboard", rows, measured_on)
        except OSError as error:
            raise Unwritten(f"{path.name}: {error.strerror}") from None
        except ValueError as error:
            raise Unwritten(f"{path.name}: {error}") from None
    return texts
