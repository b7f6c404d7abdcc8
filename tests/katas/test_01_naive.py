"""Grades katas/01_naive.cu: P = M·N with one thread for each element of P, at any Width."""

from dojo import speed
from dojo.bars import Coalesced
from dojo.gpu import CuBLAS
from dojo.grader import Grade
from dojo.katas import ROOT
from dojo.task import Configuration, Task, ceil_div, in_tiles


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
    full = len(M) // TILE_WIDTH * TILE_WIDTH
    tail = {f"the sum without its last k (from {full} on)": M[:, :full] @ N[:full]} if full else {}
    return tail | {
        "P transposed": (M @ N).T,
        "M times N transposed": M @ N.T,
        "M transposed times N": M.T @ N,
        "N times M": N @ M,
        "the sum without its last product": M[:, :-1] @ N[:-1],
    }


WIDTHS = (1, 2, 15, 16, 17, 31, 33, 64, 100, 129)

TASK = Task(
    title="P = M·N, one thread an element",
    kernel="matmul_naive",
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
    rivals={"uncoalesced": speed.Rival(ROOT / "tests/wrong/01_naive.swapped_row_col.cu", "matmul_naive")},
    cublas=CuBLAS(a=0, b=1, out=2, m=2048, n=2048, k=2048),
    bars={"uncoalesced": 2.5, "cuBLAS": 0.05},
)


def test_compiles(grade: Grade) -> None:
    grade.compiles()


def test_safe(grade: Grade) -> None:
    grade.safe()


def test_result(grade: Grade) -> None:
    grade.result()


def test_traffic(grade: Grade) -> None:
    """Rows of 8, 16 or 32 threads cost 2 to 2.5 sectors a request; Row from x costs 4.5, 8.5 or 16.5."""
    grade.traffic(at={"Width": 64}, bars=[Coalesced(most=4)])


def test_speed(grade: Grade) -> None:
    grade.speed(CONTEST)
