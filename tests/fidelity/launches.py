"""Which launches a card and the simulator are compared at, and what the simulator says of each.

A `Case` is one launch: a file, its kernel, a size, the data. Kernels of katas (solutions, tests/right,
tests/wrong) take theirs from the kata's test module; the small kernels of
tests/meta/hardware/counter_kernels.cu take `in`, `out` and `n`. Nothing in here touches a card.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/meta")]

import numpy as np  # noqa: E402
from grading import MODULES  # noqa: E402

from dojo import katas, simulator  # noqa: E402
from dojo.compile import Compiled, compile_cuda, read_source  # noqa: E402
from dojo.grader import Grade  # noqa: E402
from dojo.outcome import Failure  # noqa: E402
from dojo.simulator import Report  # noqa: E402
from dojo.slab import Launch  # noqa: E402
from dojo.task import Configuration, Problem, Size, problem  # noqa: E402

HARDWARE = ROOT / "tests/meta/hardware"
SMALL_KERNELS = HARDWARE / "counter_kernels.cu"
SMALL = str(SMALL_KERNELS.relative_to(ROOT))
FOLDERS = ("solutions", "tests/right", "tests/wrong")
SEED = 7
HANGS = {"no_progress", "phase_never_grows"}  # never launched on a card: their loops do not end

# Ragged first: most errors show there. The second size is a whole number of tiles.
SIZES: Mapping[str, Sequence[Size]] = {
    "01_naive": [{"Width": 67}, {"Width": 64}],
    "02_tiled": [{"Width": 67}, {"Width": 64}],
    "03_swizzle": [{"M": 37, "N": 70, "D": 45}, {"M": 64, "N": 64, "D": 64}],
    "04_register": [
        {"M": 132, "N": 68, "K": 20, "alpha": 0.5, "beta": 2.0},
        {"M": 128, "N": 128, "K": 32, "alpha": 1.0, "beta": 0.0},
        {"M": 65, "N": 66, "K": 19, "alpha": 1.0, "beta": 0.0},
    ],
    "05_reducesum": [{"rows": 64, "cols": 33}, {"rows": 33, "cols": 4096}, {"rows": 5, "cols": 4097}],
}
UNSAFE = {"bounds", "barrier", "timeout", "launch"}  # findings with which a launch is not made for counting

ELEMENTS = 16384
TILE_8, TILE_16, TILE_32 = (8, 8), (16, 16), (32, 32)
SHAPES = {  # of the small kernels: (grid, block); else two blocks of 256 threads
    "row_of_67_words": ((5, 5), TILE_16),
    "column_of_67_words": ((5, 5), TILE_16),
    "block_3d": ((2,), (7, 6, 5)),
    "last_warp_partial": ((3,), (75,)),
    "tile_8": ((2,), TILE_8),
    "tile_32": ((2,), TILE_32),
    "rows_32": ((2,), TILE_32),
    **dict.fromkeys(
        "transpose_32 transpose_33 transpose_34 transpose_36 transpose_swizzled "
        "transpose_at_the_store".split(),
        ((2,), (32, 8)),
    ),
    **dict.fromkeys(
        "tile_16 tile_16_of_17 tile_16_of_18 tile_16_of_20 tile_16_unroll_1 tile_16_unroll_2 "
        "tile_16_unroll_3 tile_16_unroll_4 tile_16_unroll_8 rows_16 rows_16_of_17 rows_16_of_18 "
        "rows_16_of_20".split(),
        ((2,), TILE_16),
    ),
}
SHARED_BYTES = {"shared_dynamic": 1024, "fuse_dynamic": 4096}

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Case:
    """One launch of one kernel. Its data are drawn anew by `args`, always the same."""

    file: str  # "solutions/02_tiled.cu", from the repository's root
    kernel: str  # "matmul_tiled"
    at: Size | None = None  # of a kata's kernel; the small kernels have none

    def __str__(self) -> str:
        return " ".join(self.row).rstrip()

    @property
    def row(self) -> tuple[str, str, str]:
        return self.file, self.kernel, ", ".join(f"{name} {value}" for name, value in (self.at or {}).items())

    def compiled(self, arch: str = "sm_80") -> Compiled:
        """Raises CompileError, or Failure for a kata's kernel."""
        return grade(self.file, arch).compiled if self.at else small_code(arch)

    @property
    def configuration(self) -> Configuration:
        if self.at:
            return grade(self.file).configuration(self.at)
        grid, block = SHAPES.get(self.kernel, ((2,), (256,)))
        return Configuration(grid, block, SHARED_BYTES.get(self.kernel, 0))

    @property
    def problem(self) -> Problem:
        assert self.at
        return problem(grade(self.file).task, self.at, SEED)

    @property
    def names(self) -> list[str]:
        return grade(self.file).task.names if self.at else ["in", "out", "n"]

    @property
    def unset(self) -> tuple[int, ...]:
        """Arguments that the launch finds unset: the output, unless it is an input too."""
        output = grade(self.file).task.output if self.at else ""
        return (self.names.index(output),) if self.at and output not in self.problem.inputs else ()

    def args(self) -> list[Any]:
        """New arrays, and the scalars."""
        if self.at:
            values = self.problem.args.values()
            return [value.copy() if isinstance(value, np.ndarray) else value for value in values]
        into, out = small_arrays()
        return [into.copy(), out.copy(), ELEMENTS]

    @cached_property
    def report(self) -> Report:
        """Of the launch on the simulator. Raises Failure; `simulator.Unsupported` for the small kernels."""
        if self.at:
            return grade(self.file).report(self.at)
        code, launch = small_code(), self.configuration
        return simulator.run(
            code.ptx,
            code.entry(self.kernel),
            launch.grid,
            launch.block,
            self.args(),
            shared_bytes=launch.shared_bytes,
            parameters=self.names,
        )

    @property
    def kinds(self) -> set[str]:
        return {finding.kind for finding in self.report.findings}

    def launch(self, arch: str) -> Launch:
        """Everything that the card needs."""
        code, launch = self.compiled(arch), self.configuration
        return Launch(
            code.cubin,
            code.entry(self.kernel),
            launch.grid,
            launch.block,
            self.args() if self.at else [*small_arrays(), ELEMENTS],
            outputs=self.unset,
            shared_bytes=launch.shared_bytes,
            names=self.names,
        )


