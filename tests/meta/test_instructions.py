"""The instruction table on the simulator, and on a GPU where there is one: the same rows, bit for bit."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from instructions import KERNELS, REFUSED, ROWS, TESTS, UNSUPPORTED, run_on_gpu
from table import Kernel, Row, entry, ptx_for

from dojo.simulator import Unsupported, run


def simulate(test: Row | Kernel) -> list[str]:
    """What is wrong: the simulator's findings, and results that are not what they should be."""
    outputs = np.zeros(test.outputs, np.uint64)
    report = run(ptx_for([test]), "t0", (1,), (test.threads,), [np.array(test.inputs, np.uint64), outputs])
    findings = [f"{finding.kind}: {finding.message}" for finding in report.findings]
    return [*findings, *test.disagreements(outputs.tolist())]


def check(wrong: list[str]) -> None:
    if wrong:
        pytest.fail("\n".join(wrong[:5]), pytrace=False)


@pytest.mark.parametrize("test", ROWS, ids=str)
def test_instruction(test: Row) -> None:
    if re.match(REFUSED, test.ptx):
        with pytest.raises(Unsupported):
            simulate(test)
    else:
        check(simulate(test))


@pytest.mark.parametrize("test", KERNELS, ids=str)
def test_kernel(test: Kernel) -> None:
    check(simulate(test))


@pytest.mark.parametrize("instruction", UNSUPPORTED)
def test_refuses_what_it_lacks(instruction: str) -> None:
    setup = ["mov.u32 %r1, %tid.x;", "mov.u64 %rd1, %rd18;", "setp.eq.s32 %p1, %r1, 0;", ".loc 1 4 0"]
    ptx = ptx_for([]) + entry("t0", [*setup, instruction]) + '\n.file 1 "kernel.cu"\n'
    with pytest.raises(Unsupported) as error:
        run(ptx, "t0", (1,), (32,), [np.zeros(32, np.uint64), np.zeros(32, np.uint64)])
    assert error.value.line == 4
    assert ("%clock" if "%clock" in instruction else instruction.split()[0].rstrip(";")) in str(error.value)


def why_no_gpu() -> str:
    """Why the table cannot run on a GPU here, or nothing. Asks the driver first: importing CuPy is slow."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver here"
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no usable GPU: {error}"
    return ""


def test_on_a_gpu() -> None:
    if why := why_no_gpu():
        pytest.skip(why)
    ran = list(run_on_gpu())
    assert len(ran) == len(TESTS)
    check([disagreements[0] for _, disagreements in ran if disagreements])


def test_the_table_covers_the_isa() -> None:
    """Every instruction that NVRTC may write, up to local memory, has a row or a kernel."""
    asked = (
        "add sub mul mad div rem abs neg min max sad popc clz bfind brev bfe bfi testp copysign fma rcp sqrt"
        " rsqrt sin cos lg2 ex2 tanh setp set selp slct and or xor not cnot lop3 shf shl shr mov prmt cvt"
        " cvta ld st atom shfl bar membar fence bra ret exit"
    )
    text = ptx_for(TESTS).replace("{", " ").replace(";", " ")
    written = {word.split(".")[0] for word in text.split()}
    assert set(asked.split()) <= written


def test_a_wrong_result_is_told() -> None:
    """A row notices a bit, a number in a NaN's place, an error over the bound, a zero's sign."""
    exact = Row("add.f32 %r0, %r1, %r2;", (((0x3F800000, 0x3F800000), 0x40000000),))
    assert list(exact.disagreements([0x40000000])) == []
    told = "add.f32 %r0, %r1, %r2;  of 0x3f800000, 0x3f800000 = 0x40000001, but should be 0x40000000"
    assert list(exact.disagreements([0x40000001])) == [told]
    nan = Row("add.f32 %r0, %r1, %r2;", (((0x7F800000, 0xFF800000), -1),))
    assert list(nan.disagreements([0xFFC00001])) == []
    assert "should be NaN" in next(nan.disagreements([0x7F800000]))
    close = Row("rcp.approx.f32 %r0, %r1;", (((0x40400000,), 1 / 3),), ("ulp", 1))
    assert list(close.disagreements([0x3EAAAAAA])) == []
    assert "should be 0.333" in next(close.disagreements([0x3EAAAAAD]))
    zero = Row("sin.approx.f32 %r0, %r1;", (((0x80000000,), -0.0),), ("abs", 0.1))
    assert len(list(zero.disagreements([0]))) == 1
