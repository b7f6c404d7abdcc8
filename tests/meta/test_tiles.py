"""The arithmetic of tile constants, against numbers worked out by hand."""

import pytest

from dojo.tiles import Tile, grid

HALF = 2  # bytes of a float16


def test_shared_bytes():
    assert Tile(128, 128, 8, 8, 8).shared(buffers=2, element=HALF) == 8 * 1024
    assert Tile(256, 256, 32, 8, 8).shared(buffers=2, element=HALF) == 64 * 1024
    assert Tile(256, 256, 32, 8, 8).shared() == 64 * 1024
    assert Tile(128, 64, 16, 8, 8).shared() == 4 * 16 * (128 + 64)


@pytest.mark.parametrize("side", [128, 64, 32])
def test_reuse_is_the_side_of_a_square_tile(side):
    assert Tile(side, side, 8, 8, 8).reuse == side
    assert Tile(side, side, 16, 4, 4).reuse == side  # neither BK nor the thread's tile is in it


def test_reuse_of_an_oblong_tile():
    assert Tile(128, 256, 8, 8, 8).reuse == pytest.approx(170.67, abs=0.01)


@pytest.mark.parametrize(
    ("tile", "why"),
    [
        (Tile(128, 128, 8, 8, 8), ""),
        (Tile(128, 256, 8, 4, 4), "2,048 threads, and a block has at most 1,024"),
        (Tile(32, 32, 8, 8, 8), "16 threads are not whole warps of 32"),
        (Tile(128, 96, 8, 8, 8), ""),  # 192 threads
        (Tile(128, 100, 8, 8, 8), "threads of TM x TN do not fill the tile of BM x BN"),
        (Tile(128, 128, 0, 8, 8), "each constant must be at least 1"),
    ],
)
def test_what_no_kernel_can_have(tile, why):
    assert tile.impossible() == why


def test_the_grid_has_each_choice_once_and_the_tiles_of_the_lesson():
    tiles = grid()
    assert len(set(tiles)) == len(tiles)
    assert {Tile(64, 64, 16, 4, 4), Tile(128, 128, 16, 8, 4), Tile(128, 128, 8, 8, 8)} <= set(tiles)


def test_a_tile_is_spelled_as_in_the_table():
    assert str(Tile(128, 64, 16, 8, 4)) == "128x64x16 8x4"
