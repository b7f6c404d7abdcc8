"""Grades katas/04_register.cu: C = alpha·A·B + beta·C with sums in registers, at any M, N, K."""

from dojo import speed
from dojo.bars import InRegisters, LoadSectors, NoBankConflicts, WarpFMAs
from dojo.gpu import CuBLAS
from dojo.grader import Grade
from dojo.task import Configuration, Task, ceil_div


def specification(A, B, alpha, beta, C=0.0, **_):
    return alpha * (A @ B) + beta * C


def inputs(random, M, N, K, alpha, beta):
    """C is an input only if beta is not 0: else it is NaN, and nobody may read it."""
    read = {"C": random(M, N)} if beta else {}
    return {"alpha": alpha, "A": random(M, K), "B": random(K, N), "beta": beta} | read


def configuration(M, N, BM, BN, TM, TN, SHARED_BYTES, **_):
    return Configuration(
        grid=(ceil_div(N, BN), ceil_div(M, BM)),
        block=((BN // TN) * (BM // TM),),
        shared_bytes=SHARED_BYTES,
    )


def demands(BM, BN, TM, TN, **_):
    for name, BX, thread, TX in (("BM", BM, "TM", TM), ("BN", BN, "TN", TN)):
        if BX % TX:
            why = f"{TX} elements a thread do not fill the tile"
            return f"{name} = {BX} is not divisible by {thread} = {TX}: {why}"
    return ""


def sums(TM, TN, **_):
    return TM * TN


def tile(BM, BN, **_):
    return BM, BN


def mistakes(A, B, alpha, beta, BK, C=0.0, **_):
    K = A.shape[1]
    full = K // BK * BK
    last = (K - 1) // BK * BK
    AB, old = A @ B, beta * C
    phases = {
        f"the sum without its last step (k from {full} on)": alpha * (A[:, :full] @ B[:full]) + old,
        f"the sum of its last step alone (k from {last} on)": alpha * (A[:, last:] @ B[last:]) + old,
    }
    scaled = {
        "A * B + beta * C, without alpha": AB + old,
        "alpha * A * B, without beta * C": alpha * AB,
        "alpha * A * B + C, without beta": alpha * AB + C,
        "alpha * (A * B + beta * C)": alpha * (AB + old),
    }
    transposed = {"A * B transposed": (alpha * AB).T.reshape(AB.shape) + old}
    short = {"the sum without its last product": alpha * (A[:, :-1] @ B[:-1]) + old}
    return (phases if full else {}) | scaled | transposed | (short if K > BK else {})


# (alpha, beta); a kernel may take a short cut where one of them is 0 or 1.
PLAIN, SCALED, KEPT, ADDED, HALF = (1.0, 0.0), (0.5, -3.0), (0.0, 0.5), (2.0, 1.0), (1.0, 0.5)

# Below one tile of 64 or 128; rows of A, of B, of both and of neither aligned; one under, at and over a tile;
# steps enough to go round a ring of several buffers.
SIZES = (
    (1, 1, 1, *PLAIN),
    (1, 1, 1, *SCALED),
    (5, 3, 2, *ADDED),
    (2, 7, 9, *PLAIN),
    (64, 64, 16, *KEPT),
    (3, 130, 5, *HALF),
    (130, 3, 101, *ADDED),
    (66, 68, 18, *SCALED),
    (65, 66, 20, *PLAIN),
    (127, 129, 31, *SCALED),
    (128, 128, 32, *PLAIN),
    (129, 127, 17, *KEPT),
    (132, 260, 36, *SCALED),
)
GPU_SIZES = (
    (1024, 1024, 1024, *PLAIN),
    (1000, 1028, 516, *SCALED),
    (257, 1001, 333, *PLAIN),
    (1001, 63, 999, *SCALED),
    (300, 300, 300, *KEPT),
    (260, 132, 700, *ADDED),
    (65, 513, 90, *HALF),
)


def named(*size):
    return dict(zip(("M", "N", "K", "alpha", "beta"), size, strict=True))


def random_size(random):
    alpha, beta = (PLAIN, SCALED, KEPT, ADDED, HALF)[random.integers(5)]
    M, N, K = random.integers(2, (140, 140, 70)).tolist()
    return named(M, N, K, alpha, beta)


TASK = Task(
    title="C = alpha·A·B + beta·C with sums in registers",
    kernel="sgemm_register",
    parameters="int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C",
    constants=("BM", "BN", "BK", "TM", "TN"),
    optional={"SHARED_BYTES": 0},
    output="C",
    terms="K",
    inputs=inputs,
    specification=specification,
    configuration=configuration,
    sizes=[named(*size) for size in SIZES],
    random_size=random_size,
    gpu_sizes=[named(*size) for size in GPU_SIZES],
    mistakes=mistakes,
    demands=demands,
    tile=tile,
    tells_occupancy=True,
    sums=sums,
)

CONTEST = speed.Contest(
    size=named(4096, 4096, 4096, *PLAIN),
    flop=2 * 4096**3,
    rivals={},
    cublas=CuBLAS(a=4, b=5, out=7, m=4096, n=4096, k=4096),
    bars={speed.CUBLAS: 0.4},
)


def most_sectors(M, N, K, BM, BN, **_):
    """Each block loads BM + BN numbers for each k, eight a sector: a quarter more is allowed."""
    return 1.25 * ceil_div(M, BM) * ceil_div(N, BN) * K * (BM + BN) / 8


def test_compiles(grade: Grade) -> None:
    grade.compiles()


def test_safe(grade: Grade) -> None:
    grade.safe()


def test_result(grade: Grade) -> None:
    grade.result()


def test_traffic(grade: Grade) -> None:
    why = "in tiles of BM and BN, a number that is loaded once serves BN or BM sums"
    grade.traffic(
        at=named(256, 256, 32, *PLAIN),
        bars=[LoadSectors(most_sectors, why), NoBankConflicts(), InRegisters(), WarpFMAs(0.75)],
    )


def test_speed(grade: Grade) -> None:
    grade.speed(CONTEST)
