"""The child process that owns the card: dojo/gpu.py starts it, asks it through a pipe, kills it if it hangs.

CuPy is imported inside functions only, so that the parent can read these names on a machine without it.
"""

import os
import queue
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dojo.rounds import compare
from dojo.slab import refusal, run

TASKS: dict[str, Callable[..., Any]] = {"run": run, "compare": compare}


@dataclass(frozen=True)
class Card:
    """A GPU and the limits that a launch must keep (sizes in bytes)."""

    name: str  # "NVIDIA H200"
    arch: str  # "sm_90"
    multiprocessors: int
    threads_per_block: int
    threads_per_multiprocessor: int
    shared_per_block: int  # static and without opting in: 48 KiB
    shared_optin: int  # dynamic, after opting in
    shared_per_multiprocessor: int
    registers_per_block: int
    registers_per_multiprocessor: int
    l2_bytes: int
    memory_bytes: int
    driver: str  # the newest CUDA that the driver serves: "13.0"
    cupy: str  # "14.2.0"


def look() -> Card | str:
    """The card, or why there is none."""
    try:
        import cupy
    except Exception as error:  # a broken CuPy can raise anything at import
        return f"CuPy cannot be imported ({(str(error) or type(error).__name__).splitlines()[0]})"
    runtime = cupy.cuda.runtime
    try:
        driver = runtime.driverGetVersion()
        if not runtime.getDeviceCount():
            return "the NVIDIA driver shows no GPU"
        found = runtime.getDeviceProperties(0)
        cupy.zeros(1, np.float32)  # the context itself: fails on a card that is full, or in exclusive use
        runtime.deviceSynchronize()
    except Exception as error:
        return no_card(getattr(error, "status", 0), str(error), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Card(
        name=found["name"].decode(),
        arch=f"sm_{found['major']}{found['minor']}",
        multiprocessors=found["multiProcessorCount"],
        threads_per_block=found["maxThreadsPerBlock"],
        threads_per_multiprocessor=found["maxThreadsPerMultiProcessor"],
        shared_per_block=found["sharedMemPerBlock"],
        shared_optin=found["sharedMemPerBlockOptin"],
        shared_per_multiprocessor=found["sharedMemPerMultiprocessor"],
        registers_per_block=found["regsPerBlock"],
        registers_per_multiprocessor=found["regsPerMultiprocessor"],
        l2_bytes=found["l2CacheSize"],
        memory_bytes=found["totalGlobalMem"],
        driver=f"{driver // 1000}.{driver % 1000 // 10}",
        cupy=cupy.__version__,
    )


def no_card(status: int, message: str, visible: str | None) -> str:
    """Why CuPy finds no card: from the CUDA runtime's error number and text, and CUDA_VISIBLE_DEVICES."""
    if status == 35:  # cudaErrorInsufficientDriver
        return "the NVIDIA driver is older than the CUDA that CuPy was built for: update the driver"
    if status == 100:  # cudaErrorNoDevice
        hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        return f"the NVIDIA driver shows no GPU{hidden}"
    return f"CUDA does not start ({message.splitlines()[0] if message else 'no message'})"


def serve(descriptor: int) -> None:
    """Answer requests until the other end of the pipe is gone: first a Card or a reason, unasked.

    A request is (function, arguments), an answer (alive, value): after an error of CUDA the context may be
    lost, so this process says alive = False with the problem, and ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, and its end is ours
    pipe = Connection(descriptor)
    requests: queue.SimpleQueue[tuple[str, tuple[Any, ...]]] = queue.SimpleQueue()

    def listen() -> None:  # in a thread: the parent's end is noticed while a kernel runs, too
        try:
            while True:
                requests.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    found = look()
    pipe.send((isinstance(found, Card), found))
    while True:
        function, args = requests.get()
        try:
            answer = True, TASKS[function](*args)
        except Exception as error:
            answer = False, refusal(error)
        pipe.send(answer)
        if not answer[0]:
            os._exit(0)
