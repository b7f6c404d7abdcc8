"""Is an output right, and if not, which elements are wrong? Words for the arrays of one launch; no grading.

In which way they are wrong is the subject of patterns.py.

An element is right within (8 + 2·sqrt(K))·2^-24·|A|·|B|, K the number of products in its sum: a float32
sum in any order stays well below; inputs cut to TF32 or bfloat16, and sums in half precision, are above.
Where a task asks for more precision (`Precise`), that bound is its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dojo.task import Array, Configuration, Problem, Size, Task, spell_short

SHOWN = 5  # wrong elements that a failure lists


def tolerance(problem: Problem) -> Array:
    """The largest error that is still rounding, for every element of the output."""
    return np.asarray(problem.units * 2.0**-24 * problem.magnitude)


def wrong_elements(got: Array, problem: Problem) -> Array:
    """True where the output is not the specification's. NaN is always wrong."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(got - problem.want) <= tolerance(problem)))


def sentence(task: Task, problem: Problem, got: Array, configuration: Configuration) -> str:
    """The first wrong element, whose it is, and how many there are; "" if all are right."""
    wrong = wrong_elements(got, problem)
    if not wrong.any():
        return ""
    first = tuple(np.argwhere(wrong)[0].tolist())
    owner = task.owner(first, configuration.block)
    element = subscript(task.output, first) + (f", the element of {owner}," if owner else "")
    values = f"is {number(got[first] + 0)} and should be {number(problem.want[first])}"  # -0 + 0 is 0
    return f"{element} {values}{how_many(wrong)}"


def how_many(wrong: Array) -> str:
    """ "; 2 of 4 elements are wrong"; nothing where there is one element only."""
    count, size = int(wrong.sum()), wrong.size
    if size == 1:
        return ""
    if count == size:
        return f"; all {size:,} elements are wrong"
    return f"; {count:,} of {size:,} elements {'is' if count == 1 else 'are'} wrong"


def listing(got: Array, problem: Problem, name: str) -> list[str]:
    """The first wrong elements, at most five, a line each."""
    places = [tuple(place) for place in np.argwhere(wrong_elements(got, problem))[:SHOWN].tolist()]
    names = [subscript(name, place) for place in places]
    width = max(map(len, names), default=0)
    return [
        f"{element:{width}}  is {number(got[place] + 0):>12}   should be {number(problem.want[place]):>12}"
        for element, place in zip(names, places, strict=True)
    ]


def difference(got: Array, again: Array, problem: Problem, name: str) -> str:
    """Whether two launches on the same data left different values, more so than rounding, as a clause."""
    with np.errstate(invalid="ignore"):
        differ = ~(np.abs(got - again) <= tolerance(problem)) & ~(np.isnan(got) & np.isnan(again))
    if not differ.any():
        return ""
    place = tuple(np.argwhere(differ)[0].tolist())
    return (
        f"a second launch on the same data left {number(again[place])} in {subscript(name, place)}, not "
        f"{number(got[place])}: what comes out depends on which threads come first"
    )


def changed_input(before: Mapping[str, Array], after: Mapping[str, Array]) -> str:
    """A sentence about the first input array of which a bit changed, else ""."""
    for name, array in before.items():
        bits = f"u{array.itemsize}"
        changed = np.argwhere(array.view(bits) != after[name].view(bits))
        if changed.size:
            place = tuple(changed[0].tolist())
            was, now = number(array[place]), number(after[name][place])
            return f"{subscript(name, place)} was {was} and is {now} after the launch; inputs must not change"
    return ""


def both_lists(wrong: Sequence[Size], right: Sequence[Size]) -> list[str]:
    """ "wrong at Width 1, 2, 17" and "right at Width 16, 32"; sizes with the same alpha and beta in one line:
    "wrong at M x N x K = 1 x 1 x 1, 5 x 3 x 2; alpha 0.5, beta 2".
    """
    lists: dict[tuple[str, str], list[str]] = {}
    for word, sizes in (("wrong", wrong), ("right", right)):
        for size in sizes:
            extents, _, scalars = spell_short(size).partition(", ")
            lists.setdefault((word, scalars), []).append(extents)
    names = [name for name, value in [*wrong, *right][0].items() if not isinstance(value, float)]
    at = " x ".join(names) + (" =" if len(names) > 1 else "")
    return [
        f"{word} at {at} {', '.join(extents)}" + (f"; {scalars}" if scalars else "")
        for (word, scalars), extents in lists.items()
    ]


def subscript(name: str, place: Sequence[int]) -> str:
    """("P", (0, 16)) -> "P[0][16]"."""
    return name + "".join(f"[{index}]" for index in place)


def number(value: float) -> str:
    """A float as a learner writes it, with enough digits to see what is off: never np.float32(0.1)."""
    return f"{float(value):.6g}".replace("nan", "NaN")
