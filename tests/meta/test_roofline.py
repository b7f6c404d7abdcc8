"""The roofline chart: which place a kernel has, and the roofs that a card without one would give."""

import re
from types import SimpleNamespace

import pytest
from stand_in import Card

from dojo import gpu, roofline
from dojo.roofline import Point, Roofs, chart, intensity, legend
from dojo.simulator import Access

H200 = Roofs(bandwidth=4.5e12, compute=61e12)
POINTS = [
    Point("1", "your 01_naive", 0.25, 5.4, own=True),
    Point("a", "solution", 4, 8.0),
    Point("5", "your 05_reducesum", 0.25, 1.1, own=True),
    Point("2", "yours", 4, 8.1, own=True),
]
CHART = """\
TFLOP/s
     64 |                                         --------------------
        |                                      /
     32 |                                   /
        |                                /
     16 |                             /
        |                          /
      8 |                       /      2
        |      1             /
      4 |                 /
        |              /
      2 |           /
        |        /
      1 |     /5
        |  /
    0.5 |
        +-------------------------------------------------------------
         1/8   1/4   1/2   1     2     4     8     16    32    64    128  FLOP/B"""


def test_the_chart():
    assert "\n".join(chart(POINTS, H200)) == CHART


def test_the_roofs_meet_at_the_ridge():
    assert H200.at(1) == 4.5e12
    assert H200.at(61 / 4.5) == pytest.approx(61e12)
    assert H200.at(100) == 61e12


def test_colour_is_for_ones_own_and_changes_nothing_else():
    text = "\n".join(chart(POINTS, H200, colour=True))
    assert re.findall(r"\033\[32m(.)\033\[0m", text) == ["2", "1", "5"]
    assert re.sub(r"\033\[\d+m", "", text) == CHART


@pytest.mark.parametrize(
    ("points", "roofs"),
    [
        ([], H200),
        ([], Roofs(0.3e12, 8e12)),  # a small card
        ([Point("1", "slow", 0.25, 1e-6)], H200),
        ([Point("1", "far out", 1e6, 70.0), Point("2", "far left", 1e-6, 0.1)], H200),
    ],
)
def test_it_fits_in_a_terminal(points, roofs):
    lines = chart(points, roofs)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    assert sum(point.mark in "".join(lines[1:-2]) for point in points) == len(points)


def test_the_legend_has_a_line_for_each_point():
    assert legend(POINTS[:2]) == [
        "1  your 01_naive     0.25 FLOP/B     5.4 TFLOP/s",
        "a  solution             4 FLOP/B     8.0 TFLOP/s",
    ]
    assert legend([]) == []


def test_intensity_is_per_byte_loaded():
    def access(op, space, size):
        return Access(
            line=1, op=op, space=space, bits=32, requests=1, sectors=1, wavefronts=0, conflicts=0, bytes=size
        )

    accesses = [access("load", "global", 100), access("load", "global", 28), access("store", "global", 900)]
    report = SimpleNamespace(accesses=[*accesses, access("load", "shared", 4096)])
    assert intensity(report, 512) == 4
    assert intensity(SimpleNamespace(accesses=[]), 512) == 0


def test_the_roofs_are_what_the_probes_reach(monkeypatch):
    Card(monkeypatch, {"the read probe": 1e-6, "FMA": 2e-3})
    roofs = roofline.measure(gpu.card())
    assert roofs.bandwidth == pytest.approx((1 << 20) / 1e-6)  # an eighth of the card's 8 MiB
    threads, steps, fmas = 132 * 2048, roofline.FMA_STEPS, 64 * 8
    assert roofs.compute == pytest.approx(2 * threads * steps * fmas / 2e-3)


def test_roofs_that_were_not_measured_say_why(monkeypatch):
    card = Card(monkeypatch)
    monkeypatch.setattr(gpu, "compare", lambda *_, **__: gpu.Timings("FMA", problem=("timeout", "it hung")))
    assert card.compared == []
    assert roofline.measure(gpu.card()) == "it hung"


# ------------------------------------------------------------------------------------------------- on a card


def test_the_fma_probe_reaches_the_lanes(on_card):
    roofs = roofline.measure(on_card)
    assert isinstance(roofs, Roofs)
    assert 1e10 < roofs.bandwidth < 2e13
    lanes = 64 if on_card.arch in ("sm_60", "sm_70", "sm_75", "sm_80") else 128
    clock = roofs.compute / (2 * lanes * on_card.multiprocessors)
    assert 0.6e9 < clock < 3.5e9
