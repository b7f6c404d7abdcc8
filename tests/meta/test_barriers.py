"""The READMEs' table of kernels with a barrier missing: the half of it that needs no card is made again."""

import importlib.util
import re
from types import SimpleNamespace

import pytest

from dojo.katas import ROOT

SPEC = importlib.util.spec_from_file_location("barriers", ROOT / "tests/fidelity/barriers.py")
barriers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(barriers)

TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in barriers.FILES}
SOLUTION = barriers.read_source(barriers.KATA.solution)


ROWS = {
    name: re.findall(r"^\| \d.*$", text.partition(barriers.BEGIN)[2].partition(barriers.END)[0], re.MULTILINE)
    for name, text in TEXTS.items()
}


def cells():
    """The measured cells, by block: {"4 x 4": ["30, 30, 30, 30: race", ...]}."""
    rows = [row.strip("| ").split(" | ") for row in ROWS["README.md"]]
    return {block: rest for block, *rest in rows}


def test_the_verdicts_are_the_simulators():
    told = [cell.partition(": ")[2] for row in cells().values() for cell in row]
    assert told == [barriers.verdict(code) for _, _, code in barriers.kernels("sm_80")]


def test_every_launch_was_counted():
    assert list(cells()) == [f"{tile} x {tile}" for tile in barriers.TILES]
    for row in cells().values():
        assert len(row) == len(barriers.MISSING)
        for cell in row:
            counts = [int(count) for count in cell.partition(":")[0].split(", ")]
            assert len(counts) == len(barriers.WIDTHS)
            assert all(0 <= count <= barriers.LAUNCHES for count in counts)


@pytest.mark.parametrize("name", barriers.FILES)
def test_the_caption_tells_what_is_measured(name):
    caption = TEXTS[name].partition(barriers.BEGIN)[2].partition("(")[0]
    assert sorted(map(int, re.findall(r"\d+", caption))) == sorted([barriers.LAUNCHES, *barriers.WIDTHS])


@pytest.mark.parametrize("name", barriers.FILES)
def test_new_rows_take_the_place_of_the_old(name):
    old = TEXTS[name]
    new = barriers.put(old, ["| 4 x 4 | 7 |"], "a card")
    caption, *rows = [line for line in new.splitlines() if line not in old.splitlines()]
    assert "(a card)" in caption
    assert rows == ["| 4 x 4 | 7 |"]
    measured_on = re.search(r"\(([^()\n]+, NVRTC [\d.]+)\)", old)[1]
    assert barriers.put(new, ROWS[name], measured_on) == old


def test_one_barrier_is_missing():
    text = barriers.variant(SOLUTION, 8, 1, "__syncwarp();")
    before, after = SOLUTION.splitlines(), text.splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [(old.split(";")[0].strip(), new.split(";")[0].strip()) for old, new in changed] == [
        ("constexpr int TILE_WIDTH = 16", "constexpr int TILE_WIDTH = 8"),
        ("__syncthreads()", "__syncwarp()"),
    ]
    assert text.count(barriers.BARRIER) == 1
    assert text.index(barriers.BARRIER) < text.index("__syncwarp();")


@pytest.mark.parametrize(
    "text", [SOLUTION.replace("TILE_WIDTH =", "TILE ="), SOLUTION + barriers.BARRIER, ""]
)
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"define TILE_WIDTH once and have __syncthreads\(\); twice"):
        barriers.variant(text, 8, 0, "")


def test_what_is_measured_is_written(course, monkeypatch, capsys):
    """The whole script, with a stand-in for the card."""
    for name, text in TEXTS.items():
        (course / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(barriers.gpu, "card", lambda: SimpleNamespace(name="a card", arch="sm_80"))
    monkeypatch.setattr(barriers, "right", lambda code, problems: len(problems))
    monkeypatch.setattr(barriers, "WIDTHS", (33, 5))
    assert barriers.main() == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "| 4 x 4 | 30, 30: race | 30, 30: race | 30, 30: safe |"
    for name in barriers.FILES:
        text = (course / name).read_text(encoding="utf-8")
        assert f"(a card, NVRTC {barriers.nvrtc.version()})" in text
        assert "\n".join(rows) in text


@pytest.mark.parametrize("text", ["no marks", f"{barriers.BEGIN}\nno table (yet)\n{barriers.END}\n"])
def test_a_readme_without_the_table_is_refused(text):
    with pytest.raises(ValueError, match="there should be a caption"):
        barriers.put(text, [], "a card")
