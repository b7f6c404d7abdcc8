"""Runs a program: lanes, program counters, barriers, shuffles, and the checks that watch them.

All threads of a chunk of blocks run in lock step. Lanes at different places wait for each other by one rule: the
lowest program counter runs first. A barrier parks its lanes until every live lane of their block has come. Because
lock step would hide a missing barrier, races are detected from who touched what (`races`), not provoked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import traffic
from .lanes import Lanes, union
from .memory import LOCAL_WINDOW, SHARED_WINDOW, SLOT_BITS, Buffer, Words
from .numerics import I64, U32, U64, UNSIGNED
from .parse import BYTES, Parameter, Unsupported
from .races import Conflict, Shadow
from .translate import Block, Program, Site

Array = Any
CHUNK_LANES = 65_536
CHUNK_SHARED = 64 << 20  # bytes of shared memory simulated at a time
CHUNK_LOCAL = 256 << 20
MAX_FINDINGS = 50
ONES = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect. `kind`: bounds, uninitialised, race, barrier or timeout. `message` is a sentence without the place.

    `line` is where it shows, `other_line` the second line that belongs to it (the other side of a race), or 0.
    """

    kind: str
    line: int
    message: str
    other_line: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """What the accesses of one source line cost: `op` is load, store or atomic; `bits` one lane's whole access.

    Requests are warp instructions with an active lane. Sectors are 32-byte pieces (global and local memory);
    wavefronts and conflicts belong to shared memory. `bytes` is what the active lanes asked for.
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


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a launch. `fma` and `instructions` count threads, not warps. `notes` say what was not judged."""

    findings: list[Finding]
    accesses: list[Access]
    fma: int
    instructions: int
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflicts: int = 0
    bytes: int = 0


class Stop(Exception):
    """Ends a launch that cannot go on: a stuck barrier, or the budget spent."""


@dataclass(slots=True)
class Plan:
    """What the machine worked out for a shared access, to be used again while base and lanes are the same objects."""

    base: Array
    lanes: Lanes
    address: Array  # int64, one element a row (alike) or a lane
    alike: bool  # every block of the chunk does the same
    counts: Counts


