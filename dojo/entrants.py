"""Who is compared in a kata: the learner's kernel, the solutions, the contest's rivals, the kata before.

In here: their files and tasks, their compiled code, their launches on common data. Not in here: times.
"""

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dojo import card, gpu, katas, state
from dojo.compile import Compiled, read_source
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.launch import compile_for
from dojo.outcome import Failure, NotGraded
from dojo.pair import module_of
from dojo.speed import Bandwidth, Contest, Data, launch_of
from dojo.task import Size, Task

YOURS = "yours"


@dataclass(frozen=True)
class Entrant:
    """One kernel. `kata` is whose task it solves; `task` has the kernel's own name."""

    name: str
    file: Path
    kata: Kata
    task: Task

    def grade(self, on: str = "") -> Grade:
        seed = secrets.randbelow(1000)
        return Grade(self.task, self.kata, self.file, on=on, seed=seed, progress=card.progress)

    def compile(self, arch: str, sizes: Sequence[Size]) -> Compiled:
        return compile_for(self.task, read_source(self.file), state.shown(self.file), arch, sizes)

    def launch(self, code: Compiled, contest: Contest | Bandwidth, task: Task, data: Data) -> gpu.Launch:
        """Its launch on the data of a contest whose task is `task`: its own, or the same product."""
        theirs = module_of(self.kata).CONTEST
        if isinstance(contest, Contest) and self.task.names != task.names:
            n = contest.cublas.m
            size = {name: n if isinstance(value, int) else value for name, value in theirs.size.items()}
            arrays = {
                self.task.names[getattr(theirs.cublas, part)]: data.args[
                    task.names[getattr(contest.cublas, part)]
                ]
                for part in ("a", "b", "out")
            }
            data = Data(size, {**size, **arrays}, data.filled)
        return launch_of(self.task, code, self.task.kernel, data)


def entrants(kata: Kata, file: Path) -> list[Entrant]:
    """Everybody who can be compared, the learner's kernel first; no file twice."""
    module = module_of(kata)
    task, contest = module.TASK, module.CONTEST
    them = [Entrant(YOURS, file, kata, task), *solutions(kata, task)]
    if isinstance(contest, Contest):
        for name, rival in contest.rivals.items():
            them.append(Entrant(name, rival.file, kata, replace(task, kernel=rival.kernel)))
        if before := same_product(kata, contest):
            them.append(Entrant(before.stem, before.solution, before, module_of(before).TASK))
    files = [entrant.file.resolve() for entrant in them]
    return [entrant for n, entrant in enumerate(them) if files.index(files[n]) == n]


def solutions(kata: Kata, task: Task) -> list[Entrant]:
    """ "solution", and "solution, padding" for 03_swizzle.padding.cu."""
    return [
        Entrant(", ".join(["solution", *file.name.split(".")[1:-1]]), file, kata, task)
        for file in kata.solutions
    ]


def same_product(kata: Kata, contest: Contest) -> Kata | None:
    """The last kata before this one that asks for the same product, of square matrices."""
    product = contest.cublas
    if not product.m == product.n == product.k:
        return None
    for before in reversed(katas.all_katas()):
        theirs = module_of(before).CONTEST if before.number < kata.number else None
        if isinstance(theirs, Contest) and theirs.cublas.transpose_b == product.transpose_b:
            return before
    return None


def unready(grade: Grade, *points: str) -> str:
    """Why this kernel is left out, in a sentence: the first of these points that it fails; else ""."""
    if grade.untouched and not grade.task.stub_works:
        return f"{grade.path} is still the stub."
    for point in points:
        try:
            getattr(grade, point)()
        except Failure:
            return f"{grade.path} fails at {point} ({command(grade)})."
        except NotGraded:
            pass
    return ""


def command(grade: Grade) -> str:
    """What grades this very file."""
    own = grade.file == grade.kata.file
    return f"make kata={grade.kata.name} {'' if own else f'from={shlex.quote(grade.path)} '}test"
