"""NVRTC, NVIDIA's run-time compiler, in a child process: both ends of the pipe.

NVRTC can crash or hang on odd input and takes a while to load: neither happens in the process that grades.
The child imports CuPy's bindings of NVRTC only (no GPU needed), says hello, and then answers a request
at a time until its stdin closes. What is compiled and what an error means is the subject of `dojo.compile`.
"""

from __future__ import annotations

import atexit
import os
import pickle
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

TIME_LIMIT = 60.0  # seconds a compile may take
MEMORY_LIMIT = 4 << 30  # bytes of data the child may hold: a runaway template must not take the machine down


class NoCompiler(Exception):
    """NVRTC cannot be used on this machine; str(e) is one sentence that says what to do."""


class Died(Exception):
    """The child ended in the middle of a compile; str(e) is a clause: "crashed on this file (SIGSEGV)"."""


@dataclass(frozen=True)
class Answer:
    """What NVRTC made of one program: `output` is the PTX or the cubin, empty after an error."""

    log: str
    output: bytes


# ---------------------------------------------------------------------------------------- the grading process


class _Own(threading.local):
    """Each thread's own child: threads compile side by side."""

    child: subprocess.Popen[bytes] | None = None
    version = ""  # as the child's hello says: "12.9", empty until heard


_own = _Own()
_children: list[subprocess.Popen[bytes]] = []  # of all threads


def start() -> None:
    """Begin the child without waiting for it, so that its imports overlap with the caller's own."""
    if platform.system() == "Darwin" or (_own.child is not None and _own.child.poll() is None):
        return
    stop()
    _own.version = ""
    # A session of its own: Ctrl-C is for the grading process, whose end closes the child's stdin.
    _own.child = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Where there is a driver, NVRTC takes a cubin that it made before from the driver's cache, and then
        # ptxas reports no registers.
        env={**os.environ, "CUDA_CACHE_DISABLE": "1"},
    )
    _children.append(_own.child)


def stop() -> None:
    """End this thread's child, if there is one."""
    child, _own.child = _own.child, None
    if child is not None:
        _children.remove(child)
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:  # a request that the child never read
                    pass


@atexit.register
def stop_all() -> None:
    """End the children of all threads; a compile that one is at ends by Died."""
    stop()
    for child in list(_children):
        child.kill()


def version() -> str:
    """NVRTC's version as the library itself says, such as "12.9". Waits for the child. Raises NoCompiler."""
    if platform.system() == "Darwin":
        raise NoCompiler(
            "NVRTC, NVIDIA's compiler, does not exist for macOS: work in a Linux container, for example "
            'docker build -t katas . && docker run --rm -it -v "$PWD":/kata katas kata=tiled test'
        )
    start()
    if not _own.version:
        try:
            hello = _receive()
        except Died as death:
            hello = {"missing": f"it {death}"}
        if "missing" in hello:
            stop()
            raise NoCompiler(
                f"NVRTC, NVIDIA's compiler, does not load in {sys.executable} ({hello['missing']}): "
                "plain make installs it in .venv; with PYTHON=..., that Python must have CuPy"
            )
        _own.version = hello["version"]
    return _own.version


