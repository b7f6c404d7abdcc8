"""The simulator against a card's own figures, recorded by `make fidelity` in tests/meta/hardware.

A cell is one counter of one launch. Each is equal, but for those that stand in DIFFERENT with the reason.
Results of instructions are equal bit for bit, those of approximate ones within the manual's bound. What a
sanitizer reports, a finding of the simulator tells too. A row whose source has changed since it was
recorded is not compared.
"""

from __future__ import annotations

import gzip
import pickle
import re
import sys
from itertools import groupby
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from table import FLOAT_OF, WIDTH, Row, decode, ptx_for

sys.path.insert(0, str(Path(__file__).parents[1] / "fidelity"))

import counters
import measure
import sanitizers
import values
from launches import Case, Launch

from dojo.simulator import run

TRAFFIC = list(counters.recorded_cases())
COMPARED = [column for column in counters.COMPARED if column != "shared_loads"]  # it counts idle warps too

GLOBAL = ("load_requests", "load_sectors", "store_requests", "store_sectors")
LOADS = ("shared_load_wavefronts", "shared_load_conflicts")
STORES = ("shared_store_wavefronts", "shared_store_conflicts")
WAVEFRONTS, FMA = LOADS[:1], ("fma",)

ASYNC = "cp.async: the card does not count its stores to shared memory among the stores"
NO_BYTES = "cp.async of 0 of 16 bytes: the card counts the sectors of an address that is not read"
FLOAT_ATOMIC = "atomicAdd of floats is a loop of loads and compare-and-swaps"
FAST = "solutions/04_register.fast.cu sgemm_register"
STAGE = (
    "no barrier keeps loads and stores of two warps apart; where they meet, one waits, each time elsewhere"
)
OTHER_TYPE = "the simulator counts fma of f64 and f16 too, the card's FFMA are of f32"
ONE_COPY = "ptxas unrolls the loop by four, two and one rounds: in the copy of two it leaves a pair apart"
LATER = "ptxas moves the sum into the branch that uses it"
OWN_COPY = "ptxas unrolls the loop: lanes with more turns than others make their last ones in another copy"
READ_ONLY = "what ld.global.nc reads does not change, so ptxas reads it once for the whole loop"
# File, kernel or launch -> [counters, why the card counts otherwise]. Nothing else differs; all these do.
DIFFERENT: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "01_naive.printf.cu": [(GLOBAL, "the card's printf is code too, which loads and stores")],
    "01_naive.double_sum.cu": [(FMA, OTHER_TYPE)],
    "02_tiled.half_sum.cu": [(FMA, OTHER_TYPE)],
    "half2_fma": [(FMA, OTHER_TYPE)],
    "predicated_fma": [(FMA, "ptxas makes of fma and selp an FFMA under a predicate")],
    "quotients": [(FMA, "a division and a square root are several FFMA each")],
    "02_tiled.atomic_on_unset_output.cu": [(FMA + WAVEFRONTS, LATER)],
    **{f"async_{which}": [(STORES[:1], ASYNC)] for which in ("4", "8", "16", "16_past_l1", "4_masked")},
    "async_4_transposed": [(STORES, ASYNC)],
    "02_tiled.cp_async_then_zero.cu": [(STORES[:1], ASYNC)],
    "02_tiled.cp_async_waited_for_late.cu": [(STORES[:1], ASYNC)],
    "05_reducesum.half_a_warp_a_row.cu": [(STORES, STAGE)],
    "05_reducesum.host_headers.cu": [(GLOBAL[:2], OWN_COPY)],
    "01_naive.ldg_of_its_output.cu": [(GLOBAL[:2], READ_ONLY)],
    "shared_atomic_float": [(WAVEFRONTS, FLOAT_ATOMIC)],
    "05_reducesum.atomic_before_the_zero.cu": [(WAVEFRONTS, FLOAT_ATOMIC)],
    "05_reducesum.read_twice.cu": [(FMA, "a division is several FFMA")],
    "04_register.fast.cu": [(STORES[:1], ASYNC)],
    f"{FAST} M 132, N 68, K 20, alpha 0.5, beta 2.0": [(GLOBAL[1:2], NO_BYTES)],
    **{
        f"{name}.cu": [(LOADS, STAGE)]
        for name in (
            "03_swizzle.double_buffered",
            "03_swizzle.no_second_barrier",
            "04_register.barrier_every_other_step",
            "04_register.double_buffered",
            "04_register.no_barrier_before_the_loop",
            "04_register.no_double_buffer_barrier",
            "04_register.syncwarp",
        )
    },
    "fuse_doubles": [(FMA, OTHER_TYPE)],
    "03_swizzle.no_k_tile.cu": [(WAVEFRONTS, ONE_COPY)],
}
# The machine code has loads of other widths: for ways that these sizes do not take, or for a loop's rest.
OTHER_WIDTHS = {
    "04_register.fast.cu",
    "solutions/05_reducesum.cu row_sum rows 64, cols 33",
    "03_swizzle.no_k_tile.cu",
    "fuse_loop_of_unknown_length",
}


