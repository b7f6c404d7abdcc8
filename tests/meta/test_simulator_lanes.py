"""`Lanes`, `Shadow` and `Order` alone, for what no kernel is sure to reach."""

from __future__ import annotations

import copy
import itertools
import random

import numpy as np
import pytest

from dojo.simulator.findings import Log
from dojo.simulator.global_memory import GlobalMemory, _in_the_grid
from dojo.simulator.lanes import Lanes, union
from dojo.simulator.order import Order
from dojo.simulator.races import Shadow

THREADS, BLOCKS = 6, 4
SHAPES = [(), (1, 1), (THREADS, 1), (1, BLOCKS), (THREADS, BLOCKS)]
SETS = {
    "all": Lanes(THREADS, BLOCKS),
    "rows": Lanes(THREADS, BLOCKS, rows=np.array([0, 3, 4])),
    "columns": Lanes(THREADS, BLOCKS, columns=np.array([1, 2])),
    "rows and columns": Lanes(THREADS, BLOCKS, rows=np.array([5]), columns=np.array([0, 3])),
    "flat": Lanes(THREADS, BLOCKS, flat=np.array([1, 2, 7, 13, 22])),
    "one": Lanes(THREADS, BLOCKS, flat=np.array([9])),
}


def values(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 1000, shape).astype(np.uint32)


def table(whole):
    """The value of every lane by its number."""
    return np.broadcast_to(whole, (THREADS, BLOCKS)).reshape(-1)


def parts(lanes):
    """A value for these lanes in every shape that they may have."""
    if lanes.flat is not None:
        return [(), (lanes.count,)]
    rows, columns = lanes.shape
    return list(dict.fromkeys([(), (1, 1), (rows, 1), (1, columns), (rows, columns)]))


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_numbers_are_the_lanes_of_thread_and_block(lanes):
    where = np.broadcast_to(lanes.thread * BLOCKS + lanes.block, lanes.shape).reshape(-1)
    np.testing.assert_array_equal(where, lanes.numbers)
    assert lanes.count == len(lanes.numbers) == np.prod(lanes.shape)


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_take(lanes, shape):
    whole = values(shape)
    np.testing.assert_array_equal(lanes.spread(lanes.take(whole)), table(whole)[lanes.numbers])


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_put(lanes, shape):
    for part in (values(some, 1) for some in parts(lanes)):
        whole = values(shape)
        want = table(whole).copy()
        want[lanes.numbers] = lanes.spread(part)
        before = whole.copy()
        np.testing.assert_array_equal(table(lanes.put(whole, part)), want, f"a part of shape {part.shape}")
        np.testing.assert_array_equal(whole, before, "the old array has changed")


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_put_where_nothing_was(lanes):
    for part in (values(some, 1) for some in parts(lanes)):
        np.testing.assert_array_equal(table(lanes.put(None, part))[lanes.numbers], lanes.spread(part))


def test_put_keeps_bits():
    put = SETS["flat"].put(values((THREADS, 1)), np.full(5, -0.0, np.float32))
    assert put.dtype == np.uint32
    assert (table(put)[SETS["flat"].numbers] == 0x80000000).all()


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_where_and_union(lanes):
    for shape, threshold in itertools.product(parts(lanes), (-1, 500, 1000)):
        condition = values(shape, 2) < threshold
        yes, no = lanes.where(condition)
        holds = lanes.spread(condition)
        for part, want in ((yes, lanes.numbers[holds]), (no, lanes.numbers[~holds])):
            assert sorted(part.numbers if part else []) == sorted(want)
        both = union([part for part in (no, yes) if part is not None])
        np.testing.assert_array_equal(both.numbers, lanes.numbers)
        assert both.full == lanes.full or lanes.count == THREADS * BLOCKS


