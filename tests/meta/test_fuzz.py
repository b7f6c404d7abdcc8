"""Damaged PTX is refused in words or run; tests/fuzz.py does the same for as long as one likes."""

import importlib.util

import numpy as np
import pytest

from dojo import simulate, simulator
from dojo.katas import ROOT

SPEC = importlib.util.spec_from_file_location("fuzz", ROOT / "tests/fuzz.py")
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


def test_damaged_kernels():
    ended, bad = fuzz.fuzz(11, lambda cases: cases >= 30, ["solutions"])
    assert not bad
    assert ended["ran"] > 5
    assert ended["InvalidPTX"]
    assert ended["Unsupported"]


@pytest.mark.parametrize("text", ["", "not PTX", "\x00\xff", ".entry k(", ".visible .entry k() { mov.u32 }"])
def test_what_is_not_ptx_is_refused(text):
    with pytest.raises((KeyError, simulator.InvalidPTX, simulator.Unsupported)):
        simulator.run(text, "k", (1,), (1,), [])


def test_a_store_whose_address_is_no_address_is_refused():
    body = ".reg .f32 %f<2>; mov.f32 %f1, 0f00000000; st.shared.f32 0 [%f1], %f1; ret;"
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{body}\n}}\n"
    with pytest.raises(simulator.InvalidPTX):
        simulator.run(text, "k", (1,), (1,), [])


SOURCE = 'extern "C" __global__ void k(float *x) { extern __shared__ float s[]; s[0] = 1; x[0] = s[0]; }'


@pytest.mark.parametrize(
    ("grid", "block", "shared", "sentence"),
    [
        ((10**6, 1000), (1,), 16, "more than 134,217,728 threads"),
        ((1,), (1025,), 16, "at most 1,024 threads, not 1,025"),
        ((1,), (1,), 4 << 30, "4,294,967,296 bytes of shared memory: a block has at most 232,448"),
        ((0,), (1,), 16, "grid must be one to three positive numbers"),
        ((1,), (1, 1, 1, 1), 16, "block must be one to three positive numbers"),
    ],
)
def test_an_impossible_launch_is_told_in_a_sentence(grid, block, shared, sentence):
    with pytest.raises(ValueError, match=sentence):
        simulate(SOURCE, "k", grid, block, [np.zeros(1, np.float32)], shared)
