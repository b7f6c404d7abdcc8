"""Where kernels stand in the roofline chart: those of one kata, and the learner's of the others.

The learner's places are kept in the history, so that one chart shows all katas so far. What is drawn, and
what is measured, is said in roofline.py and versus.py.
"""

import math
from collections.abc import Mapping, Sequence

from dojo import counts, katas, roofline, state
from dojo.entrants import YOURS, Entrant
from dojo.katas import Kata
from dojo.outcome import Failure
from dojo.pair import module_of
from dojo.roofline import Point
from dojo.speed import Bandwidth
from dojo.state import Event


def here(kata: Kata, them: Sequence[Entrant], rates: Mapping[str, float]) -> list[Point]:
    """Those that were timed and whose loads the simulator can count, the learner's last.

    `rates` are by name, in the contest's unit. The learner's mark is the kata's number, others have letters.
    """
    points = []
    letters = iter("abcdefgh")
    for entrant in sorted(them, key=lambda entrant: entrant.name == YOURS):
        contest = module_of(entrant.kata).CONTEST
        size = counts.traffic_size(entrant.kata)
        try:
            report = entrant.grade("cpu").report(size)
        except Failure:
            continue
        intensity = roofline.intensity(report, contest.flop_of(report, size))
        rate = rates.get(entrant.name, 0.0) * (intensity / 1000 if isinstance(contest, Bandwidth) else 1)
        if intensity and rate:
            own = entrant.name == YOURS
            mark = str(kata.number) if own else next(letters)
            points.append(Point(mark, entrant.name, intensity, rate, own))
    return points


def keep(kata: Kata, card: str, point: Point) -> None:
    """Remember the learner's place on this card for the charts of other katas."""
    speed, intensity = f"{point.tflops:.4g} TFLOP/s", f"{point.intensity:.4g}"
    state.add(Event(state.now(), kata.stem, "compare", speed=speed, card=card, intensity=intensity))


def earlier(kata: Kata, card: str) -> list[Point]:
    """The learner's best place in each of the other katas, as they were compared on this card."""
    best: dict[str, Point] = {}
    others = {other.stem for other in katas.all_katas()} - {kata.stem}
    for event in state.history()[0]:
        if (event.what, event.card) != ("compare", card) or event.kata not in others:
            continue
        try:
            tflops, intensity = float(event.speed.split()[0]), float(event.intensity)
        except (ValueError, IndexError):
            continue
        if not (0 < tflops < math.inf and 0 < intensity < math.inf):  # a damaged line
            continue
        mark = event.kata.split("_")[0].lstrip("0")
        point = Point(mark, f"your {event.kata}", intensity, tflops, own=True)
        best[event.kata] = max(point, best.get(event.kata, point), key=lambda point: point.tflops)
    return [best[stem] for stem in sorted(best)]
