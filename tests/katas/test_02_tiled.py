"""Grades katas/02_tiled.cu: P = M·N through tiles in shared memory, at any Width."""

import numpy as np

from dojo import speed
from dojo.bars import LoadSectors, NoBankConflicts
from dojo.gpu import CuBLAS
from dojo.grader import Grade
from dojo.katas import ROOT
from dojo.task import Configuration, Task, ceil_div, in_tiles, transposed_tiles


def specification(M, N, **_):
    return M @ N


def inputs(random, Width):
    return {"M": random(Width, Width), "N": random(Width, Width)}


def configuration(Width, TILE_WIDTH):
    blocks = ceil_div(Width, TILE_WIDTH)
    return Configuration(grid=(blocks, blocks), block=(TILE_WIDTH, TILE_WIDTH))


def tile(TILE_WIDTH):
    return TILE_WIDTH, TILE_WIDTH


def mistakes(M, N, TILE_WIDTH):
    Width = len(M)
    full = Width // TILE_WIDTH * TILE_WIDTH
    last = (Width - 1) // TILE_WIDTH * TILE_WIDTH
    outside = ceil_div(Width, TILE_WIDTH) * TILE_WIDTH - Width
    phases = {
        f"the sum without its last phase (k from {full} on)": M[:, :full] @ N[:full],
        f"the sum of its last phase alone (k from {last} on)": M[:, last:] @ N[last:],
    }
    again = M @ N + outside * np.outer(M[:, -1], N[-1])
    clamped = {f"the sum with its last product added again ({outside} times, once for each k outside)": again}
    wide_M = np.pad(M, ((0, 0), (0, outside)))
    return (
        (phases if full else {})
        | (clamped if outside else {})
        | {
            "M times N with every tile of N transposed": (wide_M @ transposed_tiles(N, TILE_WIDTH))[
                :, :Width
            ],
            "P transposed": (M @ N).T,
            "M times N transposed": M @ N.T,
            "M transposed times N": M.T @ N,
            "N times M": N @ M,
            "the sum without its last product": M[:, :-1] @ N[:-1],
        }
    )


WIDTHS = (1, 2, 15, 16, 17, 31, 33, 64, 100, 129)

TASK = Task(
    title="P = M·N in shared-memory tiles",
    kernel="matmul_tiled",
    parameters="const float *M, const float *N, float *P, int Width",
    constants=("TILE_WIDTH",),
    output="P",
    terms="Width",
    inputs=inputs,
    specification=specification,
    configuration=configuration,
    sizes=[{"Width": width} for width in WIDTHS],
    random_size=lambda random: {"Width": int(random.choice([n for n in range(3, 129) if n not in WIDTHS]))},
    gpu_sizes=[{"Width": width} for width in (1024, 1000, 2047)],
    owner=in_tiles,
    tile=tile,
    mistakes=mistakes,
)

CONTEST = speed.Contest(
    size={"Width": 2048},
    flop=2 * 2048**3,
    rivals={"naive": speed.Rival(ROOT / "solutions/01_naive.cu", "matmul_naive")},
    cublas=CuBLAS(a=0, b=1, out=2, m=2048, n=2048, k=2048),
    bars={"naive": 1.2},
)


def most_sectors(Width, TILE_WIDTH):
    """phases² blocks load two tiles a phase, eight floats a sector; a quarter more is allowed."""
    return 1.25 * ceil_div(Width, TILE_WIDTH) ** 3 * TILE_WIDTH**2 / 4


def test_compiles(grade: Grade) -> None:
    grade.compiles()


def test_safe(grade: Grade) -> None:
    grade.safe()


def test_result(grade: Grade) -> None:
    grade.result()


def test_traffic(grade: Grade) -> None:
    why = "in a tile, one load serves TILE_WIDTH threads"
    grade.traffic(at={"Width": 64}, bars=[LoadSectors(most_sectors, why), NoBankConflicts()])


def test_speed(grade: Grade) -> None:
    grade.speed(CONTEST)
