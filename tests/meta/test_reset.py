"""`reset`: the stub comes back, and nothing that the learner wrote is ever lost."""

import os

import pytest

from dojo import cli, katas, state
from dojo.state import Event

TILED = katas.Kata("02_tiled")


def kept(course):
    return sorted((course / "attempts").iterdir())


def test_reset_keeps_the_attempt_with_its_verdict(course, capsys):
    mine = "// mine, not UTF-8: \xff\r\n".encode("latin-1")
    TILED.file.write_bytes(mine)
    text = mine.decode("utf-8", "replace")
    graded = Event(
        state.now(), "02_tiled", "grade", "PASS", speed="8.1 TFLOP/s: fast", digest=state.digest(text)
    )
    state.add(graded)
    assert cli.main(["reset", "tiled"]) == 0
    (attempt,) = kept(course)
    assert attempt.read_bytes() == mine
    assert TILED.file.read_bytes() == TILED.stub.read_bytes()
    told = (
        "katas/02_tiled.cu is the stub again; your attempt (PASS, 8.1 TFLOP/s) is kept:\nattempts/02_tiled.2"
    )
    assert capsys.readouterr().out.startswith(told)
    noted = state.history()[0][-1]
    assert (noted.what, noted.verdict, noted.speed) == ("reset", "PASS", "8.1 TFLOP/s: fast")
    assert noted.kept == f"attempts/{attempt.name}"


@pytest.mark.parametrize("change", [b"\n", b" ", b"\r"])
def test_one_byte_is_kept(change, course):
    TILED.file.write_bytes(TILED.stub.read_bytes() + change)
    cli.main(["reset", "tiled"])
    assert kept(course)[0].read_bytes() == TILED.stub.read_bytes() + change
    assert TILED.file.read_bytes() == TILED.stub.read_bytes()


def test_an_edit_after_the_last_grade_has_no_verdict(course, capsys):
    state.add(Event(state.now(), "02_tiled", "grade", "PASS", digest=state.digest("before")))
    TILED.file.write_text("after")
    cli.main(["reset", "tiled"])
    assert "your attempt (not graded) is kept" in capsys.readouterr().out


def test_two_in_one_second_are_both_kept(course):
    for text in ("one", "two", "three"):
        TILED.file.write_text(text)
        cli.main(["reset", "tiled"])
    assert sorted(path.read_text() for path in kept(course)) == ["one", "three", "two"]


def test_the_stub_and_a_missing_file(course, capsys):
    cli.main(["reset", "tiled"])
    TILED.file.unlink()
    cli.main(["reset", "tiled"])
    out = capsys.readouterr().out
    assert out == (
        "katas/02_tiled.cu is the stub already; there was nothing to keep\n"
        "katas/02_tiled.cu was missing: it is the stub again\n"
    )
    assert TILED.file.read_bytes() == TILED.stub.read_bytes()
    assert not (course / "attempts").exists()


def test_what_cannot_be_kept_is_not_reset(course, capsys):
    TILED.file.write_text("mine")
    (course / "attempts").write_text("in the way")
    assert cli.main(["reset", "tiled"]) == 2
    assert TILED.file.read_text() == "mine"
    assert capsys.readouterr().err.startswith("nothing was reset: ")


def test_a_failure_half_way_puts_the_file_back(course, monkeypatch):
    TILED.file.write_text("mine")
    monkeypatch.setattr("dojo.reset.put", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full", "x")))
    assert cli.main(["reset", "tiled"]) == 2
    assert TILED.file.read_text() == "mine"
    assert kept(course) == []


def test_a_linked_kata_stays_a_link(course, tmp_path):
    elsewhere = tmp_path / "elsewhere.cu"
    elsewhere.write_text("mine")
    TILED.file.unlink()
    os.symlink(elsewhere, TILED.file)
    cli.main(["reset", "tiled"])
    assert TILED.file.is_symlink()
    assert elsewhere.read_bytes() == TILED.stub.read_bytes()
    assert kept(course)[0].read_text() == "mine"
