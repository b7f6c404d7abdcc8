"""What the compiler is asked, what comes back, and how an error reads. Real compiles, no GPU."""

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dojo import cache, nvrtc
from dojo.compile import (
    HEADERS,
    MISSING,
    PRELUDE,
    CompileError,
    Function,
    Resources,
    compile_cuda,
    read_source,
)
from dojo.katas import ROOT

PATH = "katas/00_scale.cu"
SIGNATURE = ("scale", "float *x, int n")
SCALE = """\
#define TILE_WIDTH 16
__global__ void scale(float *x, int n)
{
    __shared__ float tile[TILE_WIDTH];
    int i = blockIdx.x * TILE_WIDTH + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        x[i] = 2.0f * tile[TILE_WIDTH - 1 - threadIdx.x];
}
"""
BOMB = """\
template <int Depth, long Path> struct Tree {
    Tree<Depth - 1, 2 * Path> left;
    Tree<Depth - 1, 2 * Path + 1> right;
};
template <long Path> struct Tree<0, Path> { int leaf; };
__global__ void scale(float *x, int n) { x[0] = sizeof(Tree<40, 1>); }
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", tmp_path / ".cache")


def refused(source, path=PATH, **options):
    with pytest.raises(CompileError) as info:
        compile_cuda(source, path, **options)
    return str(info.value)


def constants(definitions, *names, **options):
    return compile_cuda(
        f"{definitions}\n__global__ void k() {{}}", PATH, constants=names, **options
    ).constants


# --- what comes back ----------------------------------------------------------------------------------------


def test_ptx_has_the_lines_of_the_file():
    ptx = compile_cuda(SCALE, PATH, constants=["TILE_WIDTH"], signature=SIGNATURE).ptx
    (barrier,) = (line for line, text in enumerate(ptx.splitlines()) if "bar.sync" in text)
    assert ptx.splitlines()[barrier - 1].split()[:3] == [".loc", "1", "7"]
    assert ".target sm_80" in ptx


@pytest.mark.parametrize("directive", ['#line 500 "other.inc"', "  # line 500", '# 500 "other.inc"'])
def test_lines_are_those_of_the_file_whatever_it_says_itself(directive):
    assert ".loc\t1 8 " in compile_cuda(f"{directive}\r\n{SCALE}", PATH).ptx
    assert refused(f"{directive}\nint a = b;").startswith(f"{PATH}(2): error: ")


def test_exports_leave_no_trace_in_the_ptx():
    options = {"constants": ["TILE_WIDTH"], "optional": {"SHARED_BYTES": 0}, "signature": SIGNATURE}
    assert compile_cuda(SCALE, PATH, **options).ptx.split() == compile_cuda(SCALE, PATH).ptx.split()


def test_cubin_is_for_the_card():
    compiled = compile_cuda(SCALE, PATH, arch="sm_90")
    assert compiled.arch == "sm_90"
    assert compiled.cubin.startswith(b"\x7fELF")


def test_resources_of_several_kernels():
    source = """
    __device__ __noinline__ float sum(float *x, int i)
    {
        float a[64], s = 0;
        for (int k = 0; k < 64; k++) a[k] = x[k * i];
        for (int k = 0; k < 64; k++) s += a[k * i % 64];
        return s;
    }
    __global__ void plain(float *x) { x[threadIdx.x] = 1; }
    extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float *x)
    {
        float a[100];
    #pragma unroll
        for (int i = 0; i < 100; i++) a[i] = x[i * threadIdx.x];
        __syncthreads();
    #pragma unroll
        for (int i = 0; i < 100; i++) x[i * i] = a[i] + sum(x, i);
    }
    __global__ void shared(float *x)
    {
        __shared__ double a[100];
        a[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = a[99 - threadIdx.x];
    }
    """
    compiled = compile_cuda(source, PATH)
    plain, spilling, shared = (compiled.resources[compiled.entry(k)] for k in ("plain", "spilling", "shared"))
    assert plain == Resources(
        plain.registers, spill_stores=0, spill_loads=0, stack=0, shared=0, max_threads=0
    )
    assert 0 < plain.registers < 32
    assert (spilling.registers, spilling.max_threads) == (32, 1024)
    assert min(spilling.spill_stores, spilling.spill_loads, spilling.stack) > 0
    assert shared.shared == 800


@pytest.mark.parametrize(
    ("declaration", "entry"),
    [
        ('extern "C" __global__', "scale"),
        ("__global__", "_Z5scalePfi"),
        ("static __global__", "_Z5scalePfi"),
        ("template <class T> __device__ void twice(T); __global__", "_Z5scalePfi"),
        ("__global__ void scale(float *, float); __global__", "_Z5scalePfi"),
        ("namespace mine { __global__ void scale(int) {} } __global__", "_Z5scalePfi"),
    ],
)
def test_kernel_is_found_by_its_name_in_the_source(declaration, entry):
    compiled = compile_cuda(SCALE.replace("__global__", declaration, 1), PATH, signature=SIGNATURE)
    assert compiled.entry("scale") == entry
    assert entry in compiled.resources


def test_the_parameters_are_known_by_their_names_in_the_file_also_from_the_cache():
    source = "__global__ void scale(float *numbers, int count) { numbers[0] = count; }"
    for _ in range(2):
        found = compile_cuda(source, PATH, signature=SIGNATURE)
        assert list(found.parameters) == ["numbers", "count"]
    assert not compile_cuda(SCALE, PATH).parameters


@pytest.mark.parametrize("opening", ["namespace {{ {} }}", "template <class Number> {}"])
def test_kernel_with_a_stranger_name_is_found_too(opening):
    source = "__global__ void scale(Number *x, int n) { x[n] = 1; }"
    compiled = compile_cuda(
        "using Number = float;\n" * ("{{" in opening) + opening.format(source), PATH, signature=SIGNATURE
    )
    entry = compiled.entry("scale")
    assert entry in compiled.resources
    assert f".entry {entry}(" in compiled.ptx
    assert entry.encode() in compiled.cubin


def test_kernel_is_found_without_a_signature():
    compiled = compile_cuda(SCALE + "__global__ void upscale(float *x) { *x = 1; }", PATH)
    assert compiled.entry("scale") == "_Z5scalePfi"
    with pytest.raises(KeyError, match="no kernel rescale"):
        compiled.entry("rescale")


def test_qualifiers_do_not_change_a_signature():
    source = (
        "__global__ void __launch_bounds__(64) scale(float *__restrict__ data, const int n) { data[n] = 1; }"
    )
    assert compile_cuda(source, PATH, signature=SIGNATURE).resources["_Z5scalePfi"].max_threads == 64


# --- constants ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definitions", "value"),
    [
        ("constexpr int BM = 128;", 128),
        ("constexpr int TM = 8; constexpr int BM = 16 * TM;", 128),
        ("#define TM 8\n#define BM TM * 16", 128),
        ("static const unsigned BM = 128;", 128),
        ("enum { BM = 128 };", 128),
        (
            "template <int N> struct Tile { static constexpr int rows = 16 * N; };\n#define BM Tile<8>::rows",
            128,
        ),
        ("__device__ constexpr int square(int x) { return x * x; } constexpr int BM = square(3);", 9),
        ("constexpr int BM = 0;", 0),
        ("constexpr int BM = -1;", -1),
        ("constexpr int BM = 1 << 24;", 1 << 24),
        ("constexpr long long BM = 1ll << 40;", 1 << 40),
    ],
)
def test_constant(definitions, value):
    assert constants(definitions, "BM") == {"BM": value}


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("", -1),
        ("#define SHARED_BYTES 4096", 4096),
        ("constexpr int SHARED_BYTES = 4096;", 4096),
        ("enum { SHARED_BYTES = 4096 };", 4096),
    ],
)
def test_optional_constant(definition, value):
    assert constants(definition, optional={"SHARED_BYTES": -1}) == {"SHARED_BYTES": value}


@pytest.mark.parametrize("last", ["// the end", "// the end \\", "#define LAST \\", "/* the end */"])
def test_constant_of_a_file_whose_last_line_is_not_ended(last):
    compiled = compile_cuda(SCALE + last, PATH, constants=["TILE_WIDTH"], optional={"SHARED_BYTES": 0})
    assert compiled.constants == {"TILE_WIDTH": 16, "SHARED_BYTES": 0}


def test_missing_constant_is_named():
    text = refused(SCALE, constants=["TILE_WIDTH", "ROWS"])
    assert text == f"{PATH} defines no ROWS: the launch needs constexpr int ROWS = ...;"


@pytest.mark.parametrize("definition", ["constexpr float ROWS = 16.5f;", "__device__ int ROWS = 16;"])
def test_constant_must_be_a_constant_whole_number(definition):
    assert "ROWS must be a constant whole number" in refused(SCALE + definition, constants=["ROWS"])


# --- a constant that is a function --------------------------------------------------------------------------

ROWS = Function("rows", "cols", "ROWS", (1, 31, 4096))
BODY = "{ return cols > 32 ? 1 : 8; }"
NO_VALUE = (
    ":11 rows has no value when the file is compiled: "
    "it must come to an end, and use nothing but cols and constants"
)


@pytest.mark.parametrize(
    ("definition", "values"),
    [
        ("constexpr int ROWS = 4;", [4, 4, 4]),
        ("#define ROWS 4", [4, 4, 4]),
        ("enum { ROWS = 0 };", [0, 0, 0]),
        (f"constexpr int rows(int cols) {BODY}", [8, 8, 1]),
        (f"constexpr int ROWS = 4; static constexpr int\nrows(const int cols)\n{BODY}", [8, 8, 1]),
        (f"__host__ __device__ constexpr int rows(int cols) {BODY}", [8, 8, 1]),
        (f"template <class Number> constexpr Number rows(Number cols) {BODY}", [8, 8, 1]),
    ],
)
def test_function_or_constant(definition, values):
    found = constants(definition, functions=[ROWS])
    assert [found[f"rows_{cols}"] for cols in (1, 31, 4096)] == values
    assert (found["ROWS"] == MISSING) == ("ROWS" not in definition)


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ("", " defines neither ROWS nor rows: the launch needs constexpr int ROWS = ...; or {signature}"),
        (f"__device__ int rows(int cols) {BODY}", ":11 rows must be constexpr: {signature}"),
        (f"int rows(int cols) {BODY}", ":11 rows must be constexpr: {signature}"),
        ("#define rows(cols) (cols)", ":11 rows must be constexpr: {signature}"),
        (f"constexpr int rows(int cols, int n) {BODY}", ":11 rows must take one number: {signature}"),
        ("constexpr int rows() { return 1; }", ":11 rows must take one number: {signature}"),
        ("constexpr float rows(int cols) { return 1; }", ":11 rows must return a whole number: {signature}"),
        ("constexpr int rows = 3;", ":11 rows must be a function: {signature}"),
        ("constexpr int rows(int cols) { return 8 / (cols / 31); }", NO_VALUE),
        ("constexpr int rows(int cols) { while (true) ; return 8; }", NO_VALUE),
        ("constexpr int rows(int cols) { return rows(cols); }", NO_VALUE),
        (
            "int ROWS = 3;",
            ":11 ROWS is a variable, and the launch needs a constant: constexpr int ROWS = ...;",
        ),
    ],
)
def test_function_that_gives_no_constant(definition, sentence):
    text = refused(SCALE + definition, functions=[ROWS])
    assert text == PATH + sentence.format(signature="constexpr int rows(int cols)")


def test_constexpr_function_needs_no_device_but_any_other_does():
    function = "constexpr int twice(int x) { return 2 * x; }\n"
    used = function + SCALE.replace("2.0f", "twice(1)")
    assert compile_cuda(used, PATH, constants=["TILE_WIDTH"], signature=SIGNATURE)
    for source, line, sentence in (
        (used.replace("constexpr ", ""), 1, "a function of the GPU needs __device__ before it"),
        (
            used + "int thrice(int x) { return 3 * x; }",
            12,
            "a function of the GPU needs __device__ before it",
        ),
        (used + "int count = 3;", 12, "a variable outside of a function needs constexpr before it"),
        (used.replace("return 2 * x;", "return 2 * x"), 1, 'expected a ";"'),
    ):
        text = refused(source, constants=["TILE_WIDTH"], signature=SIGNATURE)
        assert text.startswith(f"{PATH}({line}): error: {sentence}")
    assert "defines no ROWS" in refused(used, constants=["ROWS"], signature=SIGNATURE)


def test_define_reaches_a_guarded_constant():
    guarded = SCALE.replace("#define TILE_WIDTH 16", "#ifndef TILE_WIDTH\n#define TILE_WIDTH 16\n#endif")
    compiled = compile_cuda(guarded, PATH, constants=["TILE_WIDTH"], defines={"TILE_WIDTH": 32})
    assert compiled.constants["TILE_WIDTH"] == 32
    assert compiled.resources[compiled.entry("scale")].shared == 128


@pytest.mark.parametrize("definition", ["#define TILE_WIDTH 16", "constexpr int TILE_WIDTH = 16;"])
def test_define_without_a_guard_is_told(definition):
    source = SCALE.replace("#define TILE_WIDTH 16", definition)
    text = refused(source, constants=["TILE_WIDTH"], defines={"TILE_WIDTH": 32})
    assert "between #ifndef TILE_WIDTH and #endif" in text


def test_define_that_a_static_assert_refuses_is_the_files_own_error():
    guarded = SCALE.replace("#define TILE_WIDTH 16", "#ifndef TILE_WIDTH\n#define TILE_WIDTH 16\n#endif")
    guarded += 'static_assert(TILE_WIDTH % 16 == 0, "in sixteens");'
    text = refused(guarded, constants=["TILE_WIDTH"], defines={"TILE_WIDTH": 24})
    assert text.startswith(f'{PATH}(13): error: static assertion failed with "in sixteens"')


def test_one_letter_define_is_refused():
    with pytest.raises(ValueError, match="-DT="):
        compile_cuda(SCALE, PATH, defines={"T": 16})


# --- errors -------------------------------------------------------------------------------------------------


def test_error_is_as_the_compiler_wrote_it():
    assert refused(SCALE.replace("0.0f;", "zero;"), constants=["ROWS"], signature=SIGNATURE) == (
        f'{PATH}(6): error: identifier "zero" is undefined\n'
        "      tile[threadIdx.x] = i < n ? x[i] : zero;\n"
        "                                         ^"
    )


def test_first_two_errors_in_eight_lines_and_the_number_left():
    lines = refused(
        "\n".join(f"__device__ int a{i} = b{i};" for i in range(5)), signature=SIGNATURE
    ).splitlines()
    assert lines[0] == f'{PATH}(1): error: identifier "b0" is undefined'
    assert lines[3].startswith(f"{PATH}(2): error: ")
    assert lines[-1] == "... and 3 more errors"
    assert len(lines) == 7


def test_long_error_is_cut():
    deep = "template <int N> __device__ int f() { return f<N - 1>(); }\n"
    deep += "template <> __device__ int f<0>() { return q; }\n"
    lines = refused(
        deep + "__device__ int x() { return f<30>() + y + z; }\n" + "int " + "a" * 900 + " b;"
    ).splitlines()
    assert len(lines) <= 9
    assert max(map(len, lines)) <= 200


def test_warning_is_not_an_error():
    source = SCALE.replace("{\n", "{\n    int never_used, neither;\n", 1)
    assert compile_cuda(source, PATH, signature=SIGNATURE)
    text = refused(source.replace("2.0f *", "2.0f @"))
    assert "never_used" not in text
    assert f"{PATH}(10): error: " in text


def test_unclosed_brace_is_the_files_own_error():
    text = refused(SCALE.rstrip().removesuffix("}"), constants=["TILE_WIDTH"], signature=SIGNATURE)
    assert text.startswith(f'{PATH}(9): error: expected a "}}" at the end of the file')
    assert "dojo" not in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("scale", "scales"), "defines no kernel scale: it is called as scale(float *x, int n)"),
        (("int n", "float n"), "scale takes (float *, float), but it is called as scale(float *x, int n)"),
        (
            ("__global__", "__device__"),
            "scale is no kernel: it must be a __global__ void function with a body",
        ),
        (
            ("__global__", "template <int N> __global__"),
            "scale is no kernel that can be called as scale(float *x, int n)",
        ),
    ],
)
def test_other_kernel_is_one_sentence(change, sentence):
    text = refused(SCALE.replace(*change, 1), constants=["TILE_WIDTH"], signature=SIGNATURE)
    assert text.startswith(PATH)
    assert text.endswith(sentence)
    assert "\n" not in text


def test_too_much_shared_memory_is_a_launch_that_no_card_can_do():
    with pytest.raises(
        CompileError, match="scale declares 65,536 bytes of __shared__ arrays; a block can have 49,152"
    ) as info:
        compile_cuda(SCALE.replace("16", "16384", 1), PATH)
    assert info.value.kind == "launch"


def test_registers_are_those_of_the_file_without_what_is_appended():
    """ptxas gives this kernel seven registers less where its address is taken."""
    source, signature = read_source(ROOT / "solutions/05_reducesum.cu"), "const float *, float *, int, int"
    with_export = compile_cuda(source, PATH, signature=("row_sum", signature))
    assert with_export.resources == compile_cuda(source, PATH).resources


def test_names_of_what_is_appended_are_taken():
    text = refused(f"#define dojo_kernel other\n{SCALE}", signature=SIGNATURE)
    assert text == f"{PATH}:1 dojo_kernel is the grader's own: another name, please"


def test_error_of_the_assembler_names_the_file():
    text = refused("__device__ float f(float);\n__global__ void k(float *x) { *x = f(*x); }")
    assert text == f"{PATH}: ptxas fatal   : Unresolved extern function '_Z1ff'"


def test_error_of_the_assembler_comes_without_its_report():
    text = refused("__constant__ float c[20000];\n__global__ void k(float *x) { *x = c[threadIdx.x]; }")
    assert text.startswith(f"{PATH}: ptxas error   : File uses too much global constant data")


@pytest.mark.parametrize("source", ["", "\n", "// nothing", "__device__ int f() { return 1; }"])
def test_file_without_a_kernel(source):
    assert refused(source) == f"{PATH} contains no kernel, no function that is __global__ void"
    assert "defines no kernel scale" in refused(source, signature=SIGNATURE) or "is no kernel" in refused(
        source
    )


def test_random_bytes(tmp_path):
    file = tmp_path / "noise.cu"
    for seed in range(3):
        file.write_bytes(random.Random(seed).randbytes(20_000))
        text = refused(read_source(file), signature=SIGNATURE)
        assert text.startswith(f"{PATH}(1): ")
        assert text.replace("\n", "").isprintable()
        assert len(text.splitlines()) <= 9


def test_source_that_is_not_utf8_or_has_a_byte_order_mark(tmp_path):
    file = tmp_path / "latin1.cu"
    file.write_bytes(b"\xef\xbb\xbf// gr\xfc\xdfe\r\n" + SCALE.encode())
    assert compile_cuda(read_source(file), PATH, signature=SIGNATURE)


def test_nul_does_not_end_the_file():
    assert "(11): error" in refused(SCALE + "\0\n__global__ void k() {}", signature=SIGNATURE)


def test_huge_file():
    assert refused(SCALE + "//" * 1_000_000).startswith(f"{PATH} is 2,000,")


def test_unknown_architecture():
    assert "cannot compile for this card (sm_999)" in refused(SCALE, arch="sm_999")


def test_path_with_a_space():
    assert refused("int", path="my katas/a b.cu").startswith("my katas/a b.cu(1): error: ")


# --- headers ------------------------------------------------------------------------------------------------


def test_host_habits_compile():
    source = """
    #include <cuda_runtime.h>
    #include <cuda.h>
    #include <cstdio>
    #include <cfloat>
    #include <math.h>
    #include <stdint.h>
    #include <cuda_fp16.h>
    __global__ void k(float *x, uint32_t *u, int64_t *v, size_t n)
    {
        x[0] = fmaxf(-INFINITY, FLT_MAX) + NAN + M_PI + FLT_EPSILON + __half2float(__float2half(x[1]));
        u[0] = UINT_MAX - INT_MAX;
        v[0] = min(INT_MIN, 1);
        assert(n > 0);
        printf("%f", x[0]);
    }
    """
    assert compile_cuda(source, PATH)


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ("string.h iostream algorithm vector memory chrono cassert fstream iomanip map stdlib.h", "1"),
        ("cfloat", "DBL_EPSILON + FLT_DIG"),
        ("climits", "LLONG_MAX - CHAR_BIT"),
        ("limits.h float.h", "LONG_MAX - DBL_MIN"),
        ("cmath", "std::sqrt(x[1]) + std::abs(x[2]) + std::fma(x[1], x[2], x[3])"),
        ("cstddef", "std::size_t(1) + offsetof(int2, y)"),
        ("cstdint", "std::uint32_t(x[1]) + std::uintptr_t(x) + UINT32_MAX"),
        ("stdint.h", "uint32_t(x[1]) + uintptr_t(x) + INT64_MAX"),
        ("cstdio", 'std::printf("%f", x[1])'),
        ("cstring", "*(float *)std::memcpy(x, x + 1, 4)"),
        ("limits", "-std::numeric_limits<float>::infinity()"),
        (
            "array tuple type_traits utility",
            "std::array<float, 2>{1, 2}[1] + std::get<1>(std::make_tuple(1, 2.0f)) + std::move(x[2]) + "
            "std::is_same_v<int, std::decay_t<const int &>>",
        ),
        (" ".join(name for name in HEADERS if name != PRELUDE), "std::sqrt(x[1]) + std::uint32_t(x[2])"),
    ],
)
def test_what_a_kernel_uses_of_a_host_header(headers, value):
    """Each twice, and after another file's `using namespace std`."""
    includes = "".join(f"#include <{name}>\n" for name in headers.split())
    kernel = f"__global__ void k(float *x) {{ x[0] = {value}; }}"
    assert compile_cuda(f"{includes}using namespace std;\n{includes}{kernel}", PATH)


def test_bundled_headers_are_found_and_agree_with_the_prelude():
    assert compile_cuda(f"#include <cuda/std/cstdint>\n#include <cuda/std/limits>\n{SCALE}", PATH)


def test_a_file_may_define_what_the_prelude_does():
    source = "#define INFINITY 1e30f\ntypedef unsigned int uint32_t;\n" + SCALE
    assert compile_cuda(source, PATH)


def test_included_file_is_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nvrtc.stop()  # the next child begins in this folder
    for width in (8, 16):
        (tmp_path / "width.cuh").write_text(f"constexpr int TILE_WIDTH = {width};\n")
        source = '#include "width.cuh"\n__global__ void k() {}'
        assert compile_cuda(source, "a.cu", constants=["TILE_WIDTH"]).constants == {"TILE_WIDTH": width}
    nvrtc.stop()


# --- the child process --------------------------------------------------------------------------------------


def test_time_limit_and_a_new_child():
    began = time.monotonic()
    assert (
        refused(BOMB, time_limit=0.5)
        == f"{PATH}: the compiler was stopped: this file took it longer than 0.5 s"
    )
    assert time.monotonic() - began < 10
    assert compile_cuda(SCALE, PATH)


def test_crash_is_reported_and_a_new_child_begun():
    nvrtc.version()
    crash = threading.Timer(0.3, os.kill, (nvrtc._own.child.pid, signal.SIGSEGV))
    crash.start()
    assert refused(BOMB) == f"{PATH}: the compiler crashed on this file (SIGSEGV)"
    crash.join()
    assert compile_cuda(SCALE, PATH)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_the_child_leaves_the_drivers_cache_alone():
    compile_cuda(SCALE, PATH)
    settings = Path(f"/proc/{nvrtc._own.child.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_CACHE_DISABLE=1" in settings


def test_a_compiler_that_reports_no_registers_is_named(monkeypatch):
    tell = nvrtc.compile_program
    monkeypatch.setattr(nvrtc, "compile_program", lambda *a, **k: replace(tell(*a, **k), log=""))
    with pytest.raises(CompileError, match=r"NVRTC \d+\.\d+ did not report what katas/00_scale\.cu needs"):
        compile_cuda(SCALE, PATH, signature=SIGNATURE)


def test_child_that_ended_while_idle_is_no_fault_of_the_file():
    nvrtc.version()
    os.kill(nvrtc._own.child.pid, signal.SIGKILL)
    nvrtc._own.child.wait()
    assert compile_cuda(SCALE, PATH)


def test_no_nvrtc_on_macos(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr(nvrtc, "installed", lambda: "")
    assert "Linux container" in refused(SCALE)


def test_python_without_cupy(monkeypatch, tmp_path):
    (tmp_path / "cupy_backends.py").write_text("raise ImportError('libnvrtc.so.12 is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    nvrtc.stop()
    text = refused(SCALE)
    nvrtc.stop()
    assert "libnvrtc.so.12 is missing" in text
    assert "\n" not in text


# --- the cache ----------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The architectures that the compiler was asked for."""
    asked = []

    def compile_program(source, name, options, *rest, **limits):
        asked.append(options[0].partition("=")[2])
        return original(source, name, options, *rest, **limits)

    original = nvrtc.compile_program
    monkeypatch.setattr(nvrtc, "compile_program", compile_program)
    return asked


def test_second_compile_comes_from_the_cache(asked):
    options = {"constants": ["TILE_WIDTH"], "signature": SIGNATURE}
    first = compile_cuda(SCALE, PATH, **options)
    assert compile_cuda(SCALE, PATH, **options) == first
    assert asked == ["compute_80", "sm_80"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": SCALE + "\n"},
        {"path": "solutions/00_scale.cu"},
        {"arch": "sm_90"},
        {"constants": ["TILE_WIDTH"]},
        {"optional": {"SHARED_BYTES": 0}},
        {"signature": SIGNATURE},
    ],
)
def test_cache_tells_apart(change, asked):
    options = {"source": SCALE, "path": PATH}
    compile_cuda(**options)
    compile_cuda(**(options | change))
    assert len(asked) == 4


def test_cache_tells_compilers_apart(asked, monkeypatch):
    compile_cuda(SCALE, PATH)
    monkeypatch.setattr(nvrtc, "installed", lambda: "another")
    compile_cuda(SCALE, PATH)
    monkeypatch.setattr(
        nvrtc, "installed", lambda: ""
    )  # as with a system's CUDA: the library itself is asked
    compile_cuda(SCALE, PATH)
    assert len(asked) == 6


@pytest.mark.parametrize("harm", [b"", b"noise", "half", "flip"])
def test_corrupt_entry_is_compiled_again(harm, asked):
    first = compile_cuda(SCALE, PATH)
    (entry,) = cache.FOLDER.iterdir()
    data = entry.read_bytes()
    if harm == "half":
        harm = data[: len(data) // 2]
    elif harm == "flip":
        harm = data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]
    entry.write_bytes(harm)
    assert compile_cuda(SCALE, PATH) == first
    assert len(asked) == 4
    assert entry.read_bytes() == data


def test_a_long_file_without_code_takes_no_time():
    compile_cuda("\n" * 300_000 + SCALE, PATH, time_limit=30)


def test_error_is_not_cached(asked):
    for _ in range(2):
        refused("int", signature=SIGNATURE)
    assert len(asked) == 4
    assert not cache.FOLDER.exists()


def test_cache_stays_small(monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 8)
    for number in range(20):
        cache.store(f"entry{number}", number)
        os.utime(cache.FOLDER / f"entry{number}.json", (number, number))
        assert cache.load(f"entry{number}") == number
        os.utime(cache.FOLDER / f"entry{number}.json", (number, number))
        assert len(list(cache.FOLDER.iterdir())) <= 8
    assert cache.load("entry0") is None
    assert cache.load("entry19") == 19


def test_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "file" / ".cache")
    assert compile_cuda(SCALE, PATH)
