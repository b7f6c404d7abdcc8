"""The learner's history: each grade, hint and reset is a line of .dojo/history.jsonl, which git ignores.

Lines are only ever added, each by one write: two grades at once lose nothing. A line that cannot be read is
left out and counted; without the file everything works and starts at nothing. No table here: see listing.py.
"""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dojo import katas
from dojo.compile import read_source
from dojo.grader import POINTS, Grade
from dojo.katas import Kata

PASS, UNTOUCHED = "PASS", "untouched"


@dataclass(frozen=True)
class Event:
    """One line. The digest is that of the graded text, so that a file is known again."""

    at: str  # "2026-11-30T07:30:12+01:00"
    kata: str  # "02_tiled"
    what: str  # "grade", "hint", "reset" or "compare"
    verdict: str = ""  # of a grade, and of the attempt that a reset kept: "PASS", "FAIL at safe", "untouched"
    points: str = ""  # "ok FAIL - - -"
    speed: str = ""  # "8.1 TFLOP/s: 1.57x naive", as the card has it
    digest: str = ""
    kept: str = ""  # where a reset put the attempt
    card: str = ""  # of a compare, which card it was timed on,
    intensity: str = ""  # and the FLOP for each byte that the kernel loads

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.at)


@dataclass
class Standing:
    """What the history says of one kata. An attempt goes from one reset to the next."""

    attempts: int = 0
    hints: int = 0  # given since the last reset or pass
    last: Event | None = None  # the last grade of this attempt
    speed: str = ""  # the best that a card measured: "8.1 TFLOP/s"
    seconds: float | None = None  # the best from an attempt's first failed grade to its pass; 0 at once

    @property
    def passed(self) -> bool:
        return self.last is not None and self.last.verdict == PASS


def file() -> Path:
    return katas.ROOT / ".dojo" / "history.jsonl"


def add(event: Event) -> None:
    """Add a line. Never raises; what could not be kept is said in one line."""
    values = {name: value for name, value in asdict(event).items() if value}
    try:
        file().parent.mkdir(exist_ok=True)
        with open(file(), "ab", buffering=0) as lines:
            # The newline comes first: after a line that a crash tore, this one is still its own.
            lines.write(b"\n" + json.dumps(values, ensure_ascii=False).encode())
    except OSError as error:
        print(f"{shown(file())} cannot be written ({error.strerror}): no history is kept", file=sys.stderr)


def history() -> tuple[list[Event], str]:
    """Every event in order, and what is to be said about the file in one line, or ""."""
    try:
        lines = [line for line in file().read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError:
        return [], f"No history yet: {shown(file())} begins with the first grade."
    except OSError as error:
        return [], f"{shown(file())} cannot be read ({error.strerror}): the history is left out."
    events = [event for event in map(read, lines) if event]
    lost = len(lines) - len(events)
    note = f"{shown(file())} is damaged: {lost} of its {len(lines)} lines left out." if lost else ""
    return events, note


def read(line: bytes) -> Event | None:
    """The event that a line is; None for a damaged one."""
    try:
        event = Event(**json.loads(line))
        if not all(isinstance(value, str) for value in asdict(event).values()) or not event.time.tzinfo:
            return None
    except (ValueError, TypeError, RecursionError):
        return None
    return event


def standing(kata: Kata, events: Sequence[Event]) -> Standing:
    """Add up the events of one kata."""
    so_far = Standing()
    begun: datetime | None = None  # the first failed grade of this attempt
    counted = green = False
    for event in events:
        if event.kata != kata.stem:
            continue
        anew = event.what == "reset" or (event.verdict == UNTOUCHED and (counted or green))
        if anew:
            begun, counted, green = None, False, False
            so_far.hints, so_far.last = 0, None
        if event.what == "hint":
            so_far.hints += 1
        if event.what != "grade":
            continue
        so_far.last = event
        so_far.attempts += event.verdict != UNTOUCHED and not counted
        counted = counted or event.verdict != UNTOUCHED
        so_far.speed = max(so_far.speed, figure(event.speed), key=amount)
        if event.verdict == PASS:
            so_far.hints = 0
            if not green:
                taken = max(0.0, (event.time - begun).total_seconds()) if begun else 0.0
                so_far.seconds = taken if so_far.seconds is None else min(taken, so_far.seconds)
            green = True
        elif begun is None:
            begun = event.time
    return so_far


def figure(speed: str) -> str:
    """The first rate in the words of the card: "8.1 TFLOP/s"."""
    found = re.search(r"[\d,.]+ (TFLOP/s|GB/s)", speed)
    return found[0] if found else ""


def amount(figure: str) -> float:
    try:
        return float(figure.partition(" ")[0].replace(",", ""))
    except ValueError:
        return -1.0


def record(grade: Grade) -> None:
    """Keep what a finished grade says. Only part of the points, or an error of the grader, is no verdict."""
    outcomes = grade.outcomes
    failed = next((name for name in POINTS if name in outcomes and outcomes[name].state == "FAIL"), "")
    whole = all(name in outcomes for name in POINTS)
    if any(outcome.internal for outcome in outcomes.values()) or not (failed or whole):
        return
    if not failed and outcomes["result"].state != "ok":
        return
    verdict = UNTOUCHED if grade.untouched else f"FAIL at {failed}" if failed else PASS
    speed = outcomes["speed"] if "speed" in outcomes else None
    add(
        Event(
            now(),
            grade.kata.stem,
            "grade",
            verdict,
            points=" ".join(outcomes[name].state if name in outcomes else "-" for name in POINTS),
            speed=speed.text if speed and speed.state != "-" and figure(speed.text) else "",
            digest=digest(grade.text),
        )
    )


def verdict_on(kata: Kata, text: str, events: Sequence[Event]) -> Event | None:
    """The last grade of exactly this text."""
    known = digest(text)
    grades = [event for event in events if (event.kata, event.what) == (kata.stem, "grade")]
    return next((event for event in reversed(grades) if event.digest == known), None)


def text_of(path: Path) -> str | None:
    try:
        return read_source(path)
    except OSError:
        return None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def shown(path: Path) -> str:
    """A path as the learner types it in the repository."""
    return str(path.relative_to(katas.ROOT) if path.is_relative_to(katas.ROOT) else path)
