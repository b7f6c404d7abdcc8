"""How often is a kernel with a barrier missing right, and would this repository pass it?  Needs a GPU.

    python tests/fidelity/barriers.py

Takes the barriers of solutions/02_tiled.cu away, one at a time, launches each kernel on the card, counts the
launches whose result is right by the grader's own bound, and asks the simulator about the same kernel. Prints
the table's rows and writes them into the READMEs. Every launch has new data: a tile that the launch before it
left in shared memory must not be taken for its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dojo import compare, gpu, katas, nvrtc, tables
from dojo.compile import Compiled, read_source
from dojo.launch import Launched, compile_for, launch
from dojo.pair import module_of
from dojo.task import Problem, problem

KATA = katas.find("tiled")
TASK = module_of(KATA).TASK
TILES = (4, 8, 16, 32)
WIDTHS = (33, 64, 256, 1000)  # two phases at least for every tile; one has no second barrier to miss
LAUNCHES = 30
BARRIER = "__syncthreads();"
MISSING = {"first": (0, ""), "second": (1, ""), "warp": (0, "__syncwarp();")}  # which barrier, what for it

FILES = tables.FILES
BEGIN, END = "<!-- barriers begins -->", "<!-- barriers ends -->"


def variant(text: str, tile: int, which: int, instead: str) -> str:
    """The solution with another TILE_WIDTH and something instead of one barrier. Raises ValueError."""
    resized, constants = re.subn(r"\bTILE_WIDTH = \d+;", f"TILE_WIDTH = {tile};", text)
    parts = resized.split(BARRIER)
    if constants != 1 or len(parts) != 3:
        raise ValueError(
            f"{KATA.solution.name} should define TILE_WIDTH once and have {BARRIER} twice; "
            f"it has {constants} and {len(parts) - 1}"
        )
    between = [BARRIER, BARRIER]
    between[which] = instead
    return parts[0] + between[0] + parts[1] + between[1] + parts[2]


def kernels(arch: str) -> Iterator[tuple[int, str, Compiled]]:
    """Tile, what is missing, and the code, in the table's order."""
    text = read_source(KATA.solution)
    for tile in TILES:
        for missing, (which, instead) in MISSING.items():
            source = variant(text, tile, which, instead)
            yield tile, missing, compile_for(TASK, source, f"{missing}.cu", arch, sizes=())


def launched(code: Compiled, data: Problem, *, on_gpu: bool) -> Launched:
    configuration = TASK.launch(data.size, code.constants)
    return launch(TASK, code, data, configuration, lambda array, byte: array, on_gpu=on_gpu)


def verdict(code: Compiled) -> str:
    """What the simulator says of it: "race", or "safe"."""
    findings = launched(code, problem(TASK, {"Width": WIDTHS[0]}, seed=0), on_gpu=False).findings
    return findings[0].kind if findings else "safe"


def right(code: Compiled, problems: list[Problem]) -> int:
    """How many of these the card computes rightly. Raises RuntimeError where it does not come to an end."""
    count = 0
    for data in problems:
        outcome = launched(code, data, on_gpu=True)
        if outcome.findings:
            raise RuntimeError(outcome.findings[0].message)
        count += not compare.wrong_elements(outcome.arrays[TASK.output], data).any()
    return count


def measure(arch: str) -> list[str]:
    """The rows of the table, one a tile: "| 4 x 4 | 30, 30, 30, 0: race | ..."."""
    made = list(kernels(arch))
    counts: dict[tuple[int, str], list[int]] = {(tile, missing): [] for tile, missing, _ in made}
    for width in WIDTHS:
        problems = [problem(TASK, {"Width": width}, seed) for seed in range(LAUNCHES)]
        for tile, missing, code in made:
            counts[tile, missing].append(right(code, problems))
    rows = {tile: f"| {tile} x {tile} |" for tile in TILES}
    for tile, missing, code in made:
        rows[tile] += f" {', '.join(map(str, counts[tile, missing]))}: {verdict(code)} |"
    return list(rows.values())


def put(text: str, rows: Sequence[str], measured_on: str) -> str:
    """A README with these rows in its table. Raises ValueError where there is none."""
    return tables.put(text, "barriers", rows, measured_on)


def main() -> int:
    card = gpu.card()
    if not card:
        print(f"this needs a GPU: {gpu.why_not()}")
        return 1
    rows = measure(card.arch)
    measured_on = f"{card.name}, NVRTC {nvrtc.version()}"
    print("\n".join([measured_on, *rows]))
    for name in FILES:
        path = katas.ROOT / name
        path.write_text(put(path.read_text(encoding="utf-8"), rows, measured_on), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
