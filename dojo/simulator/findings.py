"""What a launch is reported as: findings, access counts, and the words for threads, blocks and races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .program import Site

MAX_FINDINGS = 50
IN_WARP = "with no __syncwarp() or __syncthreads()"
VERB = {"load": "reads", "store": "writes", "atomic": "updates"}
OVERWRITES = {"load": "reads", "store": "overwrites", "atomic": "updates"}
EARLIER = {"load": "still reads", "store": "wrote", "atomic": "updated", "wait": "waited for"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect. `kind`: bounds, uninitialised, race, barrier or timeout. `message` is a sentence without
    the place.

    `line` is where it shows, `other_line` the second line that belongs to it (the other side of a race), or
    0.
    """

    kind: str
    line: int
    message: str
    other_line: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """What the accesses of one source line cost: `op` is load, store or atomic; `bits` one lane's whole
    access.

    Requests are warp instructions with an active lane. Sectors are 32-byte pieces (global and local
    memory); wavefronts and conflicts belong to shared memory. `bytes` is what the active lanes asked for.
    `worst` are the byte addresses of the 32 lanes (None: inactive) in the request with the most conflicts,
    if there was a conflict; in global memory in one with many sectors, counted from the start of `array`.
    """

    line: int
    op: str
    space: str
    bits: int
    requests: int
    sectors: int
    wavefronts: int
    conflicts: int
    bytes: int
    worst: tuple[int | None, ...] = ()
    array: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a launch. `fma` and `instructions` count threads, not warps. `notes` say what was not
    judged, `output` what printf printed, 64 lines at most. `accesses` are counted with the shared loads that
    the assembler joins (see `fusing`), `ptx_accesses` as the PTX has them.
    """

    findings: list[Finding]
    accesses: list[Access]
    fma: int
    instructions: int
    notes: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    ptx_accesses: list[Access] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    """The figures of `Access`, added up while the kernel runs."""

    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflicts: int = 0
    bytes: int = 0
    worst_cost: int = 0  # of one request: conflicts, or sectors
    worst: tuple[int | None, ...] = ()
    array: str = ""  # that it is in

    def add(self, other: Counts) -> None:
        self.requests += other.requests
        self.sectors += other.sectors
        self.wavefronts += other.wavefronts
        self.conflicts += other.conflicts
        self.bytes += other.bytes
        if other.worst_cost > self.worst_cost:
            self.worst_cost, self.worst, self.array = other.worst_cost, other.worst, other.array

    def keep(self, cost: int, address: NDArray[np.int64], active: NDArray[np.bool_], array: str = "") -> None:
        """Remember one warp's request, 32 addresses, as the worst so far."""
        lanes = zip(address.tolist(), active.tolist(), strict=True)
        self.worst_cost, self.array = cost, array
        self.worst = tuple(at if on else None for at, on in lanes)


