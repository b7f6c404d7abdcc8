"""The card, against golden texts in tests/meta/golden. UPDATE_GOLDEN=1 writes them anew; read the diff."""

import io
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_grades import KINDS

from dojo import card, katas
from dojo.outcome import Failure, NotGraded, judged
from dojo.source import Source

GOLDEN = Path(__file__).parent / "golden"
NO_GPU = NotGraded("not graded: no GPU here (no NVIDIA driver)")

PASSED = {
    "compiles": "32 registers, no spills, 2,048 bytes shared (sm_80)",
    "safe": "in bounds, nothing read unset, no races, at 11 widths",
    "result": "right at 11 widths from 1 to 129; 112 by ARGS=--seed=225",
    "traffic": "4,096 of 5,120 sectors, 0 conflicts, 3.6 FLOP/B requested",
    "speed": NO_GPU,
}
RACE = Failure(
    "race",
    "solutions/02_tiled.cu:35 at Width 1, thread (0, 6) of block (0, 0) overwrites Nds[6][0], which "
    "thread (0, 5) still reads on line 39: no __syncthreads() between (write after read)",
    [35, 39],
)
RESULT = Failure(
    "result",
    "solutions/02_tiled.cu:44 at Width 2, P[0][1], the element of thread (1, 0) of block (0, 0), is "
    "0.0631445 and should be -0.0543494; 2 of 4 elements are wrong: the kernel computed P transposed",
    [44],
    [
        "P[0][1]  is    0.0631445   should be   -0.0543494",
        "P[1][0]  is   -0.0543494   should be    0.0631445",
        "",
        "wrong at Width 2, 15, 16, 17, 31, 33, 64, 100, 129, 112",
        "right at Width 1",
    ],
)
COMPILE = Failure(
    "compile",
    'katas/02_tiled.cu(40): error: expected a ";"',
    details=["          Pvalue += Mds[ty][k] * Nds[k][tx]", "                                           ^"],
)
UNTOUCHED = Failure(
    "untouched", "katas/02_tiled.cu is still the stub; fill in the hole, then make kata=tiled test"
)


def until(what):
    return NotGraded(f"not run until {what}")


CARDS = {
    "passed": {},
    "race": {
        "safe": RACE,
        "result": NotGraded("right at all 11 widths from 1 to 129: luck, not order"),
        "traffic": until("it is safe"),
    },
    "result": {"result": RESULT, "traffic": until("its result is right")},
    "compile": {"compiles": COMPILE} | dict.fromkeys(("safe", "result", "traffic"), until("it compiles")),
    "untouched": {"compiles": UNTOUCHED} | dict.fromkeys(("safe", "result", "traffic"), until("it compiles")),
    "internal": {"safe": ZeroDivisionError("division by zero")}
    | dict.fromkeys(("result", "traffic", "speed"), NotGraded("not run after an internal error")),
    "speed": {
        "speed": Failure(
            "speed",
            "solutions/02_tiled.cu reaches 5.5 TFLOP/s: 1.02x naive (bar 1.20), 0.68x the solution, "
            "11 % of cuBLAS; it should pass the bar",
        )
    },
}


def outcome(what):
    def judge():
        if isinstance(what, Exception):
            raise what
        return what

    return judged(judge)


def fake(**changed):
    kata = katas.find("tiled")
    return SimpleNamespace(
        kata=kata,
        path="katas/02_tiled.cu",
        task=SimpleNamespace(title="P = M·N in shared-memory tiles"),
        on="",
        card=None,
        printed=[],
        sizes=[{"Width": 1}],
        source=Source(kata.solution.read_text(encoding="utf-8")),
        outcomes={name: outcome(what) for name, what in {**PASSED, **changed}.items()},
    )


@pytest.mark.parametrize("name", CARDS)
def test_the_card_is_the_golden_one(name):
    file = GOLDEN / f"{name}.txt"
    text = card.render(fake(**CARDS[name])) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CARDS)
