"""The card: how a grade looks in a terminal, 80 columns, five lines when all is well. Decides nothing."""

import os
import re
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from dojo.grader import POINTS, Grade
from dojo.outcome import Failure, Outcome
from dojo.simulator.machine import MAX_PRINTED
from dojo.task import spell

STARTED = time.monotonic()
WIDTH = 80
INDENT = 20  # where the text of a point begins
PRINTED = 10  # lines of the kernel's own that are shown
WHOLE = re.compile(  # not to be broken
    r"\(\d+(, \d+)+\)| %|\b\d+( x \d+)+|\b([A-Z]|alpha|beta|rows|cols) \d[\d.]*|constexpr int \w+ = \.\.\.;"
)
COLOURS = {"ok": "\033[32m", "FAIL": "\033[31m"}

# The question that a failure ends with: by kind, and by a part of the sentence where that tells more.
QUESTIONS = (
    ("compile", "error", "what did the compiler expect at the place that it names?"),
    ("compile", "called as", "which name and which parameters does the file's header ask for?"),
    ("compile", "", "what does the launch need to find in the file?"),
    ("launch", "must be at least", "which numbers is the launch made of?"),
    ("launch", "divisible", "how many threads does it take to fill the tile?"),
    ("launch", "", "how many threads, registers and shared bytes can one block have?"),
    ("bounds", "misaligned", "which addresses does a vector of this width start at?"),
    ("bounds", "dynamic shared memory", "how many bytes do the tiles need, and who asks for them?"),
    ("bounds", "outside the", "how large is this array, and which is the largest index into it?"),
    ("bounds", " writes ", "which threads have nothing to store here, and what keeps them from it?"),
    ("bounds", "", "which thread computes an index outside the array, and at which step of its loop?"),
    ("uninitialised", "a variable", "which value should it have before the loop begins?"),
    ("uninitialised", "of its warp", "which lanes does the shuffle read from, and is each of them there?"),
    ("uninitialised", "was never written", "what does the output hold before the kernel writes to it?"),
    ("uninitialised", "", "which thread should have written this value, and has it done so at every size?"),
    ("race", "read-only cache", "which pointer reads what another one writes?"),
    ("race", "two blocks", "which of two blocks runs first, and what would have to order them?"),
    ("race", "write after read", "what must every thread have finished before a tile is overwritten?"),
    ("race", "read after write", "what must every thread have written before one of them reads it?"),
    ("race", "write after write", "which one of the threads should write this element?"),
    ("barrier", "mask", "which lanes does the mask name, and does each of them come here?"),
    ("barrier", "", "which threads do not come to this __syncthreads()?"),
    ("timeout", "", "which value should end the loop, and who changes it?"),
    ("unsupported", "", "can the kernel do without it?"),
    ("result", "never written", "which threads should write these elements, and what keeps them from it?"),
    ("result", "held before", "which threads should write these elements, and what keeps them from it?"),
    ("result", "changed its input", "which line writes to an array that is only to be read?"),
    ("result", "must not change", "which line writes to an array that is only to be read?"),
    ("result", "second launch", "which two threads touch one element with nothing to order them?"),
    ("result", "1 part in", "where has a value fewer bits than a float32?"),
    ("result", "assert", "why is the condition false there?"),
    ("result", "a trap", "what leads this thread to the trap?"),
    ("result", "off by one", "which element does a thread compute, and where does it store it?"),
    ("result", "transposed", "which of two indices is the row, and which the column?"),
    ("result", "without its last", "how many steps does the loop take, and which k does the last one reach?"),
    ("result", "without the last", "how many steps does the loop take, and what does the last one reach?"),
    ("result", "whole number", "which type has each value on its way to the output?"),
    ("result", "", "which element does a thread compute, and what exactly does its sum run over?"),
    ("traffic", "spills", "which values must a thread keep at the same time?"),
    ("traffic", "bank", "which banks do the 32 lanes of one warp ask for in this line?"),
    ("traffic", "warp FMAs", "how many multiply-adds does a number serve, once it is read?"),
    ("traffic", "local memory", "which index does the compiler not know?"),
    ("traffic", "serves", "how many threads load the same number, and how could one load serve them all?"),
    ("traffic", "needed once", "which lines load an element that has been loaded before?"),
    ("traffic", "loaded twice", "which lines load an element that has been loaded before?"),
    ("traffic", "", "which addresses do the 32 lanes of one warp ask for in this line?"),
    ("speed", "", "what does the kernel wait for most?"),
)


