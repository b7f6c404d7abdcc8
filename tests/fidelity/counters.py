"""Traffic of one launch each: what Nsight Compute counted, and what the simulator counts.

`measure` needs a GPU and ncu, `record` and `compare` do not. The figures lie in tests/meta/hardware:
counters.csv has a row for each launch, shared_loads.csv says how wide the shared loads of each kernel's
machine code are.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from launches import (
    HARDWARE,
    ROOT,
    Case,
    Launch,
    Report,
    counted,
    in_order,
    of_every_file,
    progress,
    recorded_case,
)

COUNTERS, SHARED_LOADS = FILES = HARDWARE / "counters.csv", HARDWARE / "shared_loads.csv"

L1 = "l1tex__{}_pipe_lsu_{}mem_{}_op_{}.sum"
METRICS = {  # column -> ncu's name
    "load_requests": L1.format("t_requests", "", "global", "ld"),
    "load_sectors": L1.format("t_sectors", "", "global", "ld"),
    "store_requests": L1.format("t_requests", "", "global", "st"),
    "store_sectors": L1.format("t_sectors", "", "global", "st"),
    "shared_load_wavefronts": L1.format("data", "wavefronts_", "shared", "ld"),
    "shared_load_conflicts": L1.format("data_bank_conflicts", "", "shared", "ld"),
    "shared_store_wavefronts": L1.format("data", "wavefronts_", "shared", "st"),
    "shared_store_conflicts": L1.format("data_bank_conflicts", "", "shared", "st"),
    "fma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "shared_loads": "smsp__inst_executed_op_shared_ld.sum",  # instructions of a warp, as fused
    "shared_stores": "smsp__inst_executed_op_shared_st.sum",
    # Kept for the record, and to explain the others: asynchronous copies, atomics, local memory.
    "async_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "async_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "async_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "atomic_requests": L1.format("t_requests", "", "global", "atom"),
    "reduction_requests": L1.format("t_requests", "", "global", "red"),
    "atomic_sectors": L1.format("t_sectors", "", "global", "atom"),
    "reduction_sectors": L1.format("t_sectors", "", "global", "red"),
    "shared_atomic_wavefronts": L1.format("data", "wavefronts_", "shared", "atom"),
    "local_load_requests": L1.format("t_requests", "", "local", "ld"),
    "local_load_sectors": L1.format("t_sectors", "", "local", "ld"),
    "local_store_requests": L1.format("t_requests", "", "local", "st"),
    "local_store_sectors": L1.format("t_sectors", "", "local", "st"),
}
COMPARED = list(METRICS)[:10]
CHUNK = 180  # launches a run of ncu: what is done stays, if time runs out


def simulated(report: Report) -> dict[str, int]:
    """The compared columns as the simulator counts them."""

    def total(space: str, op: str, figure: str) -> int:
        return sum(getattr(a, figure) for a in report.accesses if (a.space, a.op) == (space, op))

    ours = {"fma": report.fma, "shared_loads": total("shared", "load", "requests")}
    for op in ("load", "store"):
        for figure in ("requests", "sectors"):
            ours[f"{op}_{figure}"] = total("global", op, figure)
        for figure in ("wavefronts", "conflicts"):
            ours[f"shared_{op}_{figure}"] = total("shared", op, figure)
    return {column: ours[column] for column in COMPARED}


@cache
def digest(file: str) -> str:
    """Of a source file: a row that was recorded for another text of it is not compared."""
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:8]


# ------------------------------------------------------------------------------------------ three stages


def prepare(folder: Path, arch: str, new: bool = False) -> None:
    """Compile, and write down the launches, all or those without a row: needs no GPU."""
    known = {key(row) for row in still_true(COUNTERS)} if new else set()
    rows, launches, left_out = [], [], {}
    for file, made, why in of_every_file(partial(launches_of, arch, known), "counters"):
        rows += [row for row, _ in made]
        launches += [launch for _, launch in made]
        if why:
            left_out[file] = why
    (folder / "counters.pickle").write_bytes(pickle.dumps(launches))
    (folder / "counters.rows.pickle").write_bytes(pickle.dumps((rows, left_out)))


def launches_of(
    arch: str, known: set[tuple[str, str, str]], file: str
) -> tuple[str, list[tuple[tuple[str, ...], Launch]], str]:
    """The file, the beginning of each row with its launch, and why there is none."""
    cases, why = counted(file)
    made = [((*case.row, digest(file)), case.launch(arch)) for case in cases if case.row not in known]
    return file, made, why


def measure(folder: Path, out: Path) -> None:
    """Run every launch under ncu, and disassemble what ran: needs the GPU."""
    launches: list[Launch] = pickle.loads((folder / "counters.pickle").read_bytes())
    rows, _ = pickle.loads((folder / "counters.rows.pickle").read_bytes())
    if not (folder / "sass.txt.gz").exists():
        disassemble(rows, launches, folder)
    shutil.copy(folder / "sass.txt.gz", out)
    command = "ncu --clock-control none --cache-control none --csv --page raw".split()
    command += "--print-units base --print-kernel-base mangled".split()
    card = [sys.executable, str(Path(__file__).with_name("card.py")), str(folder / "counters.pickle")]
    metrics = list(METRICS.values())
    done: list[str] = []
    chunks = range(0, len(launches), CHUNK)
    for first in progress(reversed(chunks), len(chunks), "counters: under ncu, chunk"):
        log = folder / "ncu.csv"
        bounds = [str(first), str(min(first + CHUNK, len(launches)))]
        for _ in range(4):
            log.unlink(missing_ok=True)
            watched = [*command, "--log-file", str(log), "--metrics", ",".join(metrics), *card, *bounds]
            ran = subprocess.run(watched, capture_output=True, text=True, check=False)
            text = log.read_text() if log.exists() else ""
            said = text + ran.stdout + ran.stderr
            complaints = "".join(line for line in said.splitlines() if "metric" in line and '"' not in line)
            unknown = [metric for metric in metrics if metric in complaints]
            if not unknown:
                break
            print(f"ncu does not know {', '.join(unknown)}", file=sys.stderr)
            metrics = [metric for metric in metrics if metric not in unknown]
        if "ended well" not in ran.stdout:
            print(f"under ncu: {said[-1000:]}", file=sys.stderr)
        done.append(f"#### {first}\n{text}")
        with gzip.open(out / "ncu.txt.gz", "wt") as file:
            file.write("\n".join(done))


def disassemble(rows: Sequence[Sequence[str]], launches: Sequence[Launch], out: Path) -> None:
    done: set[tuple[str, bytes]] = set()
    with tempfile.TemporaryDirectory() as folder, gzip.open(out / "sass.txt.gz", "wt") as sass:
        cubin = Path(folder, "kernel.cubin")
        for row, launch in zip(rows, launches, strict=True):
            if (row[0], launch.cubin) in done:
                continue
            done.add((row[0], launch.cubin))
            cubin.write_bytes(launch.cubin)
            listing = subprocess.run(
                ["nvdisasm", "--print-code", "--print-line-info", str(cubin)],
                capture_output=True,
                text=True,
                check=False,
            )
            sass.write(f"#### {row[0]}\n{listing.stdout}{listing.stderr}\n")


def record(folder: Path, out: Path, header: str) -> None:
    """The figures, from the tools' output to the .csv files. Rows that were not measured anew stay."""
    rows, left_out = pickle.loads((folder / "counters.rows.pickle").read_bytes())
    launches: list[Launch] = pickle.loads((folder / "counters.pickle").read_bytes())
    with gzip.open(out / "ncu.txt.gz", "rt") as file:
        counted_by_ncu = dict(parse_ncu(file.read()))
    figures = []
    for index, (row, launch) in enumerate(zip(rows, launches, strict=True)):
        if index not in counted_by_ncu:
            print(f"not counted: {' '.join(row[:3])}", file=sys.stderr)
            continue
        name, values = counted_by_ncu[index]
        if name != launch.entry:
            raise ValueError(f"ncu's launch {index} is {name}, not {launch.entry}")
        figures.append([*row, *(values.get(metric, "") for metric in METRICS.values())])
    notes = [f"not launched: {name}: {why}" for name, why in left_out.items()]
    write(COUNTERS, [header, *notes], ["file", "kernel", "size", "source", *METRICS], figures, 3)

    with gzip.open(out / "sass.txt.gz", "rt") as file:
        widths = dict(parse_sass(file.read()))
    loads = {}
    for row, launch in zip(rows, launches, strict=True):
        if (found := widths.get((row[0], launch.entry))) is not None:
            loads[row[:2]] = [row[0], row[1], row[3], *(found[width] for width in WIDTHS)]
    head = f"Instructions in the machine code. {header}"
    write(SHARED_LOADS, [head], ["file", "kernel", "source", *WIDTHS], [*loads.values()], 2)


