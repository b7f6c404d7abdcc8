"""`make kata=tiled compare`: your kernel beside the solutions, the kata before, and the card's own limit.

With a GPU a table of times and the roofline chart, without one the simulator's counts. It informs: what
cannot be compared is said in a line.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap

from dojo import card, counts, gpu, places, roofline, state
from dojo.compile import Compiled, CompileError
from dojo.entrants import YOURS, Entrant, command, entrants, unready
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.occupancy import occupancy
from dojo.outcome import Failure
from dojo.pair import module_of
from dojo.roofline import Roofs
from dojo.speed import PROBE, Bandwidth, Contest, number, wrong
from dojo.task import Size, spell
from dojo.timing import Timings, paired_ratio

SEED = 1  # of the data that is timed
NOT_YET = "is not safe and right yet"
NAME = 20  # columns of the table's first
LEGEND = (
    "yours is: so many times as fast. roof: the share of {roof}. The roofs, measured here: "
    "{bandwidth:,.0f} GB/s by dojo/read_probe.cu, {compute:.1f} TFLOP/s by dojo/fma_probe.cu. FLOP/B: for "
    "each byte that the threads load; a kernel above the slope gets some of them from the caches."
)


class LeftOut(Exception):
    """A kernel cannot be timed: str(e) says why, in a sentence."""


def report(kata: Kata, file: Path, on: str = "", own: bool = True, colour: bool = False) -> str:
    """All that the command says. `own` if it is the learner's kata, whose place in the chart is kept."""
    found = None if on == "cpu" else gpu.card()
    try:
        return "\n".join(timed(kata, file, found, own, colour) if found else counted(kata, file))
    except LeftOut as why:
        return "\n".join(said([str(why)]))


def said(remarks: Iterable[str]) -> list[str]:
    return [line for remark in remarks for line in wrap(remark, card.WIDTH, break_on_hyphens=False)]


# ---------------------------------------------------------------------------------------------- without a GPU


def counted(kata: Kata, file: Path) -> list[str]:
    """The simulator's counts of the learner's kernel and the solutions, at the size of the traffic point."""
    size = counts.traffic_size(kata)
    figures, remarks = {}, []
    for entrant in entrants(kata, file):
        if not entrant.name.startswith((YOURS, "solution")):
            continue
        grade = entrant.grade("cpu")
        if why := unready(grade, "compiles"):
            remarks.append(why)
            continue
        try:
            if grade.simulated(size).stuck:  # what it did until then is no figure of the kernel
                remarks.append(f"{grade.path} does not come to its end ({command(grade)}).")
                continue
            figures[entrant.name] = counts.counted(grade, size)
            grade.check([size], on_gpu=False)
        except Failure as failure:
            what = "asks for what the simulator lacks" if failure.kind == "unsupported" else NOT_YET
            remarks.append(f"{grade.path} {what} ({command(grade)}).")
    head = f"{kata.stem} · counted by the simulator at {spell(size)}"
    return [head, "", *counts.table(figures), *(["", *said(remarks)] if remarks else [])]


# ------------------------------------------------------------------------------------------------- with a GPU


@dataclass(frozen=True)
class Run:
    """The times at one size, and what each kernel takes of a multiprocessor, as the table has it."""

    size: Size
    times: Timings
    takes: Mapping[str, str]


def timed(kata: Kata, file: Path, found: gpu.Card, own: bool, colour: bool) -> list[str]:
    """The table of times at each size that the kata is timed at, and the chart."""
    contest: Contest | Bandwidth = module_of(kata).CONTEST
    yours, *others = entrants(kata, file)
    them, remarks = [yours, *others], []
    try:
        check(yours.grade(), contest)
        runs = measure(contest, them, found)
    except LeftOut as why:
        if not others:
            raise
        them, remarks = others, [str(why)]
        runs = measure(contest, them, found)
    with card.progress("timing the roofs"):
        roofs = roofline.measure(found)
    if isinstance(roofs, str):
        raise LeftOut(f"The roofs of {found.name} were not measured, {roofs}.")
    rates = {entrant.name: best(entrant.name, contest, runs) for entrant in them}
    points = [*places.earlier(kata, found.name), *places.here(kata, them, rates)]
    if own and points and points[-1].name == YOURS:
        places.keep(kata, found.name, points[-1])
    remarks += dict.fromkeys(why for run in runs for why in run.times.missing.values())
    return [
        *(f"{kata.stem} · {found.name}", "", *table(contest, runs, roofs), ""),
        *roofline.chart(points, roofs, colour=colour),
        *("", *roofline.legend(points), "", *legend(contest, roofs), *said(remarks)),
    ]


