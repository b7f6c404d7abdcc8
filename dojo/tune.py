"""`make kata=register tune`: what the tile constants cost and save, for many of them, with the kernel itself.

Each choice is compiled by -D defines and, on a GPU, checked and timed. The arithmetic is in tiles.py.
"""

import os
import re
import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import wrap

from dojo import card, compare, gpu, nvrtc, tiles
from dojo.compile import Compiled, CompileError, Resources, Unguarded, compile_cuda
from dojo.entrants import command, unready
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.launch import Limits, Usual, impossible, launch
from dojo.occupancy import Occupancy, occupancy
from dojo.outcome import Failure, NotGraded
from dojo.pair import module_of
from dojo.speed import CUBLAS, Contest, launch_of
from dojo.task import Task, problem, spell
from dojo.tiles import Tile

CONSTANTS = ("BM", "BN", "BK", "TM", "TN")
COMPILERS = 8  # processes at most, one a core: each takes 150 MB
TIME_LIMIT = 20.0  # seconds that the compiler may take for one choice
SECONDS = 3.0  # of timing, for all choices together
LIMITERS = {"registers": "regs", "shared memory": "shared", "warps": "warps", "blocks": "blocks"}
HEAD = (
    f"{'BMxBNxBK':<11}{'TMxTN':<5}{'threads':>8}{'KB':>6}{'shared':>8}{'regs':>5}{'local':>6}"
    f"  {'blocks/SM':<9}{'occ':>5}{'reuse':>6}"
)
LEGEND = (
    "KB: the tiles of A and B, in one buffer and in two. shared: bytes as compiled. local: bytes a thread "
    "keeps outside its registers, by spills or arrays. blocks/SM: how many fit, and what keeps one more "
    "away{on}. reuse: FLOP for each element that a block loads, 2*BM*BN/(BM+BN). *: the file as it is."
)


@dataclass(frozen=True)
class Choice:
    """One tile and what is known of it. `why` says in a sentence why there is no such kernel."""

    tile: Tile
    own: bool = False  # the file's constants as they are
    why: str = ""
    code: Compiled | None = None
    used: Resources | None = None
    fit: Occupancy | None = None
    tflops: float = 0.0


def report(kata: Kata, file: Path, on: str = "") -> str:
    """All that the command says. `on` is "cpu", "gpu" or ""."""
    module = module_of(kata)
    task, contest = module.TASK, module.CONTEST
    if tuple(task.constants) != CONSTANTS:
        return f"{kata.name} has no tiles of BM, BN, BK, TM, TN: make kata=register tune"
    found = None if on == "cpu" else gpu.card()
    arch = found.arch if found else "sm_80"
    grade = Grade(task, kata, file, on="cpu", seed=secrets.randbelow(1000), progress=card.progress)
    if why := unready(grade, "compiles"):
        arithmetic = [impossible_if(Choice(tile), tile.impossible()) for tile in tiles.grid()]
        first = wrap(f"{why} What the constants alone say:", card.WIDTH)
        return "\n".join([*first, "", *table(arithmetic, "")])
    own = Tile(*(grade.compiled.constants[name] for name in CONSTANTS))
    tried = [Choice(tile) for tile in tiles.grid() if tile != own]
    try:
        choices = compile_all(task, grade, [Choice(own, own=True), *tried], arch, found or Usual())
    except Unguarded as unguarded:
        return "\n".join(wrap(str(unguarded), card.WIDTH))
    remark = "Without a GPU nothing is timed."
    if found:
        choices, remark = time_all(grade, contest, choices)
    return "\n".join([*table(choices, arch), "", *wrap(remark, card.WIDTH)])


def impossible_if(choice: Choice, why: str) -> Choice:
    return replace(choice, why=f"Not possible: {why}") if why else choice


def count(what: str, done: int, total: int) -> None:
    """Progress, on a terminal; wiped with the last."""
    if sys.stderr.isatty():
        text = f"{done} of {total} tiles {what}" if done < total else ""
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


# -------------------------------------------------------------------------------------------------- compiling


def compile_all(
    task: Task, grade: Grade, choices: Sequence[Choice], arch: str, limits: Limits
) -> list[Choice]:
    """Each choice with what the compiler says of it. Raises Unguarded."""
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, COMPILERS))
    try:
        longest_first = sorted(choices, key=lambda choice: -choice.tile.BK * choice.tile.TM * choice.tile.TN)
        jobs = {
            choice.tile: pool.submit(compiled, task, grade, choice, arch, limits) for choice in longest_first
        }
        for done, job in enumerate(as_completed(jobs.values()), 1):
            job.result()
            count("compiled", done, len(jobs))
        return [jobs[choice.tile].result() for choice in choices]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        nvrtc.stop_all()  # the threads end with their compilers
        raise
    finally:
        pool.shutdown()


def compiled(task: Task, grade: Grade, choice: Choice, arch: str, limits: Limits) -> Choice:
    constants = asdict(choice.tile)
    if why := choice.tile.impossible() or task.demands(**constants):
        return impossible_if(choice, why)
    try:
        code = compile_cuda(
            grade.text,
            grade.path,
            arch=arch,
            constants=task.constants,
            optional=task.optional,
            defines={} if choice.own else constants,
            signature=(task.kernel, task.parameters),
            time_limit=TIME_LIMIT,
        )
    except Unguarded:
        raise
    except CompileError as error:
        return impossible_if(choice, clause(error, grade.path))
    used, configuration = code.resources[code.entry(task.kernel)], task.launch(task.sizes[0], code.constants)
    if why := impossible(configuration, used, limits):
        return impossible_if(choice, why)
    shared = used.shared + configuration.shared_bytes
    fit = occupancy(arch, configuration.threads, used.registers, shared)
    return replace(choice, code=code, used=replace(used, shared=shared), fit=fit)


