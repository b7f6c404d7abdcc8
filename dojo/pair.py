"""A grade that two processes work at, for `watch`: this one from the first size on, a helper from the last.

They meet in the middle, on two cores in little more than half the time. The verdict is that of one process:
the sizes are judged here and in order, some launches only are there already. Without a helper it takes
longer.
"""

import importlib.util
import os
import queue
import subprocess
import sys
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from dojo import katas
from dojo.grader import Grade
from dojo.katas import ROOT, Kata
from dojo.launch import Launched
from dojo.task import Size

SERVE = "import sys; sys.path.insert(0, sys.argv[1]); from dojo.pair import serve; serve(int(sys.argv[2]))"

Key = tuple[Any, ...]  # the values of a size


def module_of(kata: Kata) -> ModuleType:
    """tests/katas/test_NN_name.py, imported under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"grades_{kata.stem}", kata.test)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PairedGrade(Grade):
    """A Grade whose simulated launches may be the helper's."""

    helper: "Helper | None" = None

    def launched(self, size: Size, *, on_gpu: bool) -> Launched:
        mine = (on_gpu, tuple(size.values())) in self._launched
        if self.helper and not on_gpu and not mine:
            with self.progress(""):
                if theirs := self.helper.launched(self, size):
                    return theirs
        return super().launched(size, on_gpu=on_gpu)


class Helper:
    """The other process and what it has sent. One grade at a time: the next one ends the last one's work."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, str(ROOT), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent, and its end is the helper's
            )
        self.job, self.grade = 0, None  # type: int, PairedGrade | None
        self.more: dict[Key, Size] = {}  # what earlier grades launched beyond their sizes, for the traffic
        self.begun: set[Key] = set()
        self.done: dict[Key, Launched | None] = {}
        self.resting = self.lost = False

    def launched(self, grade: PairedGrade, size: Size) -> Launched | None:
        """The helper's launch of this size, waited for if it is at it; None if it is not, or has failed."""
        key = tuple(size.values())
        try:
            if grade is not self.grade:
                self.give(grade)
            if size not in grade.sizes:
                self.more[key] = size
            while not self.lost and self.pipe.poll(None if key in self.begun - self.done.keys() else 0):
                self.hear()
            if key in self.done:  # the two have met: what it would do next is done here
                self.rest()
        except (EOFError, OSError):
            self.lost = True
        return self.done.get(key)

    def give(self, grade: PairedGrade) -> None:
        """Let it begin with this grade, which compiles."""
        self.job, self.grade = self.job + 1, grade
        self.begun, self.done, self.resting = set(), {}, False
        sizes = [*self.more.values(), *reversed(grade.sizes)]
        self.pipe.send((self.job, grade.kata.stem, grade.file, grade.text, grade.seed, grade.compiled, sizes))

    def rest(self) -> None:
        """Let it end its work on this grade."""
        if not self.resting and not self.lost:
            self.resting = True
            self.pipe.send(None)

    def hear(self) -> None:
        job, key, launched, done = self.pipe.recv()
        if job == self.job:
            self.begun.add(key)
            if done:
                self.done[key] = launched

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


def serve(descriptor: int) -> None:
    """The helper: simulate the sizes of one grade after the other until the pipe is closed."""
    pipe = Connection(descriptor)
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:  # in a thread, so that neither end waits for the other to read
        try:
            while True:
                jobs.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        if (given := jobs.get()) is None:
            continue
        job, stem, file, text, seed, compiled, sizes = given
        kata = katas.find(stem)
        grade = Grade(module_of(kata).TASK, kata, Path(file), on="cpu", seed=seed)
        grade.text, grade.compiled = text, compiled
        for size in sizes:
            if not jobs.empty():
                break
            key = tuple(size.values())
            pipe.send((job, key, None, False))
            launched: Launched | None = None
            try:
                launched = grade.launched(size, on_gpu=False)
            except Exception:  # the other process comes upon it too, and words it
                pass
            pipe.send((job, key, launched, True))