def names(case: Case) -> set[str]:
    """What these tables may call a launch: its file, the file's name or the small kernel's, or all of it."""
    return {case.file, Path(case.file).name if case.at else case.kernel, str(case)}


def expected(case: Case) -> set[str]:
    """The counters that DIFFERENT names for this launch."""
    return {column for name in names(case) for columns, _ in DIFFERENT.get(name, []) for column in columns}


# Of tests/right and tests/wrong those that differ: make fidelity compares every one.
CHOSEN = [
    (case, row) for case, row in TRAFFIC if not case.at or case.file.startswith("solutions") or expected(case)
]


def kernel(row: dict[str, str]) -> tuple[str, str, str]:
    """What a row of shared_loads.csv is about."""
    return row["file"], row["kernel"], row["source"]


CODE = {kernel(row): row for row in counters.recorded(counters.SHARED_LOADS)}
BITS = {"LDS.U8": 8, "LDS.U16": 16, "LDS": 32, "LDS.64": 64, "LDS.128": 128}


def widths_differ(case: Case, row: dict[str, str]) -> bool:
    """Whether the simulator counts shared loads of other widths than the machine code has, if it is known."""
    code = CODE.get(kernel(row))
    loads = {a.bits for a in case.report.accesses if (a.space, a.op) == ("shared", "load")}
    return code is not None and loads != {bits for name, bits in BITS.items() if int(code[name])}


@pytest.mark.parametrize(("case", "row"), CHOSEN, ids=[str(case) for case, _ in CHOSEN])
def test_traffic(case: Case, row: dict[str, str]) -> None:
    card, ours = counters.figures(row), counters.simulated(case.report)
    wrong = {column for column in COMPARED if card[column] != ours[column]}
    told = [f"{name}: {ours[name]:,}, on the card {card[name]:,}" for name in sorted(wrong ^ expected(case))]
    assert not told
    assert widths_differ(case, row) == bool(OTHER_WIDTHS & names(case))
    if not case.file.startswith("tests/wrong"):
        assert not case.report.findings


def test_nearly_all_rows_are_compared_and_nearly_all_cells_equal() -> None:
    rows = counters.recorded(counters.COUNTERS)
    assert len(rows) > 300
    assert len(TRAFFIC) > 0.8 * len(rows), "many sources have changed: make fidelity, on a GPU, records anew"
    for column in COMPARED:
        different = [str(case) for case, _ in TRAFFIC if column in expected(case)]
        assert len(different) < 0.05 * len(TRAFFIC), f"{column} differs in {different}"
    named = set().union(*(names(case) for case, _ in TRAFFIC))
    assert named >= DIFFERENT.keys() | OTHER_WIDTHS
    assert sum(kernel(row) in CODE for _, row in CHOSEN) > 100


# ------------------------------------------------------------------------------------------ instructions

INSTRUCTIONS = {
    family: list(rows)
    for family, rows in groupby(
        sorted(values.recorded(), key=lambda pair: pair[0].ptx),
        key=lambda pair: re.split(r"[. ]", pair[0].ptx)[0],
    )
}


def test_there_are_many_values() -> None:
    assert sum(len(results) for rows in INSTRUCTIONS.values() for _, results in rows) >= 2000


@pytest.mark.parametrize("family", INSTRUCTIONS)
def test_instruction_values(family: str) -> None:
    wrong = []
    for row, card in INSTRUCTIONS[family]:
        outputs = np.zeros(row.outputs, np.uint64)
        inputs = np.array(row.inputs, np.uint64)
        assert not run(ptx_for([row]), "t0", (1,), (row.threads,), [inputs, outputs]).findings
        for (operands, _), got, want in zip(row.cases, outputs.tolist(), card, strict=True):
            if not same(row, got, want):
                wrong.append(
                    f"{row.ptx}  of {', '.join(map(hex, operands))} = {got:#x}, on the card {want:#x}"
                )
    assert not wrong


