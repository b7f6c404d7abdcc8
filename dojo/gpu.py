"""The card: is there one, launch a kernel on it, time it. The only door to the GPU; nothing here raises.

All GPU work happens in a child process (dojo/device.py), started on the first call and kept for the next: a
kernel that never ends is killed with it, and an illegal access poisons its context, not ours. Timing happens
there as well, since a kernel may end on its first launch and hang on its second. CuPy is imported there only.

    start()                          # optional: let the child import CuPy while something else is done
    card()                           # Card or None; why_not() says why in a sentence
    run(compiled, "matmul_tiled", grid, block, [M, N, P, np.int32(Width)], outputs=[2])  # -> Outcome
    compare(launch, {"naive": other_launch, "cuBLAS": CuBLAS(...)})                      # -> Timings
"""

import atexit
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dojo.compile import compile_cuda, read_source
from dojo.device import Card
from dojo.rounds import FLUSH, CuBLAS
from dojo.slab import Launch, Outcome, Stream
from dojo.timing import Timings

__all__ = [
    "Card",
    "CuBLAS",
    "Launch",
    "Outcome",
    "Stream",
    "card",
    "compare",
    "run",
    "start",
    "stop",
    "why_not",
]

ROOT = Path(__file__).resolve().parent.parent
PROBE = ROOT / "dojo/read_probe.cu"
ZEROS = np.zeros(1 << 16, np.float32)
SERVE = "import sys; sys.path.insert(0, sys.argv[1]); from dojo.device import serve; serve(int(sys.argv[2]))"
START_LIMIT = 60.0  # seconds for the child to import CuPy and make a context
NO_TF32 = {"CUPY_TF32": "0", "NVIDIA_TF32_OVERRIDE": "0"}  # read once, when CuPy and cuBLAS are loaded


class Code(Protocol):
    """What is needed of a `dojo.compile.Compiled`."""

    @property
    def cubin(self) -> bytes: ...

    def entry(self, kernel: str) -> str: ...


class Lost(Exception):
    """The child did not answer. `str()` says what became of it; `timeout` whether it was still running."""

    def __init__(self, message: str, timeout: bool = False) -> None:
        super().__init__(message)
        self.timeout = timeout


class Child:
    """A running dojo/device.py and the pipe to it."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-c", SERVE, str(ROOT))) -> None:
        self.pipe, theirs = Pipe()
        self.log = tempfile.TemporaryFile()  # what CuPy warns and kernels print; quoted if the child crashes
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **NO_TF32},
        )
        theirs.close()
        self.greeted = False

    def send(self, *request: Any) -> None:
        try:
            self.pipe.send(request)
        except OSError:
            pass  # it is gone; `receive` says so

    def receive(self, timeout_s: float) -> tuple[bool, Any]:
        try:
            if not self.pipe.poll(timeout_s):
                raise Lost(f"no answer after {timeout_s:g} s", timeout=True)
            alive, value = self.pipe.recv()
            return alive, value
        except (EOFError, OSError):
            raise Lost(self.last_words()) from None

    def last_words(self) -> str:
        try:
            status = f"exit status {self.process.wait(5)}"
        except subprocess.TimeoutExpired:
            status = "no exit status"
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").split("\n")
        return f"{status}{''.join(f', {line.strip()}' for line in lines[-2:] if line.strip())}"

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass  # the driver is still taking the kernel down; the system ends it
        self.log.close()


_child: Child | None = None
_found: Card | str | None = None  # the card, or why there is none, once that is known


def start() -> None:
    """Start the child if there is a driver, without waiting for it."""
    global _child, _found
    if _child or isinstance(_found, str):
        return
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        _found = "no NVIDIA driver here"
        return
    _child = Child()


def stop() -> None:
    """End the child; the next call starts another. Also runs when the interpreter ends."""
    global _child
    if _child:
        _child.end()
    _child = None


atexit.register(stop)


def ready() -> Child | None:
    """A child that has said what it found, or None without a usable card."""
    global _found
    start()
    if _child and not _child.greeted:
        _child.greeted = True
        try:
            _, _found = _child.receive(START_LIMIT)
        except Lost as lost:
            _found = f"CuPy did not start ({lost})"
        if isinstance(_found, str):
            stop()
    return _child


def card() -> Card | None:
    """The GPU that grades, or None without a usable one. The first call waits for the child (about 1 s)."""
    if _found is None:
        ready()
    return _found if isinstance(_found, Card) else None


def why_not() -> str:
    """Why `card()` is None, in a few words: "no NVIDIA driver here". Empty with a card."""
    card()
    return _found if isinstance(_found, str) else ""


def ask(function: str, *args: Any, timeout_s: float) -> tuple[Any, tuple[str, str] | None]:
    """The child's answer and no problem, or None and (kind, message)."""
    child = ready()
    if child is None:
        return None, ("launch", f"there is no GPU to launch on ({why_not()})")
    child.send(function, args)
    try:
        alive, value = child.receive(timeout_s)
    except Lost as lost:
        stop()
        if lost.timeout:
            late = f"the kernel had not ended after {timeout_s:g} s on the card and was killed"
            return None, ("timeout", late)
        return None, ("launch", f"the process that launched the kernel crashed ({lost})")
    if alive:
        return value, None
    stop()
    return None, value


