"""What is right, what is wrong, and the words for it, on small products. See also test_patterns.py."""

import numpy as np
import pytest
from grading import MODULES

from dojo import compare, task
from dojo.task import Configuration

TASK = MODULES["02_tiled"].TASK
TILES = Configuration(grid=(2, 2), block=(16, 16))


@pytest.fixture
def problem():
    return task.problem(TASK, {"Width": 20}, seed=1)


def words(problem, got):
    return compare.sentence(TASK, problem, got, TILES)


def cut(array, bits):
    """float32 with so many bits of its fraction left, rounded to nearest."""
    drop = 23 - bits
    raw = array.view(np.uint32) + np.uint32(1 << (drop - 1))
    return (raw >> drop << drop).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("width", [1, 2, 16, 100, 129, 512])
def test_float32_sums_pass_and_tf32_or_half_sums_do_not(width):
    problem = task.problem(TASK, {"Width": width}, seed=3)
    m, n = problem.args["M"], problem.args["N"]
    serial = np.zeros((width, width), np.float32)
    half = np.zeros((width, width), np.float16)
    for k in range(width):
        serial += np.outer(m[:, k], n[k])
        half += np.outer(m[:, k], n[k]).astype(np.float16)
    assert not compare.wrong_elements(serial, problem).any()
    assert compare.wrong_elements(half.astype(np.float32), problem).any()
    for bits in (10, 7):  # TF32, bfloat16
        assert compare.wrong_elements(cut(m, bits).astype(float) @ cut(n, bits).astype(float), problem).any()


def test_nan_and_infinity_never_pass(problem):
    for bad in (np.nan, np.inf, -np.inf):
        got = problem.want.copy()
        got[3, 4] = bad
        assert compare.wrong_elements(got, problem).sum() == 1


def test_a_right_result_has_no_words(problem):
    assert words(problem, problem.want.astype(np.float32)) == ""


def test_the_first_wrong_element_its_owner_and_the_count(problem):
    got = problem.want.copy()
    got[2, 17] = 5.5
    got[3, 3] = 0
    got[19, 4] = 0
    want = compare.number(problem.want[2, 17])
    assert words(problem, got) == (
        f"P[2][17], the element of thread (1, 2) of block (1, 0), is 5.5 and should be {want}; "
        "3 of 400 elements are wrong"
    )
    assert compare.listing(got, problem, "P")[0].split() == ["P[2][17]", "is", "5.5", "should", "be", want]


def test_a_listing_stops_at_five(problem):
    assert len(compare.listing(problem.want * 2, problem, "P")) == 5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([True], ""),
        ([True, True], "; all 2 elements are wrong"),
        ([True, False], "; 1 of 2 elements is wrong"),
        ([True, True, False], "; 2 of 3 elements are wrong"),
    ],
)
def test_how_many_elements_are_wrong(wrong, words):
    assert compare.how_many(np.array(wrong)) == words


def test_what_a_second_launch_leaves_is_compared(problem):
    got = problem.want.astype(np.float32)
    assert compare.difference(got, got.copy(), problem, "P") == ""
    again = got.copy()
    again[4, 7] = 2.5
    assert compare.difference(got, again, problem, "P") == (
        f"a second launch on the same data left 2.5 in P[4][7], not {compare.number(got[4, 7])}: "
        "what comes out depends on which threads come first"
    )
    got[:] = again[:] = np.nan
    assert compare.difference(got, again, problem, "P") == ""


def test_a_changed_input_is_named():
    before = {"M": np.float32([[1, 2], [3, 4]]), "N": np.float32([[0, np.nan]])}
    after = {name: array.copy() for name, array in before.items()}
    assert compare.changed_input(before, after) == ""
    after["N"][0, 0] = -0.0
    assert compare.changed_input(before, after).startswith("N[0][0] was 0 and is -0 after the launch")
