"""What compute-sanitizer reports of each kernel, and what the simulator does:
tests/meta/hardware/sanitizers.csv.

`measure` needs a GPU and compute-sanitizer. A row is one report of one tool: its first words, the source
lines that it names (of a race both sides'), and the lines of the simulator's findings of that kind. A
kernel of which no tool says anything has one row, "nothing"; a launch that a tool did not bring to its end
has a row that says so.
"""

from __future__ import annotations

import gzip
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import Any

from counters import digest, key, still_true, write
from launches import HARDWARE, Case, Failure, Launch, of_every_file, progress, sanitized

SANITIZERS = HARDWARE / "sanitizers.csv"
FILES = (SANITIZERS,)
COLUMNS = ["file", "kernel", "size", "source", "tool", "report", "lines", "simulator"]
TOOLS = {"memcheck": "bounds", "racecheck": "race", "initcheck": "uninitialised", "synccheck": "barrier"}
LATE, NOT_RUN = "did not end", "not run"
LIMIT = 45  # seconds for one process
GROUP = 40  # launches of a process, where no report is expected


def prepare(folder: Path, arch: str, new: bool = False) -> None:
    old = still_true(SANITIZERS) if new else []
    known = {key(row) for row in old} - {key(row) for row in old if row["report"] == NOT_RUN}
    made = [
        pair for pairs in of_every_file(partial(launches_of, arch, known), "sanitizers") for pair in pairs
    ]
    (folder / "sanitizers.pickle").write_bytes(pickle.dumps([launch for _, launch in made]))
    (folder / "sanitizers.rows.pickle").write_bytes(pickle.dumps([row for row, _ in made]))


def launches_of(
    arch: str, known: set[tuple[str, str, str]], file: str
) -> list[tuple[tuple[Any, ...], Launch]]:
    """The beginning of each row, with the simulator's findings, and its launch."""
    cases = [case for case in sanitized(file) if case.row not in known]
    return [((*case.row, digest(file), sorted(findings(case))), case.launch(arch)) for case in cases]


def findings(case: Case) -> set[tuple[str, int, int]]:
    """(kind, line, other line) of what the simulator finds."""
    try:
        return {(finding.kind, finding.line, finding.other_line) for finding in case.report.findings}
    except Failure:  # unsupported: the tools look at it all the same
        return set()


def options(tool: str) -> list[str]:
    told = subprocess.run(["compute-sanitizer", "--help"], capture_output=True, text=True, check=False).stdout
    chosen = {
        "memcheck": ["--destroy-on-device-error kernel"],
        "racecheck": ["--racecheck-report analysis"],
        "initcheck": ["--initcheck-address-space all"],  # else of global memory only
        "synccheck": [],
    }[tool]
    return [word for option in chosen if option.split()[0].lstrip("-") in told for word in option.split()]


def jobs(rows: list[tuple[Any, ...]]) -> list[tuple[str, list[int], str]]:
    """(tool, indices of the launches that one process makes, head of its log), the longest first."""
    made = []
    for tool in TOOLS:
        kinds = [{kind for kind, *_ in row[-1]} for row in rows]
        alone = [bool(found & {"bounds", "barrier", "timeout", TOOLS[tool]} - {"race"}) for found in kinds]
        groups = [[index] for index in range(len(rows)) if alone[index]]
        others = [index for index in range(len(rows)) if not alone[index]]
        groups += [others[n : n + GROUP] for n in range(0, len(others), GROUP)]
        for group in groups:
            head = f"{tool} {len(group)} from {rows[group[0]][0]} ... {rows[group[-1]][0]}"
            made.append((tool, group, head))
    return sorted(made, key=lambda job: -len(job[1]))


def measure(folder: Path, out: Path) -> None:
    """An error may end the context: launches for which one is expected have a process of their own."""
    rows = pickle.loads((folder / "sanitizers.rows.pickle").read_bytes())
    launches: list[Launch] = pickle.loads((folder / "sanitizers.pickle").read_bytes())
    card = str(Path(__file__).with_name("card.py"))
    flags = {tool: options(tool) for tool in TOOLS}

    def watch(job: tuple[str, list[int], str]) -> str:
        tool, group, head = job
        path = folder / f"{tool}.{group[0]}.pickle"
        path.write_bytes(pickle.dumps([launches[index] for index in group]))
        command = ["compute-sanitizer", "--tool", tool, "--show-backtrace", "no", "--print-limit", "500"]
        command += [*flags[tool], sys.executable, card, str(path)]
        start = time.perf_counter()
        ran = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            start_new_session=True,
        )
        try:
            text, _ = ran.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)  # the launch too: it would keep the card busy for ever
            text = f"{LATE}\n{ran.communicate()[0]}"
        return f"#### {head}, {time.perf_counter() - start:.1f} s\n{text}"

    logs = out / "sanitizers.txt.gz"
    logs.write_bytes(gzip.compress(f"{flags}\n".encode()))
    with ThreadPoolExecutor(cpu_count() or 2) as pool:
        watched = [pool.submit(watch, job) for job in jobs(rows)]
        for job in progress(as_completed(watched), len(watched), "sanitizers: watched"):
            with gzip.open(logs, "at") as file:  # at once: what is done stays, if time runs out
                file.write(job.result() + "\n")


FRAME = re.compile(r"\+0x[0-9a-f]+(?: in (?P<file>[^\n]*?):(?P<line>\d+))?")


def reports(log: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """(what, [(file's name, line) of each side]) of every report in one log."""
    for text in re.split(r"^========= (?=\S)", log, flags=re.MULTILINE)[1:]:
        what = re.sub(r"( between .*| at .*|\.)$", "", text.partition("\n")[0].strip())
        places = [(Path(found["file"] or "").name, int(found["line"] or 0)) for found in FRAME.finditer(text)]
        if places:
            yield what, places


def record(folder: Path, out: Path, header: str) -> None:
    rows = pickle.loads((folder / "sanitizers.rows.pickle").read_bytes())
    with gzip.open(out / "sanitizers.txt.gz", "rt") as file:
        parts = re.split(r"^#### ", file.read(), flags=re.MULTILINE)[1:]
    logs = {part.partition(",")[0]: part.partition("\n")[2].replace("TIMEOUT", LATE) for part in parts}
    told: dict[int, set[tuple[str, str, str]]] = {index: set() for index in range(len(rows))}
    for tool, group, head in jobs(rows):
        log = logs.get(head)
        for what, places in reports(log or ""):
            files = {file for file, _ in places}
            lines = " ".join(str(line) for line in dict.fromkeys(line for file, line in places if file))
            about = [index for index in group if Path(rows[index][0]).name in files]
            for index in about:
                told[index].add((tool, what, lines))
            if not about:
                print(f"whose is it? {head}: {what} {places}", file=sys.stderr)
        if log is None:
            ending = NOT_RUN
        elif "ended well" in log:
            continue
        else:
            ending = LATE if log.startswith(LATE) else "ended early"
        for index in group:
            told[index].add((tool, ending, ""))
    table = []
    for index, (name, kernel, size, source, found) in enumerate(rows):
        for tool, what, lines in sorted(told[index]) or [("all", "nothing", "")]:
            kinds = set(TOOLS.values()) if tool == "all" else {TOOLS[tool]}
            ours = {f"{line} {other}".removesuffix(" 0") for kind, line, other in found if kind in kinds}
            table.append([name, kernel, size, source, tool, what, lines, "; ".join(sorted(ours))])
    write(SANITIZERS, [header], COLUMNS, table, 3)