@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_by_warp(lanes):
    """Of a block of 40 threads: two warps, the second with 8 threads."""
    lanes = Lanes(40, BLOCKS, lanes.rows, lanes.columns, None if lanes.flat is None else lanes.flat * 7)
    for shape in parts(lanes):
        value = values(shape).astype(np.int64)
        rows, active, times = lanes.by_warp(value)
        want = {}
        for number, x in zip(lanes.numbers.tolist(), lanes.spread(value).tolist(), strict=True):
            want.setdefault((number % BLOCKS, number // BLOCKS // 32), {})[number // BLOCKS % 32] = x
        found = []
        for row, on in zip(rows, active, strict=True):
            here = np.flatnonzero(on)
            found.append(dict(zip(here, row[here].tolist(), strict=True)))
            before = np.searchsorted(here, np.flatnonzero(~on)) - 1
            np.testing.assert_array_equal(row[~on], row[here[np.maximum(before, 0)]])
        key = lambda warp: sorted(warp.items())  # noqa: E731
        assert sorted(found * times, key=key) == sorted(want.values(), key=key)


# The shadow: who is reported against whom. Warps of 32; an access is (op, threads, ...).


def clashes(*steps, ordered=None):
    """The kinds of conflict of each step on place 0; a step is "r", "w" or "a" (atomic) and its threads."""
    shadow = Shadow(2, 1)
    atomics = np.array([step[0] == "a" for step in steps])
    found = []
    for site, (op, *threads) in enumerate(steps):
        place, who = np.zeros(len(threads), np.intp), np.array(threads)
        if op == "r":
            conflicts = shadow.read(place, who, site, site, ordered)
        else:
            exempt = atomics if op == "a" else None
            conflicts, _ = shadow.write(place, who, site, site, ordered, exempt=exempt)
        found.append({"".join(word[0] for word in c.kind.split() if word != "after") for c in conflicts})
    return found


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([("w", 1), ("r", 1)], set()),
        ([("w", 1), ("r", 2)], {"rw"}),
        ([("r", 1), ("r", 2)], set()),
        ([("r", 1), ("w", 1)], set()),
        ([("r", 1, 2), ("w", 1)], {"wr"}),
        ([("r", 1, 2), ("w", 2)], {"wr"}),
        ([("r", 1), ("r", 2), ("w", 2)], {"wr"}),
        ([("r", 1), ("r", 2), ("r", 1), ("w", 1)], {"wr"}),
        ([("r", 1), ("r", 40), ("r", 2), ("r", 3), ("w", 3)], {"wr"}),
        ([("w", 1), ("w", 1)], set()),
        ([("w", 1), ("w", 2)], {"ww"}),
        ([("w", 1), ("r", 1), ("w", 2)], {"ww", "wr"}),
        ([("a", 1, 2), ("a", 3, 4)], set()),
        ([("a", 1), ("a", 2), ("r", 2)], {"rw"}),
        ([("a", 1, 2), ("w", 2)], {"ww"}),
        ([("a", 1), ("r", 1)], set()),
        ([("a", 1), ("r", 1), ("a", 2)], {"wr"}),
        ([("w", 1), ("a", 2)], {"ww"}),
        ([("w", 1), ("a", 1), ("a", 2)], set()),
    ],
)
def test_the_shadow(steps, last):
    assert clashes(*steps)[-1] == last


def same_warp_is_ordered(before, time, positions):
    return before // 32 == 0


def test_a_reader_of_another_warp_is_kept():
    """Thread 0 is ordered after its own warp, 0 to 31, but not after thread 40, however many read later."""
    for readers in itertools.permutations([1, 2, 3, 40]):
        steps = [("r", thread) for thread in readers]
        assert clashes(*steps, ("w", 0), ordered=same_warp_is_ordered)[-1] == {"wr"}, readers
    assert clashes(("r", 1, 40, 2, 3), ("w", 0), ordered=same_warp_is_ordered)[-1] == {"wr"}


def test_an_atomic_of_another_warp_is_kept():
    assert clashes(("a", 40), ("a", 1), ("a", 2), ("r", 0), ordered=same_warp_is_ordered)[-1] == {"rw"}


def test_blocks_have_shadows_of_their_own_and_lose_them_at_their_barrier():
    shadow = Shadow(2, 1)
    shadow.write(np.array([1]), np.array([5]), 0, 0, None)
    shadow.widen(3)
    place = np.array([1 * 3 + column for column in range(3)])
    shadow.clear_columns(np.array([1]))
    (conflict,) = shadow.read(place, np.array([6, 6, 6]), 1, 0, None)
    assert conflict.positions.tolist() == [0, 2]
    assert conflict.threads.tolist() == [5, 5]
    assert not shadow.read(place - 3, np.array([6, 6, 6]), 1, 0, None)


