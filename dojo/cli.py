"""The command line: `python -m dojo test KATA [--from FOLDER_OR_FILE] [--on cpu|gpu] [-- ARGS]`.

Understands what was asked, or says in one line why not (exit status 2), and hands over to pytest in this
process. ARGS are pytest's.
"""

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dojo import card, gpu, katas
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.task import Task

SILENT = ["-p", "no:terminal", "-p", "no:benchmark"]  # the card is the only output
ALWAYS = ["-p", "no:cacheprovider", "--capture=no"]
STOPPED = 130  # as a shell reports Ctrl-C


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
        test = commands.add_parser("test", help="grade a kata")
        test.add_argument("kata", nargs="?", default="")
        test.add_argument("--from", dest="where", default="")
        test.add_argument("--on", default="")
        options = parser.parse_args(ours)
        return run_test(options.kata, options.where, options.on, pytests)
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


def run_test(name: str, where: str, on: str, pytests: Sequence[str]) -> int:
    """`make kata=tiled test`."""
    kata = find(name)
    attempt(kata, where)  # says now what is wrong with from=
    check_machine(on)
    import pytest

    quiet = all(argument.startswith("--seed") or argument.isdigit() for argument in pytests)
    options = [f"--from={where}", f"--on={on}", f"--rootdir={katas.ROOT}", f"--confcutdir={katas.ROOT}"]
    status = pytest.main([str(kata.test), *ALWAYS, *(SILENT if quiet else []), *options, *pytests])
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return int(status)


def find(name: str) -> Kata:
    try:
        return katas.find(name)
    except katas.UnknownKata as unknown:
        raise Usage(str(unknown)) from None


def attempt(kata: Kata, where: str) -> Path:
    """The file to grade: the kata's own, one in a folder, or any .cu file. Raises Usage."""
    if not where and not kata.file.exists():
        stub = kata.stub.relative_to(katas.ROOT)
        raise Usage(f"{kata.file.relative_to(katas.ROOT)} is missing; to begin anew, copy {stub} there")
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


def check_machine(on: str) -> None:
    if on not in ("", "cpu", "gpu"):
        raise Usage(f"on={on}: it is cpu (the simulator) or gpu; without on=, both where there is a GPU")
    if on != "cpu":
        gpu.start()
    if on == "gpu" and not gpu.card():
        raise Usage(f"on=gpu: {gpu.why_not()}")


def grade(task: Task, module: Path, where: str, on: str, seed: int | None) -> Grade:
    """The grade that a kata's test module asks for, by its file name: test_02_tiled.py."""
    kata = katas.find(module.stem.removeprefix("test_"))
    drawn = secrets.randbelow(1000) if seed is None else seed
    return Grade(task, kata, attempt(kata, where), on=on, seed=drawn, progress=card.progress)