def read_probe(x: np.ndarray | Stream, arch: str, kernel: str = "read_probe") -> Launch:
    """The launch of dojo/read_probe.cu on `x` that its header asks for. Raises CompileError."""
    code = compile_cuda(
        read_source(PROBE),
        PROBE.name,
        arch=arch,
        constants=("THREADS", "AT_ONCE"),
        signature=(kernel, "const float4 *x, float *partials, long long n4"),
    )
    n4, block = x.size // 4, code.constants["THREADS"]
    grid = -(-n4 // (block * code.constants["AT_ONCE"]))
    args = [x, np.empty(grid, np.float32), np.int64(n4)]
    return Launch(code.cubin, code.entry(kernel), (grid,), (block,), args, outputs=(1,))


def run(
    compiled: Code,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    *,
    outputs: Collection[int],
    shared_bytes: int = 0,
    inout: Collection[int] = (),
    names: Sequence[str] = (),
    timeout_s: float = 20.0,
) -> Outcome:
    """Launch once, between guard zones, and bring every array back.

    `args` are NumPy arrays and scalars: NumPy scalars as they are, a Python int as int32, a Python float as
    float32. `outputs` are the indices of the arrays that start as NaN (all bits one), `inout` those that the
    kernel may change but whose values it gets; every other array must come back bit for bit. `args` itself is
    not changed. `names` are the parameters' names, for messages. Give `kernel` as in the source.
    """
    entry = compiled.entry(kernel)
    launch = Launch(compiled.cubin, entry, grid, block, args, outputs, shared_bytes, inout, names)
    outcome, problem = ask("run", launch, timeout_s=timeout_s)
    return outcome if problem is None else Outcome([], problem)


def compare(
    candidate: Launch,
    baselines: Mapping[str, Launch | CuBLAS],
    *,
    name: str = "yours",
    seconds: float = 0.5,
    timeout_s: float = 120.0,
) -> Timings:
    """Time the candidate and the baselines in turns for about `seconds`, after half a second of warm-up.

    Only a launch that `run` has seen end well at this size belongs here. Before every sample the inputs are
    rolled in place by a secret distance, the outputs are poisoned and L2 is flushed. `CuBLAS` names its
    operands by index in the candidate's `args`. An array in several launches (the same object) travels once.
    The caller must still compare `Timings.checks` with the specification. A candidate that fails is
    `Timings.problem`; a baseline that fails is in `Timings.missing`.
    """
    timings: Timings
    found = card()
    flush = found and read_probe(
        Stream(ZEROS, max(FLUSH, 2 * found.l2_bytes) // 4), found.arch, kernel="flush_l2"
    )
    timings, problem = ask("compare", candidate, dict(baselines), name, seconds, flush, timeout_s=timeout_s)
    if problem:
        return Timings(name, problem=problem)
    return replace(timings, checks=[replace(check, given=candidate.args) for check in timings.checks])
