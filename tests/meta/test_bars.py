"""The bars of the traffic point, on made-up tables of accesses."""

import numpy as np
import pytest
from grading import MODULES

from dojo import simulate
from dojo.bars import (
    NEIGHBOURS,
    WHOLE,
    Coalesced,
    LoadSectors,
    Missed,
    NoBankConflicts,
    ReadOnce,
    WarpFMAs,
    intensity,
)
from dojo.pictures import banks, joined, sectors
from dojo.simulator import Access, Report


def access(line, op="load", space="global", bits=32, **counts):
    columns = dict.fromkeys(("requests", "sectors", "wavefronts", "conflicts", "bytes"), 0) | counts
    return Access(line=line, op=op, space=space, bits=bits, **columns)


def report(*accesses, fma=0):
    return Report(findings=[], accesses=list(accesses), fma=fma, instructions=1)


def missed(bar, report, size=None, constants=None):
    with pytest.raises(Missed) as caught:
        bar.judge(report, size or {"Width": 64}, constants or {})
    return caught.value


def test_a_line_that_loads_most_sectors_is_named():
    bar = LoadSectors(lambda Width, TILE_WIDTH: 100 * TILE_WIDTH, why="use tiles")
    table = report(
        access(7, sectors=900, bytes=28_800),
        access(8, sectors=701, bytes=44_000),
        access(9, op="store", sectors=10_000),
    )
    at = {"Width": 64}
    assert bar.judge(table, at, {"TILE_WIDTH": 17}) == "1,601 of 1,700 sectors"
    miss = missed(bar, table, at, {"TILE_WIDTH": 16})
    assert miss.line == 7
    assert str(miss).startswith(
        "loads 900 of the 1,601 sectors that the kernel loads from global memory at Width 64,"
    )
    assert "where the bar is 1,600;" in str(miss)
    assert str(miss).endswith(": use tiles")


@pytest.mark.parametrize(
    ("bytes", "bar", "why"),
    [
        (3_000, 999, NEIGHBOURS),  # 3 of 32 bytes are used
        (16_000, 500, WHOLE),  # half of them: whole sectors would be few enough
        (16_000, 499, "use tiles"),
        (99_000, 999, "use tiles"),  # lanes share what they load
    ],
)
def test_what_would_save_sectors_is_told_by_how_much_of_them_is_used(bytes, bar, why):
    table = report(access(7, sectors=1000, bytes=bytes))
    miss = missed(LoadSectors(lambda Width: bar, why="use tiles"), table, {"Width": 64})
    assert str(miss).startswith("loads all 1,000 sectors that the kernel loads")
    assert str(miss).endswith(f"at once: {why}")


def test_the_picture_of_sectors_shows_lanes_and_bytes_in_each():
    columns = tuple(256 * (lane % 16) for lane in range(32))
    assert sectors(access(7, worst=columns, array="M")) == [
        "sector of M    0   8  16  24  32  40  48  56  ...",
        "lanes          2   2   2   2   2   2   2   2  ...",
        "bytes used     4   4   4   4   4   4   4   4  ...",
        "one warp touches 16 sectors, 512 bytes; it uses 64",
    ]
    row = tuple(64 + 4 * lane if lane < 9 else None for lane in range(32))
    assert sectors(access(7, worst=row, array="N")) == [
        "sector of N    2   3",
        "lanes          8   1",
        "bytes used    32   4",
        "one warp touches 2 sectors, 64 bytes; it uses 36",
    ]
    assert sectors(access(7)) == []


def test_a_lane_may_touch_two_sectors_and_wide_numbers_leave_room():
    crossing = (24,) + (None,) * 31
    assert sectors(access(7, bits=128, worst=crossing, array="X"))[1:3] == [
        "lanes         1  1",
        "bytes used    8  8",
    ]
    far = tuple(1_000_000 * lane for lane in range(32))
    assert max(map(len, sectors(access(7, worst=far, array="X")))) <= 60


def test_the_picture_is_of_a_request_with_many_sectors_in_the_array_that_it_reads():
    source = """extern "C" __global__ void f(const float *near, const float *far, float *out) {
        int i = blockIdx.x * 32 + threadIdx.x;
        out[i] = near[i] + (i < 40 ? far[8 * i] : 0); }"""
    near, far, out = np.ones(64, np.float32), np.ones(320, np.float32), np.ones(64, np.float32)
    report = simulate(source, "f", (2,), (32,), [near, far, out])
    (load,) = [access for access in report.accesses if access.op == "load"]
    assert (load.array, load.worst) == ("far", tuple(32 * lane for lane in range(32)))
    (store,) = [access for access in report.accesses if access.op == "store"]
    assert (store.array, store.worst) == ("out", tuple(4 * lane for lane in range(32)))