def write(path: Path, notes: Sequence[str], names: Sequence[str], rows: list[list[Any]], keys: int) -> None:
    """A .csv file of these rows and of its old ones that are still true, told apart by their first `keys`
    cells. The first of `notes` says what they were measured on; old ones measured on something else go.
    """
    measured = {tuple(row[:keys]) for row in rows}
    true = still_true(path) if path.exists() else []
    old = [[row.get(name, "") for name in names] for row in true if "size" not in row or recorded_case(row)]
    old = [row for row in old if tuple(row[:keys]) not in measured]
    if old and (was := heading(path)) != notes[0]:
        print(f"{path.name}: {len(old)} rows of {was!r} were not measured anew, and go", file=sys.stderr)
        old = []
    with path.open("w", newline="") as file:
        file.write("".join(f"# {note}\n" for note in notes))
        csv.writer(file, lineterminator="\n").writerows([names, *sorted([*rows, *old], key=in_order)])


def heading(path: Path) -> str:
    """What a file's rows were measured on."""
    return path.read_text().partition("\n")[0].removeprefix("# ")


def parse_ncu(text: str) -> Iterator[tuple[int, tuple[str, dict[str, str]]]]:
    """(index of the launch, (kernel, metric -> figure)) of each row of ncu's raw pages."""
    for part in re.split(r"^#### ", text, flags=re.MULTILINE)[1:]:
        first, _, log = part.partition("\n")
        lines = [line for line in log.splitlines() if line.startswith('"')]
        table = list(csv.reader(lines))
        if not table:
            continue
        names = table[0]
        launches = [row for row in table[1:] if row[0].isdecimal()]  # the row after the names has the units
        for offset, row in enumerate(launches):
            cells = dict(zip(names, row, strict=False))
            values = {name: plain(cells[name]) for name in METRICS.values() if cells.get(name)}
            yield int(first) + offset, (cells["Kernel Name"], values)


