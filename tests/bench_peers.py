"""How long the simulator takes beside other simulators of GPU kernels:  make bench-peers

    python tests/bench_peers.py [WIDTH]

The tiled product, one launch at Width 256 (some four minutes in all; at Width 64 some ten seconds), by

- `dojo.simulate` on solutions/02_tiled.cu, every check and every count on, compiled and translated before;
- Oclgrind with and without its check for data races, on tests/peers/tiled.cl. Its start (a run with Width 0:
  it compiles, reads and prints as much, but multiplies nothing) is taken off;
- mlsys-lab's software GPU on tests/peers/tiled_1d.cu, which says what of the solution it cannot run.

Each result is compared with NumPy's, and a peer that is not installed is left out. The goal is 50 times
Oclgrind with --data-races.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "tests/peers"
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from dojo import simulate  # noqa: E402

KERNEL, TILE_WIDTH = "matmul_tiled", 16
RUNS, ENOUGH = 5, 20.0  # a program runs so often, or until it has run for so many seconds
OCLGRIND = "oclgrind-kernel"

Row = tuple[str, str, float, int]  # program, checks that are on, seconds, runs


def launch(width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Grid and block."""
    return (-(-width // TILE_WIDTH),) * 2, (TILE_WIDTH,) * 2


def must_be_right(program: str, P: np.ndarray, M: np.ndarray, N: np.ndarray, said: str = "") -> None:
    """P begins as NaN, so that a thread that did not run shows."""
    if said or P.size != M.size or not np.allclose(P.reshape(M.shape), M @ N, atol=1e-3):
        sys.exit(f"{program} is not right at Width {len(M)}. {said}".rstrip())


def time_ours(M: np.ndarray, N: np.ndarray) -> float:
    """Seconds of one launch; the next two return the same."""
    source = (ROOT / "solutions/02_tiled.cu").read_text()
    P = np.full_like(M, np.nan)
    start = time.perf_counter()
    report = simulate(source, KERNEL, *launch(len(M)), [M, N, P, len(M)], uninitialised=(2,))
    seconds = time.perf_counter() - start
    must_be_right("dojo.simulate", P, M, N, "; ".join(f.message for f in report.findings[:1]))
    return seconds


def sim_text(M: np.ndarray, N: np.ndarray, width: int) -> str:
    """The launch as oclgrind-kernel reads it: program, kernel, work-items, work-group, then each argument.

    Floats are passed and printed as their bits: as decimals they would lose the last ones.
    """
    grid, block = launch(len(M))
    items = [blocks * threads for blocks, threads in zip(grid, block, strict=True)]
    nan = np.float32(np.nan).view(np.uint32)
    lines = ["tiled.cl", KERNEL, f"{items[0]} {items[1]} 1", f"{block[0]} {block[1]} 1"]
    for operand in (M, N):
        lines += [f"<size={operand.nbytes} uint>", " ".join(map(str, operand.view(np.uint32).flat))]
    lines += [f"<size={M.nbytes} uint fill={nan} dump>", "<size=4 int>", str(width)]
    return "\n".join(lines) + "\n"


def printed(text: str) -> np.ndarray:
    """The values of P that oclgrind-kernel has printed."""
    return np.array(re.findall(r"P\[\d+\] = (\d+)", text), np.uint32).view(np.float32)


def time_oclgrind(options: list[str], M: np.ndarray, N: np.ndarray) -> float:
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tiled.sim")
        for width in (0, len(M)):
            file.write_text(sim_text(M, N, width))
            start = time.perf_counter()
            run = subprocess.run([OCLGRIND, *options, file], cwd=PEERS, capture_output=True, text=True)
            taken.append(time.perf_counter() - start)
            if width:
                must_be_right("Oclgrind", printed(run.stdout), M, N, run.stderr.strip().partition("\n")[0])
    return taken[1] - taken[0]


def time_mlsys(M: np.ndarray, N: np.ndarray) -> float:
    from mlsys.sim import GPU, CudaProgram

    width, size = len(M), M.size
    text = (PEERS / "tiled_1d.cu").read_text()
    grid, block = launch(width)
    start = time.perf_counter()
    gpu = GPU(3 * size, smem_size=2 * TILE_WIDTH**2)
    gpu.gmem[:] = np.concatenate([M.ravel(), N.ravel(), np.full(size, np.nan)])
    arguments = {"M": 0, "N": size, "P": 2 * size, "Width": width}
    report = CudaProgram(text).launch(gpu, KERNEL, grid[0] * grid[1], block[0] * block[1], arguments)
    seconds = time.perf_counter() - start
    said = f"{report['races']} races" if report["races"] else ""
    must_be_right("mlsys-lab", gpu.gmem[2 * size :], M, N, said)
    return seconds


def measure(program: str, checks: str, run: Callable[[], float]) -> Row:
    """The least of its runs; each is printed as it ends."""
    print(f"{program}:", end="", flush=True)
    found: list[float] = []
    try:
        while len(found) < RUNS and sum(found) < ENOUGH:
            found.append(run())
            print(f" {found[-1]:.3f} s", end="", flush=True)
    finally:
        print()
    return program, checks, min(found), len(found)


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1] if found else platform.processor()


def main() -> None:
    width = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    M, N = np.random.default_rng(0).uniform(-1, 1, (2, width, width)).astype(np.float32)
    print(f"Width {width}, {processor()}, {os.cpu_count()} cores, NumPy {np.__version__}")

    time_ours(M, N)  # compiles and translates
    checks = "bounds, uninitialised, races, barriers, counts"
    rows = [measure("dojo.simulate", checks, partial(time_ours, M, N))]

    if shutil.which(OCLGRIND):
        told = subprocess.run([OCLGRIND, "--version"], capture_output=True, text=True).stdout
        name = " ".join(re.findall(r"Oclgrind [\d.]+", told)[:1]) or "Oclgrind"
        for option, checks in (("", "bounds, barriers"), ("--data-races", "bounds, races, barriers")):
            run = partial(time_oclgrind, option.split(), M, N)
            rows.append(measure(f"{name} {option}".rstrip(), checks, run))
    else:
        print("Oclgrind is not here, so it is left out. To install it: apt-get install oclgrind")

    try:
        import mlsys.sim  # noqa: F401
    except ImportError:
        pip = f"{sys.executable} -m pip"
        print(f"mlsys-lab is not here, so it is left out. To install it: {pip} install mlsys-lab")
    else:
        name = f"mlsys-lab {metadata.version('mlsys-lab')}"
        rows.append(measure(name, "counts, two writers of a global word", partial(time_mlsys, M, N)))

    print(f"\n{'program':<29}{'size':<7}{'checks on':<48}{'seconds':>8}{'runs':>6}{'times ours':>12}")
    for program, checks, seconds, runs in rows:
        times = seconds / rows[0][2]
        print(f"{program:<29}{f'{width}^3':<7}{checks:<48}{seconds:>8.3f}{runs:>6}{times:>12.1f}")


if __name__ == "__main__":
    main()
