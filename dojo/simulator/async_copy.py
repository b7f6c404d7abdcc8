"""cp.async: copies from global to shared memory that are under way until the thread that made them waits.

The bytes are put in place at once, but until the wait the places are marked, and who reads or writes them
races with the copy. Groups are counted thread by thread, as the manual says: cp.async.commit_group closes a
group, and cp.async.wait_group N waits for all but the thread's N latest groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .lanes import Lanes
from .shared_memory import SharedMemory

Array = Any


@dataclass(slots=True)
class Batch:
    """What some lanes copied in one instruction; lanes leave it when they have waited."""

    lanes: Array  # their numbers
    places: Array  # (places of a lane, lanes): flat index into the shadow
    group: Array  # the index of the group that each lane's copy belongs to


class AsyncCopies:
    """The copies of a chunk that are under way."""

    def __init__(self, shared: SharedMemory, lanes: int) -> None:
        self.shared = shared
        self.committed = np.zeros(lanes, np.int64)  # groups of each lane so far
        self.batches: list[Batch] = []
        places = shared.shadow.places * shared.blocks
        shared.in_flight, shared.copied = np.zeros(places, bool), np.zeros(places, np.int32)

    def start(self, lanes: Lanes, address: Array, size: int, site: int) -> None:
        """`lanes` have copied `size` bytes each to byte `address` of their shared memory."""
        shared, numbers = self.shared, lanes.numbers
        first = lanes.spread(address) // shared.grain
        steps = np.arange(size // shared.grain)[:, None]
        places = (first + steps) * shared.blocks + numbers % shared.blocks
        inside = (first >= 0) & (first + len(steps) <= shared.shadow.places)
        numbers, places = numbers[inside], places[:, inside]
        assert shared.in_flight is not None
        shared.in_flight[places], shared.copied[places] = True, site
        self.batches.append(Batch(numbers, places, self.committed[numbers]))

    def commit(self, lanes: Lanes) -> None:
        self.committed[lanes.numbers] += 1

    def wait(self, lanes: Lanes, latest: int | None, site: int) -> None:
        """At memory instruction `site`, for all groups but the `latest` ones; None: for everything, also
        what is not in a group yet.
        """
        waits = np.zeros(len(self.committed), bool)
        waits[lanes.numbers] = True
        for batch in self.batches:
            done = waits[batch.lanes]
            if latest is not None:
                done = done & (batch.group < self.committed[batch.lanes] - latest)
            if done.any():
                self.shared.landed(batch.places[:, done], batch.lanes[done], site)
                rest = ~done
                batch.lanes, batch.places, batch.group = (
                    batch.lanes[rest],
                    batch.places[:, rest],
                    batch.group[rest],
                )
        self.batches = [batch for batch in self.batches if len(batch.lanes)]
