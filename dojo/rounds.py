"""Timed rounds on the card: candidate and baselines in turns, each launch on inputs that no kernel has seen.

Runs in the child process (dojo/device.py) and only measures; dojo/timing.py says what the times mean.
"""

import gc
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo.clocks import PATIENCE, Query
from dojo.slab import POISON, Launch, Stream, load, refusal, scalar
from dojo.timing import Check, Timings

WARM_UP = 0.5  # seconds: an idle card runs at a fraction of its clock
FLUSH = 128 * 1024 * 1024  # bytes, at least
BUSY = 1e-3  # seconds of flushing before each launch, see `Rounds`
FP32_ERROR = 5e-5  # of a product against float64: float32 leaves about 1e-6, TF32 about 3e-4


@dataclass(frozen=True)
class CuBLAS:
    """The vendor's product out = a · b (or a · bᵀ) on the candidate's own arrays, by index in its `args`.

    a is (m, k), b is (k, n), or (n, k) with `transpose_b`, out is (m, n); float32 with TF32 off.
    """

    a: int
    b: int
    out: int
    m: int
    n: int
    k: int
    transpose_b: bool = False


class Buffers:
    """Device copies: `home` keeps the values, `work` is what kernels see. One pair an array object."""

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[Any, Any]] = {}

    def __call__(self, array: np.ndarray | Stream) -> tuple[Any, Any]:
        import cupy

        if id(array) not in self.pairs:
            home = (
                self.stream(array) if isinstance(array, Stream) else cupy.asarray(np.ascontiguousarray(array))
            )
            self.pairs[id(array)] = home, cupy.empty_like(home)
        return self.pairs[id(array)]

    def stream(self, stream: Stream) -> Any:
        import cupy

        home, period = cupy.empty(stream.size, np.float32), cupy.asarray(stream.period)
        for start in range(0, stream.size, period.size):
            part = home[start : start + period.size]
            part.data.copy_from_device(period.data, part.nbytes)
        return home


class Runner:
    """One competitor: `prepare` its arrays, then call it."""

    def __init__(self, launch: Launch, buffers: Buffers, kernel: Callable[[Sequence[Any]], None]) -> None:
        self.arrays = {i: buffers(array) for i, array in launch.arrays().items()}
        self.outputs = [i for i in self.arrays if i in launch.outputs]
        self.written = [i for i in self.arrays if i in launch.outputs or i in launch.inout]
        self.args = [self.arrays[i][1] if i in self.arrays else scalar(a) for i, a in enumerate(launch.args)]
        self.kernel = kernel

    def prepare(self, shift: Callable[[int], int]) -> dict[int, int]:
        """Roll every input in place by `shift(size)` elements and poison the outputs; returns the shifts."""
        from cupy.cuda import runtime

        shifts = {}
        for i, (home, work) in self.arrays.items():
            if i in self.outputs:
                runtime.memsetAsync(work.data.ptr, POISON, work.nbytes, 0)
                continue
            shifts[i] = shift(home.size)
            head = shifts[i] * home.itemsize
            tail = home.nbytes - head
            device_to_device = 3
            runtime.memcpyAsync(work.data.ptr + head, home.data.ptr, tail, device_to_device, 0)
            if head:
                runtime.memcpyAsync(work.data.ptr, home.data.ptr + tail, head, device_to_device, 0)
        return shifts

    def __call__(self) -> None:
        self.kernel(self.args)


def cublas(product: CuBLAS) -> Callable[[Sequence[Any]], None]:
    """cuBLAS as a function of the candidate's arguments."""

    def multiply(args: Sequence[Any]) -> None:
        a = args[product.a].reshape(product.m, product.k)
        b = args[product.b]
        b = b.reshape(product.n, product.k).T if product.transpose_b else b.reshape(product.k, product.n)
        a.dot(b, out=args[product.out].reshape(product.m, product.n))

    return multiply


def float32_error(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> float:
    """‖out - a·b‖ / ‖a·b‖ against float64, on a sample of rows spread over all of them."""
    rows = np.unique(np.linspace(0, len(a) - 1, 8).astype(int))
    exact = a[rows].astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(out[rows] - exact) / np.linalg.norm(exact))


def why_unfair(product: CuBLAS, runner: Runner) -> str:
    """Why cuBLAS is no baseline here, empty if it is: it must be there, and it must compute in float32."""
    import cupy

    runner.prepare(lambda size: 0)
    try:
        runner()
    except ImportError:
        return "cuBLAS is not installed"
    a, b, out = (cupy.asnumpy(runner.args[i]) for i in (product.a, product.b, product.out))
    b = b.reshape(product.n, product.k).T if product.transpose_b else b.reshape(product.k, product.n)
    error = float32_error(a.reshape(product.m, product.k), b, out.reshape(product.m, product.n))
    if not error < FP32_ERROR:
        return f"cuBLAS did not compute in float32 here: its error is {error:.0e}, float32 leaves about 1e-6"
    return ""


