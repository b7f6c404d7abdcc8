"""solutions/04_register.fast.cu: its large tiles and their shares, which no size of the grade asks for.

The file guards WORKERS and MIN_STEPS, so that a few blocks can be made to share the tiles of a small product.
"""

import numpy as np
import pytest
from grading import MODULES, first_failure, fresh

from dojo.compare import sentence
from dojo.compile import compile_cuda
from dojo.katas import ROOT
from dojo.launch import launch
from dojo.task import problem

FILE = ROOT / "solutions/04_register.fast.cu"
TASK = MODULES["04_register"].TASK
named = MODULES["04_register"].named


def test_it_passes_every_point_without_a_gpu():
    grade = fresh(FILE)
    assert not first_failure(grade)
    assert [outcome.state for outcome in grade.outcomes.values()] == ["ok", "ok", "ok", "ok", "-"]


# A size for three blocks, and whether they share a tile: one of them then reads C, even if beta is 0.
# Large tiles are 128 x 256, steps 8.
LARGE = [
    (named(66, 260, 18, 1.0, 0.0), True),  # two tiles of 3 steps for three blocks
    (named(257, 260, 20, 0.5, 2.0), False),  # 6 tiles of 3 steps, two for each
    (named(129, 257, 5, 1.0, 0.0), False),  # 4 tiles of one step, whose rows are not aligned
    (named(131, 259, 19, 1.0, 0.0), True),  # 3 whole tiles, and one for three blocks that add in turn
    (named(5, 1028, 17, 0.5, 2.0), True),  # 3 whole tiles, and two for three blocks
    (named(257, 3, 17, 0.0, 1.0), False),  # one tile for each
]


def run(source, size, workers=3):
    """One simulated launch; also its data and configuration."""
    compiled = compile_cuda(
        source,
        FILE.name,
        constants=TASK.constants,
        optional=TASK.optional,
        defines={"WORKERS": workers, "MIN_STEPS": 1},
        signature=(TASK.kernel, TASK.parameters),
    )
    data = problem(TASK, size, seed=7)
    configuration = TASK.launch(size, compiled.constants)
    assert np.prod(configuration.grid) >= workers
    return launch(TASK, compiled, data, configuration, lambda name, byte: name, on_gpu=False)


@pytest.mark.parametrize(("size", "shared"), LARGE)
def test_large_tiles_whole_and_shared(size, shared):
    source = FILE.read_text()
    launched = run(source, size)
    report = launched.report
    assert not launched.findings
    assert not sentence(TASK, launched.problem, launched.arrays["C"], launched.configuration)
    loads = [access for access in report.accesses if (access.space, access.op) == ("shared", "load")]
    assert not sum(access.conflicts for access in report.accesses)
    assert not any(access.space == "local" for access in report.accesses)
    assert report.fma / 32 > 8 * sum(access.wavefronts for access in loads)  # 16 x 8 sums: large tiles
    lines = source.splitlines()
    loads_of_C = [access for access in report.accesses if "__ldcg" in lines[access.line - 1]]
    assert bool(loads_of_C) == (shared or size["beta"] != 0)


def test_a_block_that_does_not_wait_for_the_other_share_is_found():
    waits = "while (*(volatile int *)share.in_C != share.last)"
    source = FILE.read_text().replace(waits, "while (share.last < 0)")
    assert source != FILE.read_text()
    launched = run(source, named(66, 68, 18, 1.0, 0.0), workers=2)  # one tile for both
    assert {finding.kind for finding in launched.findings} == {"uninitialised"}
