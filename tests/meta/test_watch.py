"""`watch`: what counts as a save, what is shown of a grade, the keys, and two processes that grade as one."""

import io
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from dojo import katas, state, watch
from dojo.grader import POINTS
from dojo.outcome import Failure, NotGraded, point
from dojo.pair import Helper, PairedGrade, module_of

NAIVE = katas.Kata("01_naive")


class FakeGrade:
    """A grade told by the file: "safe" fails at safe, "untouched" is the stub, anything else passes."""

    def __init__(self, task, kata, file, *, on, seed, progress):
        self.kata, self.on, self.progress = kata, on, progress
        self.outcomes, self.printed, self.text = {}, [], ""
        self.source = type("Source", (), {"quotes": lambda *_: []})()
        self.path = "katas/01_naive.cu"

    @property
    def untouched(self):
        return self.text == "untouched"

    @point
    def compiles(self):
        if self.untouched:
            raise Failure("untouched", "x.cu is still the stub; fill in the hole, then make kata=x test")
        return f"{len(self.text)} registers"

    @point
    def safe(self):
        with self.progress("simulating"):
            if "safe" in self.text:
                raise Failure("race", "x.cu:1 of two threads")
        return "no races"

    @point
    def result(self):
        return "right"

    @point
    def traffic(self):
        return "little"

    @point
    def speed(self):
        raise NotGraded("not graded: on=cpu")


class FakeTests:
    TASK = None

    def __getattr__(self, name):
        return lambda grade: getattr(grade, name.removeprefix("test_"))()


@pytest.fixture
def watching(course, monkeypatch):
    monkeypatch.setattr(watch, "PairedGrade", FakeGrade)
    monkeypatch.setattr(watch, "module_of", lambda _: FakeTests())
    monkeypatch.setattr(watch, "Helper", lambda: None)
    monkeypatch.setattr(watch, "GONE", 0.0)
    watching = watch.Watch(NAIVE, NAIVE.file)
    watching.out = io.StringIO()
    watching.file.write_text("untouched")
    return watching


def run(watching, *steps):
    """What is shown after each step: a text to save, a function of the file, or a key. Ends with q."""
    shown, left = [], list(steps)
    looks = 0

    def key(_):
        nonlocal looks
        looks += 1
        if looks % 4:
            return ""
        shown.append(watching.out.getvalue())
        watching.out.seek(0)
        watching.out.truncate()
        step = left.pop(0) if left else "q"
        if callable(step):
            step(watching.file)
        elif len(step) > 1:
            watching.file.write_text(step)
        return step if isinstance(step, str) and len(step) == 1 else ""

    watching.run(key)
    return [re.sub(r"\n\d\d:\d\d:\d\d\n", "", text).strip("\n") for text in shown]


PASSED = """  compiles   ok     6 registers
  safe       ok     no races
  result     ok     right
  traffic    ok     little
PASS
Passed. The difference to the reference: diff katas/01_naive.cu solutions/01_naive.cu"""
FAILED = """  compiles   ok     4 registers
  safe       FAIL   race: x.cu:1 of two threads

FAIL at safe. Next: what is it?   make kata=naive hint"""


def test_shown_is_what_changed_and_the_first_failure(watching):
    shown = run(watching, "passed", "PASSED", "safe", "safe ", "untouched")
    assert shown[1] == PASSED
    assert shown[2] == "\n".join(PASSED.splitlines()[-2:])
    assert shown[3] == FAILED
    assert shown[4] == FAILED.replace("4 reg", "5 reg")
    assert shown[5] == "untouched: x.cu is still the stub; fill in the hole and save"


def test_each_grade_is_recorded_and_that_of_another_file_is_not(watching, course):
    run(watching, "passed", "safe", "untouched")
    verdicts = [event.verdict for event in state.history()[0]]
    assert verdicts[1:] == ["PASS", "FAIL at safe", "untouched"]
    watching.own = False
    run(watching, "passed")
    assert len(state.history()[0]) == len(verdicts)


def replace(file):
    new = file.with_suffix(".swp")
    new.write_text("passed")
    os.replace(new, file)


