"""Kernels in `simulator_kernels/`, each for one thing that the simulator must see, accept, or get right.

Their files say what is expected: `//! race` marks each line that a finding of this kind must name, and a
kernel without a mark must have no finding, and must compute what `WANT` says. In the comment beside a
kernel's name stand its launch, <<<1, 64>>> unless given, and:
    unset       the contents of o count as never written
    shared=800  bytes of dynamic shared memory
    budget      the launch has a small budget of instructions
    known: ...  the simulator does not do this yet
Every kernel gets x, random numbers in (-1, 1), o, zeros, and n = 5.
"""

from __future__ import annotations

import re
import struct
from ast import literal_eval
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dojo import simulate, simulator
from dojo.compile import compile_cuda
from dojo.simulator import printf

N, n = 76_800, 5
x = np.random.default_rng(1).uniform(-1, 1, N).astype(np.float32)
SOURCES = {
    file.name: file.read_text() for file in sorted(Path(__file__).parent.glob("simulator_kernels/*.cu"))
}


class Case(NamedTuple):
    file: str
    name: str
    launch: str  # the comment beside the name
    marks: set[tuple[str, int]]  # (kind, line)


def cases():
    for file, text in SOURCES.items():
        name = launch = ""
        marks: dict[str, set[tuple[str, int]]] = {}
        launches = {}
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.match(r"KERNEL\((\w+)\) \{(?:  // (.*))?", line):
                name, launch = match[1], match[2] or ""
                launches[name], marks[name] = launch, set()
            if match := re.search(r"//! (\w+)$", line):
                marks[name].add((match[1], number))
        for name, launch in launches.items():
            yield Case(file, name, launch, marks[name])


CASES = [case for case in cases() if case.name != "recursion"]


def run(case: Case):
    """The report, and o after the launch."""
    source, o = SOURCES[case.file], np.zeros(N, np.float32)
    grid, block = literal_eval(launch[1]) if (launch := re.search(r"<<<(.*)>>>", case.launch)) else (1, 64)
    shared = int(found[1]) if (found := re.search(r"shared=(\d+)", case.launch)) else 0
    unset = (1,) if "unset" in case.launch else ()
    if "budget" in case.launch:
        compiled = compile_cuda(source, case.file)
        return simulator.run(compiled.ptx, case.name, grid, block, [x, o, n], budget=2_000_000), o
    return simulate(source, case.name, grid, block, [x, o, n], shared, uninitialised=unset, path=case.file), o


def parameters():
    for case in CASES:
        reason = case.launch.partition("known: ")[2]
        marks = [pytest.mark.xfail(reason=reason)] if reason else []
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(parameters()))
def test_findings(case):
    report, o = run(case)
    found = {(finding.kind, finding.line) for finding in report.findings}
    assert found == case.marks, "\n".join(map(str, report.findings))
    if not case.marks:
        np.testing.assert_allclose(*agree(o, WANT[case.name]), rtol=1e-5, atol=1e-6)


def agree(o, want):
    """As much of o as `want` has, in its type. None in place of an array: anything will do."""
    want = np.asarray(want, np.float32) if np.asarray(want).dtype == np.float64 else np.asarray(want)
    return o.view(want.dtype)[: want.size], want.reshape(-1)


def test_every_kernel_without_a_finding_has_values():
    assert set(WANT) == {case.name for case in CASES if not case.marks}


# What the right kernels compute, from x, float64 inside.

X = x.astype(np.float64)
t = np.arange(64)
lane = np.arange(32)
bits = (x[:64].reshape(2, 32) > 0) @ (1 << lane)
runs = np.lib.stride_tricks.sliding_window_view(X, n)[:64]  # the n values from each thread's own on
sums = X[: 64 * n].reshape(n, 64).sum(0)


def cold_branch():
    v = X[:64].copy()
    for i in range(4):
        for j in range(n if i == 1 else 0):
            v[40:50] = v[40:50] * 0.5 + j
        v += 0.25 * v[t ^ 1]
    return v


def first_above(row, level):
    return next((i for i, value in enumerate(row) if value > level), -1)


def loops(thread):
    total = 0
    for i in range(thread % 7):
        if i == 3 and thread % 2:
            continue
        for j in range(i, thread % 5):
            if j * i == 6:
                break
            total += i * j + 1
            if thread % 4 == 2:
                return total
        total ^= i
    return total


def switched(thread):
    cases = {0: thread, 1: thread * thread, 2: ~thread, 3: thread >> 1, 4: thread >> 1, 5: thread * 7 % 5}
    return {**cases, 7: -7}.get(thread % 9, -1)