def test_a_load_that_the_source_does_not_have_so_wide_is_explained():
    one, four = access(9, space="shared", bits=32), access(9, space="shared", bits=128)
    assert joined(Report([], [one], 0, 1, ptx_accesses=[one])) == []
    assert joined(Report([], [four], 0, 1, ptx_accesses=[one])) == [
        "the assembler joins neighbouring accesses of a thread"
    ]


@pytest.mark.parametrize(("tile", "bar"), [(8, 10240), (16, 5120), (32, 2560)])
def test_the_bar_of_tiled_is_that_of_its_header(tile, bar):
    assert MODULES["02_tiled"].most_sectors(Width=64, TILE_WIDTH=tile) == bar


def test_coalesced_counts_sectors_a_request():
    table = report(access(7, requests=100, sectors=200), access(8, requests=100, sectors=300))
    assert Coalesced(4).judge(table, {"Width": 64}, {}) == "2.5 sectors a request (bar 4)"
    miss = missed(
        Coalesced(4), report(access(7, requests=100, sectors=100), access(8, requests=100, sectors=1600))
    )
    assert miss.line == 8
    assert str(miss).startswith("loads 16.0 sectors a request, 8.5 on average in the kernel at Width 64,")


def test_a_vector_request_may_have_more_sectors():
    assert Coalesced(4).judge(report(access(7, bits=128, requests=10, sectors=160)), {"Width": 64}, {})


def test_a_kernel_without_loads_has_no_traffic_to_judge():
    assert Coalesced(4).judge(report(), {"Width": 64}, {}) == "0.0 sectors a request (bar 4)"


def test_bytes_asked_for_twice_are_refused():
    bar, at = ReadOnce(lambda Width: 4 * Width), {"Width": 64}
    table = report(access(7, bytes=200), access(8, bytes=56), access(9, op="store", bytes=99))
    assert bar.judge(table, at, {}) == "each element read once"
    miss = missed(bar, report(access(7, bytes=200), access(8, bytes=60)), at)
    assert miss.line == 8  # the first of them alone would do
    assert str(miss) == (
        "asks for 60 of the 260 bytes that threads load from global memory at Width 64, where each element "
        "once is 256: nothing should be loaded twice"
    )


def test_what_the_kernel_wrote_is_no_input():
    bar, at = ReadOnce(lambda Width: 4 * Width), {"Width": 64}
    read_again = access(8, bytes=60, array="sums")
    table = report(access(7, bytes=256, array="X"), read_again, access(9, op="store", bytes=4, array="sums"))
    assert bar.judge(table, at, {}) == "each element read once"


def test_bank_conflicts_are_refused_in_loads_and_stores():
    clean = report(access(7, space="shared", requests=8, wavefronts=8))
    assert NoBankConflicts().judge(clean, {"Width": 64}, {}) == "0 conflicts"
    table = report(access(9, op="store", space="shared", requests=8, wavefronts=256, conflicts=248))
    miss = missed(NoBankConflicts(), table)
    assert miss.line == 9
    assert str(miss).startswith(
        "takes 256 wavefronts of shared memory for 8 store requests at Width 64, 248 of them"
    )


def test_intensity_counts_two_for_an_fma_and_global_bytes_only():
    table = report(
        access(7, bytes=800), access(8, op="store", bytes=200), access(9, space="shared", bytes=5), fma=125
    )
    assert intensity(table) == 0.25
    assert intensity(report()) == 0


def test_the_picture_shows_what_the_worst_bank_must_serve():
    column = access(9, space="shared", conflicts=31, worst=tuple(128 * n for n in range(32)))
    assert banks(column) == [
        "bank   0       8       16      24     31",
        "words  #...............................   (# is 10 or more)",
        "bank 0 serves 32 words in turn, to lanes 0, 1, 2, 3, ... 31",
    ]


def test_the_picture_of_a_wide_access_is_of_the_group_that_costs_most():
    rows = tuple(None if n < 8 else 16 * n if n < 16 else 128 * n for n in range(32))  # of 16 bytes
    picture = banks(access(9, space="shared", bits=128, conflicts=14, worst=rows))
    assert picture[1:] == [
        "words  8888............................",
        "bank 0 serves 8 words in turn, to lanes 16, 17, 18, 19, ... 23",
        "each lane asks for 16 bytes: 8 lanes are served at a time",
    ]


def test_warp_fmas_are_held_against_the_wavefronts_of_the_ptx():
    rows = [access(27, space="shared", wavefronts=64), access(28, space="shared", op="store", wavefronts=999)]
    table = Report([], [], fma=32 * 48, instructions=1, ptx_accesses=rows)
    assert WarpFMAs(0.7).judge(table, {"K": 8}, {}) == "0.75 warp FMAs/wavefront"
    miss = missed(WarpFMAs(0.75), table, {"K": 8})
    assert miss.line == 27
    assert "0.75 warp FMAs for each wavefront of its shared loads, where the bar is more than 0.75" in str(
        miss
    )