def test_an_editor_may_replace_the_file(watching):
    assert run(watching, replace)[1] == PASSED


def test_a_missing_file_is_waited_for(watching):
    gone, back = run(watching, lambda file: file.unlink(), "passed")[1:]
    assert gone == "katas/01_naive.cu is missing; waiting for it"
    assert back == PASSED


def test_a_save_without_a_change_is_none(watching):
    def touch(file):
        os.utime(file, (1, 1))

    assert run(watching, "passed", touch)[2] == ""


def test_what_is_still_being_written_is_not_graded(watching):
    graded = []
    watching.save = graded.append
    half = iter([b"pa", b"pass", b"passed"])

    def key(_):
        if step := next(half, None):
            watching.file.write_bytes(step)
            return ""
        return "q" if graded and graded[-1] == b"passed" else ""

    watching.run(key)
    assert graded == [b"passed"]


def test_a_grade_that_a_save_overtakes_is_given_up(watching, monkeypatch):
    real = FakeGrade.compiles

    def compiles(grade):
        if grade.text == "safe":
            watching.file.write_text("passed")
        real(grade)

    monkeypatch.setattr(FakeGrade, "compiles", compiles)
    shown = run(watching, "safe")
    assert "FAIL" not in "".join(shown)
    assert [event.verdict for event in state.history()[0]] == ["untouched", "PASS"]


def test_an_error_of_the_grader_is_a_line_and_no_end(watching, monkeypatch):
    monkeypatch.setattr(FakeGrade, "result", point(lambda self: 1 / 0))
    monkeypatch.setattr(FakeTests, "test_traffic", lambda self, grade: [][1], raising=False)
    text = run(watching, "passed")[1]
    assert "internal error: ZeroDivisionError" in text
    assert "internal error: IndexError" in text


def test_keys(watching):
    hint, table = run(watching, "h", "l")[1:3]
    assert "Hint 1 of 3 for 01_naive" in hint
    assert "01 naive" in table


# -------------------------------------------------------------------------------------- two processes as one


def outcomes(grade):
    module = module_of(grade.kata)
    for name in POINTS:
        try:
            getattr(module, f"test_{name}")(grade)
        except (Failure, NotGraded):
            pass
    return {name: (outcome.state, outcome.text) for name, outcome in grade.outcomes.items()}


@pytest.fixture(scope="module")
def helper():
    helper = Helper()
    yield helper
    helper.end()


@pytest.mark.parametrize("file", ["solutions/01_naive.cu", "tests/wrong/02_tiled.no_second_barrier.cu"])
def test_two_processes_grade_as_one(file, helper):
    path = katas.ROOT / file
    kata = katas.find(path.name.split(".")[0])

    def grade(with_helper):
        grade = PairedGrade(module_of(kata).TASK, kata, path, on="cpu", seed=7)
        grade.helper = with_helper
        return outcomes(grade)

    assert grade(helper) == grade(None)
    assert not helper.lost


def test_the_helpers_death_is_not_the_grades():
    helper = Helper()
    helper.process.kill()
    helper.process.wait()
    grade = PairedGrade(module_of(NAIVE).TASK, NAIVE, NAIVE.solution, on="cpu", seed=7)
    grade.helper = helper
    assert outcomes(grade)["traffic"][0] == "ok"
    assert helper.lost
    helper.end()


def test_on_a_terminal_it_grades_and_control_c_ends_it_well(tmp_path):
    file = tmp_path / "mine.cu"
    file.write_bytes(NAIVE.solution.read_bytes())
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dojo", "watch", "naive", "--from", str(file)]
    with subprocess.Popen(
        command, cwd=katas.ROOT, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert "PASS\n" in child.stdout
        os.write(ours, b"l")
        assert any(line.startswith("01 naive") for line in child.stdout)
        child.send_signal(signal.SIGINT)
        assert "Traceback" not in child.stdout.read()
    assert child.returncode == 0
    os.close(ours)
    os.close(theirs)


def test_q_ends_it_and_a_pipe_has_no_keys(course, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("q"))
    with watch.keyboard() as key:
        assert key(0.0) == ""
