"""The arithmetic of a register-tiled product's constants: what a tile needs and what it saves. No compiler.

A block computes BM x BN elements of C, each thread TM x TN of them, BK steps of the sum at a time.
"""

from dataclasses import astuple, dataclass

WARP = 32
MOST_THREADS = 1024  # of a block, on every card
FLOAT32 = 4  # bytes

BLOCKS = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128), (256, 256))  # BM, BN
STEPS = (8, 16)  # BK
THREADS = ((4, 4), (8, 4), (8, 8), (16, 8))  # TM, TN


@dataclass(frozen=True)
class Tile:
    """One choice of the five constants, by the kernel's own names for them."""

    BM: int
    BN: int
    BK: int
    TM: int
    TN: int

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return (self.BN // self.TN) * (self.BM // self.TM)

    def shared(self, buffers: int = 1, element: int = FLOAT32) -> int:
        """Bytes of shared memory for the tiles of A and B, unpadded; `element` is the size of a number."""
        return buffers * element * self.BK * (self.BM + self.BN)

    @property
    def reuse(self) -> float:
        """FLOP for each element that a block loads: 2·BM·BN·BK of them for BK·(BM + BN)."""
        return 2 * self.BM * self.BN / (self.BM + self.BN)

    def impossible(self) -> str:
        """Why no kernel can have these constants, in a clause, or ""."""
        if min(astuple(self)) < 1:
            return "each constant must be at least 1"
        if self.BM % self.TM or self.BN % self.TN:
            return "threads of TM x TN do not fill the tile of BM x BN"
        if self.threads > MOST_THREADS:
            return f"{self.threads:,} threads, and a block has at most {MOST_THREADS:,}"
        if self.threads % WARP:
            return f"{self.threads} threads are not whole warps of {WARP}"
        return ""

    def __str__(self) -> str:
        return f"{self.BM}x{self.BN}x{self.BK} {self.TM}x{self.TN}"


def grid() -> list[Tile]:
    """The choices that `make kata=register tune` tries."""
    return [Tile(*block, step, *thread) for block in BLOCKS for step in STEPS for thread in THREADS]
