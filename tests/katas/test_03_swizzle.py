"""Grades katas/03_swizzle.cu: S = Q·Kᵀ without bank conflicts, at any M, N, D."""

import numpy as np

from dojo import speed
from dojo.bars import LoadSectors, NoBankConflicts
from dojo.gpu import CuBLAS
from dojo.grader import Grade
from dojo.katas import ROOT
from dojo.task import Configuration, Task, ceil_div, in_tiles, transposed_tiles


def specification(Q, K, **_):
    return Q @ K.T


def inputs(random, M, N, D):
    return {"Q": random(M, D), "K": random(N, D)}


def configuration(M, N, D, TILE):
    return Configuration(grid=(ceil_div(N, TILE), ceil_div(M, TILE)), block=(TILE, TILE))


def tile(TILE):
    return TILE, TILE


def mistakes(Q, K, TILE):
    S, D = Q @ K.T, Q.shape[1]
    full = D // TILE * TILE
    last = (D - 1) // TILE * TILE
    phases = {
        f"the sum without its last phase (d from {full} on)": Q[:, :full] @ K[:, :full].T,
        f"the sum of its last phase alone (d from {last} on)": Q[:, last:] @ K[:, last:].T,
    }
    plain = {"Q times K, not K transposed": Q @ K} if len(K) == D else {}
    others = {
        "S transposed": S.T.reshape(S.shape),
        "S divided by sqrt(D)": S / D**0.5,
        "the sum without its last product": Q[:, :-1] @ K[:, :-1].T,
    }
    return (phases if full else {}) | plain | in_the_tile(Q, K, TILE) | others


def in_the_tile(Q, K, TILE):
    """What comes of reading K's tile as if it were stored in another way."""
    D = ceil_div(Q.shape[1], TILE) * TILE  # with the zeros that fill the last tile
    wide_Q, wide_K = (np.pad(array, ((0, 0), (0, D - array.shape[1]))) for array in (Q, K))
    as_stored = {
        "Q times K, with K's tiles not transposed": (wide_Q @ transposed_tiles(K, TILE).T)[:, : len(K)]
    }
    if TILE & (TILE - 1):
        return as_stored
    d, tx, ty = np.arange(D), np.arange(len(K)) % TILE, np.arange(len(Q)) % TILE
    moved = np.take_along_axis(wide_K, d ^ tx[:, None], axis=1)
    moved_Q = np.take_along_axis(wide_Q, d ^ ty[:, None], axis=1)
    half = "sums in which d of Q meets d ^ tx of K, as if one of store and read were swizzled"
    by_ty = "sums in which d of Q meets d ^ tx ^ ty of K, as if the read were swizzled by ty"
    return as_stored | {half: wide_Q @ moved.T, by_ty: moved_Q @ moved.T}


SIZES = ((1, 1, 1), (31, 33, 17), (64, 64, 64), (33, 65, 31), (100, 37, 129))
GPU_SIZES = ((1024, 1024, 1024), (1000, 515, 257), (2047, 33, 1001))


def sizes(triples):
    return [dict(zip("MND", triple, strict=True)) for triple in triples]


TASK = Task(
    title="S = Q·Kᵀ without bank conflicts",
    kernel="scores_swizzle",
    parameters="const float *Q, const float *K, float *S, int M, int N, int D",
    constants=("TILE",),
    output="S",
    terms="D",
    inputs=inputs,
    specification=specification,
    configuration=configuration,
    sizes=sizes(SIZES),
    random_size=lambda random: dict(zip("MND", random.integers(2, 100, 3).tolist(), strict=True)),
    gpu_sizes=sizes(GPU_SIZES),
    owner=in_tiles,
    tile=tile,
    mistakes=mistakes,
    stub_works=True,
)

CONTEST = speed.Contest(
    size={"M": 2048, "N": 2048, "D": 2048},
    flop=2 * 2048**3,
    rivals={"the stub": speed.Rival(ROOT / "dojo/stubs/03_swizzle.cu", "scores_swizzle")},
    cublas=CuBLAS(a=0, b=1, out=2, m=2048, n=2048, k=2048, transpose_b=True),
    bars={"the stub": 2.0},
)


def most_sectors(M, N, D, TILE):
    """Each block loads two tiles a phase, eight floats a sector; a quarter more is allowed."""
    return 1.25 * ceil_div(M, TILE) * ceil_div(N, TILE) * ceil_div(D, TILE) * TILE**2 / 4


def tile_bytes(TILE):
    """The two tiles, float32, without padding."""
    return 2 * TILE**2 * 4


def test_compiles(grade: Grade) -> None:
    grade.compiles()


def test_safe(grade: Grade) -> None:
    grade.safe()


def test_result(grade: Grade) -> None:
    grade.result()


def test_traffic(grade: Grade) -> None:
    why = "in a tile, one load serves TILE threads"
    grade.traffic(
        at={"M": 64, "N": 64, "D": 64},
        bars=[LoadSectors(most_sectors, why), NoBankConflicts()],
        everywhere=[NoBankConflicts()],
        tiles=tile_bytes,
    )


def test_speed(grade: Grade) -> None:
    grade.speed(CONTEST)
