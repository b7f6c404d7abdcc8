"""`make kata=tiled hint`: three levels a kata, from a question to nearly the line.

They stand in dojo/hints/NN_name.md, a section each under "## 1", "## 2", "## 3"; its line "Asked: often" says
how often interviewers ask for the kernel. Which level comes next is told by the history: see state.py.
"""

import re

from dojo import katas, state
from dojo.katas import Kata
from dojo.state import Event


def text(kata: Kata) -> str:
    """The file of hints; empty for a kata without one."""
    return state.text_of(katas.ROOT / "dojo" / "hints" / f"{kata.stem}.md") or ""


def levels(kata: Kata) -> list[str]:
    return [part.strip("\n") for part in re.split(r"^## \d+\n", text(kata), flags=re.MULTILINE)[1:]]


def asked(kata: Kata) -> str:
    """How often interviewers ask for it, in a word or two."""
    found = re.search(r"^Asked: (.*)", text(kata), re.MULTILINE)
    return found[1] if found else "-"


def next_hint(kata: Kata) -> str:
    """The next hint, noted in the history; after a pass, how to see the reference beside one's own."""
    standing = state.standing(kata, state.history()[0])
    if standing.passed:
        return difference(kata)
    there = levels(kata)
    if not there:
        return f"there are no hints for {kata.name}; its lesson is {state.shown(kata.lesson)}"
    level = min(standing.hints, len(there) - 1)
    if standing.hints < len(there):
        state.add(Event(state.now(), kata.stem, "hint"))
    more = (
        f"Once more for the next: make kata={kata.name} hint"
        if level + 1 < len(there)
        else f"That was the last. The lesson: {state.shown(kata.lesson)}"
    )
    return f"Hint {level + 1} of {len(there)} for {kata.stem}\n\n{there[level]}\n\n{more}"


def difference(kata: Kata) -> str:
    mine, reference = state.shown(kata.file), state.shown(kata.solution)
    return f"Passed. The difference to the reference: diff {mine} {reference}"
