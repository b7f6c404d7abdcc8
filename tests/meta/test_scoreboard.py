"""`make scoreboard`: what is timed, and how it is written into the READMEs, with a card that is none."""

import datetime
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import stand_in
from grading import MODULES
from stand_in import Card

from dojo import cli, entrants, gpu, katas, nvrtc, scoreboard, tables
from dojo.katas import ROOT

README = """# Title with (parentheses)

<!-- other begins -->
Caption (measured).

| a |
|---|
| 1 |
<!-- other ends -->

<!-- scoreboard begins -->
By `make scoreboard` (not measured yet), in turns.

| solution | size | speed | beside it | ratio |
|---|---|--:|--:|--:|
<!-- scoreboard ends -->

The end (of it).
"""


def small(kata):
    """The kata's test module with a contest that the CPU multiplies at once."""
    module = MODULES[kata.stem]
    contest = module.CONTEST
    if kata.name not in ("register", "reducesum"):
        product = replace(contest.cublas, m=32, n=32, k=32)
        contest = replace(contest, size=dict.fromkeys(contest.size, 32), flop=10**9, cublas=product)
    return SimpleNamespace(TASK=module.TASK, CONTEST=contest)


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch, course):
    monkeypatch.setitem(stand_in.H200, "arch", "sm_80")  # for which other tests compile the solutions, too
    for module in (scoreboard, entrants):
        monkeypatch.setattr(module, "module_of", small)
    monkeypatch.setattr(scoreboard, "PRODUCTS", ((64, 64, 64), (33, 31, 29)))
    monkeypatch.setattr(scoreboard, "COLUMNS", (32, 256))
    for name in tables.FILES:
        (course / name).write_text(README, encoding="utf-8")


def readme(course):
    texts = {(course / name).read_text(encoding="utf-8") for name in tables.FILES}
    (text,) = texts
    return text


def test_every_solution_is_written_with_its_ratio(course, monkeypatch, capsys):
    Card(monkeypatch, {"solution": 2e-3, "solution, padding": 1e-3, "cuBLAS": 0.5e-3, "the read probe": 1e-3})
    assert cli.main(["scoreboard"]) == 0
    rows = [line for line in readme(course).splitlines() if line.startswith("| [")]
    assert capsys.readouterr().out.splitlines() == [*rows, "written into README.md and README.zh-CN.md"]
    assert rows[0] == (
        "| [01_naive](solutions/01_naive.cu) | 32 x 32 x 32 | 0.5 TFLOP/s | cuBLAS 2.0 | 25.0 % |"
    )
    names = [re.match(r"\| \[([\w.]+)\]", row)[1] for row in rows]
    expected = []
    for kata in katas.all_katas():
        sizes = 2 if kata.name in ("register", "reducesum") else 1
        expected += [file.name.removesuffix(".cu") for file in kata.solutions] * sizes
    assert names == expected
    assert "| 33 x 31 x 29 |" in rows[names.index("05_reducesum") - 1]
    assert rows[-1].startswith("| [05_reducesum](solutions/05_reducesum.cu) | 1,024 x 256 | ")
    assert rows[-1].endswith(" | `read_probe` 1.0 | 50.0 % |")


def test_the_caption_says_where_and_when(course, monkeypatch):
    Card(monkeypatch)
    cli.main(["scoreboard"])
    where = f"(NVIDIA H200, driver 580.1, NVRTC {nvrtc.version()}, {datetime.date.today()})"
    assert f"\nBy `make scoreboard` {where}, in turns.\n" in readme(course)


def test_the_rest_stays_and_twice_is_once(course, monkeypatch):
    Card(monkeypatch)
    cli.main(["scoreboard"])
    once = readme(course)
    kept = [line for line in once.splitlines() if not line.startswith("| [")]
    assert [line for line in kept if "make scoreboard" not in line] == [
        line for line in README.splitlines() if "make scoreboard" not in line
    ]
    cli.main(["scoreboard"])
    assert readme(course) == once


