"""`make doctor`: what is installed, what is graded where, and the one command that mends each thing missing.

A row a thing. It must run where everything is missing: up here only the standard library is imported, and
what a row needs more, the row imports. A row that fails says so; nothing raises, and the exit status is 0.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 10)
OLDEST_DRIVER = {12: "525", 13: "580"}  # the first release that serves each CUDA
WIDTH = 80
INDENT = 12


@dataclass(frozen=True)
class Row:
    """One thing: what is there, and the command that mends what is not ("" if nothing is to be done)."""

    name: str
    text: str
    mend: str = ""

    def render(self) -> str:
        lines = textwrap.wrap(self.text, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
        lines += [f"-> {self.mend}"] if self.mend else []  # one line, however long: it is to be copied
        return "\n".join(f"{'' if n else self.name:<{INDENT}}{line}" for n, line in enumerate(lines or [""]))


@dataclass
class Found:
    """What the rows so far have come upon, for those after them."""

    install: str  # the command that installs what this Python lacks
    cuda: int = 0  # the CUDA that CuPy is built for: 12
    driver: int = 0  # the newest CUDA that the driver serves: 13000; 0 without a driver
    compiler: bool = False
    card: bool = False
    cublas: bool = False


def install(fresh: bool) -> str:
    """The command that installs what this Python lacks."""
    if fresh:
        return "make list"  # makes .venv
    if Path(sys.prefix) == ROOT / ".venv":
        return "rm -rf .venv && make list"
    return f"{sys.executable} -m pip install -r requirements/run.txt"


def release(*packages: str) -> str:
    """ "cupy-cuda12x 14.2.0" for those of the packages that are installed."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            pass
    return ", ".join(found)


def python(_: Found) -> Row:
    text = f"{platform.python_version()}, {sys.executable}"
    if tuple(sys.version_info) < OLDEST_PYTHON:
        return Row("Python", f"{text}: 3.10 or newer is needed", "make PYTHON=python3.12 doctor")
    return Row("Python", text)


def numpy(found: Found) -> Row:
    there = release("numpy").partition(" ")[2]
    return (
        Row("NumPy", there) if there else Row("NumPy", "missing: the simulator is made of it", found.install)
    )


def pytest(found: Found) -> Row:
    there = release("pytest", "pytest-benchmark")
    if "," not in there:
        return Row("pytest", "missing, or pytest-benchmark is: they run a grade", found.install)
    return Row("pytest", there.replace("pytest ", "", 1))