class Log:
    """The findings of one launch, each kind once a line, and the names of its threads.

    A lane's number is thread * blocks + column: `blocks` blocks are simulated at a time, from `first_block`
    on.
    """

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.grid, self.block = grid, block
        self.threads = block[0] * block[1] * block[2]
        self.first_block, self.blocks = 0, 1
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.output: list[str] = []
        self.pending: dict[int, str] = {}  # by line: reads of what nobody wrote, not used so far
        self._seen: set[tuple[str, ...]] = set()

    def add(self, kind: str, line: int, message: str, other_line: int = 0, order: str = "") -> None:
        """`order` tells races apart: "read after write" and so on."""
        key = kind, str(line), str(other_line), order
        if key not in self._seen and len(self.findings) < MAX_FINDINGS:
            self._seen.add(key)
            self.findings.append(Finding(kind, line, message, other_line))

    def in_order(self) -> list[Finding]:
        """Causes first: a barrier that not all reach makes races, and a race between warps needs more than
        one inside a warp. Otherwise as they came.
        """
        return sorted(
            self.findings, key=lambda finding: (finding.kind != "barrier", IN_WARP in finding.message)
        )

    def unset_read(self, line: int, message: str) -> None:
        """A read of what nobody wrote: a finding once the value is used (the compiler may read too early)."""
        if ("uninitialised", str(line), "0", "") not in self._seen:
            self.pending.setdefault(line, message)

    def unset_used(self, line: int, message: str) -> None:
        """A value that nobody set decides something: told by the reads that it can come from, if there are
        any.
        """
        for read, text in self.pending.items() or [(line, message)]:
            self.add("uninitialised", read, text)
        self.pending.clear()

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def has_race(self, site: Site, other: Site, order: str) -> bool:
        return ("race", str(site.line), str(other.line), order) in self._seen

    def race(
        self, site: Site, other: Site, order: str, who: str, earlier: str, name: str, barrier: str
    ) -> None:
        """`who` at `site` against what `earlier` did to `name` at the memory instruction `other`."""
        message = (
            f"{who} {OVERWRITES[site.op]} {name}, which {earlier} {EARLIER[other.op]} on line {other.line}, "
            f"{barrier} ({order})"
        )
        self.add("race", site.line, message, other.line, order)

    def clash(self, site: Site, who: str, other: str, name: str) -> None:
        """Two lanes of one store."""
        message = f"{who} and {other} write different values to {name} at once (write after write)"
        self.add("race", site.line, message, site.line, "write after write")

    def misaligned(self, site: Site, number: int, element: str, offset: int, name: str) -> None:
        """The element, and its byte in the array or memory called `name`."""
        size = site.bits // 8
        self.add(
            "bounds",
            site.line,
            f"{self.place(number)} {VERB[site.op]} {size} bytes at {element}, byte {offset} of {name}: "
            f"misaligned, the address must be a multiple of {size}",
        )

    def thread_name(self, thread: int) -> str:
        return f"thread {self._index(thread, self.block)}"

    def block_name(self, column: int) -> str:
        return f"block {self._index(column + self.first_block, self.grid)}"

    def place(self, number: int) -> str:
        """For a lane: "thread (3, 0) of block (2, 2)"."""
        return f"{self.thread_name(number // self.blocks)} of {self.block_name(number % self.blocks)}"

    def thread_of_grid(self, thread: int) -> str:
        """The same for a thread numbered through the whole grid."""
        block, thread = divmod(thread, self.threads)
        return f"{self.thread_name(thread)} of {self.block_name(block - self.first_block)}"

    def _index(self, linear: int, extent: tuple[int, int, int]) -> str:
        """As many numbers as the larger of grid and block has dimensions: 5, (5, 0) or (5, 0, 0)."""
        x, y, _ = extent
        index = (linear % x, linear // x % y, linear // (x * y))
        if self.grid[2] > 1 or self.block[2] > 1:
            return str(index)
        return str(index[:2]) if self.grid[1] > 1 or self.block[1] > 1 else str(linear)


def report(
    log: Log,
    sites: list[Site],
    counts: dict[int, Counts],
    unjoined: dict[int, Counts],
    fma: int,
    instructions: int,
) -> Report:
    """What was seen. `unjoined`: the counts of what the assembler joins, as if it did not."""
    joined = _by_line(
        sites, counts, lambda site: abs(site.joined) if site.joined not in (0, -1) else site.bits
    )
    plain = _by_line(sites, {**counts, **unjoined}, lambda site: site.bits)
    return Report(log.in_order(), joined, fma, instructions, log.notes, log.output, plain)


def _by_line(sites: list[Site], counts: dict[int, Counts], bits: Callable[[Site], int]) -> list[Access]:
    """The accesses summed up by source line, kind, space and width."""
    table: dict[tuple[int, str, str, int], Counts] = {}
    for site in sites:
        if site.number in counts and site.space != "const" and counts[site.number].requests:
            key = site.line, site.op, "global" if site.space == "generic" else site.space, bits(site)
            table.setdefault(key, Counts()).add(counts[site.number])
    return [
        Access(*key, c.requests, c.sectors, c.wavefronts, c.conflicts, c.bytes, c.worst, c.array)
        for key, c in sorted(table.items())
    ]
