"""tests/fidelity/spread.py with a made-up card: what it calls a verdict that can be trusted."""

import sys
from types import SimpleNamespace

import pytest

from dojo import gpu
from dojo.katas import ROOT
from dojo.timing import Timings

sys.path.append(str(ROOT / "tests/fidelity"))

import spread

SECONDS = {"naive": 5e-3, "the solution": 3e-3, "cuBLAS": 0.5e-3}


@pytest.fixture
def table(monkeypatch, capsys):
    """Runs it for kata 02; `drift` is how much slower the solution gets from run to run."""

    def runs(drift, noise=0.0):
        run = []

        def compare(candidate, baselines):
            run.append(1 + drift * len(run))
            times = {"yours": [3e-3 * run[-1]] * 20}
            for name, launch in baselines.items():
                wave = [1.0, 1 + noise] * 10
                more = launch.grid[0] / candidate.grid[0] if name.endswith("its bar") else 1.0
                times[name] = [SECONDS.get(name, 3e-3) * more * one for one in wave]
            return Timings("yours", times)

        card = SimpleNamespace(name="NVIDIA Practice", arch="sm_80")
        monkeypatch.setattr(gpu, "card", lambda: card)
        monkeypatch.setattr(gpu, "compare", compare)
        monkeypatch.setattr(sys, "argv", ["spread.py", "tiled", "--runs", "6"])
        status = spread.main()
        return status, capsys.readouterr().out

    return runs


def test_steady_ratios_and_verdicts_can_be_trusted(table):
    status, shown = table(0.001)
    assert status == 0
    rows = [line for line in shown.splitlines() if " pass 1.2" in line]
    assert [row.split("%  ")[1] for row in rows] == [
        "6 of 6 pass 1.2",
        "4 of 4 pass 1.2",  # 5 % above; two runs found out how many blocks that takes
        "0 of 4 pass 1.2",
    ]
    above, below = (float(row.split()[-8]) for row in rows[1:])
    assert above == pytest.approx(1.2 * 1.05, rel=0.01)
    assert below == pytest.approx(1.2 / 1.05, rel=0.01)


def test_a_ratio_that_drifts_cannot(table):
    status, shown = table(0.01)
    assert status == 1
    assert " 4.88%" in shown  # (1 - 1 / 1.05) / its median
    assert "!" in shown


def test_a_noisy_baseline_cannot(table):
    status, shown = table(0.0, noise=0.2)
    assert status == 1
    assert "noisy" in shown
