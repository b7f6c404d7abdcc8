"""The proof: every stub is refused, every solution passes, every wrong kernel is refused for its reason.

A file in tests/wrong states on its first line what it must be refused for, and where:
    // refused: race, line 17 or 18: why
A file in tests/right is unusual and must pass. Both are named after their kata: 02_tiled.no_guard.cu. Where
tests/meta/golden/gradings has a file of that name, the whole card must be that one: see test_messages.py.
"""

import re

import pytest
from grading import GOLDEN, MODULES, check_golden, first_failure, fresh, points, steady_card

from dojo import gpu, speed
from dojo.katas import ROOT, all_katas

KINDS = "compile launch result bounds uninitialised race barrier traffic speed timeout unsupported".split()
POINT = dict.fromkeys(KINDS, "safe") | {
    "compile": "compiles",
    "launch": "compiles",
    "result": "result",
    "traffic": "traffic",
}
STATED = re.compile(r"// refused: (?P<kind>\w+)(?:, line (?P<lines>\d+(?: or \d+)*))?: \S")
WRONG = sorted((ROOT / "tests/wrong").glob("*.cu"))
RIGHT = sorted((ROOT / "tests/right").glob("*.cu"))


@pytest.mark.parametrize("kata", all_katas(), ids=lambda kata: kata.stem)
def test_an_untouched_stub_is_refused_in_one_line(kata):
    name, failure = first_failure(fresh(kata.stub))
    if MODULES[kata.stem].TASK.stub_works:  # it is graded in full
        assert name == "traffic"
        return
    assert name == "compiles"
    assert str(failure).startswith("untouched: ")
    assert "\n" not in str(failure)


@pytest.mark.parametrize("kata", all_katas(), ids=lambda kata: kata.stem)
def test_a_solution_passes_every_point_without_a_gpu(kata):
    grade = fresh(kata.solution)
    assert not first_failure(grade)
    assert [outcome.state for outcome in grade.outcomes.values()] == ["ok", "ok", "ok", "ok", "-"]


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_an_unusual_but_right_kernel_passes(file):
    assert file.read_text().startswith("// accepted: ")
    assert not first_failure(fresh(file))


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_kernel_is_refused_for_its_reason(file):
    stated = STATED.match(file.read_text())
    assert stated, "the first line must say: // refused: KIND, line N: why"
    assert stated["kind"] in KINDS
    grade = fresh(file)
    refused = first_failure(grade)
    assert refused, "passed"
    name, failure = refused
    assert failure.kind == stated["kind"], str(failure)
    assert name == POINT[failure.kind]
    place = re.match(rf"{failure.kind}: tests/wrong/{re.escape(file.name)}(?:[:(](\d+))?", str(failure))
    assert place, "a failure begins with its kind and the file"
    if stated["lines"]:
        assert place[1] in stated["lines"].split(" or "), str(failure)
    if (GOLDEN / f"gradings/{file.stem}.txt").exists():
        check_golden(f"gradings/{file.stem}", steady_card(grade))


@pytest.mark.parametrize("kata", all_katas(), ids=lambda kata: kata.stem)
def test_the_baselines_of_the_speed_point_exist(kata):
    contest = MODULES[kata.stem].CONTEST
    probe = {speed.PROBE: speed.Rival(gpu.PROBE, "read_probe")}
    rivals = contest.rivals if isinstance(contest, speed.Contest) else probe
    for rival in rivals.values():
        assert rival.file.exists()
        assert rival.kernel in rival.file.read_text()


def test_later_points_are_not_run_after_a_race_but_the_values_are_told():
    grade = fresh(ROOT / "tests/wrong/02_tiled.no_second_barrier.cu")
    assert [name for name, failure in points(grade) if failure] == ["safe"]
    assert grade.outcomes["result"].text == "right at all 11 widths from 1 to 129: luck, not order"
    assert grade.outcomes["traffic"].text == "not run until it is safe"


def test_what_a_fence_leaves_unjudged_is_said(tmp_path):
    solution = (ROOT / "solutions/05_reducesum.cu").read_text()
    file = tmp_path / "05_reducesum.cu"
    two_blocks = """if (threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x) {
        sums[rows - 1] = 0.0f;
        __threadfence();
    }
    """
    file.write_text(solution.replace("if (cols < 36)", f"{two_blocks}if (cols < 36)"))
    grade = fresh(file)
    grade.safe()
    safe = grade.outcomes["safe"].text
    assert safe.endswith("; races between blocks were not judged: the kernel uses a memory fence")


def test_a_failed_assert_is_told_where_it_shows_and_printf_at_the_smallest_size(tmp_path):
    file = tmp_path / "01_naive.assert.cu"
    body = '{\n    printf("Width %d", Width);\n    assert(Width < 2);'
    file.write_text(all_katas()[0].solution.read_text().replace("{", body, 1))
    grade = fresh(file)
    ((name, failure),) = [(name, failure) for name, failure in points(grade) if failure]
    assert (name, failure.kind) == ("safe", "result")
    assert re.search(r"cu:\d+ at Width 2, thread .* fails the assertion `Width < 2`", str(failure))
    assert grade.outcomes["result"].text == "not run: the kernel stops itself"
    assert grade.outcomes["traffic"].text == "not run until it is safe"
    assert len(grade.printed) == 64
    assert grade.printed[0].endswith("Width 1")


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ("constexpr int ROWS_PER_BLOCK = 0;", "ROWS_PER_BLOCK is 0; it must be at least 1"),
        (
            "constexpr int rows_per_block(int cols) { return 8 - cols; }",
            "rows_per_block(31) is -23; it must be at least 1",
        ),
    ],
)
def test_a_launch_of_no_rows_is_refused_by_the_name_in_the_file(definition, sentence, tmp_path):
    file = tmp_path / "05_reducesum.no_rows.cu"
    kernel = 'extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols) {}'
    file.write_text(f"constexpr int THREADS = 32;\n{definition}\n{kernel}\n")
    name, failure = first_failure(fresh(file))
    assert (name, str(failure)) == ("compiles", f"launch: {file}:2 {sentence}")


def test_one_seed_repeats_the_data_and_the_size():
    solution = all_katas()[1].solution
    one, same, other = fresh(solution, seed=1), fresh(solution, seed=1), fresh(solution, seed=2)
    assert one.drawn == same.drawn
    width = {"Width": 3}
    first, second, third = (grade.simulated(width).problem.args["M"] for grade in (one, same, other))
    assert (first == second).all()
    assert (first != third).any()
