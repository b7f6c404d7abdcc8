"""The bars of the traffic point: how a kernel's accesses are judged, and the sentence when they miss.

A bar reads the simulator's table of accesses, one row a source line, and gives a short text, or raises
`Missed` with the line that costs most. Counts are those of the PTX; simulator/traffic.py says of what.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dojo.simulator import Access, Report
from dojo.task import Size, spell

NEIGHBOURS = "neighbouring threads should read neighbouring elements"


class Missed(Exception):
    """A bar is missed: str(e) is the sentence, `line` the source line that costs most."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.line = line


class Bar(Protocol):
    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str: ...


def loads(report: Report, space: str) -> list[Access]:
    return [access for access in report.accesses if access.space == space and access.op == "load"]


def intensity(report: Report) -> float:
    """FLOP for each byte that the threads ask of global memory; an FMA is two."""
    asked = sum(access.bytes for access in report.accesses if access.space == "global")
    return 2 * report.fma / asked if asked else 0.0


@dataclass(frozen=True)
class LoadSectors:
    """At most so many sectors loaded from global memory in the whole launch."""

    most: Callable[..., float]  # (**size, **constants)
    why: str  # ends the sentence: what would save them

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = loads(report, "global")
        sectors = sum(access.sectors for access in accesses)
        bar = int(self.most(**size, **constants))
        if sectors > bar:
            worst = max(accesses, key=lambda access: access.sectors)
            raise Missed(
                f"loads {worst.sectors:,} of the {sectors:,} sectors that the kernel loads from global "
                f"memory at {spell(size)}, where the bar is {bar:,}; a sector is the 32 bytes that memory "
                f"moves at once: {self.why if worst.sectors <= 4 * worst.requests else NEIGHBOURS}",
                worst.line,
            )
        return f"{sectors:,} of {bar:,} sectors"


@dataclass(frozen=True)
class Coalesced:
    """At most so many sectors a load request on average (a float4 request may have four times as many)."""

    most: float

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = loads(report, "global")
        sectors = sum(access.sectors for access in accesses)
        requests = sum(access.requests * max(1.0, access.bits / 32) for access in accesses)
        mean = sectors / requests if requests else 0.0
        if mean > self.most:
            worst = max(accesses, key=lambda access: access.sectors / max(1, access.requests))
            raise Missed(
                f"loads {worst.sectors / worst.requests:.1f} sectors a request, {mean:.1f} on average in "
                f"the kernel at {spell(size)}, where the bar is {self.most:g}; a request is one warp's load, "
                f"a sector the 32 bytes that memory moves at once: {NEIGHBOURS}",
                worst.line,
            )
        return f"{mean:.1f} sectors a request (bar {self.most:g})"


@dataclass(frozen=True)
class NoBankConflicts:
    """Every shared access costs the fewest wavefronts that it can."""

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = [access for access in report.accesses if access.space == "shared"]
        conflicts = sum(access.conflicts for access in accesses)
        if conflicts:
            worst = max(accesses, key=lambda access: access.conflicts)
            raise Missed(
                f"takes {worst.wavefronts:,} wavefronts of shared memory for {worst.requests:,} {worst.op} "
                f"requests at {spell(size)}, {worst.conflicts:,} of them bank conflicts, where the bar is 0: "
                "lanes of a warp that ask for different words of one of the 32 banks take turns",
                worst.line,
            )
        return "0 conflicts"
