"""Grading in process, for the tests here: a kata's test module run point by point, without pytest."""

import copy
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dojo import card, katas
from dojo.grader import POINTS, Grade
from dojo.outcome import Failure, NotGraded
from dojo.pair import module_of

GOLDEN = Path(__file__).parent / "golden"
MODULES = {kata.stem: module_of(kata) for kata in katas.all_katas()}

# What another version of the compiler may change, and no sentence is about: registers, what follows from
# them, and how many instructions a loop is.
UNSTEADY = (
    (r"\d+ registers", "N registers"),
    (r"[\d,]+ bytes of (spills|what should)", r"N bytes of \1"),
    (r"\d+ blocks an SM, occupancy \d+% by \w+", "N blocks an SM, occupancy N%"),
    (r"threads, [\d,]+ in all", "threads, N in all"),
    (r"[\d,]+ instructions", "N instructions"),
)


def fresh(file: Path, seed: int = 7, kata: str = "") -> Grade:
    """A grade of this file on the simulator; the kata is told by the file's name: 02_tiled.no_guard.cu."""
    stem = kata or file.name.split(".")[0]
    return Grade(MODULES[stem].TASK, katas.find(stem), file, on="cpu", seed=seed)


def points(grade: Grade) -> Iterator[tuple[str, Failure | None]]:
    """Run the five tests in order; yields each with its failure. An internal error is raised."""
    for name in POINTS:
        try:
            getattr(MODULES[grade.kata.stem], f"test_{name}")(grade)
            yield name, None
        except NotGraded:
            yield name, None
        except Failure as failure:
            yield name, failure


def first_failure(grade: Grade) -> tuple[str, Failure] | None:
    """The first failed point; the points after it are not run."""
    return next(((name, failure) for name, failure in points(grade) if failure), None)


def steady_card(grade: Grade) -> str:
    """The whole card, the points run that have not been, with N for what another compiler may change."""
    list(points(grade))
    shown = copy.copy(grade)
    shown.outcomes = {name: replace(o, text=steady(o.text)) for name, o in grade.outcomes.items()}
    return card.render(shown)


def steady(text: str) -> str:
    for pattern, instead in UNSTEADY:
        text = re.sub(pattern, instead, text)
    return text


def check_golden(name: str, text: str) -> None:
    """The text is that of tests/meta/golden/NAME.txt; UPDATE_GOLDEN=1 writes it anew."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == file.read_text(encoding="utf-8")
