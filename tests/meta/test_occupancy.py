"""Resident blocks, worked out by hand from the limits of each compute capability."""

import pytest

from dojo.occupancy import occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limiter"),
    [
        (
            "sm_80",
            256,
            32,
            2048,
            8,
            "registers",
        ),  # 2,048 threads of 32 registers fill both: 8 blocks of 8 warps
        ("sm_80", 256, 33, 0, 6, "registers"),  # granted in eights: 40 a thread, 51 warps, 48 in four parts
        ("sm_80", 256, 128, 0, 2, "registers"),
        ("sm_80", 128, 16, 8192, 16, "warps"),  # 164 KB hold 18 blocks of 8 + 1 KB, but warps end at 64
        ("sm_80", 64, 16, 8192, 18, "shared memory"),
        ("sm_75", 64, 16, 8192, 8, "shared memory"),  # nothing reserved: 64 KB / 8 KB
        ("sm_80", 32, 16, 0, 32, "blocks"),
        ("sm_86", 32, 16, 0, 16, "blocks"),
        ("sm_90", 256, 207, 20480, 1, "registers"),
        ("sm_90", 1024, 64, 8192, 1, "registers"),
        ("sm_90", 1024, 65, 8192, 0, "registers"),  # 72 registers x 1,024 threads are more than 65,536
    ],
)
def test_blocks_and_what_limits_them(arch, threads, registers, shared, blocks, limiter):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // 32)


def test_the_share_is_of_the_warps_that_a_multiprocessor_holds():
    assert occupancy("sm_90", 256, 128, 0).share == 0.25
    assert str(occupancy("sm_90", 256, 128, 0)) == "2 blocks an SM, occupancy 25% by registers"


def test_an_unknown_card_is_not_guessed():
    assert occupancy("sm_999", 256, 32, 0) is None
