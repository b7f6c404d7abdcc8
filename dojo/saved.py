"""What pytest-benchmark shows of a kernel's times, and what it keeps with them.

    make kata=tiled test ARGS=--benchmark-autosave    keeps the times, in .dojo/times/02_tiled
    make kata=tiled test ARGS=--benchmark-compare     sets the last ones kept beside today's

In the JSON, `machine_info` has what two runs must have in common to be compared; pytest-benchmark warns
where it differs. What may differ, from the seed to the clocks, is in each row's `extra_info`.
"""

import platform
from importlib.util import find_spec
from typing import Any

from dojo import gpu, katas, nvrtc, timing
from dojo.clocks import Query
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.task import Size, spell
from dojo.timing import Timings


def options(kata: Kata) -> list[str]:
    """For pytest: a folder for each kata, so that the last times kept are this kata's; rows by name."""
    if not find_spec("pytest_benchmark"):
        return []
    folder = katas.ROOT / ".dojo/times" / kata.stem
    return [
        f"--benchmark-storage=file://{folder}",
        "--benchmark-sort=name",
        "--benchmark-columns=median,min",
        "-Wdefault::pytest_benchmark.logger.PytestBenchmarkWarning",  # nothing to compare with, another card
    ]


def machine() -> dict[str, str]:
    """`machine_info`: times come from the card's clock, so the host's processor is left out."""
    card = gpu.card()
    if card is None:
        return {"card": f"none ({gpu.why_not()})"}
    return {
        "card": card.name,
        "driver": str(Query().answer().get("driver", "unknown")),
        "CUDA of the driver": card.driver,
        "CuPy": card.cupy,
        "NVRTC": nvrtc.version(),
        "Python": platform.python_version(),
    }


def tabulate(benchmark: Any, grade: Grade, size: Size, timings: Timings) -> None:
    """Hand the times to pytest-benchmark: a group of rows for each size."""
    known = {"file": grade.path, "seed": grade.seed, **timings.clocks}
    timing.tabulate(benchmark, timings, f"{grade.kata.stem} at {spell(size)}", **known)
