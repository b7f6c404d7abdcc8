"""The bars of the traffic point: how a kernel's accesses are judged, and the sentence when they miss.

A bar reads the simulator's table of accesses, one row a source line, and gives a short text, or raises
`Missed` with the line that costs most. What is counted, simulator/traffic.py says; shared loads are counted
as the assembler joins them (simulator/fusing.py), but for `WarpFMAs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dojo.simulator import Access, Report
from dojo.task import Size, spell

SECTOR = 32  # bytes
NEIGHBOURS = "neighbouring threads should read neighbouring elements"


class Missed(Exception):
    """A bar is missed: str(e) is the sentence, `line` the source line that costs most, `details` show it."""

    def __init__(self, sentence: str, line: int, details: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.line, self.details = line, details


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
            used = worst.bytes / (SECTOR * worst.sectors)  # more than 1 where lanes share a sector
            raise Missed(
                f"loads {worst.sectors:,} of the {sectors:,} sectors that the kernel loads from global "
                f"memory at {spell(size)}, where the bar is {bar:,}; a sector is the 32 bytes that memory "
                f"moves at once: {NEIGHBOURS if used < 0.4 else self.why}",
                worst.line,
            )
        return f"{sectors:,} of {bar:,} sectors"


@dataclass(frozen=True)
class ReadOnce:
    """Threads ask global memory for so many bytes and no more: nothing is loaded twice."""

    bytes: Callable[..., int]  # (**size)

    def judge(self, report: Report, size: Size, constants: Mapping[str, int]) -> str:
        accesses = loads(report, "global")
        asked, once = sum(access.bytes for access in accesses), self.bytes(**size)
        if asked > once:
            worst = max(accesses, key=lambda access: access.bytes)
            raise Missed(
                f"asks for {worst.bytes:,} of the {asked:,} bytes that threads load from global memory at "
                f"{spell(size)}, where each element once is {once:,}",
                worst.line,
            )
        return "each element read once"


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
                [*banks(worst), "", *by_line(accesses)],
            )
        return "0 conflicts"


def banks(access: Access) -> list[str]:
    """A picture of the access's worst request: how many words each bank must serve, and to which lanes.

    Lanes that ask for 64 or 128 bits are served a half or a quarter warp at a time: the worst of these.
    """
    group = 32 // max(access.bits // 32, 1)
    wanted = [words_by_bank(access, range(first, first + group)) for first in range(0, 32, group)]
    words = max(wanted, key=lambda words: max(map(len, words)))
    busiest = max(range(32), key=lambda bank: len(words[bank]))
    lanes = [str(lane) for lane in words[busiest].values()]
    if not lanes:
        return []
    row = "".join("." if not served else str(len(served)) if len(served) < 10 else "#" for served in words)
    some = ", ".join(lanes if len(lanes) <= 6 else [*lanes[:4], f"... {lanes[-1]}"])
    return [
        "bank   0       8       16      24     31",
        f"words  {row}   (# is 10 or more)",
        f"bank {busiest} serves {len(lanes)} words in turn, to lanes {some}",
    ]


def words_by_bank(access: Access, lanes: Sequence[int]) -> list[dict[int, int]]:
    """For each bank the distinct words that these lanes of the worst request want, with the first lane of
    each.
    """
    words: list[dict[int, int]] = [{} for _ in range(32)]
    for lane in lanes:
        address = access.worst[lane] if access.worst else None
        if address is not None:
            for word in range(address // 4, address // 4 + max(access.bits // 32, 1)):
                words[word % 32].setdefault(word, lane)
    return words


def by_line(accesses: Sequence[Access]) -> list[str]:
    """The figures of each source line."""
    heads = f"{'line':<12}{'requests':>14}{'wavefronts':>14}{'conflicts':>14}"
    rows = [f"{a.line:>4} {a.op:<7}{a.requests:>14,}{a.wavefronts:>14,}{a.conflicts:>14,}" for a in accesses]
    return [heads, *rows]


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
                "only an array whose every index the compiler knows is in registers; unroll the loop",
                worst.line,
            )
        return "sums in registers"
