"""The command line: `python -m dojo test KATA [--from FOLDER_OR_FILE] [--on cpu|gpu] [-- ARGS]` and others.

    test KATA, watch KATA      grade once, by pytest in this process, whose ARGS are; or at every save
    bench KATA                 the same grade, and the times that its speed was judged by
    compare KATA, tune KATA    beside the solutions and the card's limit; other tiles
    hint KATA, reset KATA      the next hint; back to the stub
    list, doctor, scoreboard   where the learner stands; what is installed; the READMEs' table

Understands what was asked, or says in one line why not (exit status 2), and hands over.
"""

import argparse
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dojo import (
    card,
    doctor,
    gpu,
    hints,
    katas,
    listing,
    nvrtc,
    reset,
    saved,
    scoreboard,
    tune,
    versus,
    watch,
)
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.task import Task

SILENT = ["-p", "no:terminal", "-p", "no:benchmark"]  # the card is the only output
ALWAYS = ["-p", "no:cacheprovider", "--capture=no"]
TIMES = ["-qq", "--no-header", "--tb=no", "-rN"]  # pytest-benchmark's table, pytest's own words left out


Options = argparse.Namespace  # kata, where (from=), on: each "" unless given


class Usage(Exception):
    """What was asked cannot be done: str(e) says why, in one line."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(message)


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit status is 0 only if every graded point passes."""
    try:
        ours, pytests = split(arguments)
        parser = Parser(prog="python -m dojo", description=__doc__)
        commands = parser.add_subparsers(dest="command", required=True)
        for name, (_, takes) in COMMANDS.items():
            command = commands.add_parser(name)
            for argument, settings in takes.items():
                command.add_argument(argument, default="", **settings)
        options = parser.parse_args(ours)
        run, _ = COMMANDS[options.command]
        return run(options, pytests)
    except Usage as usage:
        print(usage, file=sys.stderr)
        return 2


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ours, and pytest's after --."""
    ours, pytests = list(arguments), list[str]()
    if "--" in ours:
        at = ours.index("--")
        ours, pytests = ours[:at], ours[at + 1 :]
    return ours, pytests


def run_test(options: Options, pytests: Sequence[str]) -> int:
    """`make kata=tiled test`."""
    kata, where, on = find(options.kata), options.where, options.on
    attempt(kata, where)  # says now what is wrong with from=
    check_machine(on)
    import pytest

    quiet = all(argument.startswith("--seed") or argument.isdigit() for argument in pytests)
    settings = [f"--from={where}", f"--on={on}", f"--rootdir={katas.ROOT}", f"--confcutdir={katas.ROOT}"]
    shown = SILENT if quiet else saved.options(kata)
    status = pytest.main([str(kata.test), *ALWAYS, *shown, *settings, *pytests])
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return int(status)


def run_bench(options: Options, pytests: Sequence[str]) -> int:
    """`make kata=tiled bench`: a whole grade, as only what is safe and right is timed, and its times."""
    kata = find(options.kata)
    if not gpu.card():
        raise Usage(f"bench needs a GPU ({gpu.why_not()}); without one: make kata={kata.name} compare")
    return run_test(options, [*TIMES, *pytests])


def run_compare(options: Options, _: Sequence[str]) -> int:
    """`make kata=tiled compare`: informs, whatever state the kernel is in."""
    kata = find(options.kata)
    file = attempt(kata, options.where)
    check_machine(options.on)
    colour = card.in_colour(sys.stdout)
    return say(no_compiler() or versus.report(kata, file, options.on, own=not options.where, colour=colour))


def run_tune(options: Options, _: Sequence[str]) -> int:
    """`make kata=register tune`: informs, whatever state the kernel is in."""
    kata = find(options.kata)
    file = attempt(kata, options.where)
    check_machine(options.on)
    return say(no_compiler() or tune.report(kata, file, options.on))


def run_scoreboard(_: Options, __: Sequence[str]) -> int:
    """`make scoreboard`: times the solutions and writes the READMEs' table."""
    found = gpu.card()
    if not found:
        raise Usage(f"scoreboard needs a GPU ({gpu.why_not()})")
    try:
        scoreboard.main(found)
    except scoreboard.Unwritten as why:
        raise Usage(str(why)) from None
    return 0


