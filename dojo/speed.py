"""The speed point: who is timed beside the learner's kernel, and what the ratios say.

All run in turns on the same card in one go (dojo/gpu.py), and bars are ratios: fair on any card.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dojo import compare, gpu
from dojo.compile import Compiled, compile_cuda, read_source
from dojo.task import Configuration, Problem, Size, Task, problem, specify
from dojo.timing import Timings

SOLUTION, CUBLAS = "the solution", "cuBLAS"


@dataclass(frozen=True)
class Rival:
    """Another kernel for the same task: same parameters, same constants' names."""

    file: Path
    kernel: str


@dataclass(frozen=True)
class Contest:
    """One size, the rivals by name, and the bars: at least so many times as fast as one of them, any one."""

    size: Size
    flop: int  # floating-point operations of one launch
    rivals: Mapping[str, Rival]  # beside the kata's own solution
    cublas: gpu.CuBLAS
    bars: Mapping[str, float]  # {"naive": 1.2}; {"cuBLAS": 0.05} is 5 % of it

    def run(self, task: Task, compiled: Compiled, solution: Path, seed: int) -> Timings:
        """Time everybody on the same data."""
        data = problem(task, self.size, seed)
        rivals: dict[str, gpu.Launch | gpu.CuBLAS] = {
            name: self.launch(task, self.compile(task, rival, compiled.arch), rival.kernel, data)
            for name, rival in {**self.rivals, SOLUTION: Rival(solution, task.kernel)}.items()
        }
        return gpu.compare(self.launch(task, compiled, task.kernel, data), {**rivals, CUBLAS: self.cublas})

    def compile(self, task: Task, rival: Rival, arch: str) -> Compiled:
        return compile_cuda(
            read_source(rival.file),
            rival.file.name,
            arch=arch,
            constants=task.constants,
            optional=task.optional,
            signature=(rival.kernel, task.parameters),
        )

    def launch(self, task: Task, compiled: Compiled, kernel: str, data: Problem) -> gpu.Launch:
        configuration = task.configuration(**self.size, **compiled.constants)
        output = (task.names.index(task.output),)
        filled = task.output in data.inputs
        return gpu.Launch(
            compiled.cubin,
            compiled.entry(kernel),
            configuration.grid,
            configuration.block,
            list(data.args.values()),
            outputs=() if filled else output,
            inout=output if filled else (),
            shared_bytes=configuration.shared_bytes,
            names=task.names,
        )

    def wrong(self, task: Task, timings: Timings, configuration: Configuration) -> str:
        """A sentence about the first timed launch whose output is not right, else ""."""
        for check in timings.checks:
            args = dict(zip(task.names, check.args, strict=True))
            got = args.pop(task.output)
            data = specify(
                task,
                self.size,
                {name: args[name] for name in args if not isinstance(self.size.get(name), int)},
            )
            if what := compare.sentence(task, data, got, configuration):
                return what
        return ""


def judge(contest: Contest, timings: Timings) -> tuple[bool | None, str]:
    """Whether a bar is passed, None where that cannot be told, and the figures, or why it cannot.

    "8.1 TFLOP/s: 1.57x naive (bar 1.20), 0.99x the solution, 16 % of cuBLAS"
    """
    rate = contest.flop / timings.seconds(timings.candidate) / 1e12
    others = [name for name in timings.times if name != timings.candidate]
    ratios = [figure(name, timings.ratio(name), contest.bars.get(name)) for name in others]
    figures = f"{rate:.1f} TFLOP/s: {', '.join(ratios)}"
    there = [name for name in contest.bars if name in others]
    noisy = [name for name in there if timings.too_noisy(name)]
    if any(timings.ratio(name) >= contest.bars[name] for name in there if name not in noisy):
        return True, figures
    if not there:
        return (
            None,
            f"not graded: {'; '.join(timings.missing.get(name, f'no {name}') for name in contest.bars)}",
        )
    if noisy:
        return None, f"too noisy to judge: {noisy[0]} varies by {timings.spread(noisy[0]):.0%}; {figures}"
    return False, f"reaches {figures}; it should pass {'a bar' if len(contest.bars) > 1 else 'the bar'}"


def figure(name: str, ratio: float, bar: float | None) -> str:
    """ "1.57x naive (bar 1.20)"; against cuBLAS "16 % of cuBLAS (bar 5 %)"."""
    if name == CUBLAS:
        return f"{100 * ratio:.0f} % of {name}" + (f" (bar {100 * bar:.0f} %)" if bar else "")
    return f"{ratio:.2f}x {name}" + (f" (bar {bar:.2f})" if bar else "")
