"""dojo/gpu.py and what stands behind it: guard zones, the child process, ratios and noise, the device clock.

The second half needs a card and is skipped, with the reason, without one.
"""

import ctypes
import json
import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import numpy as np
import pytest
from grading import MODULES, first_failure

from dojo import clocks, device, gpu, katas, rounds, simulate, slab, timing
from dojo.compile import compile_cuda
from dojo.grader import Grade
from dojo.slab import GUARD, Launch
from dojo.timing import Check, Clock, Timings

# Guard zones ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[], [4], [256, 256], [4, 8, 12, 1_000_003, 2]])
def test_every_guard_begins_at_the_byte_after_its_buffer(sizes):
    offsets, size = slab.place(sizes)
    ends = [offset + length for offset, length in zip(offsets, sizes, strict=True)]
    assert all(offset % 256 == 0 for offset in offsets)
    assert all(after - end >= GUARD for end, after in zip([0, *ends], [*offsets, size], strict=True))
    assert all(after - end < GUARD + 512 for end, after in zip([0, *ends], [*offsets, size], strict=True))


def packed(count=129 * 129):
    source = np.arange(count, dtype=np.float32).reshape(129, -1)
    args = [source, np.int32(7), np.zeros(count, np.float32)]
    launch = Launch(b"", "f", (1,), (1,), args, [2], names=["M", "n", "P"])
    memory, offsets = slab.pack(launch)
    return launch, memory, offsets


def test_a_slab_holds_the_inputs_and_poison():
    launch, memory, offsets = packed()
    outcome = slab.inspect(launch, memory, offsets)
    assert outcome.problem is None
    assert np.array_equal(outcome.arrays[0], launch.args[0])
    assert np.isnan(outcome.arrays[1]).all()


def test_the_guard_is_nan_in_every_float_format():
    for dtype in (np.float16, np.float32, np.float64):
        assert np.isnan(slab.guard(4096).view(dtype)).all()


