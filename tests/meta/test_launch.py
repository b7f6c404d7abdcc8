"""One launch on the simulator: whose names the messages have, and what a machine too small says."""

import numpy as np
import pytest
from grading import MODULES

from dojo import launch, simulator
from dojo.compile import compile_cuda
from dojo.launch import compile_for
from dojo.task import problem

TASK = MODULES["01_naive"].TASK
SIZE = TASK.sizes[0]
KERNEL = """
constexpr int TILE_WIDTH = 16;
extern "C" __global__ void matmul_naive({parameters})
{{
    {out}[0] = {first}[1];
}}
"""


def launched(parameters, out, first):
    source = KERNEL.format(parameters=parameters, out=out, first=first)
    compiled = compile_for(TASK, source, "a.cu", "sm_80", [SIZE])
    configuration = TASK.launch(SIZE, compiled.constants)
    return launch.launch(
        TASK, compiled, problem(TASK, SIZE, 7), configuration, lambda name, byte: name, on_gpu=False
    )


@pytest.mark.parametrize(
    ("parameters", "out", "first", "told"),
    [
        ("const float *A, const float *B, float *C, int n", "C", "A", "A[1]"),
        ("const float *M, const float *N, float *P, int Width", "P", "N", "N[1]"),
        # what cannot be told from the text is called as in the kata
        ("const float (*A), const float *B, float *C, int n", "C", "B", "N[1]"),
    ],
)
def test_an_array_has_its_name_in_the_file(parameters, out, first, told):
    (finding,) = launched(parameters, out, first).findings[:1]
    assert f"reads {told}, past its 1 element" in finding.message


def test_too_little_memory_is_no_internal_error(monkeypatch):
    def run(*args, **options):
        raise MemoryError

    monkeypatch.setattr(simulator, "run", run)
    with pytest.raises(simulator.Unsupported, match="this launch: it takes more memory than there is"):
        launched("const float *M, const float *N, float *P, int Width", "P", "N")


STRING = 'static __device__ const char *text = "why";'
VIRTUAL = """\
struct Base { __device__ virtual float f(float a) const { return a; } };
struct Twice : Base { __device__ float f(float a) const override { return a + a; } };
"""


@pytest.mark.parametrize(
    ("before", "body", "told"),
    [
        (STRING, "x[0] = text[1];", "the variable text on line 3: its initial value is an address"),
        (VIRTUAL, "Base a; Twice b; x[0] = (x[1] > 0 ? &a : &b)->f(x[2]);", "virtual functions on line 5"),
    ],
)
def test_an_address_in_a_variable_is_refused_where_it_is_used(before, body, told):
    def simulated(body):
        source = f'{before}\nextern "C" __global__ void k(float *x)\n{{ {body} }}'
        return simulator.run(compile_cuda(source, "a.cu").ptx, "k", 1, 1, [np.zeros(4, np.float32)])

    with pytest.raises(simulator.Unsupported, match=told):
        simulated(body)
    assert not simulated("x[0] = 1;").findings


def test_a_large_variable_is_refused_by_its_name():
    source = "__device__ float big[1 << 28];\n__global__ void k() { big[threadIdx.x] = 1; }"
    compiled = compile_cuda(source, "a.cu")
    with pytest.raises(simulator.Unsupported, match=r"1,073,741,824 bytes of big: .* 67,108,864"):
        simulator.run(compiled.ptx, compiled.entry("k"), 1, 1, [])


TURNS = "while (atomicAdd((int *)o, 0) != 31 - threadIdx.x) {} atomicAdd((int *)o, 1);"


@pytest.mark.parametrize(
    ("body", "waits"),
    [("for (int i = 0; i < n; i += 0) o[threadIdx.x] += i;", False), (TURNS, True)],
)
def test_a_spent_budget_says_no_more_than_is_known(body, waits):
    source = f'extern "C" __global__ void k(float *o, int n) {{ {body} }}'
    arrays = [np.zeros(32, np.float32), 5]
    (finding,) = simulator.run(compile_cuda(source, "a.cu").ptx, "k", 1, 32, arrays, budget=100_000).findings
    assert finding.kind == "timeout"
    assert "still runs where the simulator gives up, after " in finding.message
    assert ("waits too long for another thread" in finding.message) == waits


def test_the_smallest_launch_has_a_budget_to_wait_in():
    data = problem(TASK, SIZE, 7)
    assert launch.budget(data, TASK.launch(SIZE, {"TILE_WIDTH": 1})) == launch.LEAST_BUDGET
    large = problem(TASK, {"Width": 64}, 7)
    assert launch.budget(large, TASK.launch({"Width": 64}, {"TILE_WIDTH": 16})) > launch.LEAST_BUDGET
