"""Feeds the simulator mutated PTX: it must refuse it in words or run it, never crash or hang.

    python tests/fuzz.py [SEED [SECONDS]]

Each case is a kernel of solutions/ or tests/right/ whose PTX is damaged in one to three places: a statement
left out, doubled or moved, a number, register, type or space exchanged, a character lost. Allowed are a
report, `Unsupported`, `InvalidPTX`. Anything else is printed with the case's number, and the exit status is
1.
"""

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/meta")]

import numpy as np  # noqa: E402
from grading import fresh  # noqa: E402

from dojo import simulator  # noqa: E402

BUDGET = 2_000_000  # thread instructions of one case
SLOW = 10.0  # seconds that no case may take
WIDTH = 33
NUMBERS = ("0", "1", "7", "31", "33", "64", "255", str(2**31 - 1), str(2**32 - 1), "-1")
TYPES = ("f32", "u32", "s32", "b32", "b64", "f64", "u16", "f16", "u8", "pred", "v4")
REGISTER = re.compile(r"%[a-z]+\d+")
BLOCKS = {"01": (16, 16), "02": (16, 16), "03": (32, 32)}
TOO_MANY = "its __launch_bounds__ allow"  # fewer threads than the block has: of some kernels, and of .maxntid

Mutation = Callable[[random.Random, list[str], int, list[int]], None]


def drop(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    lines[at] = ""


def double(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    lines[at] = lines[pick.choice(body)]


def move(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    other = pick.choice(body)
    lines[at], lines[other] = lines[other], lines[at]


def number(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    lines[at] = re.sub(r"\b\d+\b", lambda _: pick.choice(NUMBERS), lines[at], count=1)


def register(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    mine, others = REGISTER.findall(lines[at]), REGISTER.findall(lines[pick.choice(body)])
    if mine and others:
        lines[at] = lines[at].replace(pick.choice(mine), pick.choice(others))


def kind(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    lines[at] = re.sub(r"\.[fusb]\d\d\b", lambda _: "." + pick.choice(TYPES), lines[at], count=1)


def space(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    names = ("global", "shared", "local", "const", "param")
    lines[at] = re.sub("|".join(names), lambda _: pick.choice(names), lines[at], count=1)


def guard(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    lines[at] = "\t@%p1 " + lines[at].strip()


def character(pick: random.Random, lines: list[str], at: int, body: list[int]) -> None:
    place = pick.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:place] + pick.choice("{}[];,.%$@!x0 ") + lines[at][place + pick.randint(0, 1) :]


MUTATIONS: Sequence[Mutation] = (drop, double, move, number, register, kind, space, guard, character)


def mutated(pick: random.Random, ptx: str) -> str:
    """The text with one to three mutations in the bodies of its kernels."""
    lines = ptx.split("\n")
    body = [n for n, line in enumerate(lines) if line.endswith(";") and not line.strip().startswith(".")]
    for _ in range(pick.randint(1, 3)):
        pick.choice(MUTATIONS)(pick, lines, pick.choice(body), body)
    return "\n".join(lines)


def kernels(folders: Sequence[str]) -> list[tuple[str, str, str]]:
    """(kata number, PTX, entry) of every kernel."""
    found = []
    for folder in folders:
        for file in sorted((ROOT / folder).glob("*.cu")):
            grade = fresh(file)
            found.append((file.name[:2], grade.compiled.ptx, grade.compiled.entry(grade.task.kernel)))
    return found


def arguments(kata: str) -> list[object]:
    A, B, C = (np.ones(40 * 40, np.float32) for _ in range(3))
    if kata == "03":
        return [A, B, C, WIDTH, WIDTH, WIDTH]
    if kata == "04":
        return [WIDTH, WIDTH, WIDTH, 1.0, A, B, 0.0, C]
    return [A, C, WIDTH, WIDTH] if kata == "05" else [A, B, C, WIDTH]


def outcome(kata: str, ptx: str, entry: str) -> str:
    """What became of one case; "crash: ..." or "slow: ..." if that is not allowed."""
    start = time.monotonic()
    try:
        simulator.run(ptx, entry, (2, 2), BLOCKS.get(kata, (256,)), arguments(kata), budget=BUDGET)
        result = "ran"
    except (simulator.Unsupported, simulator.InvalidPTX) as refused:
        result = type(refused).__name__
    except Exception as error:
        if str(error).startswith(TOO_MANY):
            return "too many threads"
        result = f"crash: {type(error).__name__}: {error}"
    seconds = time.monotonic() - start
    return result if seconds < SLOW else f"slow: {seconds:.0f} s"


def fuzz(
    seed: int, enough: Callable[[int], bool], folders: Sequence[str] = ("solutions", "tests/right")
) -> tuple[Counter[str], list[str]]:
    """Cases until `enough(how many)`: how they ended, and those that ended badly."""
    pick, every = random.Random(seed), kernels(folders)
    ended: Counter[str] = Counter()
    bad: list[str] = []
    while not enough(ended.total()):
        kata, ptx, entry = pick.choice(every)
        result = outcome(kata, mutated(pick, ptx), entry)
        if ":" in result:
            bad.append(f"case {ended.total()} of seed {seed}, kata {kata}: {result}")
        ended[result.partition(":")[0]] += 1
    return ended, bad


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 60)
    ended, bad = fuzz(seed, lambda _: time.monotonic() > end)
    print("\n".join(bad))
    print(f"seed {seed}: {ended.total()} cases, " + ", ".join(f"{n} {how}" for how, n in ended.most_common()))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
