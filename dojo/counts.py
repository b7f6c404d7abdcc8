"""What the simulator counts of a kernel in one launch, and kernels' counts side by side. No time, no GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dojo.bars import Bar, intensity
from dojo.grader import Grade
from dojo.katas import Kata
from dojo.pair import module_of
from dojo.simulator import Report
from dojo.task import Size

LABEL, VALUE, RATIO = 23, 13, 9  # columns
MOST = 2  # kernels beside the first that fit in 80 columns


@dataclass
class Asked:
    """Stands in for a Grade, to learn from a kata's test at which size it counts."""

    at: Size | None = None

    def traffic(self, at: Size, bars: Sequence[Bar], **_: Any) -> None:
        self.at = at


def traffic_size(kata: Kata) -> Size:
    """The size at which the kata's traffic point is judged."""
    asked = Asked()
    module_of(kata).test_traffic(asked)
    assert asked.at, "a kata's test_traffic asks for one size"
    return asked.at


def counted(grade: Grade, size: Size) -> dict[str, float | None]:
    """The figures of one simulated launch by name; None where there is none. Raises Failure."""
    report = grade.report(size)
    launch = grade.configuration(size)
    fit = grade.occupancy(launch)
    figures: dict[str, float | None] = {
        "global load requests": total(report, "global", "load", "requests"),
        "global load sectors": total(report, "global", "load", "sectors"),
        "global store sectors": total(report, "global", "store", "sectors"),
        "shared load wavefronts": total(report, "shared", "load", "wavefronts"),
        "shared store wavefronts": total(report, "shared", "store", "wavefronts"),
        "bank conflicts": total(report, "shared", "", "conflicts"),
        "FMAs of threads": report.fma,
        "instructions of threads": report.instructions,
        "FLOP/B requested": intensity(report) if report.fma else None,
        "registers a thread": grade.resources.registers,
        "shared bytes a block": grade.shared(launch),
        "blocks an SM": fit.blocks if fit else None,
        "occupancy, %": 100 * fit.share if fit else None,
    }
    return figures


def total(report: Report, space: str, op: str, figure: str) -> int:
    """The sum of one figure over all accesses of a space, and of one op or of all."""
    chosen = [access for access in report.accesses if access.space == space and op in ("", access.op)]
    return sum(getattr(access, figure) for access in chosen)


def table(figures: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """A column for each kernel by name; from the second on also the first in units of it.

    Where they are too many for 80 columns, there are several tables, each with the first.
    """
    names = list(figures)
    if not names:
        return []
    lines = part(figures, names[: MOST + 1])
    for n in range(MOST + 1, len(names), MOST):
        lines += ["", *part(figures, [names[0], *names[n : n + MOST]])]
    return lines


def part(figures: Mapping[str, Mapping[str, float | None]], names: Sequence[str]) -> list[str]:
    first, ratio = figures[names[0]], "yours is" if names[0] == "yours" else "ratio"
    head = f"{'':<{LABEL}}{names[0].split(', ')[-1]:>{VALUE}}"
    lines = [head + "".join(f"{name.split(', ')[-1]:>{VALUE}}{ratio:>{RATIO}}" for name in names[1:])]
    for label, value in first.items():
        cells = f"{label:<{LABEL}}{number(value):>{VALUE}}"
        for name in names[1:]:
            other = figures[name][label]
            times = f"{value / other:.2f}x" if value is not None and other else ""
            cells += f"{number(other):>{VALUE}}{times:>{RATIO}}"
        lines.append(cells.rstrip())
    return lines


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