def same(row: Row, got: int, card: int) -> bool:
    """Equal, or both NaN; if approximate, as near to the card's result as two that keep the bound can be."""
    if got == card:
        return True
    bits = WIDTH[row.registers[0]]
    if bits not in FLOAT_OF or not re.search(r"\.f(16|32|64)", row.ptx):
        return False
    value = decode(card, FLOAT_OF[bits])
    if row.bound is None:
        return isnan(value) and isnan(decode(got, FLOAT_OF[bits]))
    kind, size = row.bound
    if kind == "abs":
        return abs(float(decode(got, "f32")) - float(value)) <= 2 * size
    return Row(row.ptx, (), (kind, 2 * size)).agrees(float(value), got)


# ------------------------------------------------------------------------------------------ sanitizers

OUTSIDE = "the load lies outside the array: told as bounds"
ENDED = "the launch ends at the barrier that not all threads reach: the race that follows is not simulated"
LOCK = "no race: fences and atomics make a lock, and racecheck knows barriers only"
TOLD_OTHERWISE = {
    ("02_tiled.guard_by_output.cu", "initcheck"): OUTSIDE,
    ("02_tiled.guard_by_output_no_fill.cu", "initcheck"): OUTSIDE,
    ("04_register.barrier_in_a_guard.cu", "racecheck"): ENDED,
    ("05_reducesum.lock_with_fences.cu", "racecheck"): LOCK,
}
ELSEWHERE = "two threads write one element of global memory; racecheck looks at shared memory only"
HALVES = "nothing orders the halves of a warp; racecheck saw them run in step"
CACHE = "__ldg reads what the kernel writes: PTX allows it for what nobody writes; no tool looks at that"
REGISTER = "a register has no value yet; initcheck looks at memory"
UNSET = "the read is of shared memory, which this initcheck leaves out"
HANGS = "the launch hangs under every tool: threads of one block wait at two barriers"
ABSENT = (
    "a lane that the mask names never arrives, or the caller is not in it: undefined, and synccheck is silent"
)
# What no tool reports: kernel -> (kind, why it is a defect all the same). Nothing else is; all these are.
ONLY_OURS = {
    **{
        (f"{name}.cu", "race"): ELSEWHERE
        for name in (
            "01_naive.clamped_store",
            "01_naive.no_guard",
            "01_naive.output_forgets_the_block",
            "01_naive.writes_its_input",
            "02_tiled.no_store_guard",
            "04_register.no_guard_at_the_store",
            "05_reducesum.every_lane_stores",
            "05_reducesum.running_total_in_sums",
        )
    },
    **{
        (f"{name}.cu", "uninitialised"): REGISTER
        for name in (
            "01_naive.no_initial_value",
            "02_tiled.no_initial_value",
            "04_register.sums_never_zeroed",
            "05_reducesum.no_initial_value",
        )
    },
    **{
        (f"{name}.cu", "uninitialised"): UNSET
        for name in (
            "02_tiled.early_return",
            "02_tiled.no_zero_fill",
            "04_register.early_return",
            "05_reducesum.partials_never_written",
        )
    },
    ("01_naive.ldg_of_its_output.cu", "race"): CACHE,
    ("05_reducesum.half_a_warp_waits.cu", "race"): HALVES,
    **{
        (f"{name}.cu", "barrier"): HANGS
        for name in (
            "02_tiled.barrier_function_in_guard",
            "02_tiled.barrier_function_in_two_branches",
            "02_tiled.barrier_in_branch",
            "02_tiled.two_barriers_in_two_branches",
            "02_tiled.two_barriers_on_one_line",
        )
    },
    **{
        (f"{name}.cu", "barrier"): ABSENT
        for name in (
            "05_reducesum.half_the_warp_shuffles",
            "05_reducesum.mask_without_the_caller",
            "05_reducesum.shuffle_in_the_loop",
        )
    },
}
SANITIZED: dict[tuple[str, str, str], tuple[Case, list[dict[str, str]]]] = {}
for case, row in counters.recorded_cases(sanitizers.SANITIZERS):
    if row["lines"] or row["simulator"]:
        SANITIZED.setdefault(case.row, (case, []))[1].append(row)


def test_a_right_kernel_has_no_report() -> None:
    rows = counters.recorded(sanitizers.SANITIZERS)
    right = [row for row in rows if not row["file"].startswith("tests/wrong")]
    assert len(right) > 200
    reported = {(Path(row["file"]).name, row["tool"]) for row in right if row["report"] != "nothing"}
    assert reported == {name for name, why in TOLD_OTHERWISE.items() if why == LOCK}


def test_the_tables_name_kernels_that_are_there() -> None:
    told, found = (
        {Path(case.file).name for case, rows in SANITIZED.values() if any(row[column] for row in rows)}
        for column in ("lines", "simulator")
    )
    assert told >= {name for name, _ in TOLD_OTHERWISE}
    assert found >= {name for name, _ in ONLY_OURS}