class Machine:
    """One launch. `arguments` are the kernel's parameters as bytes; pointers point into `buffers`."""

    def __init__(self, program: Program, grid: tuple[int, int, int], block: tuple[int, int, int],
                 arguments: dict[str, bytes], buffers: dict[int, Buffer], *, static_shared: int, shared_bytes: int,
                 local_bytes: int, parameter_buffers: dict[str, Buffer], element: Callable[[str, int], str],
                 budget: int) -> None:  # fmt: skip
        self.program, self.grid, self.block_shape = program, grid, block
        self.arguments, self.buffers, self.element, self.budget = arguments, buffers, element, budget
        self.parameter_buffers = parameter_buffers
        self.threads = block[0] * block[1] * block[2]
        self.total_blocks = grid[0] * grid[1] * grid[2]
        self.shared_size = static_shared + shared_bytes
        self.static_shared, self.local_size = static_shared, local_bytes
        self.findings: list[Finding] = []
        self.seen: set[tuple[Any, ...]] = set()
        self.notes: list[str] = []
        self.fma = self.instructions = 0
        self.counts: dict[int, Counts] = {}
        self.plans: dict[int, Plan] = {}
        self.time = 1
        self.shared_grain = self.grain("shared")
        self.extents = self.shared_extents()
        self.judges_blocks = not program.uses_fence
        self.ordered_shared = self.ordered_in_block if program.uses_warp_barrier else None

    def grain(self, space: str) -> int:
        """Bytes a place of the shadow: 4, or less if the kernel makes smaller accesses."""
        smallest = 4
        for block in self.program.blocks:
            for i in block.instructions:
                if i.parts[0] in ("ld", "st", "atom", "red") and "param" not in i.parts:
                    smallest = min(smallest, BYTES.get(i.parts[-1], 4))
        return smallest

    def shared_extents(self) -> dict[str, tuple[int, int]]:
        """Where each shared variable begins and ends; extern arrays reach to the end of the dynamic part."""
        extents = {}
        for name, variable in self.program.kernel.variables.items():
            if variable.space == "shared":
                start = self.program.symbols[name]
                extents[name] = (start, start + variable.size if variable.size else self.shared_size)
        return extents

    # running

    def run(self) -> None:
        """Every chunk of blocks in turn."""
        size = max(1, CHUNK_LANES // self.threads)
        if self.shared_size:
            size = max(1, min(size, CHUNK_SHARED // self.shared_size))
        if self.local_size:
            size = max(1, min(size, CHUNK_LOCAL // (self.local_size * self.threads)))
        try:
            with np.errstate(all="ignore"):
                for first in range(0, self.total_blocks, size):
                    self.run_chunk(first, min(size, self.total_blocks - first))
        except Stop:
            pass

    def run_chunk(self, first: int, blocks: int) -> None:
        self.first_block, self.blocks = first, blocks
        self.shared = Words(self.shared_size, blocks)
        self.shared_written: NDArray[np.bool_] | None = np.zeros((max(self.shared_size, 16) // self.shared_grain + 16, 1), bool)
        self.shadow = Shadow(self.shared_written.shape[0], 1, 32)
        self.local = Words(self.local_size, self.threads * blocks if self.local_size else 1)
        self.local_written = np.zeros((max(self.local_size, 16), 1 if not self.local_size else self.local.columns), bool)
        self.barrier_time = np.zeros(blocks, np.int64)
        self.alive = np.full(blocks, self.threads)
        self.warp_time = np.zeros((self.threads, blocks), np.int64) if self.program.uses_warp_barrier else None
        self.warp_mask = np.zeros((self.threads, blocks), U32)
        self.plans.clear()
        registers: list[Array] = [None] * self.program.size
        for name, slot in self.program.slots.items():
            if name in SPECIAL:
                registers[slot] = SPECIAL[name](self)
        for slot in self.program.unset:
            kind = next(name for name, n in self.program.slots.items() if n == slot)
            registers[slot] = self.unset_value(kind)
            registers[self.program.mask_of(slot)] = np.True_
        self.registers = registers
        self.waiting: dict[int, list[Lanes]] = {0: [Lanes(self.threads, blocks)]}
        self.parked: dict[int, list[Lanes]] = {}  # at a block's barrier, by block
        self.held: dict[int, list[Lanes]] = {}  # before a warp barrier or shuffle whose partners have not come
        while self.waiting or self.parked or self.held:
            if not self.waiting:
                self.resolve()
            else:
                number = min(self.waiting)
                parts = self.waiting.pop(number) + self.held.pop(number, [])
                self.follow(number, union(parts))

    def unset_value(self, name: str) -> Array:
        kind = next((r.type for r in self.program.kernel.registers if r.name == name), "b32")
        return np.False_ if kind == "pred" else UNSIGNED[BYTES[kind]](ONES[BYTES[kind]])

    def follow(self, number: int, lanes: Lanes) -> None:
        """Runs `lanes` from block `number` on, until they part, meet others, or wait."""
        blocks = self.program.blocks
        registers = self.registers
        mine: list[Array] = registers if lanes.full else [None] * len(registers)
        fetched: set[int] = set()
        dirty: set[int] = set()
        while True:
            block = blocks[number]
            if not lanes.full:
                for slot in block.reads:
                    if slot not in fetched:
                        mine[slot] = lanes.take(registers[slot])
                        fetched.add(slot)
                fetched |= block.writes
                dirty |= block.writes
            self.lanes = lanes
            code = block.function or self.program.code(number)
            answer = code(mine, self)
            self.instructions += lanes.count * block.counted
            self.fma += lanes.count * block.fmas
            if self.instructions > self.budget:
                self.out_of_budget(block, lanes)
            if block.kind == "go":
                following = block.next
            elif block.kind == "branch":
                taken, fallen = lanes.where(answer)
                if taken is not None and fallen is not None:
                    self.flush(lanes, mine, dirty & block.live_out)
                    self.put(block.target, taken)
                    self.put(block.next, fallen)
                    return
                following = block.target if fallen is None else block.next
            else:
                going = self.finish(block, lanes, mine, answer)
                if going is not lanes:
                    self.flush(lanes, mine, dirty & block.live_out)
                    if going is not None:
                        self.put(block.next, going)
                    return
                following = block.next
            if following < 0:
                self.exit(lanes)
                return
            if self.waiting and min(self.waiting) <= following or following in self.held:
                self.flush(lanes, mine, dirty & block.live_out)
                self.put(following, lanes)
                return
            number = following

    def flush(self, lanes: Lanes, mine: list[Array], slots: Collection[int]) -> None:
        if not lanes.full:
            for slot in slots:
                self.registers[slot] = lanes.put(self.registers[slot], mine[slot])

    def put(self, number: int, lanes: Lanes) -> None:
        if number < 0:
            self.exit(lanes)
        else:
            self.waiting.setdefault(number, []).append(lanes)

    def exit(self, lanes: Lanes) -> None:
        if lanes.flat is None:
            self.alive[lanes.block[0]] -= len(lanes.thread)
        else:
            self.alive -= np.bincount(lanes.block, minlength=self.blocks)

    def finish(self, block: Block, lanes: Lanes, mine: list[Array], answer: Any) -> Lanes | None:
        """The end of a block that is not a plain branch. Returns the lanes that go on to the next block, if any."""
        if block.kind == "exit":
            self.exit(lanes)
            return None
        if block.kind == "switch":
            index = lanes.spread(answer)
            for n, target in enumerate(block.targets):
                at = np.flatnonzero(index == n)
                if len(at):
                    self.put(target, Lanes(self.threads, self.blocks, flat=lanes.numbers[at]))
            return None
        if block.kind == "barrier":
            if answer is not None and int(answer) not in (self.threads, -(-self.threads // 32) * 32):
                raise Unsupported(block.instructions[-1].opcode, block.line, f"a barrier for {answer} of {self.threads} threads")
            if lanes.full:
                self.release(None)
                return lanes
            self.parked.setdefault(block.number, []).append(lanes)
            return None
        mask = answer if block.kind == "warp_barrier" else answer[4]
        ready = self.partners(block, lanes, mask)
        if ready is None:  # some partners are still on their way: these lanes execute it again, with them
            return None
        if block.kind == "warp_barrier":
            self.warp_barrier(ready, ready is lanes, mask, lanes)
        else:
            self.shuffle(block, lanes, mine, answer)
        return lanes

    # barriers

    def release(self, columns: NDArray[np.intp] | None) -> None:
        """All threads of the chunk (or of some of its blocks) have met: what came before is ordered before what follows."""
        self.time += 1
        if columns is None:
            self.barrier_time[:] = self.time
            if self.shadow.touched:
                if self.shadow.columns > 1:
                    self.shadow = Shadow(self.shadow.places, 1, 32)
                else:
                    self.shadow.clear()
            written = self.shared_written
            if written is not None and written.shape[1] > 1 and (written == written[:, :1]).all():
                self.shared_written = written[:, :1].copy()
        else:
            self.barrier_time[columns] = self.time
            self.widen_shadow()
            self.shadow.clear_columns(columns)

    def widen_shadow(self) -> None:
        if self.shadow.columns == 1 and self.blocks > 1:
            self.shadow.widen(self.blocks)

    def resolve(self) -> None:
        """Nobody can run. Lets go every block whose live lanes all wait at one barrier; the rest is stuck."""
        going = False
        stuck: list[tuple[int, int]] = []
        if self.parked:
            here: dict[int, NDArray[np.intp]] = {}
            for number, parts in self.parked.items():
                at = np.zeros(self.blocks, np.intp)
                for part in parts:
                    at += np.bincount(part.numbers % self.blocks, minlength=self.blocks)
                here[number] = at
            released = np.zeros(self.blocks, bool)
            for number, at in here.items():
                complete = (at > 0) & (at == self.alive)
                if complete.any():
                    lanes = union(self.parked[number])
                    yes, no = lanes.where(lanes.take(complete[None, :]))
                    assert yes is not None
                    self.parked[number] = [no] if no is not None else []
                    self.put(self.program.blocks[number].next, yes)
                    going = True
                    released |= complete
            if going:
                self.parked = {n: parts for n, parts in self.parked.items() if parts}
                every = released.all() or not (self.alive[~released] > 0).any()
                self.release(None if every else np.flatnonzero(released))
                return
            stuck += [(number, int(at.max())) for number, at in here.items()]
        self.report_stuck()

    def report_stuck(self) -> None:
        """Says who waits where, for the first block that is stuck, and ends the launch."""
        waiting = {**self.parked, **self.held}
        places = []
        column = min(int((part.numbers % self.blocks).min()) for parts in waiting.values() for part in parts)
        for number, parts in sorted(waiting.items()):
            threads = np.sort(np.concatenate([p.numbers // self.blocks for p in parts])[
                np.concatenate([p.numbers % self.blocks for p in parts]) == column])  # fmt: skip
            if len(threads):
                places.append((self.program.blocks[number], threads))
        block, threads = places[0]
        what = {"barrier": "__syncthreads()", "warp_barrier": "__syncwarp()", "shuffle": "the shuffle"}
        name = what[block.kind]
        where = self.block_name(column)
        alive = int(self.alive[column])
        text = f"{self.some_threads(threads)} of {where} {'waits' if len(threads) == 1 else 'wait'} at {name}"
        if len(places) > 1:
            second, others = places[1]
            text += (f" on line {block.line}, while {self.some_threads(others)} "
                     f"{'waits' if len(others) == 1 else 'wait'} at {what[second.kind]} on line {second.line}: every thread of "
                     "the block must reach the same one")  # fmt: skip
            other_line = second.line
        else:
            gone = self.threads - alive
            text += f", which {gone} of the {self.threads} threads can no longer reach: they have ended"
            other_line = 0
            if block.kind != "barrier":
                text += ", but its mask names them"
        self.add("barrier", block.line, text, other_line)
        raise Stop

    def some_threads(self, threads: NDArray[np.intp]) -> str:
        first = self.thread_name(int(threads[0]))
        return first if len(threads) == 1 else f"{first} and {len(threads) - 1} more"

    def out_of_budget(self, block: Block, lanes: Lanes) -> None:
        number = int(lanes.numbers[0])
        each = self.instructions // (self.threads * min(self.total_blocks, self.first_block + self.blocks))
        self.add("timeout", block.line,
                 f"{self.place(number)} is still running after {each:,} instructions a thread: does this loop end?")  # fmt: skip
        raise Stop

    # warp barriers and shuffles

    def partners(self, block: Block, lanes: Lanes, mask: Array) -> Lanes | None:
        """`lanes` if every live lane that the masks name is among them; otherwise parks the lanes and gives None."""
        if lanes.full and mask.shape == () and int(mask) == 0xFFFFFFFF:
            return lanes
        thread, column = lanes.numbers // self.blocks, lanes.numbers % self.blocks
        masks = lanes.spread(mask).astype(U32)
        warps = -(-self.threads // 32)
        warp = thread // 32 * self.blocks + column
        bit = U32(1) << (thread % 32).astype(U32)
        present = np.zeros(warps * self.blocks, U32)
        np.bitwise_or.at(present, warp, bit)
        exists = np.full(warps, 0xFFFFFFFF, U32)
        if self.threads % 32:
            exists[-1] = (1 << self.threads % 32) - 1
        wanted = masks & exists[thread // 32]
        itself = (masks & bit) != 0
        if not itself.all():
            at = int(np.flatnonzero(~itself)[0])
            name = "__syncwarp()" if block.kind == "warp_barrier" else "the shuffle"
            self.add("barrier", block.line,
                     f"{self.place(int(lanes.numbers[at]))} calls {name} with the mask 0x{int(masks[at]):08x}, "
                     f"which does not name its own lane {int(thread[at]) % 32}")  # fmt: skip
            raise Stop
        missing = wanted & ~present[warp]
        if not missing.any():
            return lanes
        late = missing != 0
        waits = np.zeros(warps * self.blocks, bool)
        waits[warp[late]] = True
        waiting = waits[warp]
        self.held.setdefault(block.number, []).append(
            Lanes(self.threads, self.blocks, flat=lanes.numbers[waiting])
        )
        if not waiting.all():
            self.put(block.number, Lanes(self.threads, self.blocks, flat=lanes.numbers[~waiting]))
            # the others meet their partners at once when they run again, without these
            self.ready_first(block.number)
        return None

    def ready_first(self, number: int) -> None:
        """Runs lanes that are complete at a shuffle before any that are held there."""
        held = self.held.pop(number)
        lanes = union(self.waiting.pop(number))
        self.follow(number, lanes)
        self.held.setdefault(number, []).extend(held)

    def warp_barrier(self, ready: Lanes, everyone: bool, mask: Array, lanes: Lanes) -> None:
        self.time += 1
        assert self.warp_time is not None
        numbers = lanes.numbers
        self.warp_time.reshape(-1)[numbers] = self.time
        self.warp_mask.reshape(-1)[numbers] = lanes.spread(mask)

    def ordered_in_block(self, before: Any, time: Any, thread: Any, column: Any) -> Any:
        """Of pairs of threads in one block: was there a barrier of both since `time`?"""
        met = self.barrier_time[column] > time
        if self.warp_time is not None:
            same_warp = before // 32 == thread // 32
            named = (self.warp_mask[thread, column] >> (before % 32).astype(U32)) & U32(1)
            met = met | (same_warp & (self.warp_time[thread, column] > time) & (named != 0))
        return met

    def shuffle(self, block: Block, lanes: Lanes, mine: list[Array], answer: Any) -> None:
        """shfl.sync: the source lane by the manual's formula; p says whether it was in range."""
        mode, value, b, c, _ = answer
        shape = lanes.shape
        thread = np.broadcast_to(lanes.thread, shape).reshape(-1)
        column = np.broadcast_to(lanes.block, shape).reshape(-1)
        b = lanes.spread(b).astype(I64) & 31
        c = lanes.spread(c).astype(I64)
        lane = thread % 32
        segment, clamp = c >> 8 & 31, c & 31
        highest = (lane & segment) | (clamp & ~segment)
        lowest = lane & segment
        if mode == "up":
            source = lane - b
            inside = source >= highest
        elif mode == "down":
            source = lane + b
            inside = source <= highest
        elif mode == "bfly":
            source = lane ^ b
            inside = source <= highest
        else:
            source = lowest | (b & ~segment)
            inside = source <= highest
        source = np.where(inside, source, lane)
        whole = np.full(-(-self.threads // 32) * 32 * self.blocks, 0xFFFFFFFF, U32)
        present = np.zeros(len(whole), bool)
        place = thread * self.blocks + column
        whole[place] = lanes.spread(value)
        present[place] = True
        wanted = (thread - lane + source) * self.blocks + column
        absent = ~present[wanted]
        i = block.instructions[-1]
        if absent.any():
            at = int(np.flatnonzero(absent)[0])
            other = int(thread[at] - lane[at] + source[at])
            gone = "does not exist" if other >= self.threads else "does not take part"
            self.add("uninitialised", i.line,
                     f"{self.place(int(place[at]))} takes a value from lane {int(source[at])} of its warp, which {gone} "
                     "in the shuffle")  # fmt: skip
        result = whole[wanted].reshape(shape)
        to = i.operands[0]
        items = getattr(to, "items", (to,))
        for item, content in zip(items, (result, inside.reshape(shape)), strict=False):
            if item is not None:
                slot = self.program.slots[item.name]
                mine[slot] = content
                if slot in self.program.unset:
                    mine[self.program.mask_of(slot)] = np.False_

    # what blocks call

    def parameter(self, name: str, offset: int, dtype: Any) -> Array:
        return np.frombuffer(self.arguments[name], dtype, 1, offset)[0]

    def check_set(self, unset: Array, name: str, line: int) -> None:
        if unset.any():
            at = int(np.flatnonzero(self.lanes.spread(unset))[0])
            self.add("uninitialised", line, f"{self.place(int(self.lanes.numbers[at]))} uses a variable that was never set")

    def load(self, site: Site, base: Array, offset: int, variable: str) -> list[Array]:
        """The elements at base + offset for every running lane, as unsigned arrays."""
        return self.space(site, base)(site, base, offset, variable, None)  # type: ignore[no-any-return]

    def store(self, site: Site, base: Array, offset: int, variable: str, values: tuple[Array, ...]) -> None:
        self.space(site, base)(site, base, offset, variable, values)

    def space(self, site: Site, base: Array) -> Callable[..., Any]:
        """The method that serves the site's space; a generic address is told by its window."""
        if site.space == "shared":
            return self.shared_access
        if site.space == "local":
            return self.local_access
        if site.space == "generic":
            where = np.unique(np.asarray(base.view(U64) >> U64(60)))
            if len(where) > 1:
                raise Unsupported("a generic access to several spaces at once", site.line)
            if where[0] == SHARED_WINDOW >> 60:
                return self.generic_shared
            if where[0] == LOCAL_WINDOW >> 60:
                return self.generic_local
        return self.global_access

    def generic_shared(self, site: Site, base: Array, offset: int, variable: str, values: Any) -> Any:
        return self.shared_access(site, base.view(U64) - U64(SHARED_WINDOW), offset, variable, values)

    def generic_local(self, site: Site, base: Array, offset: int, variable: str, values: Any) -> Any:
        return self.local_access(site, base.view(U64) - U64(LOCAL_WINDOW), offset, variable, values)

    # global memory

    def global_access(self, site: Site, base: Array, offset: int, variable: str, values: Any, lanes: Lanes | None = None,
                      atomic: Callable[[Buffer, Array], Any] | None = None) -> Any:  # fmt: skip
        lanes = lanes or self.lanes
        address = base.view(I64)
        first = address if address.shape == () else address.reshape(-1)[0]
        slot = int(first + offset) >> SLOT_BITS
        buffer = self.buffers.get(slot)
        width = site.element * site.count
        if buffer is not None:
            at = address - (buffer.base - offset)
            low, high = int(at.min()), int(at.max())
        if buffer is None or low < 0 or high + width > buffer.size or (width > 1 and (at & (width - 1)).any()):
            return self.astray(site, base, offset, variable, values, lanes, atomic)
        self.count_global(site, lanes, at)
        if atomic is not None:
            self.judge_global(site, buffer, at, lanes, None, True)
            return atomic(buffer, at)
        if values is None:
            if buffer.written is not None or buffer.shadow is not None:
                self.judge_global(site, buffer, at, lanes, None, False)
            return buffer.read(at, site.element, site.count)
        spread = lanes.spread(at)
        contents = tuple(lanes.spread(v) for v in values)
        buffer.write(spread, site.element, contents)
        self.judge_global(site, buffer, at, lanes, contents, False)
        return None

    def astray(self, site: Site, base: Array, offset: int, variable: str, values: Any, lanes: Lanes,
               atomic: Callable[[Buffer, Array], Any] | None) -> Any:  # fmt: skip
        """Some lanes are out of bounds, misaligned, or in another buffer: each buffer in turn, the bad lanes dropped."""
        address = lanes.spread(base.view(I64)) + offset
        width = site.element * site.count
        result = [np.full(lanes.count, ONES[site.element], UNSIGNED[site.element]) for _ in range(site.count)]
        slots = address >> SLOT_BITS
        for slot in np.unique(slots):
            buffer = self.buffers.get(int(slot))
            here = slots == slot
            size = buffer.size if buffer else 0
            at = address - (int(slot) << SLOT_BITS)
            outside = here & ((buffer is None) | (at + width > size))
            crooked = here & ~outside & ((address & (width - 1)) != 0)
            if outside.any():
                self.report_outside(site, lanes, int(np.flatnonzero(outside)[0]), address, variable)
            if crooked.any():
                n = int(np.flatnonzero(crooked)[0])
                self.report_misaligned(site, lanes, n, int(at[n]), buffer.name if buffer else "memory")
            good = here & ~outside & ~crooked
            if not good.any():
                continue
            some = Lanes(self.threads, self.blocks, flat=lanes.numbers[good])
            part = None if values is None else tuple(lanes.spread(v)[good] for v in values)
            sub = self.global_access(site, address[good].view(U64), 0, variable, part, some, atomic and self.sliced(atomic, good, lanes))
            if sub is not None:
                for whole, piece in zip(result, sub if isinstance(sub, list) else [sub], strict=True):
                    whole[good] = piece
        if values is not None:
            return None
        shaped = [whole.reshape(lanes.shape) for whole in result]
        return shaped[0] if atomic else shaped

    def sliced(self, atomic: Callable[..., Any], good: Array, lanes: Lanes) -> Callable[[Buffer, Array], Any]:
        return lambda buffer, at: atomic(buffer, at, good)

    def report_outside(self, site: Site, lanes: Lanes, n: int, address: Array, variable: str) -> None:
        """Names the buffer that the address was made from, if that is known, and the element it would be."""
        buffer = self.parameter_buffers.get(variable) or self.buffers.get(int(address[n]) >> SLOT_BITS)
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}[site.op]
        who = self.place(int(lanes.numbers[n]))
        if buffer is None:
            self.add("bounds", site.line, f"{who} {verb} address 0x{int(address[n]) & ONES[8]:x}, which is in no array")
            return
        distance = int(address[n]) - buffer.base
        index = distance // buffer.itemsize
        size = buffer.size // buffer.itemsize
        side = "before its start" if distance < 0 else f"past its {size:,} element{'s' if size != 1 else ''}"
        self.add("bounds", site.line, f"{who} {verb} {buffer.name}[{index}], {side}")

    def report_misaligned(self, site: Site, lanes: Lanes, n: int, offset: int, name: str) -> None:
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}[site.op]
        self.add("bounds", site.line,
                 f"{self.place(int(lanes.numbers[n]))} {verb} {site.bits // 8} bytes at byte {offset} of {name}: "
                 f"misaligned, the address must be a multiple of {site.bits // 8}")  # fmt: skip

    def count_global(self, site: Site, lanes: Lanes, at: Array) -> None:
        counts = self.counts.setdefault(site.number, Counts())
        counts.bytes += lanes.count * site.element * site.count
        warps, times = -(-self.threads // 32), self.blocks
        if site.space == "const":
            return
        if lanes.full and self.threads % 32 == 0:
            if at.ndim < 2 or at.shape[0] == 1:
                counts.requests += warps * times
                counts.sectors += warps * times
                return
            columns = at.shape[1]
            sector = (at >> 5).reshape(warps, 32, columns)
            step = sector[:, 1:] - sector[:, :-1]
            if step.min() >= 0:
                counts.requests += warps * times
                counts.sectors += (int(np.count_nonzero(step)) + warps * columns) * (times // columns)
                return
        rows, active, times = self.by_warp(lanes, at)
        counts.requests += int(active.any(axis=1).sum()) * times
        counts.sectors += int(traffic.global_sectors(rows, active, site.bits).sum()) * times

    def by_warp(self, lanes: Lanes, value: Array) -> tuple[Array, Array, int]:
        """(warps, 32) values, which of them are active, and how many blocks each row stands for."""
        warps = -(-self.threads // 32)
        if lanes.flat is None and lanes.columns is None and (value.ndim < 2 or value.shape[1] == 1):
            whole = np.zeros(warps * 32, I64)
            active = np.zeros(warps * 32, bool)
            whole[lanes.thread[:, 0]] = value if value.ndim < 2 else value[:, 0]
            active[lanes.thread[:, 0]] = True
            return whole.reshape(warps, 32), active.reshape(warps, 32), self.blocks
        numbers = lanes.numbers
        place = numbers % self.blocks * (warps * 32) + numbers // self.blocks
        whole = np.zeros(self.blocks * warps * 32, I64)
        active = np.zeros(len(whole), bool)
        whole[place] = lanes.spread(value)
        active[place] = True
        whole, active = whole.reshape(-1, 32), active.reshape(-1, 32)
        if lanes.count < len(whole) * 16:
            some = active.any(axis=1)
            whole, active = whole[some], active[some]
        return whole, active, 1

    def judge_global(self, site: Site, buffer: Buffer, at: Array, lanes: Lanes, contents: Any, atomic: bool) -> None:
        """Was it written, and by whom, with no barrier between?"""
        shadow = buffer.shadow
        if shadow is None and buffer.written is None:
            return
        spread = lanes.spread(at)
        thread = None
        for n in range(max(1, site.element * site.count // buffer.grain)):
            place = spread // buffer.grain + n
            if site.op != "store" and buffer.written is not None:
                fresh = ~buffer.written[place]
                if fresh.any():
                    k = int(np.flatnonzero(fresh)[0])
                    self.add("uninitialised", site.line,
                             f"{self.place(int(lanes.numbers[k]))} reads {self.global_name(buffer, int(spread[k]), site)}, "
                             "which was never written")  # fmt: skip
            if site.op != "load" and buffer.written is not None:
                buffer.written[place] = True
            if shadow is None:
                continue
            if thread is None:
                column = lanes.numbers % self.blocks
                local = lanes.numbers // self.blocks
                thread = (column + self.first_block) * self.threads + local
            ordered = self.global_order(local, column)
            shadow.group = self.threads
            if site.op == "load":
                conflicts, beside = shadow.read(place, thread, site.number, self.time, ordered), np.empty(0, np.intp)
            else:
                sites = self.atomic_sites() if atomic else None
                conflicts, beside = shadow.write(place, thread, site.number, self.time, ordered, sites)
            for conflict in conflicts:
                self.report_race(site, conflict, lanes, self.global_name(buffer, int(spread[conflict.positions[0]]), site), True)
            if len(beside) and not atomic:
                index = spread[beside] // site.element
                values = buffer.data.view(UNSIGNED[site.element])
                differ = np.zeros(len(beside), bool)
                for k, content in enumerate(contents):
                    differ |= values[index + k] != content[beside]
                if differ.any():
                    k = int(beside[np.flatnonzero(differ)[0]])
                    other = int(shadow.writer.thread[place[k]])
                    self.report_clash(site, lanes, k, self.thread_and_block(other), self.global_name(buffer, int(spread[k]), site))

    def global_order(self, thread: Any, column: Any) -> Callable[[Any, Any, Any], Any]:
        def ordered(before: Any, time: Any, positions: Any) -> Any:
            mine = column[positions]
            same = before // self.threads == mine + self.first_block
            met = self.ordered_in_block(before % self.threads, time, thread[positions], mine)
            if not self.judges_blocks:
                note = "races between blocks were not judged: the kernel uses a memory fence"
                if note not in self.notes:
                    self.notes.append(note)
                return met | ~same
            return same & met

        return ordered

    def atomic_sites(self) -> NDArray[np.bool_]:
        return np.array([site.op == "atomic" for site in self.program.sites])

    def global_name(self, buffer: Buffer, offset: int, site: Site) -> str:
        return f"{buffer.name}[{offset // buffer.itemsize}]"

    # shared memory

    def shared_access(self, site: Site, base: Array, offset: int, variable: str, values: Any, lanes: Lanes | None = None,
                      atomic: Any = None) -> Any:  # fmt: skip
        lanes = lanes or self.lanes
        plan = self.plans.get(site.number)
        if plan is None or plan.base is not base or plan.lanes is not lanes:
            found = self.plan_shared(site, base, offset, variable, lanes)
            if found is None:
                return self.stray_shared(site, base, offset, variable, values, lanes, atomic)
            plan = found
            if lanes is self.lanes:
                self.plans[site.number] = plan
        counts = self.counts.setdefault(site.number, Counts())
        counts.requests += plan.counts.requests
        counts.wavefronts += plan.counts.wavefronts
        counts.conflicts += plan.counts.conflicts
        counts.bytes += plan.counts.bytes
        column = None if plan.alike else lanes.numbers % self.blocks
        if atomic is not None:
            self.judge_shared(site, plan, lanes, column, None, True)
            return atomic(plan.address, column)
        if values is None:
            self.judge_shared(site, plan, lanes, column, None, False)
            found = self.shared.read(plan.address, column, site.element, site.count)
            return found if plan.alike else [value.reshape(lanes.shape) for value in found]
        if not plan.alike:
            values = tuple(lanes.spread(value) for value in values)
        elif len(plan.address) == 1 and lanes.shape[0] > 1:
            values = tuple(value[-1:] if value.ndim and value.shape[0] > 1 else value for value in values)
        self.shared.write(plan.address, column, site.element, values)
        self.judge_shared(site, plan, lanes, column, values, False)
        return None

    def plan_shared(self, site: Site, base: Array, offset: int, variable: str, lanes: Lanes) -> Plan | None:
        """None if a lane is out of bounds or misaligned."""
        address = base.view(I64) + offset
        width = site.element * site.count
        start, end = self.extents.get(variable, (0, self.shared_size))
        if int(address.min()) < start or int(address.max()) + width > end or (address & (width - 1)).any():
            return None
        alike = lanes.flat is None and lanes.columns is None and (address.ndim < 2 or address.shape[1] == 1)
        rows, active, times = self.by_warp(lanes, address)
        wavefronts, ideal = traffic.shared_wavefronts(rows, active, max(site.bits, 8), site.op != "load")
        used = int(wavefronts.sum())
        counts = Counts(int(active.any(axis=1).sum()) * times, 0, used * times, (used - int(ideal.sum())) * times,
                        lanes.count * width)  # fmt: skip
        place = address.reshape(-1) if alike else lanes.spread(address)
        return Plan(base, lanes, place, alike, counts)

    def stray_shared(self, site: Site, base: Array, offset: int, variable: str, values: Any, lanes: Lanes, atomic: Any) -> Any:
        address = lanes.spread(base.view(I64)) + offset
        width = site.element * site.count
        start, end = self.extents.get(variable, (0, self.shared_size))
        outside = (address < start) | (address + width > end)
        crooked = ~outside & ((address & (width - 1)) != 0)
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}[site.op]
        if outside.any():
            n = int(np.flatnonzero(outside)[0])
            who = self.place(int(lanes.numbers[n]))
            if variable in self.extents:
                name = self.element(plain_name(variable), int(address[n]) - start)
                self.add("bounds", site.line, f"{who} {verb} {name}, outside the {end - start:,} bytes of {plain_name(variable)}")
            else:
                self.add("bounds", site.line, f"{who} {verb} shared memory at byte {int(address[n])} of {self.shared_size:,}")
        if crooked.any():
            n = int(np.flatnonzero(crooked)[0])
            self.report_misaligned(site, lanes, n, int(address[n]), "shared memory")
        good = ~outside & ~crooked
        result = [np.full(lanes.count, ONES[site.element], UNSIGNED[site.element]) for _ in range(site.count)]
        if good.any():
            some = Lanes(self.threads, self.blocks, flat=lanes.numbers[good])
            part = None if values is None else tuple(lanes.spread(v)[good] for v in values)
            inner = atomic and (lambda at, column: atomic(at, column, good))
            sub = self.shared_access(site, address[good].view(U64), 0, variable, part, some, inner)
            if sub is not None:
                for whole, piece in zip(result, sub if isinstance(sub, list) else [sub], strict=True):
                    whole[good] = piece
        if values is not None:
            return None
        shaped = [whole.reshape(lanes.shape) for whole in result]
        return shaped[0] if atomic else shaped

    def judge_shared(self, site: Site, plan: Plan, lanes: Lanes, column: Any, contents: Any, atomic: bool) -> None:
        """Has the place been written, and who touched it since the last barrier?"""
        grain = self.shared_grain
        alike = plan.alike
        thread = lanes.thread[:, 0] if alike else lanes.numbers // self.blocks
        first = plan.address // grain
        if alike and len(first) == 1:
            first = np.repeat(first, len(thread))
        if not alike:
            self.widen_shadow()
        for n in range(site.element * site.count // grain):
            place = first + n if n else first
            self.judge_written(site, place, lanes, column)
            wide = self.shadow.columns > 1
            if alike and wide:  # all blocks alike, but their shadows have become different
                at = (place[:, None] * self.blocks + np.arange(self.blocks)).reshape(-1)
                who = np.repeat(thread, self.blocks)
                where: Any = np.tile(np.arange(self.blocks), len(thread))
            elif alike:
                at, who, where = place, thread, np.zeros(len(thread), np.intp)
            else:
                at, who, where = place * self.shadow.columns + (column if wide else 0), thread, column
            ordered = None
            if self.ordered_shared is not None:
                ordered = lambda before, time, at, who=who, where=where: self.ordered_in_block(before, time, who[at], where[at])  # noqa: E731
            if site.op == "load":
                conflicts = self.shadow.read(at, who, site.number, self.time, ordered)
                beside = np.empty(0, np.intp)
            else:
                sites = self.atomic_sites() if atomic else None
                conflicts, beside = self.shadow.write(at, who, site.number, self.time, ordered, sites)
            for conflict in conflicts:
                k = int(conflict.positions[0])
                self.report_race_shared(site, conflict, int(at[k]), int(who[k]), int(where[k]))
            if len(beside) and not atomic:
                self.judge_clash(site, plan, lanes, column, contents, at, who, where, beside)

    def judge_written(self, site: Site, place: Any, lanes: Lanes, column: Any) -> None:
        written = self.shared_written
        if written is None:
            return
        if site.op != "load":
            if column is None:
                written[place] = True
            else:
                if written.shape[1] == 1 and self.blocks > 1:
                    self.shared_written = written = np.repeat(written, self.blocks, axis=1)
                written[place, column if written.shape[1] > 1 else 0] = True
        if site.op != "store":
            fresh = ~(written[place] if column is None else written[place, column if written.shape[1] > 1 else 0])
            if fresh.any():
                where = np.argwhere(fresh)[0]
                if column is None:
                    number = int(lanes.thread[int(where[0]), 0]) * self.blocks + (int(where[1]) if written.shape[1] > 1 else 0)
                else:
                    number = int(lanes.numbers[int(where[0])])
                unit = int(place[int(where[0])])
                self.add("uninitialised", site.line,
                         f"{self.place(number)} reads {self.shared_name(unit * self.shared_grain)}, which no thread has written")  # fmt: skip

    def judge_clash(self, site: Site, plan: Plan, lanes: Lanes, column: Any, contents: Any, at: Any, who: Any, where: Any,
                    beside: Any) -> None:  # fmt: skip
        """Lanes of one store on one place: equal values are harmless, different ones are a race."""
        address = plan.address
        if plan.alike and len(address) == 1:
            address = np.repeat(address, lanes.shape[0])
            contents = tuple(contents)
        if plan.alike:
            stored = self.shared.read(address, None, site.element, site.count)
            wrote = [np.broadcast_to(np.asarray(v), (len(address), self.blocks)) for v in self.original(contents, lanes)]
            differ = np.zeros((len(address), self.blocks), bool)
        else:
            stored = self.shared.read(address, column, site.element, site.count)
            wrote = list(contents)
            differ = np.zeros(len(address), bool)
        for have, want in zip(stored, wrote, strict=True):
            differ |= have != want
        spread = differ.reshape(-1)
        if not spread.any():
            return
        if plan.alike:
            row, block = (int(x) for x in np.argwhere(differ)[0])
            number = int(lanes.thread[row, 0]) * self.blocks + block
            k = row * self.blocks + block if self.shadow.columns > 1 else row
        else:
            k = int(np.flatnonzero(spread)[0])
            number, block = int(lanes.numbers[k]), int(column[k])
        other = int(self.shadow.writer.thread[at[k]])
        unit = int(at[k]) // self.shadow.columns
        name = self.shared_name(unit * self.shared_grain)
        self.report_clash_text(site, self.place(number), f"{self.thread_name(other)}", name)

    def original(self, contents: Any, lanes: Lanes) -> list[Array]:
        return [value if np.ndim(value) else np.asarray(value) for value in self.stored_values or contents]

    stored_values: Any = None

    def shared_name(self, offset: int) -> str:
        for name, (start, end) in self.extents.items():
            if start <= offset < end:
                return self.element(plain_name(name), offset - start)
        return f"shared memory at byte {offset}"

    # local memory

    def local_access(self, site: Site, base: Array, offset: int, variable: str, values: Any, lanes: Lanes | None = None) -> Any:
        lanes = lanes or self.lanes
        address = base.view(I64) + offset
        width = site.element * site.count
        spread = lanes.spread(address)
        bad = (spread < 0) | (spread + width > self.local_size) | ((spread & (width - 1)) != 0)
        if bad.any():
            return self.stray_local(site, spread, bad, values, lanes)
        counts = self.counts.setdefault(site.number, Counts())
        counts.bytes += lanes.count * width
        # the hardware interleaves local memory: word w of a warp's 32 lanes is 128 contiguous bytes
        rows, active, times = self.by_warp(lanes, address)
        physical = (rows >> 2) * 128 + np.arange(32) * 4 + (rows & 3)
        counts.requests += int(active.any(axis=1).sum()) * times
        for n in range(max(1, width // 4)):
            counts.sectors += int(traffic.global_sectors(physical + 128 * n, active, 32).sum()) * times
        column = lanes.numbers
        if values is None:
            fresh = ~self.local_written[spread, column]
            if fresh.any():
                k = int(np.flatnonzero(fresh)[0])
                self.add("uninitialised", site.line, f"{self.place(int(column[k]))} reads an element of a local array that it never wrote")
            found = self.local.read(spread, column, site.element, site.count)
            return [value.reshape(lanes.shape) for value in found]
        for n in range(width):
            self.local_written[spread + n, column] = True
        self.local.write(spread, column, site.element, tuple(lanes.spread(v) for v in values))
        return None

    def stray_local(self, site: Site, address: Array, bad: Array, values: Any, lanes: Lanes) -> Any:
        n = int(np.flatnonzero(bad)[0])
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}[site.op]
        self.add("bounds", site.line,
                 f"{self.place(int(lanes.numbers[n]))} {verb} byte {int(address[n])} of its local arrays, which have {self.local_size}")  # fmt: skip
        result = [np.full(lanes.count, ONES[site.element], UNSIGNED[site.element]) for _ in range(site.count)]
        good = ~bad
        if good.any():
            some = Lanes(self.threads, self.blocks, flat=lanes.numbers[good])
            part = None if values is None else tuple(lanes.spread(v)[good] for v in values)
            sub = self.local_access(site, address[good].view(U64), 0, "", part, some)
            if sub is not None:
                for whole, piece in zip(result, sub, strict=True):
                    whole[good] = piece
        return None if values is not None else [whole.reshape(lanes.shape) for whole in result]

    # atomics

    def atomic(self, site: Site, base: Array, offset: int, variable: str, what: str, operands: tuple[Array, ...]) -> Array:
        """Every lane in turn (lowest thread first): the old value comes back, the new one goes in."""
        lanes = self.lanes
        dtype = operands[0].dtype
        values = [lanes.spread(v) for v in operands]
        serve = self.space(site, base)

        def on(view: Any, index: Any, picked: Any) -> Any:
            mine = values if picked is None else [v[picked] for v in values]
            return one_after_another(view, index, what, mine, dtype)

        def on_global(buffer: Buffer, at: Any, picked: Any = None) -> Any:
            flat = lanes.spread(at) if picked is None else at
            return on(buffer.data.view(dtype), flat // site.element, picked)

        def on_shared(address: Any, column: Any, picked: Any = None) -> Any:
            if column is None:
                address = np.broadcast_to(address[:, None], lanes.shape).reshape(-1)
                column = lanes.numbers % self.blocks
            if site.element == 4:
                return on(self.shared.flat.view(dtype), (address >> 2) * self.blocks + column, picked)
            old = self.shared.read(address, column, 8, 1)[0]
            places = (address >> 3) * self.blocks + column
            distinct, index = np.unique(places, return_inverse=True)
            view = np.zeros(len(distinct), np.uint64)
            view[index] = old
            mine = on(view.view(dtype), index, picked)
            self.shared.write(address, column, 8, (view[index],))
            return mine

        if serve in (self.local_access, self.generic_local):
            raise Unsupported("an atomic on local memory", site.line)
        if serve == self.global_access:
            old = self.global_access(site, base, offset, variable, None, None, on_global)
        else:
            if serve == self.generic_shared:
                base = base.view(U64) - U64(SHARED_WINDOW)
            old = self.shared_access(site, base, offset, variable, None, None, on_shared)
        return np.asarray(old).view(dtype).reshape(lanes.shape)

    # findings

    def add(self, kind: str, line: int, message: str, other_line: int = 0) -> None:
        key = (kind, line, other_line) if kind != "race" else (kind, line, other_line, message.rpartition("(")[2])
        if key not in self.seen and len(self.findings) < MAX_FINDINGS:
            self.seen.add(key)
            self.findings.append(Finding(kind, line, message, other_line))

    def known(self, site: Site, other: Site, kind: str) -> bool:
        return ("race", site.line, other.line, f"{kind})") in self.seen

    def report_race(self, site: Site, conflict: Conflict, lanes: Lanes, name: str, across: bool) -> None:
        k = int(conflict.positions[0])
        other = self.program.sites[int(conflict.sites[0])]
        if self.known(site, other, conflict.kind):
            return
        number = int(lanes.numbers[k])
        earlier = int(conflict.threads[0])
        block = number % self.blocks + self.first_block
        if earlier // self.threads == block:
            who = self.thread_name(earlier % self.threads)
            barrier = "with no __syncthreads() between"
        else:
            who = self.thread_and_block(earlier)
            barrier = "and nothing orders two blocks"
        self.race(site, other, conflict.kind, self.place(number), who, name, barrier)

    def report_race_shared(self, site: Site, conflict: Conflict, at: int, thread: int, column: int) -> None:
        other = self.program.sites[int(conflict.sites[0])]
        if self.known(site, other, conflict.kind):
            return
        earlier = int(conflict.threads[0])
        name = self.shared_name(at // self.shadow.columns * self.shared_grain)
        same_warp = earlier // 32 == thread // 32
        barrier = "with no __syncwarp() or __syncthreads() between" if same_warp else "with no __syncthreads() between"
        self.race(site, other, conflict.kind, self.place(thread * self.blocks + column), self.thread_name(earlier), name, barrier)

    def race(self, site: Site, other: Site, kind: str, who: str, earlier: str, name: str, barrier: str) -> None:
        verb = {"load": "reads", "store": "overwrites", "atomic": "updates"}[site.op]
        did = {"load": "still reads", "store": "wrote", "atomic": "updated"}[other.op]
        self.add("race", site.line, f"{who} {verb} {name}, which {earlier} {did} on line {other.line}, {barrier} ({kind})", other.line)

    def report_clash(self, site: Site, lanes: Lanes, k: int, other: str, name: str) -> None:
        self.report_clash_text(site, self.place(int(lanes.numbers[k])), other, name)

    def report_clash_text(self, site: Site, who: str, other: str, name: str) -> None:
        self.add("race", site.line, f"{who} and {other} write different values to {name} at once (write after write)", site.line)

    def thread_name(self, thread: int) -> str:
        x, y, z = self.block_shape
        if y == z == 1:
            return f"thread {thread}"
        if z == 1:
            return f"thread ({thread % x}, {thread // x})"
        return f"thread ({thread % x}, {thread // x % y}, {thread // (x * y)})"

    def block_name(self, column: int) -> str:
        block = column + self.first_block
        x, y, z = self.grid
        if y == z == 1:
            return f"block {block}"
        if z == 1:
            return f"block ({block % x}, {block // x})"
        return f"block ({block % x}, {block // x % y}, {block // (x * y)})"

    def place(self, number: int) -> str:
        return f"{self.thread_name(number // self.blocks)} of {self.block_name(number % self.blocks)}"

    def thread_and_block(self, thread: int) -> str:
        return f"{self.thread_name(thread % self.threads)} of {self.block_name(thread // self.threads - self.first_block)}"

    def report(self) -> Report:
        """What was seen, with the accesses summed up by source line, kind, space and width."""
        table: dict[tuple[int, str, str, int], Counts] = {}
        for site in self.program.sites:
            counts = self.counts.get(site.number)
            if counts is None or site.space == "const":
                continue
            key = site.line, site.op, "global" if site.space == "generic" else site.space, site.bits
            into = table.setdefault(key, Counts())
            for name in ("requests", "sectors", "wavefronts", "conflicts", "bytes"):
                setattr(into, name, getattr(into, name) + getattr(counts, name))
        accesses = [Access(*key, c.requests, c.sectors, c.wavefronts, c.conflicts, c.bytes) for key, c in sorted(table.items())]
        return Report(self.findings, accesses, self.fma, self.instructions, self.notes)


def plain_name(symbol: str) -> str:
    """`_ZZ12matmul_tiledE3Nds` -> `Nds`: the last name of a mangled symbol (a digit count, then that many letters)."""
    if symbol.startswith("_Z"):
        for match in re.finditer(r"(?=(\d+)([A-Za-z_]\w*?)(?:_\d+)?$)", symbol):
            if len(match[2]) == int(match[1]):
                return match[2]
    return symbol


def one_after_another(view: Any, index: Any, what: str, values: list[Any], dtype: Any) -> Any:
    """Applies an atomic to `view[index]` for each lane in order; returns what each found there."""
    old = np.empty(len(index), dtype)
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    first = np.r_[True, sorted_index[1:] != sorted_index[:-1]]
    start = np.flatnonzero(first)
    rank = np.arange(len(index)) - np.repeat(start, np.diff(np.r_[start, len(index)]))
    for turn in range(int(rank.max()) + 1):
        lanes = order[rank == turn]
        place = index[lanes]
        found = view[place]
        old[lanes] = found
        b = values[0][lanes]
        if what == "cas":
            view[place] = np.where(found == b, values[1][lanes], found)
        elif what == "inc":
            view[place] = np.where(found >= b, dtype.type(0), found + dtype.type(1))
        elif what == "dec":
            view[place] = np.where((found == 0) | (found > b), b, found - dtype.type(1))
        else:
            view[place] = _ATOMICS[what](found, b)
    return old


_ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
    "exch": lambda a, b: b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _thread_index(axis: int) -> Callable[[Machine], Array]:
    def value(m: Machine) -> Array:
        x, y, _ = m.block_shape
        linear = np.arange(m.threads)
        index = (linear % x, linear // x % y, linear // (x * y))[axis]
        return U32(0) if m.block_shape[axis] == 1 else index.astype(U32)[:, None]

    return value


def _block_index(axis: int) -> Callable[[Machine], Array]:
    def value(m: Machine) -> Array:
        x, y, _ = m.grid
        linear = m.first_block + np.arange(m.blocks)
        index = (linear % x, linear // x % y, linear // (x * y))[axis]
        return U32(0) if m.grid[axis] == 1 else index.astype(U32)[None, :]

    return value


def _lane_mask(make: Callable[[Array], Array]) -> Callable[[Machine], Array]:
    return lambda m: (make(np.arange(m.threads, dtype=np.uint64) % 32) & 0xFFFFFFFF).astype(U32)[:, None]


_ONE = np.uint64(1)
SPECIAL: dict[str, Callable[[Machine], Array]] = {
    **{f"%tid.{a}": _thread_index(n) for n, a in enumerate("xyz")},
    **{f"%ctaid.{a}": _block_index(n) for n, a in enumerate("xyz")},
    **{f"%ntid.{a}": (lambda m, n=n: U32(m.block_shape[n])) for n, a in enumerate("xyz")},  # type: ignore[misc]
    **{f"%nctaid.{a}": (lambda m, n=n: U32(m.grid[n])) for n, a in enumerate("xyz")},  # type: ignore[misc]
    "%laneid": lambda m: (np.arange(m.threads) % 32).astype(U32)[:, None],
    "%warpid": lambda m: (np.arange(m.threads) // 32).astype(U32)[:, None],
    "%nwarpid": lambda m: U32(-(-m.threads // 32)),
    "%lanemask_eq": _lane_mask(lambda lane: _ONE << lane),
    "%lanemask_lt": _lane_mask(lambda lane: (_ONE << lane) - _ONE),
    "%lanemask_le": _lane_mask(lambda lane: (_ONE << (lane + _ONE)) - _ONE),
    "%lanemask_gt": _lane_mask(lambda lane: ~((_ONE << (lane + _ONE)) - _ONE)),
    "%lanemask_ge": _lane_mask(lambda lane: ~((_ONE << lane) - _ONE)),
}


def parameter_bytes(parameter: Parameter, value: Any) -> bytes:
    """A scalar argument as the bytes of the kernel's parameter. Raises `TypeError` for what does not fit."""
    kinds = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
    size = BYTES[parameter.type]
    if isinstance(value, float | np.floating):
        dtype = kinds.get(parameter.type) or {2: np.float16, 4: np.float32, 8: np.float64}.get(size)
        if dtype is None:
            raise TypeError(f"a float cannot be passed for a .{parameter.type} parameter")
        return np.array(value, dtype).tobytes()
    if isinstance(value, bool | int | np.integer | np.bool_):
        if parameter.type in kinds:
            return np.array(value, kinds[parameter.type]).tobytes()
        whole = int(value)
        if not -(1 << (8 * size - 1)) <= whole < 1 << 8 * size:
            raise TypeError(f"{whole} does not fit a .{parameter.type} parameter")
        return (whole & (256**size - 1)).to_bytes(size, "little")
    raise TypeError(f"{type(value).__name__} cannot be passed to a kernel: use a NumPy array or a number")
