"""What a compiler knows of a kernel's basic blocks before it runs: which block lies on every way to another,
and between which instructions a value cannot have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .program import Block, successors


class Flow:
    """The graph of the blocks. A set of blocks is an int, one bit each."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.before: list[set[int]] = [set() for _ in blocks]
        for block in blocks:
            for n in successors(block):
                self.before[n].add(block.number)
        every = (1 << len(blocks)) - 1
        self.dominators = [1, *[every] * (len(blocks) - 1)]  # of each block: on all ways from the entry to it
        changed = True
        while changed:
            changed = False
            for n in range(1, len(blocks)):
                dominators = every
                for earlier in self.before[n]:
                    dominators &= self.dominators[earlier]
                if self.dominators[n] != dominators | 1 << n:
                    self.dominators[n], changed = dominators | 1 << n, True
        self.order = sorted(blocks, key=lambda block: self.dominators[block.number].bit_count())
        self.at_loops = 0  # the heads of loops, and the blocks that the ways out of loops lead to
        for head in range(len(blocks)):
            for last in self.before[head]:
                if self.dominates(head, last):
                    loop = self._loop(head, last)
                    outside = (n for n in range(len(blocks)) if n not in loop)
                    left = sum(1 << n for n in outside if not loop.isdisjoint(self.before[n]))
                    self.at_loops |= 1 << head | left

    def dominates(self, a: int, b: int) -> bool:
        """Whether all ways to block `b` lead through block `a`."""
        return bool(self.dominators[b] >> a & 1)

    def _loop(self, head: int, last: int) -> set[int]:
        found, todo = {head}, [last]
        while todo:
            n = todo.pop()
            if n not in found:
                found.add(n)
                todo += self.before[n]
        return found

    def versions(self, cuts: set[int]) -> dict[int, int]:
        """For each instruction, by its id, the name of the version that it finds of what `cuts`, instructions
        by their ids, change.

        A new one begins behind each of these, where two versions meet (in the dominance frontier of what
        begins one), and where a loop is entered or left, since ptxas looks no further.
        """
        new = self.at_loops
        changing = new | sum(1 << b.number for b in self.order if any(id(i) in cuts for i in b.instructions))
        grew = True
        while grew:
            grew = False
            for n, earlier in enumerate(self.before):
                others = ~self.dominators[n] | 1 << n
                if not new >> n & 1 and any(self.dominators[e] & changing & others for e in earlier):
                    new, changing, grew = new | 1 << n, changing | 1 << n, True
        names: dict[int, int] = {}
        last: dict[int, int] = {}  # in a block, by its set of dominators
        for block in self.order:
            dominators = self.dominators[block.number]
            now = id(block) if new >> block.number & 1 else last.get(dominators ^ 1 << block.number, 0)
            for i in block.instructions:
                names[id(i)] = now
                if id(i) in cuts:
                    now = id(i)
            last[dominators] = now
        return names