GRID_THREADS, GRID_BLOCKS = 96, 3


def global_memory(order, *, every_lane):
    memory = GlobalMemory({}, {}, Log((GRID_BLOCKS, 1, 1), (GRID_THREADS, 1, 1)), {}, [], True, every_lane)
    memory.log.blocks, memory.order = GRID_BLOCKS, order
    return memory


@pytest.mark.parametrize("masks", [False, True], ids=["whole warps", "masks"])
@pytest.mark.parametrize("blocks", [1, GRID_BLOCKS])
def test_what_the_shadow_keeps_is_enough(masks, blocks):
    """Random reads and barriers, then writes: the shadow knows of a race where a full record does."""
    raced = 0
    for seed in range(100):
        pick = random.Random(seed)
        order = Order(GRID_THREADS, GRID_BLOCKS, True, 0)
        memory = global_memory(order, every_lane=masks)
        shadow = Shadow(1, 1, _in_the_grid(memory.log, order, True), every_lane=masks)
        record = []  # (thread in the grid, time)
        few = [0, 1, 33] if seed % 2 else pick.sample([0, 1, 2, 3, 33, 34, 66], pick.choice([2, 4, 7]))
        for site in range(pick.randint(2, 12)):
            block = np.array([pick.randrange(blocks)])
            step = pick.choice(["read"] * 5 + ["syncwarp"] * 2 + ["syncthreads"])
            if step == "syncthreads":
                order.syncthreads(block)
            elif step == "syncwarp":
                warp, mask = pick.randrange(GRID_THREADS // 32), 0xFFFFFFFF
                mask = pick.getrandbits(32) | 1 if masks else mask
                lanes = np.array([warp * 32 + k for k in range(32) if mask >> k & 1])
                order.syncwarp(
                    Lanes(GRID_THREADS, GRID_BLOCKS, flat=lanes * GRID_BLOCKS + block), np.uint32(mask)
                )
            else:
                threads = block * GRID_THREADS + pick.sample(few, pick.choice([1, 1, 2, len(few)]))
                shadow.read(np.zeros(len(threads), np.intp), threads, site, order.now, None)
                record += [(thread, order.now) for thread in threads]
        for number in [thread + block * GRID_THREADS for thread in few for block in range(blocks)]:
            thread, column = np.array([number % GRID_THREADS]), np.array([number // GRID_THREADS])
            ordered = memory._ordered(thread, column, GRID_THREADS)
            races = any(
                other != number and not ordered(np.array([other]), np.array([time]), np.array([0]))[0]
                for other, time in record
            )
            kept = copy.deepcopy(shadow)
            found, _ = kept.write(np.array([0]), np.array([number]), 99, order.now, ordered)
            assert bool(found) == races, (seed, number)
            raced += races
    assert raced


# Order.


def order_of(*meetings, threads=40, blocks=2):
    """After `meetings`, each a list of lanes of block 1, or None for __syncthreads() of block 1."""
    order = Order(threads, blocks, True, 0)
    for lanes in meetings:
        if lanes is None:
            order.syncthreads(np.array([1]))
        else:
            mask = np.uint32(sum(1 << lane % 32 for lane in lanes))
            order.syncwarp(Lanes(threads, blocks, flat=np.array(lanes) * blocks + 1), mask)
    return lambda a, b, time=0, column=1: bool(
        order.ordered(np.array([a]), np.array([time]), np.array([b]), np.array([column]))[0]
    )


def test_order():
    ordered = order_of([0, 1], [1, 2])
    assert ordered(0, 1)
    assert ordered(1, 0)
    assert ordered(0, 2)  # by way of 1
    assert not ordered(2, 0)
    assert not ordered(0, 3)
    assert not ordered(0, 1, column=0)
    assert not ordered(0, 2, time=1)  # what 0 did after it had met 1
    assert not order_of([32, 33])(0, 1)  # the second warp
    assert order_of([32, 33])(32, 33)
    assert not order_of([0, 1])(32, 1)
    assert order_of(None)(0, 39)
    assert not order_of(None)(0, 39, column=0)
    assert not order_of(None)(0, 39, time=1)
    assert order_of([0, 1], None, [1, 2])(0, 39)
