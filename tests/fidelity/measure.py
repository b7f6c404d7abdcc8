"""Measures on a card what the simulator is held to, and records it in tests/meta/hardware:  make fidelity

    python tests/fidelity/measure.py [counters] [values] [sanitizers]

needs a GPU, ncu and compute-sanitizer. Where the compiler and the card are on two machines, in three steps:

    python tests/fidelity/measure.py --prepare FOLDER --arch sm_90      (compiler)
    python tests/fidelity/measure.py --measure FOLDER                   (card; CuPy is enough)
    python tests/fidelity/measure.py --record FOLDER                    (anywhere)

With --new only launches without a row for the present text of their kernel; the other rows stay, which
must have been measured on the same card with the same versions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/fidelity")]

PARTS = ("counters", "values", "sanitizers")
NEEDED = {"counters": ("ncu", "nvdisasm"), "values": (), "sanitizers": ("compute-sanitizer",)}


def missing(parts: list[str]) -> str:
    """Why nothing can be measured here, in a sentence; "" if it can."""
    from dojo import gpu

    if not gpu.card():
        return f"make fidelity needs a GPU: {gpu.why_not()}"
    tools = [tool for part in parts for tool in NEEDED[part] if not shutil.which(tool)]
    return f"make fidelity needs {' and '.join(tools)} on the PATH (CUDA toolkit)" if tools else ""


def described(arch: str) -> str:
    """Compiler and architecture, for the head of a file."""
    from dojo import nvrtc

    return f"NVRTC {nvrtc.installed() or nvrtc.version()}, {arch}"


def versions() -> str:
    """The card and the tools, for the head of a file."""
    query = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
    found = [output(query.split()).strip().replace(", ", ", driver ")]
    for tool in ("ncu", "compute-sanitizer"):
        if number := re.search(r"Version ([\d.]+)", output([tool, "--version"])):
            found.append(f"{tool} {number[1]}")
    return "; ".join(found)


def output(command: list[str]) -> str:
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def strangers(parts: list[str], header: str) -> str:
    """Why rows of this card and these versions cannot be added to those that are there; "" if they can."""
    heading = importlib.import_module("counters").heading
    for path in (path for part in parts for path in importlib.import_module(part).FILES):
        if not (was := heading(path)).endswith(header):
            return (
                f"{path.name} has rows of {was!r}, beside which none of {header!r} can stand: leave out --new"
            )
    return ""


def run(parts: list[str], folder: Path, arch: str, steps: tuple[str, ...], new: bool = False) -> None:
    """The steps, one after the other. Raises SystemExit where `new` rows cannot be recorded."""
    out, plan = folder / "out", folder / "plan.json"
    out.mkdir(parents=True, exist_ok=True)
    modules = {part: importlib.import_module(part) for part in parts}
    if "prepare" in steps:
        for part in parts:
            modules[part].prepare(folder, arch, new)
        plan.write_text(json.dumps({"compiler": described(arch), "new": new}))
    if "measure" in steps:
        (out / "versions.json").write_text(json.dumps(versions()))
        for part in parts:
            start = time.perf_counter()
            modules[part].measure(folder, out)
            print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)
    if "record" in steps:
        planned = json.loads(plan.read_text())
        header = f"{json.loads((out / 'versions.json').read_text())}; {planned['compiler']}"
        if planned["new"] and (why := strangers(parts, header)):
            raise SystemExit(why)
        for part in parts:
            modules[part].record(folder, out, header)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=" ".join(PARTS))
    for step in ("prepare", "measure", "record"):
        parser.add_argument(f"--{step}", type=Path, metavar="FOLDER")
    parser.add_argument("--arch", default="")
    parser.add_argument("--new", action="store_true")
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}: there is {', '.join(PARTS)}")
    steps = [step for step in ("prepare", "measure", "record") if getattr(options, step)]
    if steps:
        for step in steps:
            run(parts, getattr(options, step), options.arch or "sm_90", (step,), options.new)
        return 0
    if why := missing(parts):
        print(why)
        return 1
    from dojo import gpu

    card = gpu.card()
    assert card
    arch = options.arch or card.arch
    if options.new and (why := strangers(parts, f"{versions()}; {described(arch)}")):
        print(why)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        run(parts, Path(folder), arch, ("prepare", "measure", "record"), options.new)
    if "counters" in parts:
        importlib.import_module("counters").compare()
    return 0


if __name__ == "__main__":
    sys.exit(main())
