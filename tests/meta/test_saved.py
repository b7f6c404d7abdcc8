"""Times kept by pytest-benchmark and set beside later ones, by a made-up card: dojo/saved.py."""

import json
import subprocess
import sys
import textwrap

import pytest

from dojo import katas, saved

# A card that sums rows on the CPU, takes made-up times, and is driven through the command line.
PRETEND = """
    import os, sys
    import numpy as np
    sys.path.insert(0, {root!r})
    from dojo import cli, device, gpu
    from dojo.timing import Check, Timings

    card = device.Card(os.environ["CARD"], "sm_80", 2, 1024, 2048, 49152, 166912, 167936, 65536, 65536,
                       1 << 22, 1 << 23, driver="13.0", cupy="14.2.0")
    gpu.card, gpu.start = lambda: card, lambda: None

    def run(compiled, kernel, grid, block, args, **_):
        return gpu.Outcome([args[0], args[0].sum(axis=1, dtype=float)])

    def compare(candidate, baselines, seconds):
        stream, _, rows, cols = candidate.args
        x = np.resize(stream.period, rows * cols).reshape(rows, cols)
        times = {{"yours": [2e-3] * 20, **dict.fromkeys(baselines, [1.9e-3] * 20)}}
        check = Check(candidate.args, {{0: 0}}, {{1: x.sum(axis=1, dtype=float)}})
        return Timings("yours", times, checks=[check], clocks={{"SM clock, MHz": 1980.0}})

    gpu.run, gpu.compare = run, compare
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def graded(tmp_path):
    """Grades a solution on the made-up card with these options for pytest; gives what was printed."""
    script = tmp_path / "pretend.py"
    script.write_text(textwrap.dedent(PRETEND).format(root=str(katas.ROOT)))

    def grade(*options, card="NVIDIA Practice"):
        command = [sys.executable, script, "test", "reducesum", "--from", "solutions", "--on", "gpu", "--"]
        ran = subprocess.run(
            [*command, f"--benchmark-storage=file://{tmp_path}/times", *options],
            cwd=tmp_path, env={"CARD": card, "PATH": "/nowhere", "COLUMNS": "80"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stdout + ran.stderr
        return ran.stdout, ran.stderr

    return grade


def test_times_are_kept_and_set_beside_todays(graded, tmp_path):
    shown, told = graded("--benchmark-autosave", "--benchmark-compare", "--seed=7")  # nothing to compare with
    assert "PASS" in shown
    assert "Can't compare. No benchmark files" in told
    (file,) = tmp_path.glob("times/*/0001_*.json")
    kept = json.loads(file.read_text())
    assert kept["machine_info"]["card"] == "NVIDIA Practice"
    assert {"driver", "CuPy", "NVRTC"} < set(kept["machine_info"])
    yours = [row for row in kept["benchmarks"] if row["name"] == "yours"]
    assert [row["group"].rpartition(", ")[2] for row in yours] == [
        "cols 32", "cols 256", "cols 4096", "cols 65536"
    ]  # fmt: skip
    for row in yours:
        assert row["stats"]["median"] == pytest.approx(2e-3)
        known = {"file": "solutions/05_reducesum.cu", "seed": 7, "SM clock, MHz": 1980.0}
        assert known.items() < row["extra_info"].items()

    shown, told = graded("--benchmark-compare", card="NVIDIA Another")
    lines = shown.splitlines()
    assert sum(line.startswith("yours (NOW)") for line in lines) == 4
    assert sum(line.startswith("yours (0001_") for line in lines) == 4
    table = [line.rstrip() for line in lines if "(NOW)" in line or "(0001_" in line or "---" in line]
    assert max(map(len, table)) <= 80
    assert "Benchmark machine_info is different" in told


def test_each_kata_has_a_folder_of_its_own():
    storage = {saved.options(kata)[0] for kata in katas.all_katas()}
    assert f"--benchmark-storage=file://{katas.ROOT}/.dojo/times/02_tiled" in storage
    assert len(storage) == len(katas.all_katas())


def test_without_the_plugin_there_are_no_options_of_it(monkeypatch):
    monkeypatch.setattr(saved, "find_spec", lambda name: None)
    assert saved.options(katas.find("tiled")) == []
