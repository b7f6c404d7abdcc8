"""tests/bench_peers.py gives every program the same work, and does without a peer that is not there."""

import importlib.util
import re
import sys
from collections import Counter

import numpy as np
import pytest

from dojo import simulate
from dojo.compile import compile_cuda
from dojo.katas import ROOT

SPEC = importlib.util.spec_from_file_location("bench_peers", ROOT / "tests/bench_peers.py")
bench = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench)

SOLUTION = (ROOT / "solutions/02_tiled.cu").read_text()
WIDTH = 33  # the last tiles are not full

# What of OpenCL C tests/peers/tiled.cl says otherwise than CUDA C++.
OPENCL = """
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define barrier(fence) __syncthreads()
#define get_local_id(axis) ((axis) ? threadIdx.y : threadIdx.x)
#define get_group_id(axis) ((axis) ? blockIdx.y : blockIdx.x)
"""


@pytest.fixture
def operands():
    return np.random.default_rng(1).uniform(-1, 1, (2, WIDTH, WIDTH)).astype(np.float32)


def work(source, grid, block, operands):
    """P, the number of FMAs and what the accesses cost in all, by kind."""
    P = np.full((WIDTH, WIDTH), np.nan, np.float32)
    report = simulate(source, bench.KERNEL, grid, block, [*operands, P, WIDTH], uninitialised=(2,))
    assert not report.findings
    cost = Counter()
    for a in report.accesses:
        for count in ("requests", "sectors", "wavefronts", "conflicts", "bytes"):
            cost[a.op, a.space, count] += getattr(a, count)
    return P, report.fma, cost


def test_the_peers_kernels_do_the_work_of_the_solution(operands):
    grid, block = bench.launch(WIDTH)
    P, fma, cost = work(SOLUTION, grid, block, operands)
    assert fma == 48**3
    assert cost["load", "shared", "requests"] > 0
    of_opencl = OPENCL + (bench.PEERS / "tiled.cl").read_text()
    in_one_dimension = (
        (bench.PEERS / "tiled_1d.cu").read_text().replace("__global__", 'extern "C" __global__')
    )
    for source, grid_of_it, block_of_it in (
        (of_opencl, grid, block),
        (in_one_dimension, (grid[0] * grid[1],), (block[0] * block[1],)),
    ):
        its_P, its_fma, its_cost = work(source, grid_of_it, block_of_it, operands)
        np.testing.assert_array_equal(its_P, P, strict=True)
        assert (its_fma, its_cost) == (fma, cost)


def test_the_launch_is_the_solutions():
    tile = compile_cuda(SOLUTION, "02_tiled.cu", constants=("TILE_WIDTH",)).constants["TILE_WIDTH"]
    assert bench.launch(WIDTH) == ((-(-WIDTH // tile),) * 2, (tile, tile))


def test_oclgrind_is_asked_for_that_launch(operands):
    program, kernel, items, group, *arguments = bench.sim_text(*operands, WIDTH).splitlines()
    assert (bench.PEERS / program).is_file()
    assert kernel == bench.KERNEL
    assert (items, group) == ("48 48 1", "16 16 1")
    M, M_values, N, N_values, P, width, value = arguments
    assert M == N == "<size=4356 uint>"
    for text, operand in zip((M_values, N_values), operands, strict=True):
        bits = np.array(text.split(), np.uint32)
        np.testing.assert_array_equal(bits.view(np.float32).reshape(WIDTH, WIDTH), operand)
    fill = re.fullmatch(r"<size=4356 uint fill=(\d+) dump>", P)
    assert np.isnan(np.array([fill[1]], np.uint32).view(np.float32)[0])
    assert (width, value) == ("<size=4 int>", "33")


def test_what_oclgrind_prints_is_read_bit_for_bit():
    P = np.array([0.1, -0.0, np.nan], np.float32)
    text = "".join(f"  P[{i}] = {bits}\n" for i, bits in enumerate(P.view(np.uint32)))
    np.testing.assert_array_equal(
        bench.printed("\nArgument 'P': 12 bytes\n" + text).view(np.uint32), P.view(np.uint32)
    )


ZEROS = 'i=0; while [ $i -lt 1089 ]; do echo "  P[$i] = 0"; i=$((i + 1)); done'


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ZEROS, "Oclgrind is not right at Width 33."),
        ("true", "Oclgrind is not right at Width 33."),
        (f"{ZEROS}; printf 'a race\\n at\\n' >&2", "Oclgrind is not right at Width 33. a race"),
    ],
    ids=["wrong", "nothing", "race"],
)
def test_a_wrong_answer_of_oclgrind_ends_the_benchmark(tmp_path, monkeypatch, operands, answer, said):
    (tmp_path / "oclgrind-kernel").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "oclgrind-kernel").chmod(0o755)
    monkeypatch.setattr(bench, "OCLGRIND", str(tmp_path / "oclgrind-kernel"))
    with pytest.raises(SystemExit) as end:
        bench.time_oclgrind([], *operands)
    assert end.value.code == said


def test_a_thread_that_did_not_run_shows_and_so_does_a_complaint(operands):
    M, N = operands
    P = M @ N
    bench.must_be_right("it", P, M, N)
    with pytest.raises(SystemExit, match=r"it is not right at Width 33\. a race"):
        bench.must_be_right("it", P, M, N, "a race")
    P[-1, -1] = np.nan
    with pytest.raises(SystemExit, match="it is not right at Width 33"):
        bench.must_be_right("it", P, M, N)


def test_peers_that_are_missing_are_told_in_a_line_each(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "mlsys", None)
    monkeypatch.setattr(sys, "argv", ["bench_peers.py", str(WIDTH)])
    bench.main()
    lines = capsys.readouterr().out.splitlines()
    for peer, how in (("Oclgrind", "apt-get install oclgrind"), ("mlsys-lab", "-m pip install mlsys-lab")):
        about = [line for line in lines if peer in line]
        assert len(about) == 1
        assert about[0].endswith(how)
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("program")) + 1 :]
    assert len(table) == 1
    assert re.fullmatch(r"dojo\.simulate +33\^3 .* \d+\.\d{3} +5 +1\.0", table[0])