@pytest.mark.parametrize(
    "text",
    [
        "no marks\n",
        README.replace("<!-- scoreboard ends -->", ""),
        README.replace("(not measured yet)", "not measured yet"),
        README.replace("|---|---|--:|--:|--:|\n", ""),
    ],
)
def test_without_a_place_nothing_is_measured(text, course, monkeypatch, capsys):
    (course / "README.zh-CN.md").write_text(text, encoding="utf-8")
    card = Card(monkeypatch)
    assert cli.main(["scoreboard"]) == 2
    assert capsys.readouterr().err == (
        "README.zh-CN.md: between <!-- scoreboard begins --> and <!-- scoreboard ends --> "
        "there should be a caption (measured on) and a table\n"
    )
    assert card.compared == []
    assert (course / "README.zh-CN.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("wrong", ["solution", "solution, padding"])
def test_what_is_wrong_is_not_written(wrong, course, monkeypatch, capsys):
    Card(monkeypatch, wrong=[wrong])
    assert cli.main(["scoreboard"]) == 2
    assert capsys.readouterr().err.endswith("computed something else; nothing was written\n")
    assert readme(course) == README


def test_without_a_readme_nothing_is_measured(course, monkeypatch, capsys):
    (course / "README.zh-CN.md").unlink()
    card = Card(monkeypatch)
    assert cli.main(["scoreboard"]) == 2
    assert capsys.readouterr().err == "README.zh-CN.md: No such file or directory\n"
    assert card.compared == []


def test_a_readme_that_cannot_be_written_is_known_before(course, monkeypatch, capsys):
    monkeypatch.setattr(scoreboard.os, "access", lambda path, mode: False)  # root may write everywhere
    card = Card(monkeypatch)
    assert cli.main(["scoreboard"]) == 2
    assert capsys.readouterr().err == "README.md cannot be written\n"
    assert card.compared == []


def test_what_is_changed_meanwhile_stays(course, monkeypatch):
    card = Card(monkeypatch)
    (course / "README.md").write_text(README, encoding="utf-8")
    compare = card.compare

    def edits(*args, **options):
        (course / "README.md").write_text(README.replace("The end", "The new end"), encoding="utf-8")
        return compare(*args, **options)

    monkeypatch.setattr(gpu, "compare", edits)
    assert cli.main(["scoreboard"]) == 0
    text = (course / "README.md").read_text(encoding="utf-8")
    assert "The new end" in text
    assert "| [01_naive]" in text


def test_a_solution_that_does_not_compile_is_one_line(course, monkeypatch, capsys):
    (course / "solutions/01_naive.cu").write_text("nonsense", encoding="utf-8")
    Card(monkeypatch)
    assert cli.main(["scoreboard"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("solutions/01_naive.cu(1): error")
    assert line.endswith("; nothing was written")
    assert readme(course) == README


def test_without_cublas_the_speed_stands_alone():
    entrant = SimpleNamespace(file=ROOT / "solutions/01_naive.cu")
    contest = MODULES["01_naive"].CONTEST
    times = scoreboard.Timings(
        "solution", {"solution": [1e-3] * 9}, missing={"cuBLAS": "it is not installed"}
    )
    row = str(scoreboard.row(entrant, contest, contest.size, times))
    assert row.endswith("solutions/01_naive.cu) | 2048 x 2048 x 2048 | 17.2 TFLOP/s | - | - |")


def test_without_a_card_it_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("dojo.gpu.card", lambda: None)
    monkeypatch.setattr("dojo.gpu.why_not", lambda: "no NVIDIA driver here")
    assert cli.main(["scoreboard"]) == 2
    assert capsys.readouterr().err == "scoreboard needs a GPU (no NVIDIA driver here)\n"


def test_the_sizes_are_those_of_the_goal():
    assert scoreboard.product(MODULES["04_register"].CONTEST, 4097, 4095, 4093).flop == 2 * 4097 * 4095 * 4093


@pytest.mark.parametrize("name", tables.FILES)
def test_the_readmes_have_a_place_for_the_table(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "| a row |" in tables.put(text, "scoreboard", ["| a row |"], "measured")
