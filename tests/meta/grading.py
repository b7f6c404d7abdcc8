"""Grading in process, for the tests here: a kata's test module run point by point, without pytest."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from dojo import katas
from dojo.grader import POINTS, Grade
from dojo.outcome import Failure, NotGraded


def module_of(kata: katas.Kata) -> ModuleType:
    """tests/katas/test_NN_name.py, imported under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"grades_{kata.stem}", kata.test)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
