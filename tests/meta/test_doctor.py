"""`make doctor`: each thing that can be missing, with stand-ins; it never raises and always ends well."""

import subprocess
import sys
import time
from importlib import metadata
from types import SimpleNamespace

import pytest
from test_grades import KINDS

from dojo import cli, doctor, gpu, katas, nvrtc

PACKAGES = {
    "numpy": "2.4.6",
    "pytest": "9.0.0",
    "pytest-benchmark": "5.1.0",
    "cupy-cuda12x": "14.2.0",
    "nvidia-cublas-cu12": "12.8.4.1",
}
H200 = SimpleNamespace(name="NVIDIA H200", arch="sm_90", memory_bytes=140 << 30)


@pytest.fixture
def machine(monkeypatch):
    """Everything there is and works, with a card; `machine.x = ...` takes something away."""
    machine = SimpleNamespace(
        packages=dict(PACKAGES), driver=12080, files={}, card=H200, nvrtc="12.9", why=""
    )

    def version(package):
        if package not in machine.packages:
            raise metadata.PackageNotFoundError(package)
        return machine.packages[package]

    def compiler():
        if not machine.nvrtc:
            raise nvrtc.NoCompiler("NVRTC does not load in python (no CuPy): plain make installs it")
        return machine.nvrtc

    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(nvrtc, "version", compiler)
    monkeypatch.setattr(gpu, "card", lambda: machine.card)
    monkeypatch.setattr(gpu, "why_not", lambda: machine.why)
    monkeypatch.setattr(doctor, "driver_cuda", lambda: machine.driver)
    monkeypatch.setattr(doctor, "contents", lambda path: machine.files.get(path, ""))
    monkeypatch.setattr(doctor.ctypes, "CDLL", no_library)
    monkeypatch.setattr(doctor.os.path, "exists", lambda path: False)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor.sys, "prefix", "/usr")  # not the .venv that make check runs in
    for name in ("CUPY_TF32", "NVIDIA_TF32_OVERRIDE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return machine


def rows(**options):
    return {row.name: row for row in doctor.rows(**options)}


def test_all_is_well(machine):
    found = rows()
    assert [row.name for row in found.values() if row.mend] == []
    assert list(found) == ["Python", "NumPy", "pytest", "CuPy", "NVRTC", "driver", "card", "cuBLAS", "graded"]
    assert found["card"].text == "NVIDIA H200, compute capability 9.0, 140 GiB"
    assert found["driver"].text == "serves CUDA 12.8"
    assert found["graded"].text.endswith("on the GPU: result at larger sizes too, and speed")


def without(package):
    return lambda machine: machine.packages.pop(package)


def cuda13(machine):
    machine.packages["cupy-cuda13x"] = machine.packages.pop("cupy-cuda12x")


def two_cupys(machine):
    machine.packages["cupy-cuda13x"] = "14.2.0"


def setting(**values):
    return lambda machine: vars(machine).update(values)


PIP = f"{sys.executable} -m pip"
RUN = f"{PIP} install -r requirements/run.txt"
NO_CARD = {"card": None, "why": "the NVIDIA driver shows no GPU"}
COUNTERS = {"/proc/driver/nvidia/params": "ModifyDeviceFiles: 1\nRmProfilingAdminOnly: 1\n"}


@pytest.mark.parametrize(
    ("change", "name", "words", "mend"),
    [
        (without("numpy"), "NumPy", "missing", RUN),
        (without("pytest-benchmark"), "pytest", "missing, or pytest-benchmark", RUN),
        (without("cupy-cuda12x"), "CuPy", "missing", RUN),
        (two_cupys, "CuPy", "overwrite each other", f"{PIP} uninstall -y cupy-cuda12x cupy-cuda13x && {RUN}"),
        (setting(nvrtc=""), "NVRTC", "does not load in python (no CuPy)", RUN),
        (setting(nvrtc="12.2"), "NVRTC", "12.2: works, but", RUN),
        (
            setting(driver=11040),
            "driver",
            "serves CUDA 11.4; CuPy is built for 12",
            "update the driver to 525",
        ),
        (cuda13, "driver", "12.8; CuPy is built for 13", f"{PIP} uninstall -y cupy-cuda13x && {RUN}"),
        (setting(**NO_CARD), "card", "the NVIDIA driver shows no GPU", "nvidia-smi"),
        (without("nvidia-cublas-cu12"), "cuBLAS", "missing", f"{PIP} install -r requirements/gpu.txt"),
        (setting(files=COUNTERS), "counters", "root's alone", "echo 'options nvidia NVreg_Restrict"),
    ],
)
def test_what_is_missing_has_its_command(change, name, words, mend, machine):
    change(machine)
    found = rows()
    assert words in found[name].text
    assert found[name].mend.startswith(mend)


@pytest.mark.parametrize("name", ["CUPY_TF32", "NVIDIA_TF32_OVERRIDE"])
def test_tf32_is_told(name, machine, monkeypatch):
    monkeypatch.setenv(name, "1")
    assert rows()["TF32"].mend == f"unset {name}"
    monkeypatch.setenv(name, "0")
    assert "TF32" not in rows()


def test_a_hidden_card(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine.card = None
    assert rows()["card"].mend == "unset CUDA_VISIBLE_DEVICES"


def test_root_may_use_the_counters(machine, monkeypatch):
    machine.files = COUNTERS
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    assert "counters" not in rows()


def test_without_a_gpu_all_but_speed_is_graded(machine):
    machine.driver, machine.card = 0, None
    found = rows()
    assert [row.name for row in found.values() if row.mend] == []
    assert "cuBLAS" not in found
    assert found["graded"].text == (
        "on the simulator: compiles, safe, result, traffic; not graded: speed, for want of a usable GPU"
    )


def test_a_container_without_its_card(machine, monkeypatch):
    machine.driver, machine.card = 0, None
    monkeypatch.setattr(doctor.os.path, "exists", lambda path: path == "/dev/nvidiactl")
    assert rows()["driver"].mend == "docker run --gpus all ..."


def test_macos(machine, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(nvrtc.platform, "system", lambda: "Darwin")
    row = doctor.nvrtc(doctor.Found("make list"))
    assert "does not exist for macOS" in row.text
    assert row.mend.startswith("docker build ")


def test_a_driver_that_tells_its_release(machine):
    machine.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\nGCC version: 12.3.0\n"
    )
    assert rows()["driver"].text == "535.104.05, serves CUDA 12.8"
    machine.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1  Release"
    )
    assert rows()["driver"].text == "570.1, serves CUDA 12.8"


def test_a_fresh_clone_is_installed_by_make(machine, capsys):
    machine.packages.clear()
    machine.nvrtc = ""
    assert rows(fresh=True)["CuPy"].mend == "make list"
    assert rows(fresh=True)["graded"].text == "nothing yet, see the first arrow"
    assert doctor.main(fresh=True) == 0
    assert capsys.readouterr().out.startswith("There is no .venv yet")


def test_an_old_python(machine, monkeypatch):
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (4, 0))
    assert rows()["Python"].mend.startswith("make PYTHON=")


def test_a_row_that_fails_says_so(machine, monkeypatch):
    monkeypatch.setattr(doctor, "driver_cuda", lambda: 1 / 0)
    assert rows()["driver"].text == "cannot be told (ZeroDivisionError division by zero)"


def test_it_fits_a_terminal_and_sounds_like_no_failure(machine, capsys):
    for change in (lambda: None, machine.packages.clear):
        change()
        assert cli.main(["doctor"]) == 0
        out = capsys.readouterr().out
        assert not any(f"{kind}: " in out for kind in KINDS)
        lines = [line for line in out.splitlines() if "->" not in line and sys.executable not in line]
        assert max(map(len, lines)) <= doctor.WIDTH


def test_for_real_it_is_quick_and_well():
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "dojo", "doctor"], cwd=katas.ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Python ")
    if "card        none" in done.stdout:
        assert time.monotonic() - began < 5  # two on a quiet machine


def test_it_runs_where_nothing_is_installed():
    code = "import sys, runpy; sys.argv = ['dojo', 'doctor']; runpy.run_module('dojo', run_name='__main__')"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=katas.ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "NumPy       missing" in done.stdout
