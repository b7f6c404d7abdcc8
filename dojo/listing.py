"""`make list`: the course in order, a row a kata, 80 columns."""

from dojo import hints, katas, state
from dojo.card import painted
from dojo.katas import Kata
from dojo.state import Standing

HEAD = ("kata", "state", "attempts", "best speed", "to green", "asked")
WIDTHS = (14, 21, 10, 13, 9, 0)


def render(*, colour: bool = False) -> str:
    """The table, the next step, and what there is to say about the history."""
    events, note = state.history()
    lines = [row(HEAD)]
    following = None
    for kata in katas.all_katas():
        standing = state.standing(kata, events)
        name, paint = condition(kata, standing)
        if following is None and paint != "ok":
            following = kata
        cells = row(
            (
                f"{kata.number:02} {kata.name}",
                name,
                str(standing.attempts),
                standing.speed or "-",
                duration(standing.seconds),
                hints.asked(kata),
            )
        )
        lines.append(cells.replace(name, painted(name, paint, colour), 1))
    first = katas.all_katas()[0]
    go_on = f"make kata={following.name} watch" if following else f"all passed; make kata={first.name} reset"
    return "\n".join([*lines, "", f"Next: {go_on}", *filter(None, [note])])


def row(cells: tuple[str, ...]) -> str:
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def condition(kata: Kata, standing: Standing) -> tuple[str, str]:
    """ "failing at safe", and the outcome whose colour that has."""
    text, stub = state.text_of(kata.file), state.text_of(kata.stub)
    if text is None:
        return "missing", "FAIL"
    if stub is not None and text.split() == stub.split():
        return "untouched", "-"
    last = standing.last
    if last is None or last.verdict == state.UNTOUCHED:
        return "not graded yet", "-"
    if last.verdict != state.PASS:
        return last.verdict.replace("FAIL at", "failing at"), "FAIL"
    return ("passed", "ok") if last.digest == state.digest(text) else ("passed, then edited", "ok")


def duration(seconds: float | None) -> str:
    """ "45 s", "12 min", "3 h", "2 days"; "at once" for a pass that no failed grade came before."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return "at once"
    for unit, length, until in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 48 * 3600)):
        if seconds < until:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
