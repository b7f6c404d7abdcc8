"""The GPU's part of a grade, with a made-up card: what is launched, what is timed, what the ratios say."""

import re
from dataclasses import replace
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
    assert CONTEST.judge([({"Width": 64}, measured)])[0] is passed


def test_the_figures_are_ratios_with_their_bars():
    measured = timings(yours=2e-3, uncoalesced=8e-3, the_solution=1.98e-3, cuBLAS=3.2e-4)
    assert CONTEST.judge([({"Width": 64}, measured)])[1] == (
        "8.6 TFLOP/s: 4.00x uncoalesced (bar 2.50), 0.99x the solution, 16 % of cuBLAS (bar 5 %)"
    )


def test_a_missing_rival_says_why():
    measured = Timings(
        "yours", {"yours": [1e-3] * ROUNDS}, missing={"uncoalesced": "the baseline did not compile"}
    )
    why = "not graded: the baseline did not compile; no cuBLAS"
    assert CONTEST.judge([({"Width": 64}, measured)]) == (None, why)


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
    small = replace(task, sizes=task.sizes[:3])
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


# --- the bandwidth of kata 05, at several widths ------------------------------------------------------------

BANDWIDTH = MODULES["05_reducesum"].CONTEST


def at(width, seconds, probe=0.25e-3, noise=0.0):
    size = {"rows": (1 << 28) // width, "cols": width}
    return size, timings(noise, yours=seconds, the_read_probe=probe)


def test_every_width_must_reach_its_share_of_the_probe():
    fast, slow = at(32, 0.26e-3), at(4096, 0.5e-3)
    assert BANDWIDTH.judge([fast, at(4096, 0.25e-3)]) == (
        True,
        "4,130 GB/s at 32 columns (96 % of the read probe), 4,295 at 4,096 (100 %); bar 70 %",
    )
    passed, figures = BANDWIDTH.judge([fast, slow])
    assert passed is False
    assert figures.endswith("2,147 at 4,096 (50 %); bar 70 % at every width")


def test_a_probe_that_is_noisy_or_missing_judges_nobody():
    passed, figures = BANDWIDTH.judge([at(32, 0.3e-3), at(256, 0.3e-3, noise=0.2)])
    assert passed is None
    assert figures.startswith("too noisy to judge: the read probe varies by ")
    missing = Timings("yours", {"yours": [1e-3] * ROUNDS}, missing={speed.PROBE: "it did not run"})
    assert BANDWIDTH.judge([({"rows": 1, "cols": 1}, missing)]) == (None, "not graded: it did not run")


@pytest.mark.parametrize(("memory", "each"), [(141 << 30, 1 << 30), (4 << 30, 1 << 29)])
def test_the_matrix_is_large_but_fits_the_card(memory, each):
    sizes = BANDWIDTH.sizes(SimpleNamespace(memory_bytes=memory))
    assert [4 * size["rows"] * size["cols"] for size in sizes] == [each] * len(BANDWIDTH.widths)


def test_every_width_that_is_timed_has_been_graded_before():
    task = MODULES["05_reducesum"].TASK
    assert {size["cols"] for size in task.gpu_sizes} >= set(BANDWIDTH.widths)


@pytest.mark.parametrize("shift", [0, 1, 37, 599])
def test_the_sums_of_a_rolled_stream_are_known_without_making_it(shift):
    period = np.random.default_rng(3).uniform(-1, 1, 37).astype(np.float32)
    stream = gpu.Stream(period, 600)
    rolled = np.roll(np.resize(period, 600).astype(np.float64), shift)
    edges = 24 * np.arange(26)
    assert np.diff(stream.sums(edges, shift, period)) == pytest.approx(rolled.reshape(25, 24).sum(axis=1))


class SummingCard(Card):
    """The same for sums of rows; a stream is made here, as the card makes it."""

    def __init__(self, monkeypatch, total=lambda x: x.sum(axis=1)):
        super().__init__(monkeypatch, None)
        self.total = total
        gpu.card().memory_bytes, gpu.card().multiprocessors = 1 << 23, 2

    def run(self, compiled, kernel, grid, block, args, *, outputs, shared_bytes, inout, names):
        assert (kernel, block, outputs, inout, names) == (
            "row_sum",
            (compiled.constants["THREADS"],),
            (1,),
            (),
            ["X", "sums", "rows", "cols"],
        )
        x, _, rows, cols = args
        self.widths.append((rows, cols))
        return gpu.Outcome([x, self.total(x.astype(np.float64)).astype(np.float32)])

    def compare(self, candidate, baselines, seconds):
        stream, _, rows, cols = candidate.args
        ((name, probe),) = baselines.items()
        assert name == speed.PROBE
        assert probe.args[0] is stream
        fours = rows * cols // 4
        assert (probe.grid, probe.block, int(probe.args[2])) == ((-(-fours // 1024),), (256,), fours)
        x = np.roll(np.resize(stream.period, rows * cols), 1234).reshape(rows, cols)
        check = Check(candidate.args, {0: 1234}, {1: self.total(x.astype(np.float64))})
        return Timings("yours", at(cols, 0.25e-3)[1].times, checks=[check])


def reducesum():
    grade = Grade(
        MODULES["05_reducesum"].TASK, katas.find("reducesum"), katas.find("reducesum").solution, on="gpu"
    )
    failures = {name: failure for name, failure in points(grade) if failure}
    return grade.outcomes, failures


def test_a_row_sum_is_timed_at_every_width(monkeypatch):
    card = SummingCard(monkeypatch)
    outcomes, failures = reducesum()
    assert failures == {}
    assert outcomes["speed"].text.count("100 %") == len(BANDWIDTH.widths)
    assert {(1, 1000003), (1000003, 1), (1, 20011), (64, 65536)} <= set(card.widths)


def test_a_timed_launch_with_a_wrong_sum_is_a_wrong_result(monkeypatch):
    def total(x):
        sums = x.sum(axis=1)
        sums[5:6] *= x.shape != (8192, 32)  # only where it is timed
        return sums

    SummingCard(monkeypatch, total)
    _, failures = reducesum()
    assert list(failures) == ["speed"]
    assert str(failures["speed"]).startswith(
        "result: solutions/05_reducesum.cu in a timed launch at rows 8192, cols 32, sums[5] is 0 and should"
    )


def test_one_long_float32_sum_is_told_from_short_ones(monkeypatch):
    SummingCard(
        monkeypatch,
        lambda x: np.cumsum(x.astype(np.float32), axis=1)[:, -1] if x.shape[1] > 10**6 else x.sum(axis=1),
    )
    _, failures = reducesum()
    assert list(failures) == ["result"]
    text = str(failures["result"])
    assert text.startswith("result: solutions/05_reducesum.cu at rows 1, cols 1000003, sums[0] is ")
    assert re.search(
        r"\d: its error is 2,\d+ \* 2\^-24 of .* where 400 \* 2\^-24 is allowed: one long float32 sum", text
    )