class Rounds:
    """Samples of device time: inputs never seen before, outputs poisoned, L2 flushed, then one launch.

    L2 is flushed by reading an array of at least twice its size. Writing one would do it too, but leaves L2
    full of what must go back to memory while the kernel reads: on an H200 that took 8 % of the bandwidth.
    What the rolls and the poison leave there goes back during the flush. It lasts a millisecond: the card
    must still be busy when the launch is queued, else the time between the events is the host's, not the
    kernel's (queueing cuBLAS through CuPy takes it about 0.1 ms).

    A kernel that works in some launches and idles in others moves its median only if it idles in most; the
    four launches that are checked, of which it cannot know, then catch it 15 times in 16.
    """

    def __init__(self, reader: Runner) -> None:
        import cupy

        self.reader = reader
        self.reader.prepare(lambda size: 0)
        self.begin, self.end = cupy.cuda.Event(), cupy.cuda.Event()
        self.random = random.SystemRandom()  # nothing that a kernel could foresee
        self.reads = 10
        self.time(self.flush)
        self.reads = max(1, round(self.reads * BUSY / self.time(self.flush)))

    def flush(self) -> None:
        for _ in range(self.reads):
            self.reader()

    def sample(self, runner: Runner) -> tuple[float, dict[int, int]]:
        """Seconds of one launch, and by how much each of its inputs was rolled."""
        shifts = runner.prepare(self.random.randrange)
        self.flush()
        return self.time(runner), shifts

    def time(self, work: Callable[[], None]) -> float:
        """Seconds between two events around some work."""
        import cupy

        self.begin.record()
        work()
        self.end.record()
        self.end.synchronize()
        return float(cupy.cuda.get_elapsed_time(self.begin, self.end)) * 1e-3


def repeat(work: Callable[[], None], seconds: float, more: Callable[[], bool] = lambda: False) -> float:
    """Do the work for so long, and while there is more to wait for: the shortest time that it took."""
    started = time.perf_counter()
    shortest = math.inf
    while (begin := time.perf_counter()) < started + seconds or (more() and begin < started + PATIENCE):
        work()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest


def how_many(one: float, seconds: float) -> int:
    """How many rounds fit in `seconds`, when `one` takes that long: 9 to 300."""
    return int(min(max(seconds / one, 9), 300))


def compare(
    candidate: Launch, baselines: Mapping[str, Launch | CuBLAS], name: str, seconds: float, reader: Launch
) -> Timings:
    """See `dojo.gpu.compare`. Raises what CuPy raises for the candidate.

    `reader` flushes L2, see `Rounds`.
    """
    import cupy

    buffers = Buffers()
    runners = {name: Runner(candidate, buffers, load(candidate))}
    rounds = Rounds(Runner(reader, buffers, load(reader)))
    rounds.sample(runners[name])
    missing = {}
    for baseline, launch in baselines.items():
        try:
            if isinstance(launch, CuBLAS):
                runner = Runner(candidate, buffers, cublas(launch))
                if reason := why_unfair(launch, runner):
                    missing[baseline] = reason
                    continue
            else:
                runner = Runner(launch, buffers, load(launch))
            rounds.sample(runner)
            runners[baseline] = runner
        except Exception as error:
            missing[baseline] = f"{baseline} does not run on this card ({refusal(error)[1]})"
            cupy.cuda.runtime.deviceSynchronize()  # raises again if the context is lost

    def one_round() -> None:
        for runner in runners.values():
            rounds.sample(runner)

    repeat(one_round, WARM_UP / 2)
    query = Query(cupy.cuda.Device().pci_bus_id)
    count = how_many(repeat(one_round, WARM_UP / 2, query.pending), seconds)

    gc.disable()  # the host must keep ahead of the card
    times: dict[str, list[float]] = {runner: [] for runner in runners}
    checked = {*rounds.random.sample(range(count), 3), count - 1}
    checks = []
    for i in range(count):
        order = list(runners)
        for who in order[i % len(order) :] + order[: i % len(order)]:
            taken, shifts = rounds.sample(runners[who])
            times[who].append(taken)
            if who == name and i in checked:
                left = {index: cupy.asnumpy(runners[who].args[index]) for index in runners[who].written}
                checks.append(Check((), shifts, left))
    gc.enable()
    return Timings(name, times, missing, checks, clocks=query.answer())
