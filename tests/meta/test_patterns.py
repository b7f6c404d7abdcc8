"""What wrong outputs have in common, on small products: what is named, and what is not."""

import numpy as np
import pytest
from grading import MODULES
from test_compare import cut

from dojo import patterns, task
from dojo.patterns import CONTENT, REGION, REGULAR, Seen

TASK = MODULES["02_tiled"].TASK


def problem_of(width=20):
    return task.problem(TASK, {"Width": width}, seed=1)


def seen(problem, got, *, known=True):
    def mistakes():
        return TASK.mistakes(**problem.inputs, TILE_WIDTH=16) if known else {}

    return Seen(np.asarray(got, np.float32), problem, "P", (16, 16), mistakes)


def clue(problem, got):
    return patterns.telling([seen(problem, got)])[1]


def shape(problem, got, output):
    """The clue of another kata's output, where no mistake is known."""
    return patterns.telling([Seen(np.asarray(got, np.float32), problem, output, (), dict)])[1]


@pytest.fixture
def problem():
    return problem_of()


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda m, n: (m @ n).T, "P transposed"),
        (lambda m, n: m @ n.T, "M times N transposed"),
        (lambda m, n: m.T @ n, "M transposed times N"),
        (lambda m, n: n @ m, "N times M"),
        (lambda m, n: m[:, :16] @ n[:16], "the sum without its last phase (k from 16 on)"),
        (lambda m, n: m[:, 16:] @ n[16:], "the sum of its last phase alone (k from 16 on)"),
        (lambda m, n: m[:, :-1] @ n[:-1], "the sum without its last product"),
    ],
)
def test_a_known_mistake_is_named(problem, wrong, name):
    got = wrong(problem.inputs["M"], problem.inputs["N"])
    assert clue(problem, got) == f"the kernel computed {name}"


def test_what_could_be_two_mistakes_is_not_named_unless_another_size_decides():
    def without_last(problem, count):
        return problem.inputs["M"][:, :-count] @ problem.inputs["N"][:-count]

    small, large = problem_of(17), problem_of(20)
    one = seen(small, without_last(small, 1))
    assert patterns.telling([one])[1] == ""  # the last product, or the last phase of one k
    assert (
        patterns.mistakes([one, seen(large, without_last(large, 4))])
        == ["the sum without its last phase (k from 16 on)"] * 2
    )
    assert (
        patterns.mistakes([one, seen(large, without_last(large, 1))])
        == ["the sum without its last product"] * 2
    )


def test_a_right_size_decides_between_mistakes_too():
    small, whole = problem_of(17), problem_of(32)
    without_16 = seen(small, small.inputs["M"][:, :16] @ small.inputs["N"][:16])
    right = seen(whole, whole.want)
    assert patterns.mistakes([without_16], [right]) == ["the sum without its last phase (k from 16 on)"]


def test_zeros_prove_no_mistake():
    problem = problem_of(1)
    assert clue(problem, [[0.0]]) == ""  # one zero: also the sum without its last product


@pytest.mark.parametrize(
    ("axis", "step", "words"),
    [
        (0, 1, "each row holds what the row above should: off by one"),
        (0, -1, "each row holds what the row below should: off by one"),
        (1, 1, "each column holds what the column on its left should: off by one"),
        (1, -1, "each column holds what the column on its right should: off by one"),
    ],
)
def test_a_shift_is_named(problem, axis, step, words):
    got = np.roll(problem.want, step, axis)
    assert clue(problem, got) == words
    got[7, 7] += 1
    assert clue(problem, got) == ""


def test_two_rows_make_no_shift():
    """The second row may hold what the first should because all rows do."""
    scores, size = MODULES["03_swizzle"].TASK, {"M": 2, "N": 9, "D": 5}
    problem = task.problem(scores, size, seed=1)
    assert "off by one" not in shape(problem, np.repeat(problem.want[:1], 2, axis=0), "S")
    problem = task.problem(scores, size | {"M": 3}, seed=1)
    assert shape(problem, np.roll(problem.want, 1, axis=0), "S").endswith("off by one")
    assert "off by one" not in shape(problem, np.repeat(problem.want[:1], 3, axis=0), "S")


def test_what_another_wrong_size_denies_is_not_said():
    small, large = problem_of(20), problem_of(21)
    noise = seen(large, large.want + np.random.default_rng(1).uniform(0.1, 1, large.want.shape))
    edge = small.want.copy()
    edge[16:] += np.random.default_rng(2).uniform(0.1, 1, (4, 20))
    edge[:, 16:] += 1
    few_bits = cut(small.args["M"], 10) @ cut(small.args["N"], 10)
    for got in (np.roll(small.want, 1, 0), np.trunc(3 * small.want), edge, few_bits):
        one = seen(small, got)
        assert patterns.telling([one])[1]
        assert patterns.telling([one, noise])[1] == ""


