"""The GPU's part of a grade, with a made-up card: what is launched, what is timed, what the ratios say."""

from types import SimpleNamespace

import numpy as np
import pytest
from grading import MODULES, points

from dojo import gpu, katas, speed
from dojo.grader import Grade
from dojo.timing import Check, Timings

CONTEST = MODULES["01_naive"].CONTEST
ROUNDS = 20


def timings(noise=0.0, **seconds):
    """Every one of `seconds` (by name, _ for a space) the same in each round, but for alternating noise."""
    wave = 1 + noise * (np.arange(ROUNDS) % 2)
    return Timings("yours", {name.replace("_", " "): list(wave * time) for name, time in seconds.items()})


@pytest.mark.parametrize(
    ("measured", "passed"),
    [
        (timings(yours=1e-3, uncoalesced=2.6e-3, cuBLAS=1e-5), True),
        (timings(yours=1e-3, uncoalesced=1.0e-3, cuBLAS=6e-5), True),  # one bar is enough
        (timings(yours=1e-3, uncoalesced=2.4e-3, cuBLAS=4e-5), False),
        (timings(yours=1e-3, uncoalesced=2.6e-3), True),  # no cuBLAS here
        (timings(yours=1e-3, the_solution=1e-3), None),
        (timings(yours=1e-3, uncoalesced=2.4e-3, cuBLAS=4e-5, noise=0.2), None),
    ],
)
def test_one_bar_is_enough_and_noise_judges_nobody(measured, passed):
    assert speed.judge(CONTEST, measured)[0] is passed


def test_the_figures_are_ratios_with_their_bars():
    measured = timings(yours=2e-3, uncoalesced=8e-3, the_solution=1.98e-3, cuBLAS=3.2e-4)
    assert speed.judge(CONTEST, measured)[1] == (
        "8.6 TFLOP/s: 4.00x uncoalesced (bar 2.50), 0.99x the solution, 16 % of cuBLAS (bar 5 %)"
    )


def test_a_missing_rival_says_why():
    measured = Timings(
        "yours", {"yours": [1e-3] * ROUNDS}, missing={"uncoalesced": "the baseline did not compile"}
    )
    assert speed.judge(CONTEST, measured) == (None, "not graded: the baseline did not compile; no cuBLAS")


class Card:
    """Stands in for dojo.gpu: multiplies on the CPU, and keeps the sizes that it was asked for."""

    def __init__(self, monkeypatch, times, product=lambda m, n: m @ n):
        self.widths, self.times, self.product = [], times, product
        card = SimpleNamespace(
            name="NVIDIA H200",
            arch="sm_90",
            threads_per_block=1024,
            registers_per_block=65536,
            shared_per_block=49152,
        )
        monkeypatch.setattr(gpu, "card", lambda: card)
        monkeypatch.setattr(gpu, "run", self.run)
        monkeypatch.setattr(gpu, "compare", self.compare)

    def run(self, compiled, kernel, grid, block, args, *, outputs, shared_bytes, inout, names):
        m, n, p, width = args
        assert (compiled.arch, compiled.entry(kernel)) == ("sm_90", kernel)
        assert (p.shape, outputs, inout, names) == (m.shape, (2,), (), ["M", "N", "P", "Width"])
        assert grid == (-(-width // block[0]),) * 2
        self.widths.append(width)
        return gpu.Outcome([m, n, self.product(m, n)])

    def compare(self, candidate, baselines):
        assert list(baselines) == ["uncoalesced", "the solution", "cuBLAS"]
        m, n, _, _ = candidate.args
        return Timings("yours", self.times.times, checks=[Check(candidate.args, {}, {2: self.product(m, n)})])


def graded(on=""):
    kata = katas.find("naive")
    task = MODULES["01_naive"].TASK
    small = SimpleNamespace(**{**vars(task), "sizes": task.sizes[:3], "names": task.names})
    grade = Grade(small, kata, kata.solution, on=on, seed=7)
    failures = {name: failure for name, failure in points(grade) if failure}
    return grade.outcomes, failures


FAST = timings(yours=2e-3, uncoalesced=8e-3, the_solution=2e-3, cuBLAS=2e-4)


@pytest.fixture
def small(monkeypatch):
    """The sizes that need no large product here."""
    task = MODULES["01_naive"].TASK
    monkeypatch.setattr(
        MODULES["01_naive"],
        "CONTEST",
        speed.Contest({"Width": 48}, 1, CONTEST.rivals, CONTEST.cublas, CONTEST.bars),
    )
    monkeypatch.setitem(vars(task), "gpu_sizes", [{"Width": 40}, {"Width": 41}])


@pytest.mark.usefixtures("small")
def test_with_a_card_the_larger_sizes_run_on_it_after_the_simulator(monkeypatch):
    card = Card(monkeypatch, FAST)
    outcomes, failures = graded()
    assert failures == {}
    assert [outcome.state for outcome in outcomes.values()] == ["ok"] * 5
    assert card.widths == [40, 41, 48]
    assert "(sm_90)" in outcomes["compiles"].text
    assert outcomes["result"].text.startswith("right at 6 widths from 1 to 122")


@pytest.mark.usefixtures("small")
def test_on_gpu_alone_every_size_runs_on_it(monkeypatch):
    card = Card(monkeypatch, FAST)
    outcomes, failures = graded(on="gpu")
    assert failures == {}
    assert card.widths == [1, 2, 15, 122, 40, 41, 48]
    assert [outcome.state for outcome in outcomes.values()] == ["ok", "-", "ok", "-", "ok"]


@pytest.mark.usefixtures("small")
def test_on_cpu_leaves_the_card_alone(monkeypatch):
    card = Card(monkeypatch, FAST)
    outcomes, failures = graded(on="cpu")
    assert failures == {}
    assert card.widths == []
    assert outcomes["speed"].text == "not graded: on=cpu"


@pytest.mark.usefixtures("small")
def test_a_slow_kernel_fails_with_its_figures(monkeypatch):
    Card(monkeypatch, timings(yours=2e-3, uncoalesced=2e-3, the_solution=2e-3, cuBLAS=2e-5))
    _, failures = graded()
    assert list(failures) == ["speed"]
    assert str(failures["speed"]).startswith(
        "speed: solutions/01_naive.cu reaches 0.0 TFLOP/s: 1.00x uncoalesced"
    )


@pytest.mark.usefixtures("small")
def test_what_is_wrong_on_the_card_alone_is_a_wrong_result(monkeypatch):
    Card(monkeypatch, FAST, product=lambda m, n: n @ m)
    outcomes, failures = graded()
    assert list(failures) == ["result"]
    assert str(failures["result"]).startswith(
        "result: solutions/01_naive.cu at Width 40, P[0][0], the element of thread"
    )
    assert str(failures["result"]).endswith("elements are wrong: the kernel computed N times M")
    assert outcomes["speed"].text == "not run until its result is right"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["bounds", "timeout", "result", "launch"])
def test_a_problem_on_the_card_is_a_failure_of_its_kind(monkeypatch, kind):
    card = Card(monkeypatch, FAST)
    monkeypatch.setattr(gpu, "run", lambda *_, **__: gpu.Outcome([], (kind, "this went wrong")))
    _, failures = graded()
    assert str(failures["result"]) == f"{kind}: solutions/01_naive.cu at Width 40, this went wrong"
    assert card.widths == []