def check(grade: Grade, contest: Contest | Bandwidth) -> None:
    """Raise LeftOut for a kernel that is not safe or not right: it is never timed."""
    if why := unready(grade, "compiles", "safe", "result"):
        raise LeftOut(why)
    if isinstance(contest, Contest):
        try:
            grade.check([contest.size], on_gpu=True)
        except Failure:
            where = f"{grade.path} fails at {spell(contest.size)}"
            raise LeftOut(f"{where} ({command(grade)}).") from None


def measure(contest: Contest | Bandwidth, them: Sequence[Entrant], found: gpu.Card) -> list[Run]:
    """Time them in turns, at each size on the same data, and check the first one's result. Raises LeftOut."""
    first, sizes, runs = them[0], contest.sizes(found), []
    try:
        codes = {entrant.name: entrant.compile(found.arch, sizes) for entrant in them}
    except CompileError as error:
        raise LeftOut(f"Nothing is timed, {str(error).splitlines()[0]}") from None
    for size in sizes:
        data = contest.data(first.task, size, SEED)
        launches = {
            entrant.name: entrant.launch(codes[entrant.name], contest, first.task, data) for entrant in them
        }
        rivals: dict[str, gpu.Launch | gpu.CuBLAS] = {
            **{name: launch for name, launch in launches.items() if name != first.name},
            **contest.limit(data, found),
        }
        with card.progress(f"timing {spell(size)}"):
            times = gpu.compare(launches[first.name], rivals, name=first.name)
        one = replace(times, checks=times.checks[:1])
        why = times.problem[1] if times.problem else wrong(contest, first.task, codes[first.name], size, one)
        if why:
            raise LeftOut(f"{state.shown(first.file)} is not timed: at {spell(size)}, {why}")
        takes = {
            entrant.name: taken(entrant, codes[entrant.name], launches[entrant.name]) for entrant in them
        }
        runs.append(Run(size, times, takes))
    return runs


def taken(entrant: Entrant, code: Compiled, launch: gpu.Launch) -> str:
    """Registers, shared bytes and occupancy, in the table's columns."""
    used = code.resources[code.entry(entrant.task.kernel)]
    shared = used.shared + launch.shared_bytes
    fit = occupancy(code.arch, math.prod(launch.block), used.registers, shared)
    blocks = f"{fit.blocks} an SM, {100 * fit.share:.0f} %" if fit else "-"
    return f"{used.registers:>6}{shared:>8,}   {blocks}"


def table(contest: Contest | Bandwidth, runs: Sequence[Run], roofs: Roofs) -> list[str]:
    """A row for each kernel at each size."""
    lines = [f"{'':<{NAME}}{contest.unit:>9}{'yours is':>10}{'roof':>7}{'regs':>6}{'shared':>8}   occupancy"]
    for run in runs:
        times = run.times.times
        lines += [spell(run.size)] if len(runs) > 1 else []
        for name in times:
            rate = contest.rate(run.size, run.times.seconds(name))
            you = f"{paired_ratio(times[YOURS], times[name]):.2f}x" if YOURS in times else ""
            if isinstance(contest, Contest):
                roof = rate * 1e12 / roofs.compute
            else:
                roof = paired_ratio(times[name], times[PROBE]) if PROBE in times else math.nan
            share = "" if math.isnan(roof) else f"{100 * roof:.0f} %"
            lines.append(f"{name:<{NAME}}{number(rate):>9}{you:>10}{share:>7}{run.takes.get(name, '')}")
    return lines


def best(name: str, contest: Contest | Bandwidth, runs: Sequence[Run]) -> float:
    """The highest rate over all sizes, 0 where it was not timed."""
    rates = [contest.rate(run.size, run.times.seconds(name)) for run in runs if name in run.times.times]
    return max(rates, default=0.0)


def legend(contest: Contest | Bandwidth, roofs: Roofs) -> list[str]:
    roof = "the memory roof" if isinstance(contest, Bandwidth) else "the FP32 roof"
    text = LEGEND.format(roof=roof, bandwidth=roofs.bandwidth / 1e9, compute=roofs.compute / 1e12)
    return wrap(text, card.WIDTH)
