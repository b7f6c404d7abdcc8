"""Is an output right, and if not, in which way is it wrong? Words for the arrays of one launch; no grading.

An element is right within (8 + 2·sqrt(K))·2^-24·|A|·|B|, K the number of products in its sum: a float32
sum in any order stays well below; inputs cut to TF32 or bfloat16, and sums in half precision, are above.
Where a task asks for more precision (`Precise`), that bound is its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dojo.task import Array, Configuration, Problem, Task, rounding

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
    values = f"is {number(got[first])} and should be {number(problem.want[first])}"
    return f"{element} {values}; {wrong.sum():,} of {wrong.size:,} elements are wrong"


def mistake(got: Array, problem: Problem, mistakes: Mapping[str, Array]) -> str:
    """The one known mistake that yields this output, as a clause; "" for none, or where several would."""
    if not wrong_elements(got, problem).any():
        return ""
    bound = tolerance(problem).max()
    sums = {name: values for name, values in mistakes.items() if values.any()}  # zeros have many causes
    matches = [name for name, values in sums.items() if bound >= np.abs(got - values).max()]
    return f"the kernel computed {matches[0]}" if len(matches) == 1 else ""


def pattern(got: Array, problem: Problem, configuration: Configuration) -> str:
    """What the wrong elements have in common, as a clause, where that is sure; else ""."""
    wrong = wrong_elements(got, problem)
    if not wrong.any():
        return ""
    if np.isnan(got[wrong]).all():
        return "they are NaN, as before the launch, perhaps never written"
    if wrong.size > 1 and not got.any():
        return "every element is 0"
    if only_partial_tiles(wrong, configuration):
        return "every full tile is right, the partial tiles at the edge are not"
    off = float((np.abs(got - problem.want) / np.maximum(problem.magnitude, 1e-30)).max())
    usual = rounding(problem.terms)
    if problem.units < usual and off * 2**24 < 4 * usual:
        return (
            f"it is off by {off * 2**24:,.0f} units of 2^-24 of the sum of |x|, where {problem.units:g} are "
            "allowed: one long float32 sum grows too large for what is added to it; add up several short ones"
        )
    if off < min(2**-8, 0.25 / problem.terms):  # less than a product that is missing or wrong
        return f"all are close, within 1 part in {1 / off:,.0f}, but a float32 sum is closer"
    return ""


def only_partial_tiles(wrong: Array, configuration: Configuration) -> bool:
    """Whether all that is wrong lies past the last whole block in x or y, and there is a whole block."""
    if wrong.ndim != 2 or len(configuration.block) < 2:
        return False
    x, y = configuration.block[:2]
    inside = wrong[: len(wrong) // y * y, : len(wrong[0]) // x * x]
    return 0 < inside.size < wrong.size and not inside.any()


def listing(got: Array, problem: Problem, name: str) -> list[str]:
    """The first wrong elements, at most five, a line each."""
    places = [tuple(place) for place in np.argwhere(wrong_elements(got, problem))[:SHOWN].tolist()]
    names = [subscript(name, place) for place in places]
    width = max(map(len, names), default=0)
    return [
        f"{element:{width}}  is {number(got[place]):>12}   should be {number(problem.want[place]):>12}"
        for element, place in zip(names, places, strict=True)
    ]


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


def subscript(name: str, place: Sequence[int]) -> str:
    """("P", (0, 16)) -> "P[0][16]"."""
    return name + "".join(f"[{index}]" for index in place)


def number(value: float) -> str:
    """A float as a learner writes it, with enough digits to see what is off: never np.float32(0.1)."""
    return f"{float(value):.6g}".replace("nan", "NaN")