def plain(figure: str) -> str:
    """ "1,024" and "1024.000000" -> "1024"."""
    number = figure.replace(",", "")
    return str(round(float(number))) if re.fullmatch(r"[\d.]+", number) else ""


WIDTHS = ("LDS.U8", "LDS.U16", "LDS", "LDS.64", "LDS.128", "LD", "STS", "STS.64", "STS.128")


def parse_sass(text: str) -> Iterator[tuple[tuple[str, str], Counter[str]]]:
    """((file, entry), instructions by width) of each kernel in nvdisasm's listings."""
    for part in re.split(r"^#### ", text, flags=re.MULTILINE)[1:]:
        file, _, listing = part.partition("\n")
        for kernel in re.split(r"^\s*\.section\s+\.text\.", listing, flags=re.MULTILINE)[1:]:
            entry = re.match(r"[\w$]+", kernel)
            found: Counter[str] = Counter()
            for opcode in re.findall(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", kernel):
                base, *parts = opcode.split(".")
                if base in ("LDS", "STS", "LD"):
                    width = next((p for p in parts if p in ("U8", "S8", "U16", "S16", "64", "128")), "")
                    found[f"{base}.{width.replace('S', 'U')}".rstrip(".")] += 1
            if entry:
                yield (file, entry[0]), found


# ------------------------------------------------------------------------------------------ side by side


def recorded(path: Path) -> list[dict[str, str]]:
    """The rows of one of the .csv files."""
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def still_true(path: Path) -> list[dict[str, str]]:
    """The rows about a text that is still the same."""
    return [
        row
        for row in recorded(path)
        if (ROOT / row["file"]).exists() and digest(row["file"]) == row["source"]
    ]


def key(row: dict[str, str]) -> tuple[str, str, str]:
    """As `Case.row`."""
    return row["file"], row["kernel"], row["size"]


def recorded_cases(path: Path = COUNTERS, file: str = "") -> Iterator[tuple[Case, dict[str, str]]]:
    """Each recorded row whose source is still the same, of this source or of all, with its launch."""
    for row in still_true(path):
        if file in ("", row["file"]) and (case := recorded_case(row)):
            yield case, row


def figures(row: dict[str, str]) -> dict[str, int]:
    """The card's, of the compared counters."""
    return {column: int(row[column]) for column in COMPARED if row[column]}


def compare() -> None:
    """Print both sides of each cell that differs, then the equal cells of each counter."""
    equal: Counter[str] = Counter()
    total: Counter[str] = Counter()
    lines = []
    for cells in of_every_file(compared, "compared"):
        for name, card, ours in cells:
            total.update(card.keys())
            equal.update(column for column in card if card[column] == ours[column])
            differing = [column for column in card if card[column] != ours[column]]
            text = ", ".join(f"{column} {ours[column]:,} (card {card[column]:,})" for column in differing)
            lines += [f"{name}: {text}"] * bool(differing)
    print(*lines, sep="\n")
    print(f"\n{'counter':28}{'equal':>7} / total")
    for column in COMPARED:
        print(f"{column:28}{equal[column]:7} / {total[column]}")


def compared(file: str) -> list[tuple[str, dict[str, int], dict[str, int]]]:
    """Of each launch of a file its name, what the card counted, and what the simulator does."""
    return [(str(case), figures(row), simulated(case.report)) for case, row in recorded_cases(file=file)]
