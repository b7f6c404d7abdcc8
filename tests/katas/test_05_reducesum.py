"""Grades katas/05_reducesum.cu: the sum of each row, any rows and cols."""

from dojo import speed
from dojo.bars import LoadSectors, NoBankConflicts, ReadOnce
from dojo.grader import Grade
from dojo.task import Configuration, Precise, Task, ceil_div


def specification(X, **_):
    return X.sum(axis=1)


def inputs(random, rows, cols):
    return {"X": random(rows, cols)}


def configuration(rows, THREADS, rows_per_block, **_):
    return Configuration(grid=(ceil_div(rows, rows_per_block),), block=(THREADS,))


def mistakes(X, **_):
    cols = X.shape[1]
    tails = {
        f"the sum without the last cols % {n} columns ({cols % n} of {cols})": X[:, : cols // n * n].sum(
            axis=1
        )
        for n in (4, 32)
        if cols % n and cols > n
    }
    return tails | {
        "the first element of each row": X[:, 0],
        "the sum of every second column": X[:, ::2].sum(axis=1),
        "the mean": X.mean(axis=1),
        "twice the sum": 2 * X.sum(axis=1),
    }


def size(rows, cols):
    return {"rows": rows, "cols": cols}


# One element; a short row, at every place past a multiple of 16 bytes; one row; one column; whole warps.
SIZES = ((1, 1), (7, 31), (64, 33), (5, 4097), (5003, 1), (1, 20011), (33, 4096), (64, 2048))
# For the card: one column, odd widths, and the widths that are timed, each in 4 Mi elements.
WIDTHS = (32, 256, 4096, 65536)
GPU_SIZES = ((1000003, 1), (4099, 31), (1031, 1023), *((2**22 // cols, cols) for cols in WIDTHS))

TASK = Task(
    title="the sum of each row",
    kernel="row_sum",
    parameters="const float *X, float *sums, int rows, int cols",
    constants=("THREADS",),
    functions={"rows_per_block": ("cols", "ROWS_PER_BLOCK")},
    output="sums",
    terms="cols",
    inputs=inputs,
    specification=specification,
    configuration=configuration,
    sizes=[size(*shape) for shape in SIZES],
    random_size=lambda random: size(int(random.integers(2, 100)), int(random.integers(2, 600))),
    gpu_sizes=[size(*shape) for shape in GPU_SIZES],
    # With the seeds 0 to 999 one serial sum is off by 797 units at least, 4 side by side by 329 at most.
    precise=Precise(size(1, 1000003), low=0.05, high=0.15, units=400),
    mistakes=mistakes,
)

CONTEST = speed.Bandwidth(widths=WIDTHS, bar=0.7)


def most_sectors(rows, cols, **_):
    """Eight floats a sector, and a twentieth more."""
    return 1.05 * rows * cols / 8


def once(rows, cols):
    return 4 * rows * cols


def test_compiles(grade: Grade) -> None:
    grade.compiles()


def test_safe(grade: Grade) -> None:
    grade.safe()


def test_result(grade: Grade) -> None:
    grade.result()


def test_traffic(grade: Grade) -> None:
    why = "each element is needed once"
    grade.traffic(at=size(64, 2048), bars=[LoadSectors(most_sectors, why), ReadOnce(once), NoBankConflicts()])


def test_speed(grade: Grade) -> None:
    grade.speed(CONTEST)