@pytest.mark.parametrize(
    ("argument", "element", "said"),
    [
        (2, 16_641, "beyond the end of P, which has 16,641 elements: P[16641]"),
        (2, -1, "before the start of P, which has 16,641 elements: P[-1]"),
        (0, 16_641, "beyond the end of M, which has 16,641 elements: M[16641]"),
        (0, -1, "before the start of M, which has 16,641 elements: M[-1]"),
        (2, 16_641 + GUARD // 4 - 1, "beyond the end of P, which has 16,641 elements: P[33024]"),
    ],
)
def test_a_stray_write_is_found_wherever_it_lands(argument, element, said):
    launch, memory, offsets = packed()
    at = offsets[argument] + 4 * element
    memory[at : at + 4].view(np.float32)[:] = 1.0
    kind, message = slab.inspect(launch, memory, offsets).problem
    assert (kind, message) == ("bounds", f"the kernel wrote {said}")


def test_one_stray_byte_is_enough():
    launch, memory, offsets = packed()
    memory[offsets[2] + 4 * 16_641] ^= 1
    assert slab.inspect(launch, memory, offsets).problem[0] == "bounds"


def test_a_changed_input_is_a_wrong_result():
    launch, memory, offsets = packed()
    memory[offsets[0] : offsets[0] + 4].view(np.float32)[:] = -0.0  # equal to 0.0, and yet not what went in
    kind, message = slab.inspect(launch, memory, offsets).problem
    assert (kind, message) == ("result", "the kernel changed its input M: M[0] was 0 and is -0")


def test_scalars_have_the_width_that_the_kernel_reads():
    assert [type(slab.scalar(value)) for value in (7, 2.5, 2**40)] == [np.int32, np.float32, np.int64]
    assert [type(slab.scalar(value)) for value in (np.float64(2), np.int16(3))] == [np.float64, np.int16]


def test_refusals_have_a_kind():
    def kind(status):
        return slab.refusal(SimpleNamespace(status=status))[0]

    assert [kind(status) for status in (700, 716, 701, 1, 702, 710)] == [
        "bounds", "bounds", "launch", "launch", "timeout", "result",
    ]  # fmt: skip
    assert slab.refusal(MemoryError("12 GiB"))[0] == "launch"
    assert slab.refusal(ValueError("odd\nlines")) == ("launch", "the launch failed on the card (odd)")


# Is there a card? -------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch):
    """dojo.gpu as after its import; whatever child the test starts is ended."""
    monkeypatch.setattr(gpu, "_child", None)
    monkeypatch.setattr(gpu, "_found", None)
    yield monkeypatch
    gpu.stop()


def test_without_a_driver_nothing_is_started(fresh):
    def missing(name):
        raise OSError(name)

    fresh.setattr(ctypes, "CDLL", missing)
    fresh.setattr(gpu, "Child", None)
    assert gpu.card() is None
    assert gpu.why_not() == "no NVIDIA driver here"
    outcome = gpu.run(SimpleNamespace(cubin=b"", entry=str), "f", (1,), (1,), [], outputs=[])
    assert outcome.problem == ("launch", "there is no GPU to launch on (no NVIDIA driver here)")


@pytest.mark.parametrize(
    ("status", "message", "visible", "said"),
    [
        (35, "", None, "the NVIDIA driver is older than the CUDA that CuPy was built for: update the driver"),
        (100, "", None, "the NVIDIA driver shows no GPU"),
        (100, "", "", "the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES=)"),
        (2, "cudaErrorMemoryAllocation: out of memory\n", None,
         "CUDA does not start (cudaErrorMemoryAllocation: out of memory)"),
        (0, "", None, "CUDA does not start (no message)"),
    ],
)  # fmt: skip
def test_why_there_is_no_card(status, message, visible, said):
    assert device.no_card(status, message, visible) == said


# The child --------------------------------------------------------------------------------------------

CARD = device.Card("NVIDIA Practice", "sm_90", *[1] * 10, driver="13.0", cupy="14")

PRETEND = """
    import sys, time, os
    sys.path.insert(0, {root!r})
    from dojo import device
    device.look = lambda: {found}
    def run(launch):
        if launch.entry == "hang":
            time.sleep(600)
        if launch.entry == "crash":
            print("a last line")
            sys.stdout.flush()
            os._exit(3)
        if launch.entry == "stray":
            raise type("CUDADriverError", (RuntimeError,), dict(status=700))()
        return device.run.__globals__["Outcome"]([os.getpid()])
    device.TASKS["run"] = run
    device.serve(int(sys.argv[1]))
"""


def pretend(found=f"device.{CARD!r}"):
    """The command of a child that has no card and answers as if it had one."""
    return sys.executable, "-c", textwrap.dedent(PRETEND).format(root=str(gpu.ROOT), found=found)


@pytest.fixture
def with_pretended_card(fresh):
    real = gpu.Child
    fresh.setattr(ctypes, "CDLL", lambda name: None)
    fresh.setattr(gpu, "Child", lambda: real(pretend()))
    return fresh


def launched(entry, timeout_s=20.0):
    code = SimpleNamespace(cubin=b"", entry=lambda kernel: kernel)
    return gpu.run(code, entry, (1,), (1,), [], outputs=[], timeout_s=timeout_s)


def test_one_child_serves_all_launches(with_pretended_card):
    assert gpu.card() == CARD
    assert gpu.why_not() == ""
    first, second = launched("f"), launched("f")
    assert first.problem is None
    assert first.arrays == second.arrays != [os.getpid()]


def test_a_child_that_was_started_early_is_used(with_pretended_card):
    gpu.start()
    started = gpu._child.process.pid
    assert launched("f").arrays == [started]
    gpu.stop()
    gpu.start()
    assert launched("f").arrays == [gpu._child.process.pid] != [started]


def test_a_kernel_that_never_ends_is_killed(with_pretended_card):
    first = launched("f")
    assert launched("hang", timeout_s=0.2).problem == (
        "timeout",
        "the kernel had not ended after 0.2 s on the card and was killed",
    )
    with pytest.raises(ProcessLookupError):
        os.kill(first.arrays[0], 0)
    assert launched("f").arrays != first.arrays  # and another child serves the next launch


def test_a_crash_is_told_with_its_last_words(with_pretended_card):
    kind, message = launched("crash").problem
    assert kind == "launch"
    assert message.endswith("crashed (exit status 3, a last line)")
    assert launched("f").problem is None


def test_after_an_illegal_address_the_child_is_replaced(with_pretended_card):
    first = launched("f")
    assert launched("stray").problem[0] == "bounds"
    assert launched("f").arrays != first.arrays


def test_a_child_without_a_card_says_why(fresh):
    real = gpu.Child
    fresh.setattr(ctypes, "CDLL", lambda name: None)
    fresh.setattr(gpu, "Child", lambda: real(pretend("'the NVIDIA driver shows no GPU'")))
    assert gpu.card() is None
    assert gpu.why_not() == "the NVIDIA driver shows no GPU"
    assert gpu._child is None


def test_a_child_that_dies_at_its_start_is_no_card(fresh):
    real = gpu.Child
    fresh.setattr(ctypes, "CDLL", lambda name: None)
    fresh.setattr(gpu, "Child", lambda: real((sys.executable, "-c", "import sys; sys.exit('no luck')")))
    assert gpu.card() is None
    assert gpu.why_not() == "CuPy did not start (exit status 1, no luck)"


def test_the_child_dies_with_its_parent_even_while_a_kernel_hangs():
    parent = f"""
        import os, sys, time
        sys.path.insert(0, {str(gpu.ROOT)!r})
        from dojo import gpu
        child = gpu.Child({pretend()!r})
        child.receive(60)
        child.send("run", (gpu.Launch(b"", "hang", (1,), (1,), [], []),))
        time.sleep(0.3)
        print(child.process.pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(parent)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    child = int(ran.stdout)
    deadline = time.monotonic() + 10
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)


def running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# What times mean --------------------------------------------------------------------------------------


def test_a_ratio_is_paired():
    drift = np.linspace(1, 2, 51)  # the card grows slower and slower under both
    assert timing.paired_ratio(drift, 3 * drift) == pytest.approx(3)
    timings = Timings("yours", {"yours": drift, "naive": 3 * drift})
    assert timings.ratio("naive") == pytest.approx(3)
    assert timings.seconds("yours") == pytest.approx(1.5)
    assert not timings.too_noisy("naive")


def test_noise_is_what_neighbours_disagree_by():
    random = np.random.default_rng(5)
    assert timing.spread(random.normal(1, 0.005, 400)) == pytest.approx(2 * 1.2816 * 0.005, rel=0.15)
    assert Timings("a", {"b": random.normal(1, 0.05, 400)}).too_noisy("b")
    assert Timings("a", {"b": [1.0] * 4}).too_noisy("b")  # too few to say


def test_a_check_knows_the_inputs_of_its_launch():
    given = [np.arange(6).reshape(2, 3), np.int32(3), np.zeros(6)]
    check = Check(given, {0: 2}, {2: np.ones(6)})
    assert check.before[0].tolist() == check.args[0].tolist() == [[4, 5, 0], [1, 2, 3]]
    assert check.before[1] == check.args[1] == 3
    assert (check.before[2].sum(), check.args[2].sum()) == (0, 6)


def test_rounds_fill_the_time():
    assert [rounds.how_many(one, 1.0) for one in (0.01, 1e-6, 7.0)] == [100, 300, 9]


def test_work_is_repeated_for_a_time_and_while_there_is_more_to_wait_for(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(rounds.time, "perf_counter", lambda: float(next(now)))
    done = []
    assert rounds.repeat(lambda: done.append(0), 4.0) == 1.0
    assert len(done) == 2  # at 1 and 3 s: each looks at the clock twice
    more = iter([True, True, False])
    rounds.repeat(lambda: done.append(1), 0.0, lambda: next(more))
    assert done.count(1) == 2


@pytest.mark.parametrize("kernel", ["read_probe", "flush_l2"])
def test_the_read_probe_reads_everything_once(kernel):
    x = np.random.default_rng(5).uniform(0, 1, 4 * 1024 * 3 + 4).astype(np.float32)
    launch = gpu.read_probe(x, "sm_80", kernel)
    assert (launch.grid, launch.block, launch.outputs) == ((4,), (256,), (1,))
    source = gpu.PROBE.read_text()
    report = simulate(source, kernel, launch.grid, launch.block, launch.args, uninitialised=(1,))
    assert not report.findings
    assert launch.args[1].sum(dtype=float) == pytest.approx(x.sum(dtype=float), rel=2**-20)
    assert sum(a.bytes for a in report.accesses if (a.space, a.op) == ("global", "load")) == x.nbytes


def test_clocks_are_read_and_what_is_not_told_is_left_out():
    told = clocks.read("580.159.04, 1980, 1980, 3201, [N/A], 700.00, 45\n535.0, 1, 1, 1, 1, 1, 1\n")
    assert told == {
        "driver": "580.159.04", "SM clock, MHz": 1980, "highest SM clock, MHz": 1980,
        "memory clock, MHz": 3201, "power limit, W": 700, "temperature, C": 45,
    }  # fmt: skip
    assert clocks.Query(command=("no such program",)).answer() == {}
    assert (
        clocks.Query(command=(sys.executable, "-c", "import sys; print('1.0, 5'); sys.exit(6)")).answer()
        == {}
    )
    asked = clocks.Query("0000:05:00.0", command=(sys.executable, "-c", "import sys; print(sys.argv[-1])"))
    assert asked.answer()["driver"] == "--id=0000:05:00.0"


def test_clocks_are_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(clocks, "PATIENCE", 0.1)
    query = clocks.Query(command=(sys.executable, "-c", "import time; time.sleep(60)"))
    assert query.pending()
    assert query.answer() == {}
    assert not query.pending()


def test_tf32_is_told_from_float32():
    random = np.random.default_rng(1)
    a, b = (random.uniform(-1, 1, (256, 256)).astype(np.float32) for _ in "ab")
    assert rounds.float32_error(a, b, a @ b) < rounds.FP32_ERROR / 10

    def tf32(x):
        return ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)

    assert rounds.float32_error(a, b, tf32(a) @ tf32(b)) > rounds.FP32_ERROR * 2
    assert not rounds.float32_error(a, b, np.full_like(a, np.nan)) < rounds.FP32_ERROR


def test_the_clock_moves_by_device_time_only():
    clock = Clock()
    begin = clock()
    assert clock() == begin
    for _ in range(1000):
        clock.advance(2.5e-6)
    assert clock() - begin == pytest.approx(2.5e-3, rel=1e-12)


def test_the_table_of_pytest_benchmark_shows_device_times(tmp_path):
    (tmp_path / "test_speed.py").write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(gpu.ROOT)!r})
            from dojo.timing import Timings, tabulate

            def test_speed(benchmark):
                times = {{"yours": [0.001, 0.002, 0.003] * 3, "cuBLAS": [0.004] * 9}}
                for size in ("cols 32", "cols 64"):
                    tabulate(benchmark, Timings("yours", times), size, card="NVIDIA Practice")
            """
        )
    )
    plain = ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), "-W", "error"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, "--benchmark-json", "times.json", "test_speed.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTEST_XDIST_WORKER": ""},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = json.loads((tmp_path / "times.json").read_text())["benchmarks"]
    assert [(row["name"], row["group"]) for row in rows] == [
        ("yours", "cols 32"), ("cuBLAS", "cols 32"), ("yours", "cols 64"), ("cuBLAS", "cols 64")
    ]  # fmt: skip
    assert len({row["fullname"] for row in rows}) == 4
    saved = {row["name"]: row for row in rows[:2]}
    assert saved["yours"]["stats"]["data"] == pytest.approx([0.001, 0.002, 0.003] * 3)
    assert saved["yours"]["stats"]["median"] == pytest.approx(0.002)
    assert saved["cuBLAS"]["stats"]["median"] == pytest.approx(0.004)
    assert saved["cuBLAS"]["extra_info"]["candidate's speed in units of this"] == pytest.approx(2)
    assert saved["cuBLAS"]["extra_info"]["card"] == "NVIDIA Practice"
    assert saved["cuBLAS"]["fullname"] == "test_speed.py::test_speed::: cuBLAS, cols 32"


