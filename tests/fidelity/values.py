"""Results of single instructions, as a card computes them: tests/meta/hardware/instruction_values.csv.

The instructions are the rows of tests/meta/instructions.py that the simulator runs. Of a row's cases those
are taken in which an operand has a value that it had in none before, so that every edge value comes up in
every place; two random cases are added. What should come out is not asked here: the card says what does.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "meta"))

from table import WIDTH, Row, pattern, ptx_for

VALUES = Path(__file__).resolve().parents[1] / "meta/hardware/instruction_values.csv"
FILES = ()  # with rows that may stay: all are measured anew, always
MOST = 16  # cases of a row from the table, of one without floats half as many
OPEN = re.compile(r"(div|rem)\.[su]")  # by zero: no result is promised


def chosen(row: Row) -> Row:
    """The row with the cases to record; the wanted results are the table's, or 0 for a random case."""
    draw = random.Random(row.ptx)
    is_float = re.search(r"\.f(16|32|64)", row.ptx)
    seen: set[tuple[int, int]] = set()
    cases = []
    for operands, want in draw.sample(row.cases, len(row.cases)):
        new = set(enumerate(operands)) - seen
        if (new or not operands) and len(cases) < (MOST if is_float else MOST // 2):
            seen |= new
            cases.append((operands, want))
    kinds = [kind for n, kind in row.registers.items() if n]
    if kinds and not OPEN.match(row.ptx):
        cases += [(tuple(drawn(row, WIDTH[kind], draw) for kind in kinds), 0) for _ in range(2)]
    return Row(row.ptx, tuple(cases), row.bound)


def drawn(row: Row, bits: int, draw: random.Random) -> int:
    """Any bits; for an approximate function a number for which its bound holds."""
    if row.bound is None:
        return draw.getrandbits(bits)
    low, high = (0.6, 1.9) if row.ptx.startswith("lg2") and row.bound[0] == "abs" else (2.0, 3.0)
    return pattern(draw.uniform(low, high), 32)


def rows() -> list[Row]:
    from instructions import REFUSED, ROWS  # here: the table takes seconds to build

    unique = {(row.ptx, row.bound): row for row in ROWS if not re.match(REFUSED, row.ptx)}
    # Rows of one text and bound are one here.
    merged = {key: [row for row in ROWS if (row.ptx, row.bound) == key] for key in unique}
    return [
        chosen(Row(ptx, tuple(case for row in same for case in row.cases), bound))
        for (ptx, bound), same in merged.items()
    ]


def prepare(folder: Path, arch: str, new: bool = False) -> None:
    tests = rows()
    (folder / "values.ptx").write_text(ptx_for(tests))
    (folder / "values.json").write_text(json.dumps([(test.inputs, test.outputs) for test in tests]))


def measure(folder: Path, out: Path) -> None:
    """Run every row on the card."""
    import cupy

    module = cupy.RawModule(path=str(folder / "values.ptx"))
    results = []
    for n, (operands, count) in enumerate(json.loads((folder / "values.json").read_text())):
        inputs, outputs = cupy.array(operands, dtype=cupy.uint64), cupy.zeros(count, dtype=cupy.uint64)
        module.get_function(f"t{n}")((1,), (count,), (inputs, outputs))
        results.append(outputs.get().tolist())
    (out / "values.json").write_text(json.dumps(results))


def record(folder: Path, out: Path, header: str) -> None:
    results = json.loads((out / "values.json").read_text())
    with VALUES.open("w", newline="") as file:
        file.write(f"# {header}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["instruction", "operands", "result", "bound"])
        for row, got in zip(rows(), results, strict=True):
            bound = f"{row.bound[0]} {row.bound[1]!r}" if row.bound else ""
            for (operands, _), result in zip(row.cases, got, strict=True):
                table.writerow([row.ptx, " ".join(f"{value:x}" for value in operands), f"{result:x}", bound])


def recorded() -> Iterator[tuple[Row, list[int]]]:
    """Each recorded instruction with its cases, and the card's results."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    with VALUES.open(newline="") as file:
        for line in csv.DictReader(line for line in file if not line.startswith("#")):
            groups.setdefault((line["instruction"], line["bound"]), []).append(line)
    for (ptx, bound), lines in groups.items():
        kind, _, size = bound.partition(" ")
        cases = tuple((tuple(int(value, 16) for value in line["operands"].split()), 0) for line in lines)
        row = Row(ptx, cases, (kind, float(size)) if bound else None)
        yield row, [int(line["result"], 16) for line in lines]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), "")
        print(sum(test.outputs for test in rows()), "cases of", len(rows()), "instructions")