@cache
def grade(file: str, arch: str = "") -> Grade:
    """As `make test` makes it: so the two compile alike, and share the cache."""
    kata = katas.find(stem(file))
    made = Grade(MODULES[kata.stem].TASK, kata, ROOT / file, on="cpu", seed=SEED)
    if arch:
        made.__dict__["card"] = SimpleNamespace(
            arch=arch
        )  # compiled for this card, whether or not it is here
    return made


@cache
def small_arrays() -> tuple[np.ndarray, np.ndarray]:
    """`in` and `out` of the small kernels."""
    random = np.random.default_rng(SEED)
    return random.uniform(-1, 1, ELEMENTS).astype(np.float32), np.zeros(ELEMENTS, np.float32)


@cache
def small_code(arch: str = "sm_80") -> Compiled:
    return compile_cuda(read_source(SMALL_KERNELS), SMALL, arch=arch)


def in_order(row: Sequence[str]) -> tuple[int, str]:
    """Sorts rows by their file: the folders in FOLDERS' order, then the small kernels."""
    folder = str(Path(row[0]).parent)
    return FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS), row[0]


def stem(file: str) -> str:
    return Path(file).name.split(".")[0]


def bug(file: str) -> str:
    """ "no_guard" of tests/wrong/01_naive.no_guard.cu."""
    return Path(file).stem.partition(".")[2]


def files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.cu"))


def small_kernels() -> list[Case]:
    """Every kernel of counter_kernels.cu, in its order."""
    return [Case(SMALL, entry) for entry in small_code().resources]


def sizes(file: str, which: Sequence[Size] = ()) -> list[Case]:
    """The launches that a kata's kernel can be measured at."""
    task = grade(file).task
    return [Case(file, task.kernel, size) for size in which or SIZES.get(stem(file), task.sizes[:2])]


def every_size(file: str) -> list[Case]:
    return sizes(file) + sizes(file, grade(file).task.sizes)


def recorded_case(row: Mapping[str, str]) -> Case | None:
    """The launch that a row of a .csv file is about, if there still is such a one."""
    key = row["file"], row["kernel"], row["size"]
    if not (ROOT / row["file"]).exists():
        return None
    if not row["size"]:
        return Case(row["file"], row["kernel"])
    return next((case for case in every_size(row["file"]) if case.row == key), None)


def launchable(file: str) -> str:
    """Why no card can launch this kata's kernel: compile, launch or timeout; "" if one can."""
    if bug(file) in HANGS:
        return "timeout"
    try:
        grade(file).compiles()
    except Failure as failure:
        return "" if failure.kind == "untouched" else failure.kind
    return ""


def unsafe(case: Case) -> str:
    """Why this launch is not made on a card to count what it does; "" if it is."""
    try:
        return ", ".join(sorted(case.kinds & UNSAFE))
    except Failure as failure:
        return f"unsupported by the simulator: {failure}"


def counted(file: str) -> tuple[list[Case], str]:
    """The launches whose traffic is compared: of a solution every size, of another kernel the first at which
    it is safe. Where there is none, the reason too.
    """
    if file == SMALL:
        return small_kernels(), ""
    if why := launchable(file):
        return [], why
    cases: list[Case] = []
    reasons: list[str] = []
    for case in sizes(file):
        if why := unsafe(case):
            reasons.append(why)
            continue
        cases.append(case)
        if not file.startswith("solutions/"):
            break
    return cases, "" if cases else reasons[0]


def sanitized(file: str) -> list[Case]:
    """The launches that compute-sanitizer looks at: one of a kata's kernel, with a finding if it has any."""
    if file == SMALL:
        return small_kernels()
    if launchable(file):
        return []
    cases = every_size(file) if file.startswith("tests/wrong/") else sizes(file)
    try:
        return [next((case for case in cases if case.report.findings), cases[0])]
    except Failure:
        return cases[:1]


def of_every_file(work: Callable[[str], Result], name: str) -> Iterator[Result]:
    """What `work` says of each file, in order, with as many files at once as there are cores."""
    every = [*(file for folder in FOLDERS for file in files(folder)), SMALL]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # each with a compiler of its own
        yield from progress(pool.map(work, every), len(every), f"{name}: simulated")


def progress(results: Iterable[Result], total: int, what: str) -> Iterator[Result]:
    """The results as they come, with a line on stderr of how many there are."""
    for done, result in enumerate(results, 1):
        print(f"\r{what} {done} of {total}", end="", file=sys.stderr, flush=True)
        yield result
    print(file=sys.stderr)
