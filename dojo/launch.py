"""One launch of a task's kernel, on the simulator or on the GPU, and whether a card could launch it at all.

The only place that knows there are two machines. What a launch means for the grade is grader.py's subject.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dojo import gpu, simulator
from dojo.compile import Compiled, Function, Resources, compile_cuda
from dojo.simulator import Finding, Report
from dojo.task import Array, Configuration, Problem, Size, Task, ceil_div

LEAST_BUDGET = 3_000_000  # thread instructions: a second or so of lanes that wait for each other in a loop
STUCK = ("timeout", "barrier", "launch")  # after one of these the output means nothing


class Limits(Protocol):
    """What a card allows one block (`dojo.gpu.Card` has it; sizes in bytes)."""

    @property
    def threads_per_block(self) -> int: ...
    @property
    def registers_per_block(self) -> int: ...
    @property
    def shared_per_block(self) -> int: ...
    @property
    def shared_optin(self) -> int: ...


@dataclass(frozen=True)
class Usual:
    """The limits of every card from sm_50 to sm_120."""

    threads_per_block: int = 1024
    registers_per_block: int = 65536
    shared_per_block: int = 48 * 1024
    shared_optin: int = 163 * 1024  # of sm_80


@dataclass(frozen=True)
class Launched:
    """What one launch left behind."""

    problem: Problem
    configuration: Configuration
    arrays: dict[
        str, Array
    ]  # every array argument after the launch; none if the kernel did not come to its end
    findings: Sequence[Finding]  # on the GPU at most one, without a line
    report: Report | None  # None on the GPU

    @property
    def stuck(self) -> bool:
        return not self.arrays or any(finding.kind in STUCK for finding in self.findings)

    def only_store(self) -> int:
        """The source line that writes to global memory, if there is only one; else 0."""
        accesses = self.report.accesses if self.report else ()
        lines = {access.line for access in accesses if access.space == "global" and access.op == "store"}
        return lines.pop() if len(lines) == 1 else 0


def compile_for(
    task: Task, source: str, path: str, arch: str, sizes: Sequence[Size], kernel: str = ""
) -> Compiled:
    """The task's kernel, or another with its parameters, with the constants of a launch at these sizes."""
    functions = [
        Function(name, argument, constant, sorted({size[argument] for size in sizes}))
        for name, (argument, constant) in task.functions.items()
    ]
    return compile_cuda(
        source,
        path,
        arch=arch,
        constants=task.constants,
        optional=task.optional,
        functions=functions,
        signature=(kernel or task.kernel, task.parameters),
    )


def launch(
    task: Task,
    compiled: Compiled,
    problem: Problem,
    configuration: Configuration,
    element: Callable[[str, int], str],
    *,
    on_gpu: bool,
) -> Launched:
    """Launch the task's kernel once on copies of the problem's arrays. Raises `dojo.simulator.Unsupported`.

    `element` names a byte of a shared array in a finding: ("Nds", 384) -> "Nds[6][0]".
    """
    args = {
        name: value.copy() if isinstance(value, np.ndarray) else value for name, value in problem.args.items()
    }
    output = task.names.index(task.output)
    # A message is about the learner's file, which may call P something else.
    names = compiled.parameters if len(compiled.parameters) == len(task.names) else task.names
    grid, block, shared_bytes = configuration.grid, configuration.block, configuration.shared_bytes
    filled = task.output in problem.inputs  # C of C = alpha·A·B + beta·C
    if on_gpu:
        outcome = gpu.run(
            compiled,
            task.kernel,
            grid,
            block,
            list(args.values()),
            shared_bytes=shared_bytes,
            outputs=() if filled else (output,),
            inout=(output,) if filled else (),
            names=names,
        )
        arrays = [name for name, value in args.items() if isinstance(value, np.ndarray)]
        findings = [Finding(outcome.problem[0], 0, outcome.problem[1])] if outcome.problem else []
        left = dict(zip(arrays, outcome.arrays, strict=True)) if outcome.arrays else {}
        return Launched(problem, configuration, left, findings, None)
    try:
        report = simulator.run(
            compiled.ptx,
            compiled.entry(task.kernel),
            grid,
            block,
            list(args.values()),
            shared_bytes=shared_bytes,
            uninitialised=() if filled else (output,),
            parameters=names,
            element=element,
            budget=budget(problem, configuration, task.sums(**compiled.constants)),
        )
    except MemoryError:
        raise simulator.Unsupported("this launch", why="it takes more memory than there is") from None
    left = {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    return Launched(problem, configuration, left, report.findings, report)


def budget(problem: Problem, configuration: Configuration, sums: int = 1) -> int:
    """Thread instructions after which a launch counts as endless, some 20 times what slow kernels need.

    Where the output is a vector, all threads of a block may add up one of its elements after the other.
    """
    blocks = math.prod(configuration.grid)
    in_turn = 400 * ceil_div(problem.want.size, blocks) if problem.want.ndim == 1 else 0
    usual = max(configuration.threads * blocks, 256) * (sums * (2000 + 200 * problem.terms) + in_turn)
    return max(usual, LEAST_BUDGET)


def impossible(configuration: Configuration, used: Resources, limits: Limits) -> str:
    """Why no card with these limits can launch the kernel, in a sentence; "" if it can."""
    threads = configuration.threads
    extents = " x ".join(map(str, configuration.block))
    blocks = (
        f"blocks of {extents} = {threads:,} threads" if " " in extents else f"blocks of {threads:,} threads"
    )
    if configuration.shared_bytes < 0:
        return f"asks for {configuration.shared_bytes} bytes of dynamic shared memory"
    if min(*configuration.block, *configuration.grid) < 1:
        return f"asks for a grid of {configuration.grid} {blocks}; each number must be at least 1"
    if threads > limits.threads_per_block:
        return f"asks for {blocks}; a block has at most {limits.threads_per_block:,}"
    if 0 < used.max_threads < threads:
        return f"asks for {blocks}; its __launch_bounds__ allow {used.max_threads:,}"
    granted = ceil_div(used.registers, 8) * 8  # registers are granted in eights, and to whole warps
    registers = granted * ceil_div(threads, 32) * 32
    if registers > limits.registers_per_block:
        return (
            f"needs {granted} registers for each of {threads:,} threads, {registers:,} in all; a block has "
            f"{limits.registers_per_block:,}: __launch_bounds__({threads}) makes the compiler use fewer"
        )
    shared = used.shared + configuration.shared_bytes
    most = limits.shared_optin if configuration.shared_bytes else limits.shared_per_block
    if shared > most:
        return f"needs {shared:,} bytes of shared memory; a block has {most:,}"
    return ""
