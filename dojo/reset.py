"""`make kata=tiled reset`: back to the stub for the next repetition, the attempt kept in attempts/.

The learner's file is moved, not copied and overwritten: whatever is in it at that moment is kept. Git is not
asked. The history gets the date, the verdict and the speed of what was kept.
"""

import os
from datetime import datetime
from pathlib import Path

from dojo import katas, state
from dojo.katas import Kata
from dojo.state import Event


def reset(kata: Kata) -> str:
    """Put the stub in place; returns what was done. Raises OSError, and then the file is where it was."""
    file = Path(os.path.realpath(kata.file))  # of a link, what it leads to
    stub = kata.stub.read_bytes()
    here = state.shown(kata.file)
    try:
        mine = file.read_bytes()
    except FileNotFoundError:
        put(stub, file)
        state.add(Event(state.now(), kata.stem, "reset"))
        return f"{here} was missing: it is the stub again"
    if mine == stub:
        state.add(Event(state.now(), kata.stem, "reset"))
        return f"{here} is the stub already; there was nothing to keep"
    graded = state.verdict_on(kata, mine.decode("utf-8-sig", "replace"), state.history()[0])
    kept = place(kata)
    try:
        os.replace(file, kept)
    except OSError:
        kept.unlink()
        raise
    try:
        put(stub, file)
    except OSError:
        os.replace(kept, file)
        raise
    verdict, speed = (graded.verdict, graded.speed) if graded else ("not graded", "")
    state.add(Event(state.now(), kata.stem, "reset", verdict, speed=speed, kept=state.shown(kept)))
    told = ", ".join(filter(None, [verdict, state.figure(speed)]))
    return f"{here} is the stub again; your attempt ({told}) is kept:\n{state.shown(kept)}"


def place(kata: Kata) -> Path:
    """A new empty file for the attempt: attempts/02_tiled.2026-11-30T07-30-12.cu, or the next free name."""
    folder = katas.ROOT / "attempts"
    folder.mkdir(exist_ok=True)
    stem = f"{kata.stem}.{datetime.now():%Y-%m-%dT%H-%M-%S}"
    count = 1
    while True:
        path = folder / f"{stem}{f'-{count}' if count > 1 else ''}.cu"
        try:
            path.touch(exist_ok=False)
            return path
        except FileExistsError:
            count += 1


def put(content: bytes, file: Path) -> None:
    """Write a file that is not there; what an editor has saved there meanwhile stays."""
    try:
        with open(file, "xb") as new:
            new.write(content)
    except FileExistsError:
        pass
