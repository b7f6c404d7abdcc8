"""How many blocks of a kernel fit on one multiprocessor at a time, and what limits them.

The limits are those of the CUDA C++ Programming Guide's table "Technical Specifications per Compute
Capability"; the granularities those of Nsight Compute's occupancy calculator. Shared memory in bytes.
"""

from dataclasses import dataclass

REGISTERS = 65_536  # 32-bit registers of a multiprocessor
REGISTER_UNIT = 256  # a warp gets its registers in units of so many: eights a thread
WARP = 32
PARTS = 4  # a multiprocessor's schedulers; each has a quarter of the registers


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor of a compute capability holds."""

    warps: int
    blocks: int
    shared: int  # bytes for all its blocks
    reserved: int  # bytes of them that the system takes in each block
    shared_unit: int  # a block gets shared memory in units of so many bytes


def _multiprocessor(warps: int, blocks: int, kilobytes: int, *, ampere: bool = True) -> Multiprocessor:
    return Multiprocessor(warps, blocks, kilobytes * 1024, 1024 if ampere else 0, 128 if ampere else 256)


MULTIPROCESSORS = {
    "sm_60": _multiprocessor(64, 32, 64, ampere=False),
    "sm_61": _multiprocessor(64, 32, 96, ampere=False),
    "sm_70": _multiprocessor(64, 32, 96, ampere=False),
    "sm_75": _multiprocessor(32, 16, 64, ampere=False),
    "sm_80": _multiprocessor(64, 32, 164),
    "sm_86": _multiprocessor(48, 16, 100),
    "sm_87": _multiprocessor(48, 16, 164),
    "sm_89": _multiprocessor(48, 24, 100),
    "sm_90": _multiprocessor(64, 32, 228),
    "sm_100": _multiprocessor(64, 32, 228),
    "sm_120": _multiprocessor(48, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    """`blocks` fit on a multiprocessor; `limiter` names what keeps one more away."""

    blocks: int
    warps: int  # of all these blocks
    share: float  # warps over the most that a multiprocessor holds
    limiter: str  # "registers", "shared memory", "warps" or "blocks"

    def __str__(self) -> str:
        many = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return f"{many} an SM, occupancy {self.share:.0%} by {self.limiter}"


def occupancy(arch: str, threads: int, registers: int, shared: int) -> Occupancy | None:
    """Of blocks of `threads` threads with `registers` each and `shared` bytes a block (static and dynamic).

    None where the limits of `arch` ("sm_90") are not known. 0 blocks: such a block cannot be launched.
    """
    limits = MULTIPROCESSORS.get(arch)
    if limits is None:
        return None
    warps = -(-threads // WARP)
    of_a_warp = max(1, -(-registers * WARP // REGISTER_UNIT)) * REGISTER_UNIT
    in_registers = REGISTERS // of_a_warp // PARTS * PARTS  # warps: each lies within one part
    of_a_block = -(-(shared + limits.reserved) // limits.shared_unit) * limits.shared_unit
    fits = {
        "registers": in_registers // warps,
        "shared memory": limits.shared // of_a_block if of_a_block else limits.blocks,
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
    }
    limiter = min(fits, key=lambda name: fits[name])
    blocks = fits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps / limits.warps, limiter)
