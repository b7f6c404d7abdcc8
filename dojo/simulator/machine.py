"""Runs a program: lanes and their program counters, barriers, shuffles.

All threads of a chunk of blocks run in lock step. Lanes at different places wait for each other by one
rule: the lowest program counter runs first. A barrier parks its lanes until every live lane of their block
has come. Because lock step would hide a missing barrier, races are detected from who touched what
(`races`), not provoked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import atomics, printf, warp
from .async_copy import AsyncCopies
from .findings import Counts, Log, Report, report
from .global_memory import GlobalMemory
from .lanes import Lanes, union
from .local_memory import LocalMemory
from .memory import SLOT_BITS, Buffer
from .numerics import I64, U32, U64, UNSIGNED
from .order import EVERY_LANE, Order
from .parse import BYTES, Negated, Register, Unsupported
from .program import Block, Program, Site
from .shared_memory import SharedMemory
from .specials import SPECIALS
from .translate import LOCAL_WINDOW, SHARED_WINDOW, code

Array = Any
CHUNK_LANES = 65_536
CHUNK_SHARED = 64 << 20  # bytes of shared memory simulated at a time
CHUNK_MASKED = 256 << 10  # the same where races.py keeps every lane
CHUNK_LOCAL = 256 << 20
LEAST_LANES = 256  # the budget counts a step of fewer lanes as one of so many: it takes as long
PATIENCE = 128  # steps of one set of lanes before another that waits has its turn
TURN = 64  # steps of such a turn
ALIVE = -2
VOTES = ("popc", "and", "or")
MAX_PRINTED = 64  # lines of printf in a launch
CALLS = {"barrier": "__syncthreads()", "warp_barrier": "__syncwarp()", "collective": "the warp function"}


class Stop(Exception):
    """Ends a launch that cannot go on: a stuck barrier, or the budget spent."""


class Machine:
    """One launch. `arguments`: the kernel's parameters as bytes; pointers among them point into `buffers`.

    `origins`: the buffers by the parameter or variable that points to them. `extents`: (start, end) of each
    shared variable. `element(variable, byte)` words an element of a shared array. `budget`: thread
    instructions.
    """

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: dict[str, bytes],
        buffers: dict[int, Buffer],
        origins: dict[str, Buffer],
        *,
        grain: int,
        shared_size: int,
        local_size: int,
        extents: dict[str, tuple[int, int]],
        element: Callable[[str, int], str],
        budget: int,
    ) -> None:
        self.program, self.grid, self.block_shape, self.arguments = program, grid, block, arguments
        self.grain, self.shared_size, self.local_size, self.extents = grain, shared_size, local_size, extents
        self.element, self.budget = element, budget
        self.threads = block[0] * block[1] * block[2]
        self.total_blocks = grid[0] * grid[1] * grid[2]
        self.fma = self.instructions = self.spent = 0
        self.counts: dict[int, Counts] = {}
        self.unjoined: dict[int, Counts] = {}  # of what the assembler joins, before it does
        self.log = Log(grid, block)
        self.globals = GlobalMemory(
            buffers,
            origins,
            self.log,
            self.counts,
            program.sites,
            judges_blocks=not program.uses_fence,
            every_lane=program.uses_warp_mask,
        )
        self.now = 0
        self.unset: list[Array] = [np.False_] * 4

    def run(self) -> Report:
        """Every chunk of blocks in turn."""
        size = CHUNK_LANES // self.threads
        if self.shared_size:
            most = CHUNK_MASKED if self.program.uses_warp_mask else CHUNK_SHARED
            size = min(size, most // self.shared_size)
        if self.local_size:
            size = min(size, CHUNK_LOCAL // (self.local_size * self.threads))
        size = max(1, size)
        try:
            with np.errstate(all="ignore"):
                for first in range(0, self.total_blocks, size):
                    self.run_chunk(first, min(size, self.total_blocks - first))
        except Stop:
            pass
        return report(self.log, self.program.sites, self.counts, self.unjoined, self.fma, self.instructions)

    def run_chunk(self, first: int, blocks: int) -> None:
        self.blocks = blocks
        self.log.first_block, self.log.blocks = first, blocks
        self.order = Order(self.threads, blocks, self.program.uses_warp_barrier, self.now)
        self.globals.begin(self.order)
        self.shared = SharedMemory(
            self.shared_size,
            blocks,
            self.grain,
            self.extents,
            self.log,
            self.counts,
            self.unjoined,
            self.program.sites,
            self.order,
            self.element,
            every_lane=self.program.uses_warp_mask,
        )
        self.copies: AsyncCopies | None = None
        self.local = LocalMemory(self.local_size, self.threads * blocks, self.log, self.counts)
        self.alive = np.full(blocks, self.threads)
        self.registers: list[Array] = [None] * self.program.size
        types = {register.name: register.type for register in self.program.kernel.registers}
        for name, slot in self.program.slots.items():
            if name in SPECIALS:
                self.registers[slot] = SPECIALS[name](self.block_shape, self.grid, first, blocks)
            elif slot in self.program.unset:
                width = BYTES[types.get(name, "pred")]
                self.registers[slot] = np.False_ if types.get(name) == "pred" else ~UNSIGNED[width](0)
                self.registers[self.program.masks[slot]] = np.True_
        self.waiting: dict[int, list[Lanes]] = {0: [Lanes(self.threads, blocks)]}
        self.parked: dict[int, list[Lanes]] = {}  # at __syncthreads(), by basic block
        self.held: dict[int, list[Lanes]] = {}  # before a warp function whose partners have not come
        self.ready: list[tuple[int, Lanes]] = []  # complete at a warp function where others are held
        self.ended_at = np.full(self.threads * blocks, ALIVE)  # the basic block that each thread ended after
        self.steps = self.turn_since = self.turn = 0
        while self.ready or self.waiting or self.parked or self.held:
            if self.ready:
                self.follow(*self.ready.pop())
            elif not self.waiting:
                self.meet()
            else:
                number = self.next()
                self.follow(number, union(self.waiting.pop(number) + self.held.pop(number, [])))
        self.now = self.order.now

    def next(self) -> int:
        """The lowest basic block where lanes wait. After PATIENCE steps another one has its turn: lanes that
        spin must not keep away the lane that they wait for.
        """
        if self.steps - self.turn_since < PATIENCE:
            return min(self.waiting)
        self.turn_since = self.steps
        self.meet(others_run=True)
        self.turn = min((n for n in self.waiting if n > self.turn), default=min(self.waiting))
        return self.turn

    def follow(self, number: int, lanes: Lanes) -> None:
        """Runs `lanes` from basic block `number` on, until they part, meet others, or wait."""
        mine: list[Array] = self.registers if lanes.full else [None] * len(self.registers)
        fetched: set[int] = set()
        dirty: set[int] = set()
        self.lanes = lanes
        begun = self.steps
        while True:
            block = self.program.blocks[number]
            if not lanes.full:
                for slot in block.reads - fetched:
                    mine[slot] = lanes.take(self.registers[slot])
                fetched |= block.reads
            answer = (block.function or code(self.program, block))(mine, self)
            going = self.end(block, lanes, mine, answer)
            if going is None:  # to be executed again, with others or without
                self.put_back(lanes, mine, dirty & block.live_in)
                return
            fetched |= block.writes
            dirty |= block.writes
            self.steps += 1
            self.instructions += lanes.count * block.counted
            self.fma += lanes.count * block.fmas
            self.spent += max(lanes.count, LEAST_LANES) * block.counted
            if self.spent > self.budget:
                self.out_of_budget(block, lanes)
            if len(going) == 1 and going[0][1] is lanes and self.may_go_on(going[0][0], begun):
                number = going[0][0]
                continue
            kept = block.live_out | block.reads if block.kind == "barrier" else block.live_out
            self.put_back(lanes, mine, dirty & kept)
            for target, some in going:
                self.put(target, some, block.number)
            return

    def may_go_on(self, number: int, begun: int) -> bool:
        """Whether lanes that stay together may run basic block `number` before any others run."""
        if (
            number < 0
            or self.program.blocks[number].ends_only
            or number in self.held
            or number in self.waiting
        ):
            return False
        if not self.waiting:  # those at barriers must have their turn, too: these lanes may wait for them
            return not self.parked or self.steps - self.turn_since < PATIENCE
        favoured = self.steps - self.turn_since < TURN and begun >= self.turn_since and self.turn > 0
        return favoured or (number < min(self.waiting) and self.steps - self.turn_since < PATIENCE)

    def put_back(self, lanes: Lanes, mine: list[Array], slots: Collection[int]) -> None:
        if not lanes.full:
            for slot in slots:
                self.registers[slot] = lanes.put(self.registers[slot], mine[slot])

    def end(
        self, block: Block, lanes: Lanes, mine: list[Array], answer: Any
    ) -> list[tuple[int, Lanes]] | None:
        """Where the lanes go from the end of a basic block: (basic block, lanes); -1 is the kernel's end.
        None: the block must be executed again.
        """
        if block.kind == "go":
            return [(block.next, lanes)]
        if block.kind == "branch":
            taken, fallen = lanes.where(answer)
            return [
                (n, some) for n, some in ((block.target, taken), (block.next, fallen)) if some is not None
            ]
        if block.kind == "exit":
            return [(-1, lanes)]
        if block.kind == "switch":
            index = lanes.spread(answer)
            return [
                (target, lanes.only(index == n))
                for n, target in enumerate(block.targets)
                if (index == n).any()
            ]
        if block.kind == "barrier":
            if answer is not None and int(answer) not in (self.threads, -(-self.threads // 32) * 32):
                last = block.instructions[-1]
                raise Unsupported(last.opcode, last.line, f"a barrier for {answer} of {self.threads} threads")
            if lanes.full:
                self.release(None)
                self.count_votes(block, lanes)
                return [(block.next, lanes)]
            self.parked.setdefault(block.number, []).append(lanes)
            return []
        mask = answer if block.kind == "warp_barrier" else answer[2]
        late = self.late(block, lanes, mask)
        if late is not None:
            self.held.setdefault(block.number, []).append(lanes.only(late))
            if not late.all():
                self.ready.append((block.number, lanes.only(~late)))
            return None
        if block.kind == "warp_barrier":
            self.order.syncwarp(lanes, mask)
        else:
            self.collective(block, lanes, mine, answer)
        return [(block.next, lanes)]

    def put(self, number: int, lanes: Lanes, source: int) -> None:
        """Lanes wait to run basic block `number`, coming from `source`; if it does nothing but end, they
        end.
        """
        if number >= 0 and not self.program.blocks[number].ends_only:
            self.waiting.setdefault(number, []).append(lanes)
            return
        if number >= 0:
            self.instructions += lanes.count
        if self.program.uses_warps:
            self.ended_at[lanes.numbers] = source
        if lanes.flat is None:
            self.alive[lanes.block[0]] -= len(lanes.thread)
        else:
            self.alive -= np.bincount(lanes.block, minlength=self.blocks)

    # barriers

    def release(self, columns: NDArray[np.intp] | None) -> None:
        """All threads of these blocks of the chunk (None: of all) have met."""
        self.order.syncthreads(slice(None) if columns is None else columns)
        self.shared.barrier(columns)

    def count_votes(self, block: Block, lanes: Lanes) -> None:
        """bar.red: how many threads of each block, or whether all or any of them, hold a predicate."""
        i = block.instructions[-1]
        if "red" not in i.parts:
            return
        to, vote = i.operands[0], i.operands[-1]
        negated = isinstance(vote, Negated)
        register = vote.register if isinstance(vote, Negated) else vote
        assert isinstance(to, Register)
        assert isinstance(register, Register)
        held = lanes.spread(lanes.take(self.registers[self.program.slots[register.name]])) ^ negated
        column = lanes.numbers % self.blocks
        yes, of = (np.bincount(column, weights, self.blocks) for weights in (held, np.ones(lanes.count)))
        what = next(part for part in i.parts if part in VOTES)
        result = {"popc": yes.astype(U32), "and": yes == of, "or": yes > 0}[what]
        slot = self.program.slots[to.name]
        self.registers[slot] = lanes.put(self.registers[slot], result[column].reshape(lanes.shape))

    def meet(self, *, others_run: bool = False) -> None:
        """Lets go every block whose live lanes all wait at one barrier. If there is none and nobody else can
        run, they hang.
        """
        released = np.zeros(self.blocks, bool)
        for numbers in self.same_barriers():
            lanes = {number: union(self.parked[number]) for number in numbers}
            arrived = np.concatenate([some.numbers for some in lanes.values()])
            here = np.bincount(arrived % self.blocks, minlength=self.blocks)
            complete = (here > 0) & (here == self.alive)
            if not complete.any():
                continue
            released |= complete
            for number, some in lanes.items():
                gone, rest = some.where(some.take(complete[None, :]))
                self.parked.pop(number)
                if rest is not None:
                    self.parked[number] = [rest]
                if gone is not None:
                    self.count_votes(self.program.blocks[number], gone)
                    self.put(self.program.blocks[number].next, gone, number)
        if not released.any():
            if others_run:
                return
            self.report_stuck()
        others = ~released & (self.alive > 0)
        self.release(np.flatnonzero(released) if others.any() else None)

    def same_barriers(self) -> list[list[int]]:
        """Basic blocks where lanes are parked, those together that are one barrier of the source.

        The compiler copies a barrier where it unrolls or peels a loop. Copies come from one line by one
        call, and one after the other: two that exclude each other stand in two branches, perhaps on one line
        (the columns do not tell: the compiler gives all statements of a line that of the first).
        """
        if len(self.parked) == 1:
            return [list(self.parked)]
        groups: dict[tuple[int, int, str], list[list[int]]] = {}
        for number in sorted(self.parked):
            barrier = self.program.blocks[number].instructions[-1]
            same = groups.setdefault((barrier.line, barrier.caller, str(barrier.operands)), [])
            for group in same:
                if all(self.in_turn(number, other) for other in group):
                    group.append(number)
                    break
            else:
                same.append([number])
        return [group for same in groups.values() for group in same]

    def in_turn(self, one: int, other: int) -> bool:
        """Whether a thread can come to one of these basic blocks after the other, in one turn of a loop."""
        ahead = self.program.ahead
        return bool(ahead[one] >> other & 1 or ahead[other] >> one & 1)

    def report_stuck(self) -> None:
        """Says who waits where in the first block that is stuck, and ends the launch."""
        waiting = {number: union(parts) for number, parts in sorted({**self.parked, **self.held}.items())}
        column = min(int((lanes.numbers % self.blocks).min()) for lanes in waiting.values())
        places = []
        for number, lanes in waiting.items():
            threads = lanes.numbers[lanes.numbers % self.blocks == column] // self.blocks
            if len(threads):
                places.append((self.program.blocks[number], threads))
        block, threads = places[0]
        name, line = CALLS[block.kind], block.instructions[-1].line
        text = f"{self.some(threads)} of {self.log.block_name(column)} {_wait(threads)} at {name}"
        other_line = 0
        if len(places) > 1:
            copies = next((group for group in self.same_barriers() if block.number in group), [])
            second, others = next((p for p in places[1:] if p[0].number not in copies), places[1])
            other_line = second.instructions[-1].line
            one, other = f"on line {line}", f"{CALLS[second.kind]} on line {other_line}"
            if (line, block.kind) == (other_line, second.kind):
                other = f"another one on line {line}"
                callers = block.instructions[-1].caller, second.instructions[-1].caller
                if callers[0] != callers[1] and all(callers):
                    one = f"of line {line}, called on line {callers[0]}"
                    other = f"the one called on line {callers[1]}"
                    line, other_line = callers
            text += (
                f" {one}, while {self.some(others)} {_wait(others)} at {other}: "
                "every thread of the block must reach the same one"
            )
        else:
            ended = self.threads - int(self.alive[column])
            text += f", whose mask names threads that have ended: {ended} of the block's {self.threads}"
        self.log.add("barrier", line, text, other_line)
        raise Stop

    def some(self, threads: NDArray[np.intp]) -> str:
        first = self.log.thread_name(int(threads[0]))
        return first if len(threads) == 1 else f"{first} and {len(threads) - 1} more"

    def out_of_budget(self, block: Block, lanes: Lanes) -> None:
        who = self.log.place(int(lanes.numbers[0]))
        text = (
            f"{who} still runs where the simulator gives up, after {self.instructions:,} instructions of all "
            "threads together: a loop around this line does not end, or takes far too many steps"
        )
        # Lanes of one warp that wait for each other come to their end on a card, after a time.
        if any(i.parts[0] == "atom" or "volatile" in i.parts for i in self.program.memory_instructions()):
            text += ", or waits too long for another thread"
        self.log.add("timeout", block.instructions[-1].line, text)
        raise Stop

    def late(self, block: Block, lanes: Lanes, mask: Array) -> NDArray[np.bool_] | None:
        """Which lanes (in the order of their numbers) must wait for a live lane that their mask names;
        None: nobody.
        """
        if lanes.full and mask.shape == () and int(mask) == EVERY_LANE:
            return None
        thread, column = lanes.numbers // self.blocks, lanes.numbers % self.blocks
        masks = lanes.spread(mask).astype(U32)
        bit = U32(1) << (thread % 32).astype(U32)
        strange = np.flatnonzero(masks & bit == 0)
        if len(strange):
            k = int(strange[0])
            self.log.add(
                "barrier",
                block.instructions[-1].line,
                f"{self.log.place(int(lanes.numbers[k]))} calls {CALLS[block.kind]} with the mask "
                f"0x{int(masks[k]):08x}, which does not name its own lane {int(thread[k]) % 32}",
            )
            raise Stop
        warps = -(-self.threads // 32)
        warp = column * warps + thread // 32
        present = np.zeros(self.blocks * warps, U32)
        np.bitwise_or.at(present, warp, bit)
        exists = np.full(warps, EVERY_LANE, U32)
        if self.threads % 32:
            exists[-1] = (1 << self.threads % 32) - 1
        missing = masks & exists[thread // 32] & ~present[warp]
        if missing.any():
            missing &= ~self.ended_before(block, warps)[warp]
        misses = missing != 0
        if not misses.any():
            return None
        incomplete = np.zeros(len(present), bool)
        incomplete[warp[misses]] = True
        late: NDArray[np.bool_] = incomplete[warp]
        return late

    def ended_before(self, block: Block, warps: int) -> Array:
        """The lanes of each warp that ended without going past this basic block: nobody waits for them. One
        that did something after it, and then ended, has passed it by.
        """
        gone = np.flatnonzero((self.ended_at != ALIVE) & (self.ended_at <= block.number))
        thread, column = gone // self.blocks, gone % self.blocks
        found = np.zeros(self.blocks * warps, U32)
        np.bitwise_or.at(found, column * warps + thread // 32, U32(1) << (thread % 32).astype(U32))
        return found

    def collective(self, block: Block, lanes: Lanes, mine: list[Array], answer: Any) -> None:
        """shfl, vote, match, redux: the lanes of each warp as a row of 32, and back."""
        name, mode, mask, *operands = answer
        warps = -(-self.threads // 32)
        thread, column = lanes.numbers // self.blocks, lanes.numbers % self.blocks
        place = column * warps * 32 + thread

        def rows(value: Array) -> Array:
            whole = np.zeros((self.blocks * warps, 32), np.asarray(value).dtype)
            whole.reshape(-1)[place] = lanes.spread(value)
            return whole

        present, masks = rows(np.True_), rows(mask)
        results: tuple[Array, ...]
        unset: Array = None
        if name == "shfl":
            source, inside = warp.shuffle_source(mode, rows(operands[1]), rows(operands[2]))
            named = (masks >> source.astype(U32) & U32(1)).astype(bool)
            there = np.take_along_axis(present, source, 1) & named
            absent = np.flatnonzero(~there.reshape(-1)[place])
            if len(absent):
                self.report_absent(block, lanes, int(absent[0]), int(source.reshape(-1)[place[absent[0]]]))
            values = np.where(present, rows(operands[0]), U32(EVERY_LANE))
            results = np.take_along_axis(values, source, 1), inside
            if len(absent) or operands[3] is not np.False_:
                unset = ~there | np.take_along_axis(rows(operands[3]), source, 1)
        elif name == "vote":
            ballot = mode == "ballot"
            results = (
                warp.ballot(rows(operands[0]), masks, present)
                if ballot
                else warp.vote(mode, rows(operands[0]), masks, present),
            )
        elif name == "match":
            found = (warp.match_all if mode == "all" else warp.match_any)(rows(operands[0]), masks, present)
            results = found if mode == "all" else (found,)
        else:
            results = (warp.reduce(mode, rows(operands[0]), masks, present),)
        to = block.instructions[-1].operands[0]
        for item, result in zip(getattr(to, "items", (to,)), results, strict=False):
            if item is not None:
                slot = self.program.slots[item.name]
                mine[slot] = result.reshape(-1)[place].reshape(lanes.shape)
                if slot in self.program.unset:
                    marks = unset is not None and result is results[0]
                    mask = unset.reshape(-1)[place].reshape(lanes.shape) if marks else np.False_
                    mine[self.program.masks[slot]] = mask

    def report_absent(self, block: Block, lanes: Lanes, k: int, source: int) -> None:
        number = int(lanes.numbers[k])
        other = number // self.blocks // 32 * 32 + source
        why = "does not take part in the shuffle"
        if other >= self.threads:
            why = f"does not exist: {self.threads} threads are no multiple of 32"
        text = f"{self.log.place(number)} takes a value from lane {source} of its warp, which {why}"
        self.log.unset_read(block.instructions[-1].line, text)

    def active_mask(self) -> Array:
        """activemask: the lanes of each warp that run together here."""
        lanes = self.lanes
        thread, column = lanes.numbers // self.blocks, lanes.numbers % self.blocks
        row = column * -(-self.threads // 32) + thread // 32
        found = np.zeros(self.blocks * -(-self.threads // 32), U32)
        np.bitwise_or.at(found, row, U32(1) << (thread % 32).astype(U32))
        return found[row].reshape(lanes.shape)

    # what translated blocks call

    def parameter(self, name: str, offset: int, dtype: Any) -> Array:
        return np.frombuffer(self.arguments[name], dtype, 1, offset)[0]

    def check_set(self, unset: Array, line: int) -> None:
        """An unset value decides something: a branch, an address, what is stored."""
        if unset.any():
            k = int(np.flatnonzero(self.lanes.spread(unset))[0])
            text = f"{self.log.place(int(self.lanes.numbers[k]))} uses a variable that was never set"
            self.log.unset_used(self.program.unset_line or line, text)

    def trap(self, line: int) -> None:
        who = self.log.place(int(self.lanes.numbers[0]))
        self.log.add("result", line, f"{who} stops the launch with a trap")

    def assertion(self, message: Array, line: int) -> None:
        text = self.string(int(self.lanes.spread(message)[0]))
        self.log.add(
            "result", line, f"{self.log.place(int(self.lanes.numbers[0]))} fails the assertion `{text}`"
        )

    def print(self, text: Array, values: Array) -> Array:
        """printf: one line of output a lane, in the order of lanes; no more than MAX_PRINTED in a launch."""
        places, texts = self.lanes.spread(values), self.lanes.spread(text)
        order = np.argsort(
            self.lanes.numbers % self.blocks * self.threads + self.lanes.numbers // self.blocks
        )
        for k in order[: MAX_PRINTED - len(self.log.output)]:
            lane = int(self.lanes.numbers[k])
            packed = self.local.words.column_bytes(lane, int(places[k]) - LOCAL_WINDOW)
            line = printf.formatted(self.string(int(texts[k])), packed, self.string)
            self.log.output.append(f"{self.log.place(lane)}: {line}")
        return U32(0)

    def string(self, address: int) -> str:
        """The text at a generic address of a constant."""
        buffer = self.globals.buffers.get(address >> SLOT_BITS)
        if buffer is None:
            return "?"
        return (
            bytes(buffer.data[address - buffer.base : buffer.size])
            .partition(b"\0")[0]
            .decode(errors="replace")
        )

    def load(self, site: Site, base: Array, offset: int, origin: str) -> list[Array]:
        """The elements at base + offset for every running lane, as unsigned arrays; `unset` tells where
        nobody wrote them.
        """
        found = self.access(site, base, offset, origin, None)
        assert found is not None
        return found

    def store(
        self,
        site: Site,
        base: Array,
        offset: int,
        origin: str,
        values: tuple[Array, ...],
        unset: tuple[Array, ...] = (),
    ) -> None:
        """`unset`: in which lanes each value is none (shared and local memory keep track of it)."""
        self.access(site, base, offset, origin, values)
        if any(mask is not np.False_ for mask in unset):
            memory = self.local if site.space == "local" else self.shared
            memory.forget(site, self.lanes, base, offset, unset)

    def atomic(
        self, site: Site, base: Array, offset: int, origin: str, what: str, operands: tuple[Array, ...]
    ) -> Array:
        dtype = operands[0].dtype
        values = [self.lanes.spread(operand) for operand in operands]

        def update(view: Any, index: Any, which: Any) -> Any:
            some = values if which is None else [value[which] for value in values]
            return atomics.update(view.view(dtype), index, what, some).view(view.dtype)

        found = self.access(site, base, offset, origin, None, update)
        assert found is not None
        return found[0].view(dtype)

    def copy_async(
        self,
        load: Site,
        store: Site,
        to: tuple[Array, int, str],
        source: tuple[Array, int, str],
        size: Array | None,
    ) -> None:
        """cp.async [to], [source], bytes, size: of a lane with size 0 zeros are copied. No check until the
        wait.
        """
        lanes = self.lanes
        values: list[Array] | None
        if size is None:
            values = self.globals.access(load, lanes, *source, None)
        else:
            given = lanes.spread(size)
            if ((given != 0) & (given != load.bits // 8)).any():
                raise Unsupported("cp.async with a part of its size", load.line)
            values = [np.zeros(lanes.shape, U32) for _ in range(load.count)]
            some = np.flatnonzero(given != 0)
            if len(some):
                base = lanes.spread(source[0])[some]
                found = self.globals.access(load, lanes.only(some), base, source[1], source[2], None)
                for whole, part in zip(values, found or [], strict=True):
                    whole.reshape(-1)[some] = part
        assert values is not None
        self.copies = self.copies or AsyncCopies(self.shared, self.threads * self.blocks)
        unset = self.globals.unset if size is None else []
        self.shared.access(store, lanes, *to, tuple(values))
        if any(mask is not np.False_ for mask in unset):
            self.shared.forget(store, lanes, to[0], to[1], unset)
        self.copies.start(lanes, to[0].view(I64) + to[1], store.bits // 8, store.number)

    def commit_copies(self) -> None:
        if self.copies:
            self.copies.commit(self.lanes)

    def wait_for_copies(self, latest: int | None, site: Site) -> None:
        if self.copies:
            self.copies.wait(self.lanes, latest, site.number)

    def access(
        self, site: Site, base: Array, offset: int, origin: str, values: Any, atomic: Any = None
    ) -> list[Array] | None:
        """Hands over to the memory that the site's space, or the window of a generic address, names."""
        space = site.space
        if space == "generic":
            windows = np.unique(np.asarray(base.view(U64) >> U64(60)))
            if len(windows) > 1:
                raise Unsupported("a generic access to several spaces at once", site.line)
            window = int(windows[0]) << 60
            space = {SHARED_WINDOW: "shared", LOCAL_WINDOW: "local"}.get(window, "global")
            base = base if space == "global" else base.view(U64) - U64(window)
        memory: Any = {"shared": self.shared, "local": self.local}.get(space, self.globals)
        answer: list[Array] | None = memory.access(site, self.lanes, base, offset, origin, values, atomic)
        self.unset = memory.unset
        return answer


def _wait(threads: Collection[int]) -> str:
    return "waits" if len(threads) == 1 else "wait"