def cupy(found: Found) -> Row:
    there = release("cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "cupy")
    if "," in there:
        names = [part.split()[0] for part in there.split(", ")]
        return Row(
            "CuPy",
            f"{there}: two of them overwrite each other's files",
            f"{sys.executable} -m pip uninstall -y {' '.join(names)} && {found.install}",
        )
    if not there:
        return Row("CuPy", "missing: it brings the compiler's bindings, and launches on a GPU", found.install)
    wheel = re.search(r"cuda(\d+)x", there)
    found.cuda = int(wheel[1]) if wheel else 0
    return Row("CuPy", there + (f", for CUDA {found.cuda}" if wheel else ""))


def nvrtc(found: Found) -> Row:
    from dojo import nvrtc

    try:
        version = nvrtc.version()
    except nvrtc.NoCompiler as missing:
        if platform.system() == "Darwin":
            sentence, _, command = str(missing).partition(", for example ")
            return Row("NVRTC", sentence, command)
        return Row("NVRTC", str(missing).partition(": plain make")[0], found.install)
    found.compiler = True
    if tuple(map(int, version.split("."))) < (12, 8):
        return Row("NVRTC", f"{version}: works, but knows no card newer than sm_90; 12.8 does", found.install)
    return Row("NVRTC", f"{version}, the compiler; it needs no GPU")


def driver(found: Found) -> Row:
    found.driver = driver_cuda()
    if not found.driver:
        if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"):
            text = "a card is here, but libcuda.so.1 is not: a container needs the card passed in"
            return Row("driver", text, "docker run --gpus all ...")
        return Row("driver", "none: no speed is measured, all else is graded on the simulator")
    text = f"{driver_release()}serves CUDA {spelt(found.driver)}"
    if not found.cuda or found.driver >= 1000 * found.cuda:
        return Row("driver", text)
    served = found.driver // 1000
    text += f"; CuPy is built for {found.cuda}"
    if served >= 12:
        pip = f"{sys.executable} -m pip"
        mend = f"{pip} uninstall -y cupy-cuda{found.cuda}x && {pip} install -r requirements/run.txt"
        return Row("driver", text, mend)
    needed = OLDEST_DRIVER.get(found.cuda, f"one for CUDA {found.cuda}")
    return Row(
        "driver", text, f"update the driver to {needed} or newer, on Ubuntu: sudo ubuntu-drivers install"
    )


def driver_cuda() -> int:
    """The newest CUDA that the driver serves, as it counts: 12040 for 12.4. 0 without a driver."""
    version = ctypes.c_int()
    try:
        library = ctypes.CDLL("libcuda.so.1")
        return version.value if library.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0
    except (OSError, AttributeError):
        return 0


def driver_release() -> str:
    """ "535.104.05, " if the system tells."""
    found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", contents("/proc/driver/nvidia/version"))
    return f"{found[1]}, " if found else ""


def contents(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def spelt(cuda: int) -> str:
    return f"{cuda // 1000}.{cuda % 1000 // 10}"


def card(found: Found) -> Row:
    if not found.driver:
        return Row("card", "none")
    from dojo import gpu

    there = gpu.card()
    if not there:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        return Row(
            "card", gpu.why_not(), "unset CUDA_VISIBLE_DEVICES" if hidden is not None else "nvidia-smi"
        )
    found.card = True
    capability = re.sub(r"sm_(\d+)(\d)", r"\1.\2", there.arch)
    return Row("card", f"{there.name}, compute capability {capability}, {there.memory_bytes / 2**30:.0f} GiB")


def cublas(found: Found) -> Row | None:
    """Only the speed of a GPU is compared with it."""
    if not found.card:
        return None
    major = found.cuda or found.driver // 1000
    there = release("nvidia-cublas-cu12" if major == 12 else "nvidia-cublas")
    if not there:
        try:
            ctypes.CDLL(f"libcublas.so.{major}")
            there = f"libcublas.so.{major} of the system"
        except OSError:
            package = "-r requirements/gpu.txt" if major == 12 else "nvidia-cublas"
            return Row(
                "cuBLAS",
                "missing: kernels cannot be timed beside it",
                f"{sys.executable} -m pip install {package}",
            )
    found.cublas = True
    return Row("cuBLAS", there)


def tf32(_: Found) -> Row | None:
    for name in ("CUPY_TF32", "NVIDIA_TF32_OVERRIDE"):
        if os.environ.get(name, "0") not in ("", "0"):
            text = f"{name} is set: products in your own scripts have 10 bits; grades switch it off"
            return Row("TF32", text, f"unset {name}")
    return None


def counters(found: Found) -> Row | None:
    """Told only where it is known that they are closed: they are for Nsight Compute, not for a grade."""
    admin = re.search(r"RmProfilingAdminOnly: 1", contents("/proc/driver/nvidia/params"))
    if not found.driver or not admin or not hasattr(os, "geteuid") or os.geteuid() == 0:
        return None
    text = "performance counters are root's alone: Nsight Compute (ncu) needs them, a grade does not"
    option = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
    return Row("counters", text, f"echo '{option}' | sudo tee /etc/modprobe.d/ncu.conf   (then reboot)")


ROWS: tuple[Callable[[Found], Row | None], ...] = (
    python,
    numpy,
    pytest,
    cupy,
    nvrtc,
    driver,
    card,
    cublas,
    tf32,
    counters,
)


def rows(fresh: bool = False) -> Iterator[Row]:
    """Every row, then what is graded where. `fresh` if there is no .venv yet: this is the system's Python."""
    found, missing = Found(install(fresh)), False
    for look in ROWS:
        try:
            row = look(found)
        except Exception as error:
            what = " ".join(f"{type(error).__name__} {error}".split())[:120]
            row = Row(look.__name__, f"cannot be told ({what})")
        if row:
            missing = missing or (look in (python, numpy, pytest, cupy, nvrtc) and bool(row.mend))
            yield row
    yield Row("graded", where(found, missing))


def where(found: Found, missing: bool) -> str:
    if missing or not found.compiler:
        return "nothing yet, see the first arrow"
    simulated = "on the simulator: compiles, safe, result, traffic"
    if not found.card:
        return f"{simulated}; not graded: speed, for want of a usable GPU"
    beside = "" if found.cublas else " (not beside cuBLAS)"
    return f"{simulated}; on the GPU: result at larger sizes too, and speed{beside}"


def main(fresh: bool = False) -> int:
    if fresh:
        print("There is no .venv yet; this is what the system has.")
    for row in rows(fresh):
        print(row.render(), flush=True)
    return 0
