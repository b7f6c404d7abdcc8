"""Is an output right, and if not, in which way is it wrong? Words for the arrays of one launch; no grading.

An element is right within (8 + 2·sqrt(K))·2^-24·|A|·|B|, K the number of products in its sum: a float32
sum in any order stays well below; inputs cut to TF32 or bfloat16, and sums in half precision, are above.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dojo.task import Array, Configuration, Problem, Task

SHOWN = 5  # wrong elements that a failure lists


def tolerance(problem: Problem) -> Array:
    """The largest error that is still rounding, for every element of the output."""
    return np.asarray((8 + 2 * math.sqrt(problem.terms)) * 2.0**-24 * problem.magnitude)


def wrong_elements(got: Array, problem: Problem) -> Array:
    """True where the output is not the specification's. NaN is always wrong."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(got - problem.want) <= tolerance(problem)))


def sentence(
    task: Task,
    problem: Problem,
    got: Array,
    configuration: Configuration,
    constants: Mapping[str, int],
) -> str:
    """The first wrong element, whose it is, how many there are and what they are; "" if all are right."""
    wrong = wrong_elements(got, problem)
    if not wrong.any():
        return ""
    first = tuple(np.argwhere(wrong)[0].tolist())
    owner = task.owner(first, configuration.block)
    clue = pattern(got, problem, configuration, task.mistakes(**problem.inputs, **constants))
    element = subscript(task.output, first) + (f", the element of {owner}," if owner else "")
    values = f"is {number(got[first])} and should be {number(problem.want[first])}"
    count = f"{wrong.sum():,} of {wrong.size:,} elements are wrong"
    return f"{element} {values}; {count}" + (f": {clue}" if clue else "")


def pattern(got: Array, problem: Problem, configuration: Configuration, mistakes: Mapping[str, Array]) -> str:
    """What the wrong values are, as a clause, where that is sure; else ""."""
    wrong = wrong_elements(got, problem)
    if np.isnan(got[wrong]).all():
        return "they are NaN, as before the launch, perhaps never written"
    if wrong.size > 1 and not got.any():
        return "every element is 0"
    bound = tolerance(problem).max()
    for name, values in mistakes.items():
        if np.abs(values - problem.want).max() > bound >= np.abs(got - values).max():
            return f"the kernel computed {name}"
    if only_partial_tiles(wrong, configuration):
        return "every full tile is right, the partial tiles at the edge are not"
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
