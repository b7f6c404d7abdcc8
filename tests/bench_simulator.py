"""How long the simulator takes, every check and every count on:  make bench-simulator

The solutions at Width 256, one launch of 16.8 million multiply-adds. `first` includes translating the
kernel to NumPy; the other figures are of launches after that. The goal for tiled is 0.6 s on two cores.
"""

import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from dojo import simulate  # noqa: E402

WIDTH, TILE_WIDTH, LAUNCHES = 256, 16, 5


def seconds(stem: str, kernel: str) -> list[float]:
    """Of each launch; the first one compiles and translates."""
    source = (ROOT / f"solutions/{stem}.cu").read_text()
    random = np.random.default_rng(0)
    M, N = random.uniform(-1, 1, (2, WIDTH, WIDTH)).astype(np.float32)
    grid, block = (WIDTH // TILE_WIDTH,) * 2, (TILE_WIDTH,) * 2
    found = []
    for _ in range(1 + LAUNCHES):
        P = np.full((WIDTH, WIDTH), np.nan, np.float32)
        start = time.perf_counter()
        report = simulate(source, kernel, grid, block, [M, N, P, WIDTH], uninitialised=(2,))
        found.append(time.perf_counter() - start)
        if report.findings or not np.allclose(P, M @ N, atol=1e-3):
            sys.exit(f"{stem} is not right at Width {WIDTH}")
    return found


def main() -> None:
    print(f"Width {WIDTH}, {os.cpu_count()} cores, NumPy {np.__version__}")
    print(f"{'kernel':<12}{'first':>9}{'median':>9}{'best':>9}   million thread FMAs a second")
    for stem, kernel in (("01_naive", "matmul_naive"), ("02_tiled", "matmul_tiled")):
        first, *later = seconds(stem, kernel)
        middle = statistics.median(later)
        rate = WIDTH**3 / middle / 1e6
        print(f"{stem:<12}{first:>8.2f}s{middle:>8.2f}s{min(later):>8.2f}s   {rate:.0f}")


if __name__ == "__main__":
    main()