def votes():
    some = x[:64].reshape(2, 32) > 0.9
    match = [
        sum(1 << (k % 32) for k in range(64) if k // 5 == j // 5 and k // 32 == j // 32) for j in range(64)
    ]
    active = [
        sum(1 << k for k in range(32) if (k + j // 32 * 32) % 3 == 0) if j % 3 == 0 else 0 for j in range(64)
    ]
    parts = [
        np.repeat(bits, 32),
        np.repeat(some.any(1) + 2, 32),
        np.repeat(t.reshape(2, 32).sum(1), 32),
        match,
        active,
    ]
    return np.concatenate(parts).astype(np.uint32)


def at_barriers():
    block = x[:200].reshape(2, 100)
    counts = np.repeat((block > 0).sum(1), 100)
    return np.concatenate([counts, np.repeat((block > 0.999).any(1) + 2, 100)]).astype(np.int32)


WANT = {
    # races.cu
    "equal_values_together": np.full(64, 5.0),
    "equal_values_in_turn": np.ones(64),
    "two_buffers_for_a_loop": sums[::-1],
    "flag_of_a_loop": np.full(64, X[:n].sum()),
    "bytes_of_one_word": t.astype(np.uint32),
    "tree": X[:1024].reshape(4, 256).sum(1),
    "syncwarp": np.tile(X[np.arange(100) ^ 1], 2),
    "halves": X[lane ^ 3],
    "the_whole_then_halves": 2 * X[lane ^ 1] + X[31 - lane],
    "by_way_of_a_third_lane": [1.0],
    "a_half_reads_and_waits": np.where(np.arange(64) % 32 < 16, 0, X[np.arange(64) // 32]),
    "end_of_a_tree": [X[:64].sum()],
    "histogram": np.bincount((x[:768] * 8 + 8).astype(int), minlength=16).astype(np.int32),
    "atomics_of_a_warp": np.tile(np.repeat(np.arange(256).reshape(8, 32).sum(1), 32), 2) * 1.0,
    "compare_and_swap": [4 * 16 * 6.0],
    "ticket": np.repeat(np.arange(20.0), 64),
    "in_global_memory_with_a_barrier": np.concatenate([[b, b[::-1]] for b in X[:192].reshape(3, 64)]),
    "a_global_word_for_one_warp": [5.0, 5.0, 5.0, 0.0],
    "blocks_raise_a_flag": [1.0],
    "the_last_block_sums": np.r_[X[:64], np.zeros(36), np.int32([64]).view(np.float32), X[:64].sum()],
    "a_block_waits_for_another_at_its_barriers": np.r_[X[:64][::-1], np.zeros(64), X[:64][::-1]],
    "a_lock_with_fences": np.full(384, 192.0),
    "a_lock_with_fences_for_a_global_word": [192.0, 192.0, 192.0, 0.0],
    "ldg_of_neighbours": np.pad(X[:128, None], ((0, 0), (4, 3))),
    "copy": X[:128].reshape(2, 64)[:, ::-1],
    "copies_in_two_buffers": np.tile(sums[::-1], 2),
    # barriers.cu
    "exited_threads_have_arrived": np.tile(X[99::-1], 3),
    "whole_blocks_part": np.concatenate([np.roll(X[:32], -(b % 5)) for b in range(1500)]),
    "threads_leave_an_unrolled_loop": np.r_[X[64 * np.minimum(n - 1, 59 - np.arange(60))], np.zeros(4)],
    "votes_at_a_barrier": at_barriers(),
    "votes_on_shared_values": np.full(64, 1.0 * (x[:64] > 0).sum()),
    "votes_of_a_warp": votes(),
    "match_all": np.full(64, 0xFFFFFFFF, np.uint32),
    "lanes_that_have_left": [X[k : k + 16].sum() for k in (0, 32, 64, 96)],
    "rows_of_eight_lanes": X[:700].reshape(10, 70).sum(1),
    "a_lane_beyond_the_block_unused": np.r_[X[:6] + X[1:7], X[6]],
    "block_sum": [X[:100].sum()],
    "a_cold_branch_before_a_shuffle": cold_branch(),
    "a_lock_for_two_blocks": [0.0, 3.0],
    "lanes_take_turns_at_a_lock": [0.0, 4.0],
    "threads_leave_a_loop_of_calls": np.r_[X[64 * np.minimum(n - 1, 59 - np.arange(60))], np.zeros(4)],
    "threads_leave_copies_of_a_loop": [X[np.arange(7 if k < 32 else 5) * 64 + (k ^ 1)].sum() for k in t],
    "a_template_that_calls_itself": [
        X[np.add.outer(64 * np.arange(3), np.arange(n)) + (k ^ 1)].sum() for k in t
    ],
    "all_blocks_meet": np.r_[np.int32([16]).view(np.float32), np.arange(16)],
    # memory.cu
    "chosen_only_if_set": [-1.0 if (i := first_above(row, 0.5)) < 0 else 2 * row[i] + i for row in runs],
    "decided_before_it_is_looked_at": np.where(runs.max(1) > 0.5, runs.max(1), 0),
    "a_bool_of_both": [1.0 * (first_above(row[::-1], 0) == 2) for row in runs],
    "set_and_used_under_one_condition": np.where(t < n, X[:64] ** 2, 0),
    "local_array": X[t + (t * 7 & 15)] + X[t + (t & 15)],
    "three_of_a_float4": X[63 - t] + 3,
    "padding": 63.0 - t,
    "read_too_early_but_unused": X[:64],
    "reads_its_output_in_vain": X[:64],
    "reads_what_it_wrote": X[np.arange(128) ^ 1],
    "dynamic": 3 * X[63 - t] + 63 - t,
    # language.cu
    "chars": ((63 - t) * 3).astype(np.int8),
    "shorts": ((63 - t) * 999).astype(np.int16),
    "halves_of_floats": (x[63 - t].astype(np.float16) + np.float16(1)).astype(np.float64),
    "half2s": (np.stack([t, 2 * t], 1) ** 2.0 + 1).astype(np.float16),
    "vectors": X[255::-1],
    "structs": 3 * X[63 - t] + 63 - t,
    "a_switch": np.int32([switched(k) for k in range(64)]),
    "loops_in_loops": np.int32([loops(k) for k in range(N)]),
    "functions": 3 * X[:100] + np.arange(100) + 5,
    "variables": np.array([1.0, 2, 4])[t % 3] + 3,
    "prints": [],
    "prints_a_lot": [],
    "three_dimensions": X[:840].reshape(14, 10, 6).T + np.arange(6)[:, None, None] * (np.arange(14) == 0),
    "ragged": np.r_[2 * X[:75], 0, 0],
    "either_space": 2 * X[63 - t],
}


def kernel(name):
    return next(case for case in CASES if case.name == name)


def test_printf_says_who_and_keeps_64_lines():
    report, _ = run(kernel("prints"))
    said = "1.50 word q 123456789012 ff %"
    assert report.output == [f"thread {k} of block {b}: {k}  {said}" for b in (0, 1) for k in (3, 19)]
    assert len(run(kernel("prints_a_lot"))[0].output) == 64


@pytest.mark.parametrize(
    ("format", "values", "said"),
    [
        ("[%d] [%-3u]", struct.pack("iI", -1, 7), "[-1] [7  ]"),
        ("[%*d] [%d]", struct.pack("iii", 6, 42, 7), "[    42] [7]"),
        ("[%*d] [%d]", struct.pack("iii", -6, 42, 7), "[42    ] [7]"),
        ("[%0*d] [%-*d]", struct.pack("iiii", 4, 7, 3, 1), "[0007] [1  ]"),
        ("[%.*f] [%*.*f]", struct.pack("i4xdiid", 1, 2.25, 7, 3, 0.5), "[2.2] [  0.500]"),
        ("[%.*f] [%.f]", struct.pack("i4xdd", -1, 0.5, 2.75), "[0.500000] [3]"),
        ("[%*s]", struct.pack("i4xQ", 5, 3), "[  3!!]"),
        ("[%*c] %d", struct.pack("ii", 3, 65), "[  A] ?"),
        ("[%*d]", b"", "[?]"),
        ("100%% %q %d", struct.pack("i", 5), "100% %q 5"),
    ],
)
def test_a_format_of_printf(format, values, said):
    assert printf.formatted(format, values, lambda address: f"{address}!!") == said


def test_recursion_is_refused_by_its_name():
    with pytest.raises(simulator.Unsupported, match="fibonacci"):
        simulate(
            SOURCES["language.cu"],
            "recursion",
            1,
            64,
            [x.copy(), np.zeros(64, np.float32), n],
            path="language.cu",
        )


def test_every_launch_begins_with_fresh_variables():
    for _ in range(2):
        assert run(kernel("variables"))[1][1] == 5


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("the_last_block_sums", "between blocks .* a memory fence"),
        ("a_lock_with_fences", "a fence and an atomic"),
        ("a_lock_with_fences_for_a_global_word", "a fence and an atomic"),
        ("blocks_raise_a_flag", ""),
        ("a_lock_for_two_blocks", "between blocks .* a memory fence"),
    ],
)
def test_a_fence_leaves_a_note(name, words):
    notes = run(kernel(name))[0].notes
    assert re.fullmatch(f"races .*{words}.*", *notes) if words else not notes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "copy_with_a_wait_after_the_barrier",
            "copied on line {-4} and waited for on line {-1}, with no __syncthreads() after that (read after",
        ),
        (
            "copy_for_a_warp_without_syncwarp",
            "waited for on line {-1}, with no __syncwarp() or __syncthreads() after that (read after write)",
        ),
        ("copy_without_a_wait", "which the cp.async on line {-3} may still be copying"),
        ("copy_without_a_wait", "nobody has waited for it (read after write)"),
        ("store_over_a_copy", "nobody has waited for it (write after write)"),
        (
            "ldg_of_what_it_wrote",
            "reads argument 1[0] through the read-only cache, which may still hold what was there before the "
            "same thread wrote it on line {-1}: what __ldg",
        ),
        (
            "ldg_of_what_is_written_later",
            "argument 1[69], which thread 4 of block 0 read through the read-only cache on line {-2}",
        ),
        ("before_one_of_two_arrays", "reads argument 0[-1], before its start"),
        ("through_a_null_pointer_or_not", "reads address 0x0, which is in no array"),
    ],
)
def test_what_a_finding_says(name, words):
    """{-1}: the line before the finding's."""
    findings = run(kernel(name))[0].findings
    said = re.sub(r"{(-\d)}", lambda match: str(findings[0].line + int(match[1])), words)
    assert said in " ".join(finding.message for finding in findings)