def test_two_sizes_that_say_the_same_say_it():
    both = [problem_of(20), problem_of(21)]
    assert patterns.telling([seen(problem, np.roll(problem.want, 1, 0)) for problem in both])[1]
    assert patterns.telling([seen(problem, np.trunc(3 * problem.want)) for problem in both])[1]
    tiny = problem_of(1)
    assert patterns.telling([seen(tiny, tiny.want + 0.1), seen(both[0], np.trunc(3 * both[0].want))])[
        1
    ].startswith("every element is a whole number")


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (slice(18, 20), slice(None), "the last 2 of 20 rows are wrong"),
        (slice(19, 20), slice(None), "the last one of 20 rows is wrong"),
        (slice(None), slice(0, 3), "the first 3 of 20 columns are wrong"),
        (slice(None), slice(1, None, 2), "every second column (1, 3, 5, ...) is wrong"),
        ([n for n in range(20) if n % 4], slice(None), "all rows but every fourth (0, 4, 8, ...) are wrong"),
        (slice(5, 7), slice(None), ""),
        (slice(1, 12, 2), slice(None), ""),
        (slice(2, 4), slice(2, 4), ""),
    ],
)
def test_whole_rows_or_columns_are_named(problem, rows, columns, words):
    got = problem.want.copy()
    got[rows, columns] += 1
    assert clue(problem, got) == words


def test_what_is_wrong_at_the_edge_only_is_said_to_be(problem):
    got = problem.want.copy()
    got[16:] += 1
    got[:, 16:] += 1
    assert clue(problem, got) == "every full tile is right, the partial tiles at the edge are wrong"
    got[19, 19] = problem.want[19, 19]
    some = "every full tile is right, elements of the partial tiles at the edge are wrong"
    assert clue(problem, got) == some
    got[0, 0] += 1
    assert clue(problem, got) == ""


def test_one_element_is_not_called_all_the_partial_tiles(problem):
    got = problem.want.astype(np.float32)
    got[19, 19] = task.unwritten(())
    some = "every full tile is right, elements of the partial tiles at the edge were never written"
    assert clue(problem, got) == some


def test_a_single_wrong_element_has_no_pattern():
    problem = problem_of(1)
    assert clue(problem, problem.want + 1) == ""


def test_what_was_never_written_is_told_from_a_nan_that_was_computed(problem):
    got = problem.want.astype(np.float32)
    got[2:5, 3] = task.unwritten((3,))
    assert patterns.pattern(seen(problem, got)) == (CONTENT, "they were never written")
    got[2, 3] = np.nan
    assert patterns.pattern(seen(problem, got)) == (CONTENT, "they are NaN")


def test_what_is_still_there_from_before_is_told():
    beta = MODULES["04_register"].TASK
    size = {"M": 5, "N": 6, "K": 3, "alpha": 0.5, "beta": 2.0}
    problem = task.problem(beta, size, seed=1)
    got = problem.want.astype(np.float32)
    got[:, 4:] = problem.args["C"][:, 4:]
    found = patterns.pattern(Seen(got, problem, "C", (64, 64), dict))
    assert found == (REGION, "the last 2 of 6 columns still hold what C held before the launch")


def test_zeros_and_whole_numbers_are_told(problem):
    assert patterns.pattern(seen(problem, 0 * problem.want)) == (CONTENT, "they are 0")
    found = patterns.pattern(seen(problem, np.trunc(3 * problem.want)))
    assert found == (REGULAR, "every element is a whole number, as if something were an int")
    assert clue(problem, 1e20 * problem.want) == ""  # so large a float32 has no fraction anyway


def test_few_bits_are_told_from_a_missing_product(problem):
    m, n = problem.args["M"], problem.args["N"]
    assert clue(problem, cut(m, 10) @ cut(n, 10)).startswith("all are close, within 1 part in ")
    assert clue(problem, problem.want - np.outer(m[:, 3], n[3])) == ""


def test_a_constant_or_a_factor_too_many_is_not_called_few_bits(problem):
    assert clue(problem, problem.want + 1e-3) == ""
    assert clue(problem, problem.want * 1.0001) == ""
    assert clue(problem_of(1), problem_of(1).want * 1.001) == ""  # of one element nobody can tell


def test_of_several_sizes_that_one_is_told_which_says_most():
    one, large = problem_of(1), problem_of(20)
    edge = large.want.astype(np.float32)
    edge[16:], edge[:, 16:] = task.unwritten((4, 20)), task.unwritten((20, 4))
    told, words = patterns.telling([seen(one, task.unwritten((1, 1))), seen(large, edge)])
    assert told.problem is large
    assert words == "every full tile is right, the partial tiles at the edge were never written"