def run_watch(options: Options, _: Sequence[str]) -> int:
    """`make kata=tiled watch`: on the simulator, unless on=gpu."""
    kata = find(options.kata)
    file = attempt(kata, options.where)
    check_machine(options.on or "cpu")
    return watch.watch(kata, file, on=options.on or "cpu", own=not options.where)


def run_hint(options: Options, _: Sequence[str]) -> int:
    return say(hints.next_hint(find(options.kata)))


def run_reset(options: Options, _: Sequence[str]) -> int:
    kata = find(options.kata)
    try:
        done = reset.reset(kata)
    except OSError as error:
        raise Usage(f"nothing was reset: {error.filename}: {error.strerror}") from None
    return say(done)


def run_list(_: Options, __: Sequence[str]) -> int:
    return say(listing.render(colour=card.in_colour(sys.stdout)))


def run_doctor(options: Options, _: Sequence[str]) -> int:
    return doctor.main(fresh=options.fresh == "fresh")


KATA: Mapping[str, Any] = {"kata": {"nargs": "?"}}
FILE: Mapping[str, Any] = {**KATA, "--from": {"dest": "where"}, "--on": {}}
COMMANDS: Mapping[str, tuple[Callable[[Options, Sequence[str]], int], Mapping[str, Any]]] = {
    "test": (run_test, FILE),
    "bench": (run_bench, FILE),
    "compare": (run_compare, FILE),
    "tune": (run_tune, FILE),
    "scoreboard": (run_scoreboard, {}),
    "watch": (run_watch, FILE),
    "hint": (run_hint, KATA),
    "reset": (run_reset, KATA),
    "list": (run_list, {}),
    "doctor": (run_doctor, {"fresh": {"nargs": "?"}}),
}


def find(name: str) -> Kata:
    try:
        return katas.find(name)
    except katas.UnknownKata as unknown:
        raise Usage(str(unknown)) from None


def attempt(kata: Kata, where: str) -> Path:
    """The file to grade: the kata's own, one in a folder, or any .cu file. Raises Usage."""
    if not where and not kata.file.exists():
        mine = kata.file.relative_to(katas.ROOT)
        raise Usage(f"{mine} is missing; to begin anew: make kata={kata.name} reset")
    path = Path(where) if where else kata.file
    if not path.exists() and (katas.ROOT / path).exists():
        path = katas.ROOT / path
    if path.is_dir():
        if not (path / kata.file.name).is_file():
            raise Usage(f"from={where}: there is no {kata.file.name} in that folder")
        path = path / kata.file.name
    elif not path.exists():
        raise Usage(f"from={where}: there is no such file or folder")
    elif path.suffix not in (".cu", ".cuh"):
        raise Usage(f"from={where}: not a .cu file")
    if not os.access(path, os.R_OK):
        raise Usage(f"{path} cannot be read")
    return Path(os.path.abspath(path))


def no_compiler() -> str:
    """Why there is no compiler here, or "": what informs says so and ends well."""
    if not nvrtc.installed():
        try:
            nvrtc.version()
        except nvrtc.NoCompiler as missing:
            return str(missing)
    return ""


def say(text: str) -> int:
    """Print it, to the last line that the reader takes: it may be `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def check_machine(on: str) -> None:
    if on not in ("", "cpu", "gpu"):
        raise Usage(f"on={on}: it is cpu (the simulator) or gpu; without on=, both where there is a GPU")
    if on != "cpu":
        gpu.start()
    if on == "gpu" and not gpu.card():
        raise Usage(f"on=gpu: {gpu.why_not()}")


def seed(text: str) -> int:
    """What stands after --seed=. Raises ValueError for a negative one, which NumPy does not take."""
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


def grade(task: Task, module: Path, where: str, on: str, seed: int | None) -> Grade:
    """The grade that a kata's test module asks for, by its file name: test_02_tiled.py."""
    kata = katas.find(module.stem.removeprefix("test_"))
    drawn = secrets.randbelow(1000) if seed is None else seed
    return Grade(task, kata, attempt(kata, where), on=on, seed=drawn, progress=card.progress)