# The launch itself.

SCALE = """
extern "C" __global__ void scale(
    const float *in, float *out, int count, float factor, long long wide, bool on) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = on ? factor * in[i] + wide : in[count - 1 - i];
}
"""


def scale(a, b, count=64, factor=2.0, wide=1, on=True, grid=(1,), block=(64,)):
    return simulate(SCALE, "scale", grid, block, [a, b, count, factor, wide, on])


def test_one_array_twice():
    a = x[:64].copy()
    assert not scale(a, a).findings
    np.testing.assert_allclose(a, 2 * X[:64] + 1, rtol=1e-6)
    assert [finding.kind for finding in scale(a, a, on=False).findings] == ["race"]


def test_views_in_any_order_of_bytes_in_memory():
    a, b = x[:128].copy(), np.zeros((8, 8), np.float32)
    scale(a[::-2], b.T)
    np.testing.assert_allclose(b.T.reshape(-1), 2 * X[:128][::-2] + 1, rtol=1e-6)


def test_an_empty_array_and_a_null_pointer():
    empty = np.zeros(0, np.float32)
    assert not scale(empty, 0, count=0).findings
    assert [finding.kind for finding in scale(empty, 0, count=1).findings] == ["bounds"]


A, B = x[:64].copy(), np.zeros(64, np.float32)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"a": A, "b": A[1:]}, ValueError, "overlaps"),
        ({"count": 2**32}, TypeError, "does not fit"),
        ({"count": 1.5}, TypeError, "float"),
        ({"count": A}, TypeError, "array"),
        ({"factor": "2"}, TypeError, "str"),
        ({"wide": 2**64}, TypeError, "does not fit"),
        ({"a": 1.0}, TypeError, "float"),
        ({"block": (1025,)}, ValueError, "1,024"),
        ({"block": (32, 33)}, ValueError, "1,024"),
        ({"block": ()}, ValueError, "one to three"),
        ({"grid": (1, 2, 3, 4)}, ValueError, "one to three"),
        ({"grid": (0,)}, ValueError, "positive"),
        ({"grid": (2**25,)}, ValueError, "too many"),
    ],
)
def test_launches_that_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        scale(**{"a": A, "b": B, **change})


def test_too_few_arguments_and_no_such_kernel():
    with pytest.raises(TypeError, match="6 arguments, 2"):
        simulate(SCALE, "scale", 1, 64, [A, B])
    with pytest.raises(KeyError, match="scales"):
        simulate(SCALE, "scales", 1, 64, [A, B])


def test_scalars_of_numpy():
    assert not scale(A, B, np.int64(64), np.float64(0.5), np.uint8(3), np.bool_(True)).findings
    np.testing.assert_allclose(B, 0.5 * A + 3, rtol=1e-6)
