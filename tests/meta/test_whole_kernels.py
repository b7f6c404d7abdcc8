"""Whole kernels at Width 256: traffic as Nsight Compute counted it on an NVIDIA H200, and two races."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dojo import simulate
from dojo.katas import ROOT

SOURCE = Path(__file__).with_name("whole_kernels.cu").read_text()
WIDTH = 256


class Measured(NamedTuple):
    load_requests: int
    load_sectors: int
    store_requests: int
    store_sectors: int
    shared_load_wavefronts: int = 0
    shared_store_wavefronts: int = 0
    load_conflicts: int = 0
    store_conflicts: int = 0


CASES = {
    ("naive", 16): Measured(1_048_576, 2_097_152, 2_048, 8_192),
    ("naive", 32): Measured(1_048_576, 2_621_440, 2_048, 8_192),
    ("uncoalesced", 16): Measured(1_048_576, 8_912_896, 2_048, 32_768),
    ("uncoalesced", 32): Measured(1_048_576, 17_301_504, 2_048, 65_536),
    ("tiled16", 16): Measured(65_536, 262_144, 2_048, 8_192, 786_432, 65_536),
    ("transposed", 32): Measured(32_768, 131_072, 2_048, 8_192, 1_048_576, 540_672, 0, 507_904),
    ("padded", 32): Measured(32_768, 131_072, 2_048, 8_192, 1_048_576, 32_768),
}


def run(kernel, tile, width):
    random = np.random.default_rng(0)
    M, N = random.uniform(-1, 1, (2, width, width)).astype(np.float32)
    P = np.full((width, width), np.nan, np.float32)
    blocks = width // tile
    report = simulate(SOURCE, kernel, (blocks, blocks), (tile, tile), [M, N, P, width], uninitialised=(2,))
    assert np.allclose(P, M.astype(np.float64) @ N, atol=1e-4)
    return report


@pytest.mark.parametrize(("kernel", "tile"), CASES, ids=lambda value: str(value))
def test_traffic_is_what_nsight_compute_counted(kernel, tile):
    report = run(kernel, tile, WIDTH)

    def total(space, op, figure):
        return sum(getattr(a, figure) for a in report.accesses if (a.space, a.op) == (space, op))

    assert not report.findings
    assert report.fma == WIDTH**3
    assert CASES[kernel, tile] == Measured(
        load_requests=total("global", "load", "requests"),
        load_sectors=total("global", "load", "sectors"),
        store_requests=total("global", "store", "requests"),
        store_sectors=total("global", "store", "sectors"),
        shared_load_wavefronts=total("shared", "load", "wavefronts"),
        shared_store_wavefronts=total("shared", "store", "wavefronts"),
        load_conflicts=total("shared", "load", "conflicts"),
        store_conflicts=total("shared", "store", "conflicts"),
    )


def test_shared_loads_before_the_assembler_joins_them():
    """In tiled16 it makes four LDS.128 of 16 loads of Mds: 24 wavefronts a warp and phase, not 32."""
    report = run("tiled16", 16, WIDTH)
    loads = [a for a in report.ptx_accesses if (a.space, a.op) == ("shared", "load")]
    figures = [(load.bits, load.requests, load.wavefronts) for load in loads]
    assert figures == [(32, 1_048_576, 1_048_576)]
    joined = {a.bits: a.requests for a in report.accesses if (a.space, a.op) == ("shared", "load")}
    assert joined == {32: 524_288, 128: 131_072}


SCORES = {  # shared-load instructions of the warps, wavefronts, conflicts
    "dojo/stubs/03_swizzle.cu": (262_144, 4_456_448, 3_670_016),
    "solutions/03_swizzle.cu": (262_144, 786_432, 0),
    "solutions/03_swizzle.padding.cu": (655_360, 786_432, 0),
    "tests/right/03_swizzle.single_words.cu": (655_360, 786_432, 0),
}


@pytest.mark.parametrize("file", SCORES)
def test_scores_with_and_without_bank_conflicts(file):
    """The stub's operands are both joined to LDS.128, which hides three quarters of the conflicts."""
    Q, K = np.random.default_rng(0).uniform(-1, 1, (2, WIDTH, WIDTH)).astype(np.float32)
    S = np.full((WIDTH, WIDTH), np.nan, np.float32)
    source = (ROOT / file).read_text()
    grid, args = (WIDTH // 32, WIDTH // 32), [Q, K, S, WIDTH, WIDTH, WIDTH]
    report = simulate(source, "scores_swizzle", grid, (32, 32), args, uninitialised=(2,))
    loads = [access for access in report.accesses if (access.space, access.op) == ("shared", "load")]
    assert (
        tuple(sum(getattr(a, n) for a in loads) for n in ("requests", "wavefronts", "conflicts"))
        == SCORES[file]
    )


@pytest.mark.parametrize(
    ("kernel", "order"), [("no_first_barrier", "read after write"), ("no_second_barrier", "write after read")]
)
def test_a_missing_barrier_is_a_race_though_the_values_are_right(kernel, order):
    report = run(kernel, 32, 64)
    assert {finding.kind for finding in report.findings} == {"race"}
    assert any(finding.message.endswith(f"({order})") for finding in report.findings)
