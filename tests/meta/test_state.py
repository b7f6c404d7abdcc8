"""The history: what is recorded, how it adds up, what survives damage; and the table of `make list`."""

import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from dojo import card, cli, katas, listing, state
from dojo.grader import POINTS
from dojo.outcome import Failure, NotGraded, judged
from dojo.state import Event

TILED = katas.Kata("02_tiled")
NO_GPU = NotGraded("not graded: no GPU here")


def outcome(error):
    def judge():
        if isinstance(error, Exception):
            raise error
        return error

    return judged(judge)


def grade(text="mine", untouched=False, **errors):
    """A finished grade, all points passed but for those given."""
    passed = dict.fromkeys(POINTS, "right") | {"speed": NO_GPU}
    outcomes = {name: outcome(error) for name, error in (passed | errors).items() if error}
    return SimpleNamespace(kata=TILED, outcomes=outcomes, untouched=untouched, text=text)


def failed(point, **more):
    later = POINTS[POINTS.index(point) + 1 :]
    return grade(**{point: Failure("race", "of two")}, **dict.fromkeys(later, NO_GPU), **more)


def at(minutes, what, verdict="", **more):
    time = datetime(2026, 11, 30, 7, 30, tzinfo=timezone.utc) + timedelta(minutes=minutes)
    return Event(time.isoformat(), "02_tiled", what, verdict, **more)


def standing(*events):
    return state.standing(TILED, events)


FAIL = "FAIL at safe"


def test_a_grade_is_a_line(course):
    state.record(failed("safe"))
    state.record(grade(speed="8.1 TFLOP/s: 1.57x naive"))
    (first, second), note = state.history()
    assert note == ""
    assert (first.verdict, first.points, first.speed) == ("FAIL at safe", "ok FAIL - - -", "")
    assert (second.verdict, second.speed) == ("PASS", "8.1 TFLOP/s: 1.57x naive")
    assert second.digest == first.digest == state.digest("mine")
    assert second.time.tzinfo


@pytest.mark.parametrize(
    "no_verdict",
    [
        grade(traffic=None),
        grade(safe=ValueError("ours")),
        grade(result=NO_GPU),
        grade(**dict.fromkeys(POINTS)),
    ],
    ids=["part", "internal error", "nothing ran", "nothing"],
)
def test_what_is_no_verdict_is_not_kept(course, no_verdict):
    state.record(no_verdict)
    assert not state.file().exists()


def test_a_failure_of_some_points_is_kept(course):
    state.record(grade(safe=Failure("race", "of two"), result=None, traffic=None, speed=None))
    assert state.history()[0][0].verdict == "FAIL at safe"


def test_attempts_go_from_reset_to_reset():
    events = [at(0, "grade", FAIL), at(1, "grade", FAIL), at(2, "grade", "PASS"), at(3, "grade", "PASS")]
    assert standing(*events).attempts == 1
    assert standing(*events, at(4, "reset"), at(5, "grade", "untouched")).attempts == 1
    assert standing(*events, at(4, "reset"), at(5, "grade", FAIL)).attempts == 2
    assert standing(*events, at(5, "grade", "untouched"), at(6, "grade", FAIL)).attempts == 2
    assert standing(Event(events[0].at, "01_naive", "grade", FAIL)).attempts == 0


@pytest.mark.parametrize(
    ("events", "minutes"),
    [
        ([], None),
        ([at(0, "grade", FAIL)], None),
        ([at(0, "grade", "PASS")], 0),
        ([at(0, "grade", "untouched"), at(3, "grade", FAIL), at(7, "grade", "PASS")], 7),
        ([at(0, "grade", FAIL), at(9, "grade", "PASS"), at(10, "grade", FAIL), at(11, "grade", "PASS")], 9),
        (
            [
                at(0, "grade", FAIL),
                at(9, "grade", "PASS"),
                at(10, "reset"),
                at(60, "grade", FAIL),
                at(64, "grade", "PASS"),
            ],
            4,
        ),
        ([at(0, "grade", FAIL), at(1, "reset"), at(60, "grade", FAIL), at(68, "grade", "PASS")], 8),
        ([at(9, "grade", FAIL), at(2, "grade", "PASS")], 0),
    ],
)
def test_time_to_green_is_the_best_attempts(events, minutes):
    assert standing(*events).seconds == (None if minutes is None else 60 * minutes)


def test_best_speed_is_the_largest_of_a_card():
    speeds = ("8.1 TFLOP/s: 1.57x naive", "reaches 10.2 TFLOP/s: it should", "9.9 TFLOP/s", "")
    events = [at(n, "grade", "PASS", speed=speed) for n, speed in enumerate(speeds)]
    assert standing(*events).speed == "10.2 TFLOP/s"
    assert standing(at(0, "grade", FAIL, speed="4,365 GB/s at 32 columns")).speed == "4,365 GB/s"
    assert standing(at(0, "grade", "PASS")).speed == ""