def test_a_kind_and_a_colon_stand_at_the_start_of_a_failure_only(name):
    text = card.render(fake(**CARDS[name]))
    failures = sum(isinstance(what, Failure) and what.kind in KINDS for what in CARDS[name].values())
    assert len(re.findall(rf"\b(?:{'|'.join(KINDS)}): ", text)) == failures


@pytest.mark.parametrize(
    "name", sorted(set(CARDS) - {"compile", "untouched"})
)  # these lines stay as they are
def test_the_card_is_80_columns_wide(name):
    lines = card.render(fake(**CARDS[name])).split("\n")
    assert max(map(len, lines), default=0) <= 80


def test_a_pass_is_five_lines_between_the_header_and_the_verdict():
    lines = card.render(fake()).split("\n")
    assert [line[:10].strip() for line in lines[2:7]] == list(PASSED)
    assert lines[7:] == ["", "PASS"]
    assert len(lines) == 9


def test_what_a_kernel_prints_stands_before_the_verdict_in_ten_lines_at_most():
    grade = fake(**CARDS["race"])
    grade.printed = [f"thread {n} of block 0: sum is {n}" for n in range(12)]
    after = card.verdict(grade, False)
    before = card.render(fake(**CARDS["race"])).removesuffix(after)
    lines = card.render(grade).removeprefix(before).removesuffix(after).split("\n")
    assert lines[0] == "printed at Width 1"
    assert lines[1:11] == ["    " + line for line in grade.printed[:10]]
    assert lines[11:] == ["    ... and 2 more", "", ""]
    grade.printed = grade.printed[:8] * 8  # as many as are kept
    assert "\n    ... and at least 54 more\n" in card.render(grade)


def test_a_files_name_does_not_choose_the_question():
    failure = Failure("result", "my/transposed.cu:8 at Width 2, P[0][0] is 1 and should be 2")
    assert "row" in card.question(failure)
    assert "row" not in card.question(failure, "my/transposed.cu")


def test_every_kind_has_a_question():
    for kind in KINDS:
        assert card.question(Failure(kind, "anything")).endswith("?")


def test_a_line_is_not_broken_inside_a_thread_or_before_a_percent_sign():
    for pad in range(60):
        text = " ".join(card.wrapped("x" * pad + " y thread (0, 16) of block (3, 0) at 16 % of it"))
        assert "\u00a0" not in text
    for pad in range(60):
        lines = card.wrapped("x" * pad + " y thread (0, 16) of block (3, 0) at 16 % of it")
        assert not any(line.endswith(",") or line.startswith("%") for line in lines)


def test_the_header_names_the_machines():
    grade = fake()
    assert card.header(grade).endswith("· simulator (no GPU here)")
    grade.on = "cpu"
    assert card.header(grade).endswith("· simulator")
    grade.on, grade.card = "", SimpleNamespace(name="NVIDIA H200")
    assert card.header(grade).endswith("· simulator, NVIDIA H200")
    grade.on = "gpu"
    assert card.header(grade).endswith("· NVIDIA H200")


def test_colour_is_for_the_words_ok_and_fail_only():
    grade = fake(**CARDS["race"])
    coloured = card.render(grade, colour=True)
    assert re.sub(r"\033\[[0-9;]*m", "", coloured) == card.render(grade)
    assert set(re.findall(r"\033\[3\dm(\w+)\033\[0m", coloured)) == {"ok", "FAIL"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_a_terminal_and_for_what_takes_long(monkeypatch):
    for stream, after, text in (
        (Terminal(), 0.0, "\rsimulating Width 64 ...\033[K\r\033[K"),
        (Terminal(), 1e6, ""),
        (io.StringIO(), 0.0, ""),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        with card.progress("simulating Width 64", after):
            time.sleep(0.05)
        assert stream.getvalue() == text


def test_no_colour_without_a_terminal_or_where_it_is_not_wanted(monkeypatch):
    terminal, pipe = SimpleNamespace(isatty=lambda: True), SimpleNamespace(isatty=lambda: False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert card.in_colour(terminal)
    assert not card.in_colour(pipe)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not card.in_colour(terminal)