def clause(error: CompileError, path: str) -> str:
    """The compiler's reason: the text of a static_assert, else its first line without the place."""
    if asserted := re.search(r'static assertion failed with "(.*)"$', str(error), re.MULTILINE):
        return asserted[1]
    first = str(error).splitlines()[0]
    return re.sub(rf"^{re.escape(path)}(\(\d+\): error|:\d+)?:? ", "", first)


# ----------------------------------------------------------------------------------------------------- timing


def time_all(grade: Grade, contest: Contest, choices: Sequence[Choice]) -> tuple[list[Choice], str]:
    """The choices, fastest first, and a remark. What is wrong on the card is not timed."""
    task = grade.task
    try:
        grade.safe()
        grade.result()
    except (Failure, NotGraded):
        return list(choices), f"Not timed: first it must be safe and right ({command(grade)})."
    choices = check_all(grade, choices)
    data = contest.data(task, contest.size, grade.seed)
    launches: dict[str, gpu.Launch | gpu.CuBLAS] = {
        str(choice.tile): launch_of(task, choice.code, task.kernel, data) for choice in choices if choice.code
    }
    if not launches:
        return list(choices), "Not timed: there is none that is right."
    first, *others = launches
    rivals = {name: launches[name] for name in others} | {CUBLAS: contest.cublas}
    candidate = launches[first]
    assert isinstance(candidate, gpu.Launch)
    with card.progress(f"timing {len(launches)} tiles at {spell(contest.size)}", after=0):
        times = gpu.compare(candidate, rivals, name=first, seconds=SECONDS)
    if times.problem:
        return list(choices), f"Not timed: with {first}, {times.problem[1]}"
    rates = {name: contest.flop / times.seconds(name) / 1e12 for name in times.times}
    choices = [
        replace(
            choice,
            tflops=rates.get(str(choice.tile), 0.0),
            why=choice.why or times.missing.get(str(choice.tile), ""),
        )
        for choice in choices
    ]
    vendor = f"cuBLAS {rates[CUBLAS]:.1f} TFLOP/s" if CUBLAS in rates else times.missing[CUBLAS]
    remark = f"Timed in turns at {spell(contest.size)}; {vendor} in the same run."
    return sorted(choices, key=lambda choice: -choice.tflops), remark


def check_all(grade: Grade, choices: Sequence[Choice]) -> list[Choice]:
    """The choices; those that are not right on the card, between guard zones, now say why."""
    task = grade.task
    problems = [problem(task, size, grade.seed) for size in task.gpu_sizes]
    checked = []
    for done, choice in enumerate(choices, 1):
        for data in problems if choice.code else ():
            assert choice.code
            configuration = task.launch(data.size, choice.code.constants)
            launched = launch(task, choice.code, data, configuration, grade.element, on_gpu=True)
            why = [finding.message for finding in launched.findings]
            why = why or [compare.sentence(task, data, launched.arrays[task.output], configuration)]
            if why[0]:
                where = f"Wrong on the card, at {spell(data.size)}"
                choice = replace(choice, code=None, why=f"{where}, {why[0]}")
                break
        checked.append(choice)
        count("checked", done, len(choices))
    return checked


# ------------------------------------------------------------------------------------------------------ table


def table(choices: Sequence[Choice], arch: str) -> list[str]:
    """A row for each possible choice, then the others by reason. Without `arch` nothing is compiled."""
    timed = any(choice.tflops for choice in choices)
    lines = [HEAD + (" TFLOP/s" if timed else "")]
    lines += [row(choice, timed) for choice in choices if not choice.why]
    lines += ["", *wrap(LEGEND.format(on=f" ({arch})" if arch else ""), card.WIDTH)]
    reasons: dict[str, list[str]] = {}
    for choice in choices:
        if choice.why:
            reasons.setdefault(choice.why, []).append(f"{choice.tile}{'*' * choice.own}")
    for why, names in reasons.items():
        lines += ["", *wrap(why, card.WIDTH)]
        glued = ", ".join(name.replace(" ", "\u00a0") for name in names)
        lines += [f"    {line}".replace("\u00a0", " ") for line in wrap(glued, card.WIDTH - 4)]
    return lines


def row(choice: Choice, timed: bool) -> str:
    tile, used, fit = choice.tile, choice.used, choice.fit
    blocks, sums = str(tile).split()
    kilobytes = "/".join(f"{tile.shared(buffers) / 1024:g}" for buffers in (1, 2))
    known = f"{used.shared:>8,}{used.registers:>5}{used.stack:>6,}" if used else f"{'-':>8}{'-':>5}{'-':>6}"
    fits = (
        f"  {f'{fit.blocks} {LIMITERS[fit.limiter]}':<9}{fit.share:>5.0%}" if fit else f"  {'-':<9}{'-':>5}"
    )
    rate = f"{choice.tflops:>8.1f}" if timed else ""
    return (
        f"{blocks:<11}{sums + '*' * choice.own:<5}{tile.threads:>8,}{kilobytes:>6}{known}{fits}"
        f"{tile.reuse:>6.0f}{rate}"
    )
