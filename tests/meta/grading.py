"""Grading in process, for the tests here: a kata's test module run point by point, without pytest."""

from collections.abc import Iterator
from pathlib import Path

from dojo import katas
from dojo.grader import POINTS, Grade
from dojo.outcome import Failure, NotGraded
from dojo.pair import module_of

MODULES = {kata.stem: module_of(kata) for kata in katas.all_katas()}


def fresh(file: Path, seed: int = 7) -> Grade:
    """A grade of this file on the simulator; the kata is told by the file's name: 02_tiled.no_guard.cu."""
    stem = file.name.split(".")[0]
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