def test_reset_and_pass_set_the_hints_back():
    hinted = [at(0, "grade", FAIL), at(1, "hint"), at(2, "hint")]
    assert standing(*hinted).hints == 2
    assert standing(*hinted, at(3, "grade", FAIL)).hints == 2
    assert standing(*hinted, at(3, "grade", "PASS")).hints == 0
    assert standing(*hinted, at(3, "reset")).hints == 0


def test_damaged_lines_are_left_out_and_counted(course):
    state.record(failed("safe"))
    with open(state.file(), "ab") as file:  # a torn line, other JSON, other types, no text at all
        file.write(
            b'\n{"at": "2026-11-3\n[1]\n{"at": 3, "kata": 1, "what": 2}\n{"what": "x"}\n\xff\0' + b"[" * 9999
        )
    state.record(grade())
    events, note = state.history()
    assert [event.verdict for event in events] == ["FAIL at safe", "PASS"]
    assert note == ".dojo/history.jsonl is damaged: 5 of its 7 lines left out."
    state.file().unlink()
    assert state.history() == ([], "No history yet: .dojo/history.jsonl begins with the first grade.")


def test_a_file_that_cannot_be_written_or_read_is_one_line(course, capsys):
    state.file().mkdir(parents=True)
    state.record(grade())
    assert capsys.readouterr().err.count("\n") == 1
    assert state.history()[1].startswith(".dojo/history.jsonl cannot be read")


def test_many_at_once_lose_nothing(course):
    many = (
        "import sys, pathlib; from dojo import katas, state; katas.ROOT = pathlib.Path(sys.argv[1])\n"
        "for n in range(200): state.add(state.Event(state.now(), sys.argv[2], 'hint', kept='x' * 300))"
    )
    repository = cli.__file__.rsplit("/dojo/", 1)[0]
    running = [
        subprocess.Popen([sys.executable, "-c", many, str(course), str(n)], cwd=repository) for n in range(3)
    ]
    assert [one.wait() for one in running] == [0] * 3
    events, note = state.history()
    assert (len(events), note) == (600, "")


# ---------------------------------------------------------------------------------------------- the table


def test_list_of_a_fresh_clone(course, capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["01", "naive", "untouched"],
        ["02", "tiled", "untouched"],
    ]
    assert "Next: make kata=naive watch" in lines
    assert lines[-1].startswith("No history yet")
    assert max(map(len, lines)) <= card.WIDTH


@pytest.mark.parametrize(
    ("graded", "now", "row"),
    [
        (None, "mine", "02 tiled      not graded yet       0         -            -        "),
        (failed("safe"), "mine", "02 tiled      failing at safe      1         -            -        "),
        (failed("safe"), "edited", "02 tiled      failing at safe      1         -            -        "),
        (
            grade(speed="8.1 TFLOP/s: fast"),
            "mine",
            "02 tiled      passed               1         8.1 TFLOP/s  at once  ",
        ),
        (grade(), "edited", "02 tiled      passed, then edited  1         -            at once  "),
        (grade(), None, "02 tiled      missing              1         -            at once  "),
    ],
)
def test_list_after_a_grade(graded, now, row, course):
    TILED.file.unlink()
    if now:
        TILED.file.write_text(now)
    if graded:
        state.record(graded)
    assert listing.render().splitlines()[2].startswith(row)


def test_list_in_colour_differs_in_colour_only(course):
    TILED.file.write_text("mine")
    state.record(failed("safe"))
    painted = listing.render(colour=True)
    assert "\033[31mfailing at safe\033[0m" in painted
    assert painted.replace("\033[31m", "").replace("\033[0m", "") == listing.render()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "at once"), (45, "45 s"), (720, "12 min"), (3 * 3600, "3 h"), (5 * 86400, "5 days")],
)
def test_durations(seconds, text):
    assert listing.duration(seconds) == text


# ------------------------------------------------------------------------------------------- real grades


@pytest.fixture
def repository(tmp_path):
    """A copy of the whole, to be run with history and all."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(katas.ROOT / name, tmp_path)
    for folder in ("dojo", "solutions", "tests/katas", "tests/wrong"):
        shutil.copytree(katas.ROOT / folder, tmp_path / folder)
    shutil.copytree(tmp_path / "solutions", tmp_path / "katas")
    return tmp_path


def test_only_grades_of_the_katas_own_file_are_recorded(repository):
    history = repository / ".dojo" / "history.jsonl"
    command = [sys.executable, "-m", "dojo", "test", "naive", "--on", "cpu"]
    both = [
        subprocess.Popen([*command, *more], cwd=repository, stdout=subprocess.DEVNULL)
        for more in ([], ["--from", "katas"])
    ]
    assert [one.wait() for one in both] == [0, 0]
    assert history.read_text().count('"verdict": "PASS"') == history.read_text().count("\n") == 1