def render(grade: Grade, *, colour: bool = False) -> str:
    """The whole card, or one line for an untouched stub."""
    first = next((o for o in grade.outcomes.values() if o.state == "FAIL"), None)
    if first and isinstance(first.error, Failure) and first.error.kind == "untouched":
        return first.text
    lines = [header(grade), ""]
    for point in POINTS:
        if point in grade.outcomes:
            lines += rows(point, grade.outcomes[point], grade, colour)
    for block in (printed(grade), [verdict(grade, colour)]):
        lines += ["", *block] if block and lines[-1] else block
    return "\n".join(lines)


def printed(grade: Grade) -> list[str]:
    """What the kernel printed at the smallest size, at most ten lines."""
    lines = grade.printed
    if not lines:
        return []
    many = f"at least {len(lines) - PRINTED}" if len(lines) >= MAX_PRINTED else len(lines) - PRINTED
    left = [f"... and {many} more"] if len(lines) > PRINTED else []
    return [f"printed at {spell(grade.sizes[0])}", *(f"    {line}" for line in [*lines[:PRINTED], *left]), ""]


def header(grade: Grade) -> str:
    machines = {"cpu": "simulator", "gpu": grade.card.name if grade.card else "no GPU here"}
    both = f"simulator, {grade.card.name}" if grade.card else "simulator (no GPU here)"
    return f"{grade.kata.stem} · {grade.task.title} · {machines.get(grade.on, both)}"


def rows(point: str, outcome: Outcome, grade: Grade, colour: bool) -> list[str]:
    """One point: its line, wrapped; after a failure the source lines and the details, with space around."""
    start = f"  {point:<11}{painted(f'{outcome.state:<7}', outcome.state, colour)}"
    blocks = [wrapped(outcome.text)]
    if isinstance(outcome.error, Failure):
        details = list(outcome.error.details)
        if outcome.error.kind == "compile" and details:
            blocks = [[outcome.text, *details]]  # as the compiler wrote it
        else:
            blocks.append([trimmed(quote) for quote in grade.source.quotes(outcome.error.lines)])
            blocks.append([line for detail in details for line in fitted(detail)])
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += [*((" " * INDENT + line).rstrip() for line in block), ""]
    lines[0] = start + lines[0][INDENT:]
    return lines if outcome.state == "FAIL" else lines[:-1]


def fitted(line: str) -> list[str]:
    """A table's line as it is, a long one wrapped."""
    return [line] if len(line) <= WIDTH - INDENT else wrapped(line)


def wrapped(text: str) -> list[str]:
    """Lines that fit, broken neither inside "(0, 6)", "31 x 33" and "M 31" nor before a "%"."""
    glued = re.sub(WHOLE, lambda found: found[0].replace(" ", "\u00a0"), text)
    lines = textwrap.wrap(glued, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def trimmed(text: str) -> str:
    room = WIDTH - INDENT
    return text if len(text) <= room else text[: room - 3] + "..."


def verdict(grade: Grade, colour: bool) -> str:
    """PASS, or FAIL with the first failed point, a question to think about, and where more help is."""
    for point in POINTS:
        outcome = grade.outcomes.get(point)
        if outcome and outcome.state == "FAIL":
            failure = f"FAIL at {point}."
            if isinstance(outcome.error, Failure):
                hint = f"make kata={grade.kata.name} hint".replace(" ", "\u00a0")
                failure += f" Next: {question(outcome.error, grade.path)}   {hint}"
            lines = "\n".join(textwrap.wrap(failure, WIDTH)).replace("\u00a0", " ")
            return painted("FAIL", "FAIL", colour) + lines.removeprefix("FAIL")
    return painted("PASS", "ok", colour)


def question(failure: Failure, path: str = "") -> str:
    """The first in the table that fits. What the file is called tells nothing."""
    text = str(failure).replace(path, "") if path else str(failure)
    return next(
        (ask for kind, part, ask in QUESTIONS if kind == failure.kind and part in text), "what is it?"
    )


def painted(text: str, state: str, colour: bool) -> str:
    word = text.rstrip()
    return f"{COLOURS[state]}{word}\033[0m{text[len(word) :]}" if colour and state in COLOURS else text


def in_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


def show(grade: Grade) -> None:
    print(render(grade, colour=in_colour(sys.stdout)), flush=True)


@contextmanager
def progress(what: str, after: float = 3.0) -> Iterator[None]:
    """What is being done, on the terminal once this process is `after` seconds old; wiped when it is done."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        print(f"\r{what} ...\033[K", end="", file=sys.stderr, flush=True)

    timer = threading.Timer(max(0.0, STARTED + after - time.monotonic()), show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
