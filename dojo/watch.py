"""`make kata=tiled watch`: grades the file at every save, in processes that stay warm.

A save is noticed by the content, read twenty times a second, so editors that replace the file are as good as
those that write into it; what is still being written, or missing, is waited for. Shown is what has changed
since the last grade, and the first failure. Rows look as on the card: see card.py.
"""

import os
import secrets
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from dojo import card, hints, listing, state
from dojo.grader import POINTS, Grade
from dojo.katas import Kata
from dojo.outcome import Failure, internal_error
from dojo.pair import Helper, PairedGrade, module_of

PAUSE = 0.05  # seconds between two looks at the file; it is graded when two in a row find the same
GONE = 1.0  # seconds without the file after which that is said

Key = Callable[[float], str]  # waits so many seconds for a key; "" if none was pressed


class Abandoned(BaseException):
    """The file has been saved again. Not an Exception: a grading point would take that for its outcome."""


class Watch:
    """One file being watched. `own` if it is the learner's kata, whose grades are kept in the history."""

    def __init__(self, kata: Kata, file: Path, *, on: str = "cpu", own: bool = True) -> None:
        self.kata, self.file, self.on, self.own = kata, file, on, own
        self.out: TextIO = sys.stdout
        self.module = module_of(kata)
        self.seed = secrets.randbelow(1000)  # one for all grades, so that only the file makes a difference
        self.helper = Helper() if on != "gpu" else None
        self.graded: bytes | None = None  # the content that was graded last
        self.before: dict[str, tuple[str, str]] = {}  # how its points came out: state and text

    def run(self, key: Key) -> None:
        """Grade, wait, grade again, until the key q."""
        self.say(f"watching {state.shown(self.file)}   h hint   l list   q quit")
        seen, since = None, time.monotonic()
        while True:
            now = content(self.file)
            if now is not None:
                since = time.monotonic()
            elif 0 < since < time.monotonic() - GONE:
                self.say(f"\n{state.shown(self.file)} is missing; waiting for it")
                since = 0.0
            if now is not None and now == seen and now != self.graded:
                self.save(now)
            seen = now
            pressed = key(PAUSE)
            if pressed == "q":
                return
            if pressed == "h":
                self.say(f"\n{hints.next_hint(self.kata)}")
            if pressed == "l":
                self.say(f"\n{listing.render(colour=self.colour)}")

    def save(self, now: bytes) -> None:
        """Grade this content; nothing is kept of a grade that the next save has overtaken."""
        self.graded = now
        grade = PairedGrade(
            self.module.TASK, self.kata, self.file, on=self.on, seed=self.seed, progress=self.overtaken
        )
        grade.helper = self.helper
        grade.text = now.decode("utf-8-sig", "replace")
        try:
            self.grade(grade)
        except Abandoned:
            self.graded = None
            return
        if self.own:
            state.record(grade)

    def overtaken(self, _: str) -> AbstractContextManager[Any]:
        """The grade comes here before whatever takes long."""
        if content(self.file) not in (None, self.graded):
            raise Abandoned
        return nullcontext()

    def grade(self, grade: Grade) -> None:
        """Run the points, quick ones first, and show each as soon as it is known."""
        self.say(f"\n{time.strftime('%H:%M:%S')}")
        for name in POINTS:
            try:
                getattr(self.module, f"test_{name}")(grade)
            except Exception as error:  # an outcome keeps its own
                if name not in grade.outcomes:
                    self.say(internal_error(error))
                    continue
            outcome = grade.outcomes[name]
            if isinstance(outcome.error, Failure) and outcome.error.kind == "untouched":
                self.say(f"{outcome.text.partition(', then')[0]} and save")
                break
            news = (outcome.state, outcome.text) != self.before.get(name)
            if outcome.state == "FAIL" or (news and (name != "speed" or self.on != "cpu")):
                self.say("\n".join(card.rows(name, outcome, grade, self.colour)))
        self.before = {name: (outcome.state, outcome.text) for name, outcome in grade.outcomes.items()}
        if len(grade.outcomes) == len(POINTS):
            self.say("\n".join([*card.printed(grade), card.verdict(grade, self.colour)]))
            if all(outcome.state != "FAIL" for outcome in grade.outcomes.values()):
                self.say(hints.difference(self.kata))

    @property
    def colour(self) -> bool:
        return card.in_colour(self.out)

    def say(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def end(self) -> None:
        if self.helper:
            self.helper.end()


def content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


@contextmanager
def keyboard() -> Iterator[Key]:
    """Single keys where stdin is a terminal, which is left as it was; elsewhere only the waiting."""
    if not sys.stdin or not sys.stdin.isatty():
        yield no_key
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def key(pause: float) -> str:
        if not select.select([terminal], [], [], pause)[0]:
            return ""
        return os.read(terminal, 1).decode(errors="replace") or "q"  # nothing: the terminal is gone

    tty.setcbreak(terminal)
    try:
        yield key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def no_key(pause: float) -> str:
    time.sleep(pause)
    return ""


def watch(kata: Kata, file: Path, *, on: str, own: bool) -> int:
    """Until q or Ctrl-C, which both end it well."""
    watching = Watch(kata, file, on=on or "cpu", own=own)
    try:
        with keyboard() as key:
            watching.run(key)
    except KeyboardInterrupt:
        print(flush=True)
    finally:
        watching.end()
    return 0