def installed() -> str:
    """The compiler's identity by the installed packages, without waiting for it; "" if they cannot tell.

    CuPy finds NVRTC by cuda-pathfinder, in its wheel first; without either, the library is the system's.
    """

    def release(package: str) -> str:
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            return ""

    cupy = next(filter(None, map(release, ("cupy-cuda12x", "cupy-cuda13x", "cupy"))), "")
    nvrtc = " ".join(filter(None, map(release, ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"))))
    headers = " ".join(filter(None, map(release, ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"))))
    return f"{cupy}, {nvrtc}, {headers}" if cupy and nvrtc and headers and release("cuda-pathfinder") else ""


def compile_program(
    source: str,
    name: str,
    options: Sequence[str],
    headers: Mapping[str, str],
    *,
    time_limit: float = TIME_LIMIT,
) -> Answer:
    """Compile one program: to a cubin if `options` ask for a real architecture (sm_XX), else to PTX.

    `headers` are found by `#include` under their names, before any folder. `time_limit` is in seconds.
    Raises Died (the next call starts a new child) and NoCompiler.
    """
    version()
    child = _own.child
    assert child
    assert child.stdin
    request = {
        "source": source,
        "name": name,
        "options": options,
        "headers": headers,
        "time_limit": time_limit,
    }
    try:
        pickle.dump(request, child.stdin)
        child.stdin.flush()
    except OSError:
        pass  # it has ended: receiving says how
    answer = _receive(time_limit)
    return Answer(answer["log"], answer["output"])


def _receive(time_limit: float = TIME_LIMIT) -> dict[str, Any]:
    """One message of the child. Raises Died."""
    child = _own.child
    assert child
    assert child.stdout
    try:
        message: dict[str, Any] = pickle.load(child.stdout)
        return message
    except (EOFError, pickle.UnpicklingError):
        status = child.wait()
        stop()
    if status == -signal.SIGALRM:
        raise Died(f"was stopped: this file took it longer than {time_limit:g} s")
    raise Died(
        f"crashed on this file ({signal.Signals(-status).name if status < 0 else f'exit status {status}'})"
    )


# ------------------------------------------------------------------------------------------ the child process


def _serve() -> None:
    """Say hello, then answer requests until stdin closes. A compile beyond its time limit ends it all."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers

    def send(**message: object) -> None:
        pickle.dump(message, answers)
        answers.flush()

    try:
        from cupy_backends.cuda.libs import nvrtc

        found = "{}.{}".format(*nvrtc.getVersion())
        includes = [f"-I{folder}" for folder in _include_folders()]
        _compile(
            nvrtc,
            {"source": "", "name": "warm-up", "options": (), "headers": {}, "time_limit": TIME_LIMIT},
            [],
        )
    except Exception as error:  # no CuPy, no library, a broken one: all are the learner's installation
        return send(missing=" ".join(f"{type(error).__name__}: {error}".split())[:200])
    send(version=found)
    _limit_memory()
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        send(**_compile(nvrtc, request, includes))


def _compile(nvrtc: Any, request: Mapping[str, Any], includes: Sequence[str]) -> dict[str, Any]:
    signal.setitimer(
        signal.ITIMER_REAL, request["time_limit"]
    )  # SIGALRM, unhandled, ends even a loop inside NVRTC
    names = [name.encode() for name in request["headers"]]
    texts = [text.encode() for text in request["headers"].values()]
    program = nvrtc.createProgram(request["source"], request["name"], texts, names)
    options = (*request["options"], *includes)
    output: bytes | str = b""
    try:
        nvrtc.compileProgram(program, options)
        real = any(option.startswith("--gpu-architecture=sm_") for option in options)
        # CuPy drops the cubin's last byte, always a zero.
        output = nvrtc.getCUBIN(program) + b"\0" if real else nvrtc.getPTX(program)
    except nvrtc.NVRTCError:
        pass  # the log says why
    log = nvrtc.getProgramLog(program)
    nvrtc.destroyProgram(program)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"log": log, "output": output.encode() if isinstance(output, str) else output}


def _include_folders() -> list[Path]:
    """Where cuda_fp16.h and cooperative_groups.h are: CUDA's headers, then CuPy's bundled <cuda/std/...>."""
    folders = []
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        folders.append(find_nvidia_header_directory("cudart"))
    except ImportError:  # an older CuPy, which looks for a CUDA toolkit itself
        folders.append(os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "include"))
    spec = util.find_spec("cupy")
    if spec and spec.origin:
        bundled = Path(spec.origin).parent / "_core" / "include" / "cupy" / "_cccl"
        folders += [bundled / part for part in ("libcudacxx", "cub", "thrust")]
    return [Path(folder) for folder in folders if folder and os.path.isdir(folder)]


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    except (ImportError, ValueError, OSError):
        pass  # a smaller limit is in force


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file: its names must not hide a library's
    _serve()
