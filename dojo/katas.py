"""Finds the katas. The folder listing is the registry: a kata is `katas/NN_name.cu` and its namesakes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class UnknownKata(ValueError):
    """No kata goes by this name; str(e) is a sentence that lists those there are."""


@dataclass(frozen=True)
class Kata:
    """One kata and where its parts are, whether or not each of them exists."""

    stem: str  # "02_tiled"

    @property
    def number(self) -> int:
        return int(self.stem.partition("_")[0])

    @property
    def name(self) -> str:
        return self.stem.partition("_")[2]

    @property
    def file(self) -> Path:
        """The learner's own."""
        return ROOT / "katas" / f"{self.stem}.cu"

    @property
    def lesson(self) -> Path:
        return ROOT / "katas" / f"{self.stem}.md"

    @property
    def stub(self) -> Path:
        """The file as it was before the learner touched it."""
        return ROOT / "dojo" / "stubs" / f"{self.stem}.cu"

    @property
    def solution(self) -> Path:
        return ROOT / "solutions" / f"{self.stem}.cu"

    @property
    def solutions(self) -> list[Path]:
        """The solution, then the other accepted ones: 03_swizzle.padding.cu."""
        return [self.solution, *sorted(self.solution.parent.glob(f"{self.stem}.*.cu"))]

    @property
    def test(self) -> Path:
        return ROOT / "tests" / "katas" / f"test_{self.stem}.py"


def all_katas() -> list[Kata]:
    """Every kata, by number. One whose file the learner has removed is still there: its stub remains."""
    files = [*(ROOT / "katas").glob("*.cu"), *(ROOT / "dojo" / "stubs").glob("*.cu")]
    stems = {file.stem for file in files if re.fullmatch(r"\d+_\w+", file.stem)}
    return sorted((Kata(stem) for stem in stems), key=lambda kata: (kata.number, kata.name))


def find(name: str) -> Kata:
    """The kata called `name`: "tiled", "02_tiled", "02" or "2". Raises UnknownKata."""
    katas = all_katas()
    for kata in katas:
        if name in (kata.name, kata.stem) or (name.isdecimal() and int(name) == kata.number):
            return kata
    known = ", ".join(kata.name for kata in katas)
    raise UnknownKata(f"no kata {name!r}: there are {known}" if name else f"which kata? There are {known}")
