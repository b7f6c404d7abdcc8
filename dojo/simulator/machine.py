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

from . import atomics
from .findings import Counts, Log, Report, report
from .global_memory import GlobalMemory
from .lanes import Lanes, union
from .local_memory import LocalMemory
from .memory import Buffer
from .numerics import I64, U32, U64, UNSIGNED
from .order import Order
from .parse import BYTES, Unsupported
from .shared_memory import SharedMemory
from .specials import SPECIALS
from .translate import LOCAL_WINDOW, SHARED_WINDOW, Block, Program, Site

Array = Any
CHUNK_LANES = 65_536
CHUNK_SHARED = 64 << 20  # bytes of shared memory simulated at a time
CHUNK_LOCAL = 256 << 20
LEAST_LANES = 256  # the budget counts a step of fewer lanes as one of so many: it takes as long
EVERY_LANE = 0xFFFFFFFF
CALLS = {"barrier": "__syncthreads()", "warp_barrier": "__syncwarp()", "shuffle": "the shuffle"}


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
        self.log = Log(grid, block)
        self.globals = GlobalMemory(
            buffers, origins, self.log, self.counts, program.sites, not program.uses_fence
        )
        self.now = 0

    def run(self) -> Report:
        """Every chunk of blocks in turn."""
        size = CHUNK_LANES // self.threads
        if self.shared_size:
            size = min(size, CHUNK_SHARED // self.shared_size)
        if self.local_size:
            size = min(size, CHUNK_LOCAL // (self.local_size * self.threads))
        size = max(1, size)
        try:
            with np.errstate(all="ignore"):
                for first in range(0, self.total_blocks, size):
                    self.run_chunk(first, min(size, self.total_blocks - first))
        except Stop:
            pass
        return report(self.log, self.program.sites, self.counts, self.fma, self.instructions)

    def run_chunk(self, first: int, blocks: int) -> None:
        self.first_block, self.blocks = first, blocks
        self.log.first_block, self.log.blocks = first, blocks
        self.order = self.globals.order = Order(
            self.threads, blocks, self.program.uses_warp_barrier, self.now
        )
        self.shared = SharedMemory(
            self.shared_size,
            blocks,
            self.grain,
            self.extents,
            self.log,
            self.counts,
            self.program.sites,
            self.order,
            self.element,
        )
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
                self.registers[self.program.mask_of(slot)] = np.True_
        self.waiting: dict[int, list[Lanes]] = {0: [Lanes(self.threads, blocks)]}
        self.parked: dict[int, list[Lanes]] = {}  # at __syncthreads(), by basic block
        self.held: dict[
            int, list[Lanes]
        ] = {}  # before a __syncwarp() or shuffle whose partners have not come
        while self.waiting or self.parked or self.held:
            if not self.waiting:
                self.meet()
                continue
            number = min(self.waiting)
            self.follow(number, union(self.waiting.pop(number) + self.held.pop(number, [])))
        self.now = self.order.now

    def follow(self, number: int, lanes: Lanes) -> None:
        """Runs `lanes` from basic block `number` on, until they part, meet others, or wait."""
        mine: list[Array] = self.registers if lanes.full else [None] * len(self.registers)
        fetched: set[int] = set()
        dirty: set[int] = set()
        self.lanes = lanes
        while True:
            block = self.program.blocks[number]
            if not lanes.full:
                for slot in block.reads - fetched:
                    mine[slot] = lanes.take(self.registers[slot])
                fetched |= block.reads | block.writes
                dirty |= block.writes
            answer = (block.function or self.program.code(number))(mine, self)
            self.instructions += lanes.count * block.counted
            self.fma += lanes.count * block.fmas
            self.spent += max(lanes.count, LEAST_LANES) * block.counted
            if self.spent > self.budget:
                self.out_of_budget(block, lanes)
            going = self.end(block, lanes, mine, answer)
            if len(going) == 1 and going[0][1] is lanes:
                number = going[0][0]
                if (
                    number >= 0
                    and number not in self.held
                    and not (self.waiting and min(self.waiting) <= number)
                ):
                    continue
            if not lanes.full:
                for slot in dirty & block.live_out:
                    self.registers[slot] = lanes.put(self.registers[slot], mine[slot])
            for target, some in going:
                self.put(target, some)
            return

    def end(self, block: Block, lanes: Lanes, mine: list[Array], answer: Any) -> list[tuple[int, Lanes]]:
        """Where the lanes go from the end of a basic block: (basic block, lanes); -1 is the kernel's end."""
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
                return [(block.next, lanes)]
            self.parked.setdefault(block.number, []).append(lanes)
            return []
        mask = answer if block.kind == "warp_barrier" else answer[4]
        late = self.late(block, lanes, mask)
        if late is not None:  # executed again: now by those whose partners are here, later by the others
            self.held.setdefault(block.number, []).append(lanes.only(late))
            if not late.all():
                held = self.held.pop(block.number)
                self.follow(block.number, lanes.only(~late))
                self.held.setdefault(block.number, []).extend(held)
            return []
        if block.kind == "warp_barrier":
            self.order.syncwarp(lanes, mask)
        else:
            self.shuffle(block, lanes, mine, answer)
        return [(block.next, lanes)]

    def put(self, number: int, lanes: Lanes) -> None:
        if number >= 0:
            self.waiting.setdefault(number, []).append(lanes)
        elif lanes.flat is None:
            self.alive[lanes.block[0]] -= len(lanes.thread)
        else:
            self.alive -= np.bincount(lanes.block, minlength=self.blocks)

    # barriers

    def release(self, columns: NDArray[np.intp] | None) -> None:
        """All threads of these blocks of the chunk (None: of all) have met."""
        self.order.syncthreads(slice(None) if columns is None else columns)
        self.shared.barrier(columns)

    def meet(self) -> None:
        """Nobody can run: lets go every block whose live lanes all wait at one barrier. If there is none,
        they hang.
        """
        released = np.zeros(self.blocks, bool)
        for number, parts in list(self.parked.items()):
            lanes = union(parts)
            here = np.bincount(lanes.numbers % self.blocks, minlength=self.blocks)
            complete = (here > 0) & (here == self.alive)
            if complete.any():
                gone, rest = lanes.where(lanes.take(complete[None, :]))
                assert gone is not None
                self.put(self.program.blocks[number].next, gone)
                self.parked.pop(number)
                if rest is not None:
                    self.parked[number] = [rest]
                released |= complete
        if not released.any():
            self.report_stuck()
        others = ~released & (self.alive > 0)
        self.release(np.flatnonzero(released) if others.any() else None)

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
            second, others = places[1]
            other_line = second.instructions[-1].line
            text += (
                f" on line {line}, while {self.some(others)} {_wait(others)} at {CALLS[second.kind]} on line "
                f"{other_line}: every thread of the block must reach the same one"
            )
        else:
            ended = self.threads - int(self.alive[column])
            text += f", and its mask names threads that have ended: {ended} of {self.threads}"
        self.log.add("barrier", line, text, other_line)
        raise Stop

    def some(self, threads: NDArray[np.intp]) -> str:
        first = self.log.thread_name(int(threads[0]))
        return first if len(threads) == 1 else f"{first} and {len(threads) - 1} more"

    def out_of_budget(self, block: Block, lanes: Lanes) -> None:
        each = self.instructions // (self.threads * (self.first_block + self.blocks))
        who = self.log.place(int(lanes.numbers[0]))
        text = f"{who} is still running after {each:,} instructions a thread: does this loop end?"
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
        misses = masks & exists[thread // 32] & ~present[warp] != 0
        if not misses.any():
            return None
        incomplete = np.zeros(len(present), bool)
        incomplete[warp[misses]] = True
        late: NDArray[np.bool_] = incomplete[warp]
        return late

    def shuffle(self, block: Block, lanes: Lanes, mine: list[Array], answer: Any) -> None:
        """shfl.sync d|p, a, b, c: the source lane by the manual's formula; p says whether it was in range."""
        mode, value, b, c, _ = answer
        thread, column = lanes.numbers // self.blocks, lanes.numbers % self.blocks
        lane = thread % 32
        b, c = lanes.spread(b).astype(I64) & 31, lanes.spread(c).astype(I64)
        segment, clamp = c >> 8 & 31, c & 31
        bound = (lane & segment) | (clamp & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lane & segment | b & ~segment}[
            mode
        ]
        inside = source >= bound if mode == "up" else source <= bound
        source = np.where(inside, source, lane)
        size = -(-self.threads // 32) * 32 * self.blocks
        whole, present = np.full(size, EVERY_LANE, U32), np.zeros(size, bool)
        whole[lanes.numbers], present[lanes.numbers] = lanes.spread(value), True
        wanted = (thread - lane + source) * self.blocks + column
        absent = np.flatnonzero(~present[wanted])
        shfl = block.instructions[-1]
        if len(absent):
            k = int(absent[0])
            why = (
                "does not exist" if thread[k] - lane[k] + source[k] >= self.threads else "does not take part"
            )
            self.log.add(
                "uninitialised",
                shfl.line,
                f"{self.log.place(int(lanes.numbers[k]))} takes a value from lane "
                f"{int(source[k])} of its warp, which {why} in the shuffle",
            )
        to = shfl.operands[0]
        for item, content in zip(getattr(to, "items", (to,)), (whole[wanted], inside), strict=False):
            if item is not None:
                slot = self.program.slots[item.name]
                mine[slot] = content.reshape(lanes.shape)
                if slot in self.program.unset:
                    mine[self.program.mask_of(slot)] = np.False_

    # what translated blocks call

    def parameter(self, name: str, offset: int, dtype: Any) -> Array:
        return np.frombuffer(self.arguments[name], dtype, 1, offset)[0]

    def check_set(self, unset: Array, line: int) -> None:
        if unset.any():
            k = int(np.flatnonzero(self.lanes.spread(unset))[0])
            who = self.log.place(int(self.lanes.numbers[k]))
            self.log.add("uninitialised", line, f"{who} uses a variable that was never set")

    def load(self, site: Site, base: Array, offset: int, origin: str) -> list[Array]:
        """The elements at base + offset for every running lane, as unsigned arrays."""
        found = self.access(site, base, offset, origin, None)
        assert found is not None
        return found

    def store(self, site: Site, base: Array, offset: int, origin: str, values: tuple[Array, ...]) -> None:
        self.access(site, base, offset, origin, values)

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
        if space == "shared":
            return self.shared.access(site, self.lanes, base, offset, origin, values, atomic)
        if space == "local":
            if atomic is not None:
                raise Unsupported("an atomic on local memory", site.line)
            answer: list[Array] | None = self.local.access(site, self.lanes, base, offset, values)
            return answer
        return self.globals.access(site, self.lanes, base, offset, origin, values, atomic)


def _wait(threads: Collection[int]) -> str:
    return "waits" if len(threads) == 1 else "wait"