# On a card --------------------------------------------------------------------------------------------

SCALE = """
    __device__ int launches;
    __device__ float cache[2 << 20], sample[2 << 20];

    extern "C" __global__ void scale(float *x, float *y, int n) {
        extern __shared__ float scratch[];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { BODY }
    }
"""


@pytest.fixture
def on_card():
    if gpu.card() is None:
        pytest.skip(f"not run: {gpu.why_not()}")
    return gpu.card()


def scaling(body):
    source = textwrap.dedent(SCALE).replace("BODY", body)
    return compile_cuda(source, "scale.cu", arch=gpu.card().arch, signature=None)


def scaled(body, n=1000, block=128, shared_bytes=0, timeout_s=20.0):
    x = np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32)
    grid = (-(-n // block),)
    outcome = gpu.run(
        scaling(body), "scale", grid, (block,), [x, np.zeros_like(x), n],
        outputs=[1], shared_bytes=shared_bytes, names=["x", "y", "n"], timeout_s=timeout_s,
    )  # fmt: skip
    return x, outcome


def test_a_right_kernel_is_right(on_card):
    x, outcome = scaled("y[i] = 2.0f * x[i];")
    assert outcome.problem is None
    assert np.array_equal(outcome.arrays[0], x)
    assert np.array_equal(outcome.arrays[1], 2 * x)


def test_what_was_never_written_is_nan(on_card):
    _, outcome = scaled("if (i != 17) y[i] = 2.0f * x[i];")
    assert np.flatnonzero(np.isnan(outcome.arrays[1])).tolist() == [17]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("y[i + 1] = x[i];", "bounds", "y[1000]"),
        ("y[i - 1] = x[i];", "bounds", "y[-1]"),
        ("y[i] = x[i]; x[i] = 0.0f;", "result", "changed its input x: x[0] was"),
        ("y[i + (1ll << 40)] = x[i];", "bounds", "address"),
        ("*(float *)((char *)y + 1) = x[i];", "bounds", "misaligned"),
        ("y[i] = x[i]; asm(\"trap;\");", "bounds", "trap"),
    ],
)  # fmt: skip
def test_a_wrong_kernel_is_refused_and_the_next_one_runs(on_card, body, kind, said):
    _, outcome = scaled(body)
    assert outcome.problem is not None
    assert outcome.problem[0] == kind
    assert said in outcome.problem[1]
    assert scaled("y[i] = x[i];")[1].problem is None


