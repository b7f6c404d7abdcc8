"""In which way are outputs wrong? A known mistake, a shift, a region, what is in it: told where it is sure.

`telling` looks at all launches of one kernel: what one size leaves open, another may decide. Whether an
element is wrong is compare.py's subject.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dojo.compare import tolerance, wrong_elements
from dojo.task import Array, Problem, rounding, unwritten

FEWEST = 4  # elements that must agree before a pattern is named
NO_FRACTION = 2**23  # from here on every float32 is a whole number
MISTAKE, REGULAR, REGION, CONTENT, NOTHING = 4, 3, 2, 1, 0  # how much a clue tells


# Says of one launch: a clause that holds there, "" if it does not, None where that cannot be told.
Clause = Callable[["Seen"], str | None]


@dataclass(frozen=True)
class Seen:
    """What one launch left in the output."""

    got: Array
    problem: Problem
    output: str  # its name: "C"
    tile: Sequence[int]  # rows and columns of it that one block computes; () where that is not known
    known: Callable[[], Mapping[str, Array]]  # known mistakes: see `Task.mistakes`

    @cached_property
    def wrong(self) -> Array:
        return wrong_elements(self.got, self.problem)

    @cached_property
    def mistakes(self) -> dict[str, str]:
        """Of each known mistake whether it "yields" this output, "does not", or proves nothing: zeros do."""
        data, verdicts = self.problem, {}
        for name, values in self.known().items():
            bound = data.units * 2.0**-24 * max(data.magnitude.max(), np.abs(values).max())
            with np.errstate(invalid="ignore"):
                same = np.abs(self.got - values).max() <= bound
            verdicts[name] = "does not" if not same else "yields" if values.any() else "zeros"
        return verdicts


def telling(wrong: Sequence[Seen], right: Sequence[Seen] = ()) -> tuple[Seen, str]:
    """The wrong launch that tells most, the first of such, and the clause that it tells, or ""."""
    clues, others = [], [seen for seen in wrong if seen.wrong.any()]
    for seen, name in zip(wrong, mistakes(wrong, right), strict=True):
        clues.append((MISTAKE, f"the kernel computed {name}") if name else pattern(seen, others))
    best = max(range(len(wrong)), key=lambda n: clues[n][0])
    return wrong[best], clues[best][1]


def mistakes(wrong: Sequence[Seen], right: Sequence[Seen] = ()) -> list[str]:
    """For each wrong output the one known mistake that yields it, or "".

    Of several, those are left out that do not yield another wrong output; if that leaves several, those too
    that would have spoiled a right one.
    """

    def refuted(outputs: Sequence[Seen]) -> set[str]:
        found = [seen.mistakes.items() for seen in outputs]
        return {kind(name) for items in found for name, verdict in items if verdict == "does not"}

    names = []
    elsewhere = refuted([seen for seen in wrong if seen.wrong.any()])
    for seen in wrong:
        left = [name for name, verdict in seen.mistakes.items() if verdict == "yields" and seen.wrong.any()]
        left = [name for name in left if kind(name) not in elsewhere]
        if len(left) > 1:
            left = [name for name in left if kind(name) not in refuted(right)]
        names.append(left[0] if len(left) == 1 else "")
    return names


def kind(mistake: str) -> str:
    """Its name without what changes from size to size: "the sum without its last phase"."""
    return mistake.partition(" (")[0]


def pattern(seen: Seen, others: Sequence[Seen] = ()) -> tuple[int, str]:
    """What the wrong elements have in common, as a clause, and how much that tells.

    A clause that says more than which elements are wrong must not be false of the other wrong launches.
    """
    wrong = seen.wrong
    if not wrong.any():
        return NOTHING, ""

    def throughout(clause: Clause) -> str:
        here = clause(seen)
        return here if here and all(clause(other) in (here, None) for other in others) else ""

    if clue := throughout(shift) or throughout(whole_numbers):
        return REGULAR, clue
    found = region(wrong)
    if not found and throughout(only_partial_tiles):
        found = f"every full tile is right, {edge(wrong, seen.tile)}", True
    where, several = found or ("", bool(wrong.sum() > 1))
    rank = REGULAR if "every" in where else REGION
    if what := content(seen):
        subject = where or ("they" if several else "it")
        return rank if where else CONTENT, f"{subject} {what[several]}"
    if (clue := close(seen)) and all(near(other) for other in others):
        return REGION, clue
    if where and wrong.sum() >= FEWEST:
        return rank, f"{where} {'are' if several else 'is'} wrong"
    return NOTHING, ""


# ------------------------------------------------------------------------------------------ which are wrong


def region(wrong: Array) -> tuple[str, bool] | None:
    """Which whole rows or columns are wrong, or elements of a vector, and whether that is a plural.

    None where they are all the elements, or where they have no such shape.
    """
    if wrong.all():
        return None
    if wrong.ndim == 1:
        return some_of(wrong, "element")
    rows, columns = np.asarray(wrong.any(axis=1)), np.asarray(wrong.any(axis=0))
    if (wrong == rows[:, None]).all():
        return some_of(rows, "row")
    if (wrong == columns).all():
        return some_of(columns, "column")
    return None


def some_of(wrong: Array, noun: str) -> tuple[str, bool] | None:
    """ "the last 2 of 7 rows", "every second row (1, 3, 5, ...)", "all rows but every 8th (0, 8, 16, ...)",
    and whether that is a plural.
    """
    bad, good = np.flatnonzero(wrong), np.flatnonzero(~wrong)
    for end, there in (("last", bad[0] > good[-1]), ("first", bad[-1] < good[0])):
        if there:
            several = len(bad) > 1
            count = f"{len(bad)}" if several else "one"
            return f"the {end} {count}" + (f" of {len(wrong)} {noun}s" if noun != "element" else ""), several
    if nth := every(bad, len(wrong)):
        return f"every {nth} {noun} ({series(bad)})", False
    if nth := every(good, len(wrong)):
        return f"all {noun}s but every {nth} ({series(good)})", True
    return None


def every(places: Array, size: int) -> str:
    """ "second" for 1, 3, 5, 7 of 8 or 9: every one of a fixed step up to the end; else ""."""
    steps = np.unique(np.diff(places))
    if len(places) < 3 or len(steps) != 1 or places[0] >= steps[0] or places[-1] + steps[0] < size:
        return ""
    n = int(steps[0])
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return {2: "second", 3: "third", 4: "fourth"}.get(n, f"{n}{ending}")


def series(places: Array) -> str:
    return ", ".join(map(str, places[:3])) + (", ..." if len(places) > 3 else "")


def only_partial_tiles(seen: Seen) -> str | None:
    """Whether all that is wrong lies past the last whole tile in some direction; None without a whole one."""
    if len(seen.tile) < 2:
        return None
    inside = whole_tiles(seen.wrong, seen.tile)
    if not inside.size:
        return None
    return "" if inside.any() else "every full tile is right"


def edge(wrong: Array, tile: Sequence[int]) -> str:
    """What is wrong of the partial tiles, where nothing else is: "the partial tiles at the edge", or some."""
    outside = wrong.size - whole_tiles(wrong, tile).size
    return ("" if wrong.sum() == outside else "elements of ") + "the partial tiles at the edge"


def whole_tiles(array: Array, tile: Sequence[int]) -> Array:
    """The part of a matrix that whole tiles cover."""
    rows, columns = tile
    return array[: len(array) // rows * rows, : len(array[0]) // columns * columns]


# ------------------------------------------------------------------------------------------- what is in them


def content(seen: Seen) -> tuple[str, str] | None:
    """What the wrong elements hold, for one element and for several."""
    got, before = np.asarray(seen.got[seen.wrong], np.float32), seen.problem.args[seen.output]
    if seen.output not in seen.problem.inputs:
        if (got.view(np.uint32) == unwritten(got.shape).view(np.uint32)).all():
            return "was never written", "were never written"
    elif len(got) > 1 and (got == before[seen.wrong]).all():
        held = f"what {seen.output} held before the launch"
        return f"still holds {held}", f"still hold {held}"
    if np.isnan(got).all():
        return "is NaN", "are NaN"
    if len(got) > 1 and not got.any():
        return "is 0", "are 0"
    return None


def shift(seen: Seen) -> str | None:
    """Whether each row or column holds what its neighbour should, as a clause; None where they are too few.

    There must be three: where there are two, the second may hold the first one's for another reason.
    """
    got, want, bound = seen.got, seen.problem.want, tolerance(seen.problem)
    noun = ("row", "column") if got.ndim == 2 else ("element",)
    neighbours = {"row": ("above", "below"), "column": ("on its left", "on its right")}
    tellable = False
    for axis, name in enumerate(noun):
        here, there = (np.moveaxis(array, axis, 0) for array in (got, want))
        allowed = np.moveaxis(bound, axis, 0)
        before, after = neighbours.get(name, ("before it", "after it"))
        for mine, theirs, side in ((slice(1, None), slice(-1), before), (slice(-1), slice(1, None), after)):
            if len(here) >= FEWEST - 1 and here[mine].size >= FEWEST and there[theirs].any():
                tellable = True
                with np.errstate(invalid="ignore"):
                    if (np.abs(here[mine] - there[theirs]) <= allowed[theirs]).all():
                        return f"each {name} holds what the {name} {side} should: off by one"
    return "" if tellable else None


def whole_numbers(seen: Seen) -> str | None:
    """Whether there is no fraction anywhere, as a clause; None where zeros, or too few, leave it open."""
    got = seen.got
    if got.size < FEWEST or not got.any():
        return None
    if not np.isfinite(got).all() or (got != np.rint(got)).any() or np.abs(got).max() >= NO_FRACTION:
        return ""
    return "every element is a whole number, as if something were an int"


def error(seen: Seen) -> float:
    """The largest, in units of the sum of the absolute values."""
    problem = seen.problem
    with np.errstate(invalid="ignore", over="ignore"):
        return float((np.abs(seen.got - problem.want) / np.maximum(problem.magnitude, 1e-30)).max())


def near(seen: Seen) -> bool:
    """Whether its errors may come of fewer bits."""
    return error(seen) < 2**-5


def linear(seen: Seen) -> bool:
    """Whether the error is a constant, or a share of the value, or both: what no lack of bits does.

    Of two elements or one that cannot be told, and is said of them.
    """
    want, off = seen.problem.want, seen.got - seen.problem.want
    spread = want - want.mean()
    share = (spread * off).sum() / max((spread**2).sum(), 1e-30)  # the least squares' slope
    return bool((np.abs(off - off.mean() - share * spread) <= tolerance(seen.problem)).all())


def close(seen: Seen) -> str:
    """Whether all are nearly right, as a clause: what rounding to fewer bits does, or one long sum."""
    problem, off, usual = seen.problem, error(seen), rounding(seen.problem.terms)
    if problem.units < usual and off * 2**24 < 4 * usual:
        return (
            f"its error is {off * 2**24:,.0f} * 2^-24 of the sum of |x|, where {problem.units:g} * 2^-24 is "
            "allowed: one long float32 sum grows too large for what is added to it; add up several short ones"
        )
    few = min(2**-8, 0.25 / problem.terms)  # less than a product that is missing or wrong
    if off < few and not linear(seen):
        return f"all are close, within 1 part in {1 / off:,.0f}, but a float32 sum is closer"
    return ""
