"""Grades one kernel file: five points in order, causes before symptoms.

A `Grade` compiles the file once and launches each size once; one simulated launch yields the findings, the
values and the access counts. What a kata asks is its `Task`; how the outcomes look is card.py's subject.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from dojo import compare, gpu, patterns
from dojo.bars import Bar, Missed, intensity
from dojo.compile import MISSING, Compiled, CompileError, Resources, read_source
from dojo.katas import ROOT, Kata
from dojo.launch import Launched, Usual, compile_for, impossible, launch
from dojo.occupancy import Occupancy, occupancy
from dojo.outcome import Failure, NotGraded, Outcome, point
from dojo.simulator import Finding, Report, Unsupported
from dojo.source import Source
from dojo.speed import Bandwidth, Contest, wrong
from dojo.task import Configuration, Size, Task, problem, spell, spell_all, spell_short
from dojo.timing import Timings

POINTS = ("compiles", "safe", "result", "traffic", "speed")


class Grade:
    """The grading of one file. `on` is "cpu", "gpu" or "" for both; the seed draws the data and one size.

    `progress` is entered with a few words around whatever may take seconds; `table` gets the times measured.
    """

    def __init__(
        self,
        task: Task,
        kata: Kata,
        file: Path,
        *,
        on: str = "",
        seed: int = 0,
        progress: Callable[[str], AbstractContextManager[Any]] = nullcontext,
        table: Callable[[Size, Timings], None] | None = None,
    ) -> None:
        self.task, self.kata, self.file = task, kata, file
        self.on, self.seed, self.progress, self.table = on, seed, progress, table
        self.path = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)
        self.outcomes: dict[str, Outcome] = {}
        self.drawn = task.random_size(np.random.default_rng(seed))
        self.sizes = [*task.sizes, self.drawn]
        self._launched: dict[tuple[bool, tuple[int, ...]], Launched] = {}

    # ------------------------------------------------------------------------------------ the five points

    @point
    def compiles(self) -> str:
        """The compiler takes it, and a card can launch it."""
        if self.untouched and not self.task.stub_works:
            what = f"is still the stub; fill in the hole, then make kata={self.kata.name} test"
            raise Failure("untouched", f"{self.path} {what}")
        used = self.resources  # raises what the compiler says
        self.need_one_of_two()
        for name, value, least in self.launch_constants():
            if value < least:
                raise self.cannot_launch(f"{name} is {value}; it must be at least {least}")
        if why := self.task.demands(**self.compiled.constants):
            raise self.cannot_launch(why)
        for size in self.sizes:
            configuration = self.configuration(size)
            if why := impossible(configuration, used, self.card or Usual()):
                if configuration.shared_bytes and "shared memory" in why:
                    why += f" on {self.compiled.arch}" if not self.card else ""
                    raise self.cannot_launch(why, list(self.task.optional))
                raise self.cannot_launch(why)
        spills = f"{spilled(used):,} bytes of spills" if spilled(used) else "no spills"
        shared = self.shared(self.configuration(self.sizes[0]))
        text = f"{used.registers} registers, {spills}, {shared:,} bytes shared ({self.compiled.arch})"
        if self.task.tells_occupancy and (fit := self.occupancy(self.configuration(self.sizes[0]))):
            text += f"; {fit}"
        return text

    def need_one_of_two(self) -> None:
        """Raise a Failure if the file has a function and a constant for the same, and they differ."""
        constants = self.compiled.constants
        for name, (argument, constant) in self.task.functions.items():
            lines, one = [self.source.line_of(name), self.source.line_of(constant)], constants[constant]
            if not all(lines) or one == MISSING:
                continue
            for size in [*self.sizes, *self.task.all_gpu_sizes]:
                n = size[argument]
                if (value := constants[f"{name}_{n}"]) != one:
                    what = (
                        f"{name}({n}) is {value}, but {constant} is {one}: the launch can be made of one only"
                    )
                    raise Failure("compile", f"{self.place(lines[0])} {what}; take the other out", lines)

    def cannot_launch(self, why: str, names: Sequence[str] = ()) -> Failure:
        """Told at these constants, or at those that the sentence names, or at the file's first one."""
        task = self.task
        known = [
            *task.constants,
            *task.optional,
            *task.functions,
            *(pair[1] for pair in task.functions.values()),
        ]
        names = names or [name for name in known if re.search(rf"\b{name}\b", why)] or task.constants[:1]
        lines = [self.source.line_of(name) for name in names]
        return Failure("launch", f"{self.place(lines[0])} {why}", lines)

    @point
    def safe(self) -> str:
        """No simulated launch has a finding."""
        self.need("compiles")
        if self.on == "gpu":
            raise NotGraded("not graded: on=gpu leaves the simulator out")
        for size in self.sizes:
            for finding in self.simulated(size).findings:
                raise self.failed(finding, size)
        notes = dict.fromkeys(note for size in self.sizes for note in self.report(size).notes)
        every = spell_all(self.sizes).split(" from")[0]
        return "; ".join([f"in bounds, nothing read unset, no races, at {every}", *notes])

    @point
    def result(self) -> str:
        """The output is the specification's: on the simulator, then on the GPU at larger sizes too."""
        self.need("compiles")
        if self.on != "gpu":
            try:
                self.safe()
            except Failure as failure:
                raise NotGraded(self.luck(failure.kind)) from None
        self.check(self.sizes, on_gpu=self.on == "gpu")
        larger = self.task.all_gpu_sizes if self.card else ()
        self.check(larger, on_gpu=True)
        every = spell_all([*self.sizes, *larger])
        return f"right at {every}; {spell_short(self.drawn)} by ARGS=--seed={self.seed}"

    @point
    def traffic(
        self,
        at: Size,
        bars: Sequence[Bar],
        *,
        everywhere: Sequence[Bar] = (),
        tiles: Callable[..., int] | None = None,
    ) -> str:
        """The kernel moves data as the bars ask, and keeps its registers in registers.

        The bars `everywhere` hold at every size, not only `at` one. `tiles` says how many bytes of shared
        memory the kata's tiles need; a kernel that takes no more gets a mark.
        """
        self.need("compiles", "safe", "result")
        if self.on == "gpu":
            raise NotGraded("not graded: on=gpu leaves the simulator out")
        if many := spilled(self.resources):
            raise Failure(
                "traffic",
                f"{self.place()} spills: on {self.compiled.arch}, {many:,} bytes of what should stay in "
                "registers go to local memory and back; a thread should need fewer values at once",
            )
        figures = self.judged(at, bars)
        for size in self.sizes:
            self.judged(size, everywhere)
        if self.counts_fma(at):
            figures.append(self.intensity(at))
        if tiles:
            more = self.resources.shared - tiles(**self.compiled.constants)
            figures.append(
                f"{more:,} bytes of extra shared memory" if more > 0 else "no extra shared memory *"
            )
        return ", ".join(figures)

    def judged(self, size: Size, bars: Sequence[Bar]) -> list[str]:
        """The figures of these bars at one size."""
        try:
            return [bar.judge(self.report(size), size, self.compiled.constants) for bar in bars]
        except Missed as missed:
            ratio = f" ({self.intensity(size)})" if missed.about_bytes and self.counts_fma(size) else ""
            what = f"{self.place(missed.line)} {missed}{ratio}"
            raise Failure("traffic", what, [missed.line], missed.details) from None

    def counts_fma(self, size: Size) -> bool:
        """Whether the kernel multiplies and adds, more than now and then."""
        return intensity(self.report(size)) > 0.01

    def intensity(self, size: Size) -> str:
        return f"{intensity(self.report(size)):.2g} FLOP/B requested"

    def report(self, size: Size) -> Report:
        report = self.simulated(size).report
        assert report is not None, "a simulated launch has a report"
        return report

    @point
    def speed(self, contest: Contest | Bandwidth) -> str:
        """Fast enough beside the contest's rivals, timed in one run on the same card."""
        if self.on == "cpu":
            raise NotGraded("not graded: on=cpu")
        if not self.card:
            raise NotGraded(f"not graded: no GPU here ({gpu.why_not().removesuffix(' here')})")
        self.need("compiles", "safe", "result")
        if isinstance(contest, Contest):
            self.check([contest.size], on_gpu=True)  # only what ended well once is timed
        timed = []
        for size in contest.sizes(self.card):
            with self.progress(f"timing {spell(size)}"):
                timings = contest.run(
                    self.task, self.compiled, self.kata.solution, self.seed, size, self.card
                )
            if timings.problem:
                kind, what = timings.problem
                raise Failure(kind, f"{self.place()} at {spell(size)}, {what}")
            if what := wrong(contest, self.task, self.compiled, size, timings):
                raise Failure("result", f"{self.place()} in a timed launch at {spell(size)}, {what}")
            if self.table:
                self.table(size, timings)
            timed.append((size, timings))
        passed, figures = contest.judge(timed)
        if passed is None:
            raise NotGraded(figures)
        if not passed:
            raise Failure("speed", f"{self.place()} {figures}")
        return figures

    # ------------------------------------------------------------------------ what the points are made of

    def need(self, *points: str) -> None:
        """Raise NotGraded unless these points are passed, or cannot be graded here."""
        until = {"compiles": "it compiles", "safe": "it is safe", "result": "its result is right"}
        for name in points:
            try:
                getattr(self, name)()
            except NotGraded:
                pass
            except Failure:
                raise NotGraded(f"not run until {until[name]}") from None

    @functools.cached_property
    def card(self) -> gpu.Card | None:
        return None if self.on == "cpu" else gpu.card()

    @functools.cached_property
    def text(self) -> str:
        return read_source(self.file)

    @functools.cached_property
    def source(self) -> Source:
        return Source(self.text)

    @property
    def untouched(self) -> bool:
        """Whether the file is the stub, but for white space."""
        return self.text.split() == read_source(self.kata.stub).split()

    @functools.cached_property
    def compiled(self) -> Compiled:
        task = self.task
        try:
            with self.progress("compiling"):
                arch = self.card.arch if self.card else "sm_80"
                sizes = [*self.sizes, *task.all_gpu_sizes]
                return compile_for(task, self.text, self.path, arch, sizes)
        except CompileError as error:
            first, *rest = str(error).splitlines()
            raise Failure(error.kind, first, [error.line], rest) from None

    def occupancy(self, launch: Configuration) -> Occupancy | None:
        """Of this launch on the card that the kernel is compiled for."""
        registers = self.resources.registers
        return occupancy(self.compiled.arch, launch.threads, registers, self.shared(launch))

    def shared(self, launch: Configuration) -> int:
        """Bytes of shared memory that a block of this launch has, static and dynamic."""
        return self.resources.shared + launch.shared_bytes

    @property
    def resources(self) -> Resources:
        return self.compiled.resources[self.compiled.entry(self.task.kernel)]

    @functools.cached_property
    def element(self) -> Callable[[str, int], str]:
        """Names an element of a shared array: ("Nds", 384) -> "Nds[6][0]"."""
        return Source(self.text, self.compiled.constants).element

    def configuration(self, size: Size) -> Configuration:
        return self.task.launch(size, self.compiled.constants)

    def launch_constants(self) -> Iterator[tuple[str, int, int]]:
        """What the launch is made of, as the file spells it, with its value and the least that it may be:
        ("rows_per_block(31)", 8, 1).
        """
        constants = self.compiled.constants
        for name in self.task.constants:
            yield name, constants[name], 1
        for name in self.task.optional:
            yield name, constants[name], 0
        for name, (argument, constant) in self.task.functions.items():
            if constants[constant] != MISSING and not self.source.line_of(name):
                yield constant, constants[constant], 1
                continue
            for size in [*self.sizes, *self.task.all_gpu_sizes]:
                yield f"{name}({size[argument]})", constants[f"{name}_{size[argument]}"], 1

    @property
    def printed(self) -> list[str]:
        """What the kernel printed at the smallest size on the simulator."""
        launched = self._launched.get((False, tuple(self.sizes[0].values())))
        return launched.report.output if launched and launched.report else []

    def simulated(self, size: Size) -> Launched:
        try:
            return self.launched(size, on_gpu=False)
        except Unsupported as unsupported:
            line = unsupported.line
            what = str(unsupported).replace(f" on line {line}", "")
            why = f"{self.place(line)} {what}; where there is a GPU, on=gpu grades without the simulator"
            raise Failure("unsupported", why, [line]) from None

    def launched(self, size: Size, *, on_gpu: bool) -> Launched:
        """The one launch at this size on this machine."""
        key = (on_gpu, tuple(size.values()))
        if key not in self._launched:
            with self.progress(f"{'launching' if on_gpu else 'simulating'} {spell(size)}"):
                data = problem(self.task, size, self.seed)
                self._launched[key] = launch(
                    self.task, self.compiled, data, self.configuration(size), self.element, on_gpu=on_gpu
                )
        return self._launched[key]

    # ------------------------------------------------------------------------- findings and wrong results

    def place(self, line: int = 0) -> str:
        return f"{self.path}:{line}" if line else self.path

    def failed(self, finding: Finding, size: Size) -> Failure:
        """The failure that a finding is."""
        lines = [line for line in (finding.line, finding.other_line) if line]
        what = finding.message
        called = set(re.findall(r"\b__\w+_sync\b", " ".join(self.source.quotes(lines))))
        if len(called) == 1:
            what = what.replace("the warp function", called.pop())
        if "no dynamic shared memory" in what:
            ask = [f"constexpr int {name} = ...; asks for it" for name in self.task.optional]
            what += f"; {ask[0] if ask else 'declare the array with its size'}"
        return Failure(finding.kind, f"{self.place(finding.line)} {self.at(size)}, {what}", lines)

    def at(self, size: Size) -> str:
        """ "at Width 64", and how to draw the same size again if it was drawn."""
        return f"at {spell(size)}" + (f" (ARGS=--seed={self.seed})" if size is self.drawn else "")

    def check(self, sizes: Sequence[Size], *, on_gpu: bool) -> None:
        """Raise a Failure unless every launch ended well with the right output.

        Of several wrong sizes the first is told where what is wrong can be named.
        """
        right: list[Launched] = []
        wrong: list[Launched] = []
        for size in sizes:
            launched = self.launched(size, on_gpu=True) if on_gpu else self.simulated(size)
            for finding in launched.findings:
                raise self.failed(finding, size)
            (wrong if self.wrong(launched) else right).append(launched)
        if wrong:
            raise self.wrong_result(wrong, right, on_gpu=on_gpu)

    def wrong_result(self, wrong: Sequence[Launched], right: Sequence[Launched], *, on_gpu: bool) -> Failure:
        """Of several wrong sizes that one is told where most can be said of what is wrong."""
        told, clue = patterns.telling(
            [self.seen(launched) for launched in wrong], list(map(self.seen, right))
        )
        launched = next(launched for launched in wrong if launched.problem is told.problem)
        size, line = launched.problem.size, launched.only_store()
        if on_gpu and (unsteady := self.unsteady(launched)):
            clue = unsteady
        clue = "" if self.changed(launched) else clue  # that is not about the output
        what = self.wrong(launched) + (f": {clue}" if clue else "")
        details = compare.listing(told.got, launched.problem, self.task.output)
        if len(wrong) + len(right) > 1:
            details += [""] if details else []
            details += compare.both_lists(sizes_of(wrong), sizes_of(right))
        return Failure("result", f"{self.place(line)} {self.at(size)}, {what}", [line], details)

    def seen(self, launched: Launched) -> patterns.Seen:
        """What patterns.py needs to know of a launch."""
        data, constants = launched.problem, self.compiled.constants
        return patterns.Seen(
            launched.arrays[self.task.output],
            data,
            self.task.output,
            self.task.tile(**constants),
            lambda: self.task.mistakes(**data.inputs, **constants),
        )

    def unsteady(self, launched: Launched) -> str:
        """Whether a second launch on the card, with the same data, leaves other values; as a clause."""
        size, output = launched.problem.size, self.task.output
        del self._launched[True, tuple(size.values())]
        again = self.launched(size, on_gpu=True)
        if again.findings:
            return ""
        return compare.difference(launched.arrays[output], again.arrays[output], launched.problem, output)

    def wrong(self, launched: Launched) -> str:
        """What is wrong with the arrays of a launch, in a sentence; "" if nothing is."""
        got = launched.arrays[self.task.output]
        return self.changed(launched) or compare.sentence(
            self.task, launched.problem, got, launched.configuration
        )

    def changed(self, launched: Launched) -> str:
        """Which input a launch has changed, in a sentence; "" if none."""
        args = launched.problem.args.items()
        arrays = {name: value for name, value in args if isinstance(value, np.ndarray)}
        inputs = {name: array for name, array in arrays.items() if name != self.task.output}
        return compare.changed_input(inputs, launched.arrays)

    def luck(self, kind: str) -> str:
        """What the values say of a kernel that is not safe."""
        if kind == "result":  # a failed assert, or a trap
            return "not run: the kernel stops itself"
        try:
            for size in self.sizes:
                launched = self.simulated(size)
                if launched.stuck:
                    return "not run: a launch did not come to its end"
                if self.wrong(launched):
                    return f"wrong too, first at {spell(size)}"
        except Failure:
            return "not run: the simulator cannot run it"
        return f"right at all {spell_all(self.sizes)}: luck{', not order' if kind == 'race' else ''}"


def sizes_of(launches: Sequence[Launched]) -> list[Size]:
    return [launched.problem.size for launched in launches]


def spilled(used: Resources) -> int:
    return used.spill_stores + used.spill_loads