def test_an_endless_kernel_gives_the_terminal_back(on_card):
    begin = time.monotonic()
    _, outcome = scaled("volatile float *flag = y; while (flag[i] != 1.0f); y[i] = x[i];", timeout_s=2.0)
    assert outcome.problem[0] == "timeout"
    assert time.monotonic() - begin < 15
    assert scaled("y[i] = x[i];")[1].problem is None


def test_an_impossible_launch_is_refused(on_card):
    assert scaled("y[i] = x[i];", block=2048)[1].problem[0] == "launch"
    assert scaled("y[i] = x[i];", shared_bytes=1 << 20)[1].problem[0] == "launch"


def test_dynamic_shared_memory_beyond_48_kib(on_card):
    if on_card.shared_optin < 64 * 1024:
        pytest.skip("not run: this card has no 64 KiB of shared memory")
    body = "int last = 16 * 1024 - 1 - threadIdx.x; scratch[last] = x[i]; y[i] = scratch[last];"
    x, outcome = scaled(body, shared_bytes=64 * 1024)
    assert outcome.problem is None
    assert np.array_equal(outcome.arrays[1], x)


def scale_launch(body, n=1 << 20, arrays=None):
    code = scaling(body)
    x, y = arrays or (np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32), np.zeros(n, np.float32))
    return Launch(code.cubin, code.entry("scale"), (n // 256,), (256,), [x, y, n], [1])


def all_right(timings):
    return all(np.array_equal(check.outputs[1], 2 * check.args[0]) for check in timings.checks)


def test_a_kernel_beside_itself(on_card):
    launch = scale_launch("y[i] = 2.0f * x[i];")
    timings = gpu.compare(launch, {"itself": launch}, seconds=0.3)
    assert timings.problem is None
    assert timings.ratio("itself") == pytest.approx(1, abs=0.05)
    assert len(timings.checks) >= 3
    assert all_right(timings)


def test_a_stream_is_made_on_the_card_and_rolled_there(on_card):
    n = 1 << 20
    stream = gpu.Stream(np.random.default_rng(n).uniform(-1, 1, 4099).astype(np.float32), n)
    timings = gpu.compare(
        scale_launch("y[i] = 2.0f * x[i];", n, [stream, np.zeros(n, np.float32)]), {}, seconds=0.1
    )
    assert timings.problem is None
    for check in timings.checks:
        x = np.roll(np.resize(stream.period, n), check.shifts[0])
        assert np.array_equal(check.outputs[1], 2 * x)


def test_the_read_probe_reads_everything_and_no_more(on_card):
    x = np.random.default_rng(5).uniform(0, 1, (1 << 22) + 4).astype(np.float32)
    launch = gpu.read_probe(x, on_card.arch)
    code = SimpleNamespace(cubin=launch.cubin, entry=lambda kernel: launch.entry)
    outcome = gpu.run(code, "read_probe", launch.grid, launch.block, launch.args, outputs=launch.outputs)
    assert outcome.problem is None
    assert outcome.arrays[1].size == 1025  # four elements are a block's worth of reading, too
    assert outcome.arrays[1].sum(dtype=float) == pytest.approx(x.sum(dtype=float), rel=2**-20)


def test_more_work_takes_longer(on_card):
    launch = scale_launch("y[i] = 2.0f * x[i];")
    body = "float s = x[i]; for (int k = 0; k < n / 1000; ++k) s = s * 1.01f - 0.01f; y[i] = s;"
    slow = scale_launch(body, arrays=launch.args[:2])
    assert gpu.compare(launch, {"slow": slow}, seconds=0.3).ratio("slow") > 2


# y = 2 x, and long enough at it that whoever leaves work out is seen to be faster.
WORK = "float s = x[i]; for (int k = 0; k < 2000; ++k) s = __fmaf_rn(s, -1.0f, 0.0f); y[i] = 2.0f * s;"
COUNT = "if (i == 0) ++launches;"
CHEATS = {
    "skips work on a repeated launch": f"if (launches > 3) return; {WORK} {COUNT}",
    "writes half of the output the second time": f"if (launches && i > n / 2) return; {WORK} {COUNT}",
    "keeps a result": f"if (launches > 3) y[i] = cache[i]; else {{ {WORK} cache[i] = y[i]; }} {COUNT}",
    "keeps a result for each sign of the first input": f"""
        int at = x[0] > 0.0f ? i + n : i;
        if (sample[at]) y[i] = cache[at]; else {{ {WORK} cache[at] = y[i]; sample[at] = 1.0f; }}""",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_kernel_that_only_looks_fast_fails_its_checks(on_card, cheat):
    timings = gpu.compare(scale_launch(CHEATS[cheat]), {"honest": scale_launch(WORK)}, seconds=0.3)
    assert timings.problem is None
    assert timings.ratio("honest") > 1.2
    assert not all_right(timings)


def test_a_result_kept_for_one_input_is_of_no_use(on_card):
    """Every launch has inputs that no launch before it had."""
    body = f"if (sample[i] == x[0]) y[i] = cache[i]; else {{ {WORK} cache[i] = y[i]; sample[i] = x[0]; }}"
    timings = gpu.compare(scale_launch(body), {"honest": scale_launch(WORK)}, seconds=0.3)
    assert all_right(timings)
    assert timings.ratio("honest") < 1.05


def test_a_kernel_that_idles_once_it_is_timed_fails_its_grade(on_card, tmp_path):
    """It works in the launches that are graded for their results: each of them loads it anew."""
    kata = katas.find("naive")
    text = kata.solution.read_text().replace('extern "C"', '__device__ int launches;\n\nextern "C"', 1)
    start = "    int Row ="
    assert text.count(start) == 1
    first = "blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0"
    idle = f"    if (launches > 5) return;\n    if ({first}) ++launches;\n"
    file = tmp_path / kata.file.name
    file.write_text(text.replace(start, idle + start))
    grade = Grade(MODULES[kata.stem].TASK, kata, file, on="gpu", seed=7)
    point, failure = first_failure(grade)
    assert (point, failure.kind) == ("speed", "result")
    assert "in a timed launch at Width 2048" in str(failure)


def test_a_kernel_that_hangs_when_repeated_is_killed(on_card):
    body = "volatile int *stuck = &launches; while (*stuck > 3); y[i] = x[i]; if (i == 0) ++launches;"
    assert gpu.compare(scale_launch(body), {}, seconds=0.3, timeout_s=5.0).problem[0] == "timeout"


PRODUCT = """
    extern "C" __global__ void product(const float *M, const float *N, float *P, int Width) {
        int Row = blockIdx.y * blockDim.y + threadIdx.y, Col = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0.0f;
        for (int k = 0; k < Width; ++k) sum += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = sum;
    }
"""


@pytest.mark.parametrize("transpose_b", [False, True])
def test_cublas_computes_in_float32(on_card, transpose_b):
    width = 512
    random = np.random.default_rng(width)
    M, N = (random.uniform(-1, 1, (width, width)).astype(np.float32) for _ in "MN")
    code = compile_cuda(textwrap.dedent(PRODUCT), "product.cu", arch=on_card.arch)
    tiles = width // 16
    launch = Launch(
        code.cubin, code.entry("product"), (tiles, tiles), (16, 16), [M, N, np.zeros_like(M), width], [2]
    )
    timings = gpu.compare(
        launch, {"cuBLAS": gpu.CuBLAS(0, 1, 2, width, width, width, transpose_b)}, seconds=0.3
    )
    if "cuBLAS" in timings.missing:
        pytest.skip(f"not run: {timings.missing['cuBLAS']}")
    assert timings.ratio("cuBLAS") < 1
    for check in timings.checks:
        exact = check.args[0].astype(np.float64) @ check.args[1]
        assert np.allclose(check.outputs[2], exact, atol=1e-3)
