"""Hints: three levels for every kata, one after the other, set back by a pass."""

import pytest
from test_grades import KINDS

from dojo import card, cli, hints, katas, state
from dojo.state import Event

TILED = katas.Kata("02_tiled")
ALL = pytest.mark.parametrize("kata", katas.all_katas(), ids=lambda kata: kata.stem)


@ALL
def test_every_kata_has_three(kata):
    assert [bool(level) for level in hints.levels(kata)] == [True] * 3
    assert "?" in hints.levels(kata)[0]  # the first one asks
    assert "..." in hints.levels(kata)[2]  # the last one leaves something to do
    assert hints.asked(kata) != "-"


@ALL
def test_they_fit_a_terminal_and_sound_like_no_failure(kata):
    text = hints.text(kata)
    assert max(map(len, text.splitlines())) <= card.WIDTH
    assert not any(f"{kind}: " in text for kind in KINDS)


@ALL
def test_no_hint_is_the_solution(kata):
    hole = kata.solution.read_text(encoding="utf-8")
    for line in hints.levels(kata)[2].splitlines():
        assert "..." not in line or line.strip() not in hole


def test_one_after_the_other_then_the_last_again(course, capsys):
    for words in ("Hint 1 of 3 for 02_tiled\n", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"):
        assert cli.main(["hint", "tiled"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(words)
    assert out.endswith("That was the last. The lesson: katas/02_tiled.md\n")
    assert hints.next_hint(katas.Kata("01_naive")).startswith("Hint 1 of 3")


def test_after_a_pass_the_difference_and_then_from_the_first(course):
    hints.next_hint(TILED)
    state.add(Event(state.now(), "02_tiled", "grade", "PASS"))
    line = "Passed. The difference to the reference: diff katas/02_tiled.cu solutions/02_tiled.cu"
    assert hints.next_hint(TILED) == line
    state.add(Event(state.now(), "02_tiled", "grade", "FAIL at safe"))
    assert hints.next_hint(TILED).startswith("Hint 1 of 3")


def test_a_kata_without_hints_has_its_lesson(course):
    (course / "dojo/hints/02_tiled.md").unlink()
    assert hints.next_hint(TILED) == "there are no hints for tiled; its lesson is katas/02_tiled.md"
    assert hints.asked(TILED) == "-"


@pytest.mark.parametrize("command", ["hint", "reset", "watch"])
def test_an_unknown_kata_is_one_line(command, course, capsys):
    assert cli.main([command, "warp"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "naive, tiled" in err
    assert err.count("\n") == 1