@pytest.mark.parametrize(
    ("case", "rows"), SANITIZED.values(), ids=[str(case) for case, _ in SANITIZED.values()]
)
def test_what_a_sanitizer_reports_is_told(case: Case, rows: list[dict[str, str]]) -> None:
    """A finding of the same kind names a line of the report: of a race, one of the two sides at least. What
    no tool reports stands in ONLY_OURS.
    """
    name, findings = Path(case.file).name, sanitizers.findings(case)
    reports = [(row["tool"], set(map(int, row["lines"].split()))) for row in rows if row["lines"]]
    for tool, told in reports:
        ours = {line for kind, *lines in findings if kind == sanitizers.TOOLS[tool] for line in lines}
        assert bool(ours & told) != ((name, tool) in TOLD_OTHERWISE), f"{tool}, line {told}"
    if any(row["simulator"] for row in rows):  # else a wrong result is all that is wrong
        extra = {kind for kind, *_ in findings} - {sanitizers.TOOLS[tool] for tool, _ in reports}
        assert extra == {kind for kernel, kind in ONLY_OURS if kernel == name}


# ------------------------------------------------------------------------------------------ recording


def test_rows_that_are_still_true_stay_beside_new_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, names = tmp_path / "rows.csv", ["file", "kernel", "size", "source", "fma"]
    naive, tiled = "solutions/01_naive.cu", "solutions/02_tiled.cu"
    launched = (tiled, "matmul_tiled", "1"), (naive, "matmul_naive", "2")
    now = [[file, kernel, "Width 64", counters.digest(file), fma] for file, kernel, fma in launched]
    changed = [naive, "matmul_naive", "Width 67", "other", "3"]

    def rows() -> list[list[str]]:
        return [[row[name] for name in names] for row in counters.recorded(path)]

    counters.write(path, ["card A"], names, [*now, changed], 3)
    counters.write(path, ["card A", "a note"], names, [[*now[1][:4], "4"]], 3)
    assert rows() == [[*now[1][:4], "4"], now[0]]
    counters.write(path, ["card B"], names, [now[1]], 3)
    assert rows() == [now[1]]
    assert counters.heading(path) == "card B"
    assert "1 rows of 'card A' were not measured anew, and go" in capsys.readouterr().err


def test_new_rows_of_another_card_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/versions.json").write_text('"card B"')
    (tmp_path / "plan.json").write_text('{"compiler": "NVRTC 1.0, sm_90", "new": true}')
    for part in ("counters", "sanitizers"):
        with pytest.raises(
            SystemExit, match=rf"{part}\.csv has rows of 'NVIDIA .* none of 'card B; NVRTC 1.0"
        ):
            measure.run([part], tmp_path, "sm_90", ("record",))
    kept = counters.heading(counters.SHARED_LOADS).partition("NVIDIA")
    assert measure.strangers(list(measure.PARTS), "NVIDIA" + kept[2]) == ""


def test_what_ncu_and_nvdisasm_told_becomes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without shared loads has a row of noughts."""
    naive = "solutions/01_naive.cu"
    row = (naive, "matmul_naive", "Width 64", counters.digest(naive))
    launches = [Launch(b"", "matmul_naive", (4, 4), (16, 16), [], [])]
    (tmp_path / "counters.pickle").write_bytes(pickle.dumps(launches))
    (tmp_path / "counters.rows.pickle").write_bytes(pickle.dumps(([row], {"b.cu": "compile"})))
    fma = counters.METRICS["fma"]
    told = f'"ID","Kernel Name","{fma}"\n"","","inst"\n"0","matmul_naive","262,144"\n'
    (tmp_path / "ncu.txt.gz").write_bytes(gzip.compress(f"#### 0\n==PROF== done\n{told}".encode()))
    code = f'#### {naive}\n\t.section\t.text.matmul_naive,"ax"\n /*0000*/ LDG.E R0, [R2] ;\n'
    (tmp_path / "sass.txt.gz").write_bytes(gzip.compress(code.encode()))
    for name in ("COUNTERS", "SHARED_LOADS"):
        monkeypatch.setattr(counters, name, tmp_path / f"{name}.csv")
    counters.record(tmp_path, tmp_path, "card A")
    (counted,), (loads,) = (
        counters.recorded(tmp_path / f"{name}.csv") for name in ("COUNTERS", "SHARED_LOADS")
    )
    assert (counters.key(counted), counted["fma"]) == (row[:3], "262144")
    assert {loads[width] for width in counters.WIDTHS} == {"0"}
    assert counters.heading(tmp_path / "COUNTERS.csv") == "card A"
