"""What is right, what is wrong, and the words for it: on small products."""

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


def clue(problem, got):
    mistakes = TASK.mistakes(**problem.inputs, TILE_WIDTH=16)
    return compare.mistake(got, problem, mistakes) or compare.pattern(got, problem, TILES)


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
    ("wrong", "name"),
    [
        (lambda m, n: (m @ n).T, "the kernel computed P transposed"),
        (lambda m, n: m @ n.T, "the kernel computed M times N transposed"),
        (lambda m, n: m.T @ n, "the kernel computed M transposed times N"),
        (lambda m, n: n @ m, "the kernel computed N times M"),
        (lambda m, n: m[:, :16] @ n[:16], "the kernel computed the sum without k from 16 on, the last phase"),
        (
            lambda m, n: m[:, 16:] @ n[16:],
            "the kernel computed the sum of the last phase alone, k from 16 on",
        ),
        (lambda m, n: m[:, :-1] @ n[:-1], "the kernel computed the sum without its last product"),
        (lambda m, n: 0 * m, "every element is 0"),
    ],
)
def test_a_known_mistake_is_named(problem, wrong, name):
    got = wrong(problem.inputs["M"], problem.inputs["N"])
    assert clue(problem, got) == name


def test_what_is_wrong_at_the_edge_only_is_said_to_be(problem):
    got = problem.want.copy()
    got[16:] = 1
    got[:, 16:] = 1
    assert clue(problem, got) == "every full tile is right, the partial tiles at the edge are not"
    got[0, 0] = 1
    assert clue(problem, got) == ""


def test_what_was_never_written_is_said_to_be_nan(problem):
    got = problem.want.copy()
    got[5] = np.nan
    assert "P[5][0], the element of thread (0, 5) of block (0, 0), is NaN and should be" in words(
        problem, got
    )
    assert clue(problem, got) == "they are NaN, as before the launch, perhaps never written"


def test_what_could_be_two_mistakes_is_not_named():
    problem = task.problem(TASK, {"Width": 17}, seed=1)
    without_16 = problem.inputs["M"][:, :16] @ problem.inputs["N"][:16]
    assert clue(problem, without_16) == ""


def test_few_bits_are_told_from_a_missing_product(problem):
    m, n = problem.args["M"], problem.args["N"]
    assert clue(problem, cut(m, 10) @ cut(n, 10)).startswith("all are close, within 1 part in ")
    assert clue(problem, problem.want - np.outer(m[:, 3], n[3])) == ""


def test_a_changed_input_is_named():
    before = {"M": np.float32([[1, 2], [3, 4]]), "N": np.float32([[0, np.nan]])}
    after = {name: array.copy() for name, array in before.items()}
    assert compare.changed_input(before, after) == ""
    after["N"][0, 0] = -0.0
    assert compare.changed_input(before, after).startswith("N[0][0] was 0 and is -0 after the launch")
