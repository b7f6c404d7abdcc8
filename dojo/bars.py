"""The bars of the traffic point: how a kernel's accesses are judged, and the sentence when they miss.

A bar reads the simulator's table of accesses, one row a source line, and gives a short text, or raises
`Missed` with the line that costs most, and a picture of it (pictures.py). What is counted,
simulator/traffic.py says; shared loads are counted as the assembler joins them (simulator/fusing.py), but for
`WarpFMAs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from dojo.pictures import SECTOR, banks, by_line, joined, sectors
from dojo.simulator import Access, Report
from dojo.task import Size, spell

NEIGHBOURS = "neighbouring threads should read neighbouring elements"
WHOLE = "a warp should use all 32 bytes of each"


class Missed(Exception):
    """A bar is missed: str(e) is the sentence, `line` the source line that costs most, `details` show it.

    `about_bytes`: it is about bytes of global memory, so what the kernel computes for each is of interest.
    """

    def __init__(
        self, sentence: str, line: int, details: Sequence[str] = (), *, about_bytes: bool = False
    ) -> None:
        super().__init__(sentence)
        self.line, self.details, self.about_bytes = line, details, about_bytes


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
        loaded = sum(access.sectors for access in accesses)
        bar = int(self.most(**size, **constants))
        if loaded > bar:
            worst = max(accesses, key=lambda access: access.sectors)
            if used(worst) < 0.4:
                why = NEIGHBOURS
            else:  # would it do if no byte of a sector were wasted?
                why = WHOLE if sum(used(a) * a.sectors for a in accesses) <= bar < loaded else self.why
            raise Missed(
                f"loads {part(worst.sectors, loaded)} sectors that the kernel loads from global "
                f"memory at {spell(size)}, where the bar is {bar:,}; a sector is the 32 bytes that memory "
                f"moves at once: {why}",
                worst.line,
                sectors(worst),
                about_bytes=True,
            )
        return f"{loaded:,} of {bar:,} sectors"


@dataclass(frozen=True)
class ReadOnce:
    """Threads ask for so many bytes of the inputs and no more: nothing is loaded twice.

    What the kernel writes itself is no input. Told is the line with which it becomes too much, the others
    being counted from the largest down.
    """

    bytes: Callable[..., int]  # (**size)

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        written = {a.array for a in report.accesses if a.space == "global" and a.op != "load"}
        accesses = [access for access in loads(report, "global") if access.array not in written]
        asked, once = sum(access.bytes for access in accesses), self.bytes(**size)
        if asked > once:
            by_bytes = sorted(accesses, key=lambda access: -access.bytes)
            until = accumulate(access.bytes for access in by_bytes)
            told = next(access for access, bytes in zip(by_bytes, until, strict=True) if bytes > once)
            raise Missed(
                f"asks for {part(told.bytes, asked)} bytes that threads load from global memory at "
                f"{spell(size)}, where each element once is {once:,}: nothing should be loaded twice",
                told.line,
            )
        return "each element read once"


@dataclass(frozen=True)
class Coalesced:
    """At most so many sectors a load request on average (a float4 request may have four times as many)."""

    most: float

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = loads(report, "global")
        loaded = sum(access.sectors for access in accesses)
        requests = sum(access.requests * max(1.0, access.bits / 32) for access in accesses)
        mean = loaded / requests if requests else 0.0
        if mean > self.most:
            worst = max(accesses, key=lambda access: access.sectors / max(1, access.requests))
            raise Missed(
                f"loads {worst.sectors / worst.requests:.1f} sectors a request, {mean:.1f} on average in "
                f"the kernel at {spell(size)}, where the bar is {self.most:g}; a request is one warp's load, "
                f"a sector the 32 bytes that memory moves at once: {NEIGHBOURS}",
                worst.line,
                sectors(worst),
                about_bytes=True,
            )
        return f"{mean:.1f} sectors a request (bar {self.most:g})"


def used(access: Access) -> float:
    """Which share of its sectors' bytes the lanes ask for; 1 also where they ask for one byte twice."""
    return min(1.0, access.bytes / (SECTOR * access.sectors)) if access.sectors else 1.0


def part(some: int, all_of_them: int) -> str:
    """ "8 of the 16", "all 16"."""
    return f"all {some:,}" if some == all_of_them else f"{some:,} of the {all_of_them:,}"


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
                [*banks(worst), "", *by_line(accesses), *joined(report)],
            )
        return "0 conflicts"


@dataclass(frozen=True)
class WarpFMAs:
    """More than so many FMAs of a warp for each wavefront of shared loads, as the PTX has them: what the
    kernel says, not what the assembler makes of it.
    """

    bar: float

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = [a for a in report.ptx_accesses if (a.space, a.op) == ("shared", "load")]
        wavefronts = sum(access.wavefronts for access in accesses)
        ratio = report.fma / 32 / wavefronts if wavefronts else 0.0
        if wavefronts and ratio <= self.bar:
            worst = max(accesses, key=lambda access: access.wavefronts)
            raise Missed(
                f"takes {worst.wavefronts:,} wavefronts of shared memory at {spell(size)}: the kernel does "
                f"{ratio:.2f} warp FMAs for each wavefront of its shared loads, where the bar is more than "
                f"{self.bar:g}; in a tile of TM x TN, TM + TN numbers read serve TM * TN FMAs",
                worst.line,
            )
        return f"{ratio:.2g} warp FMAs/wavefront" if wavefronts else "no shared loads"


@dataclass(frozen=True)
class InRegisters:
    """Nothing in local memory."""

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = [access for access in report.accesses if access.space == "local"]
        if accesses:
            worst = max(accesses, key=lambda access: access.requests)
            raise Missed(
                f"keeps an array in local memory, {worst.requests:,} {worst.op} requests at {spell(size)}: "
                "an array is in registers only if the compiler knows its every index; unroll the loop",
                worst.line,
            )
        return "sums in registers"
