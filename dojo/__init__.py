"""dojo: the machinery of the kata repository. `simulate` runs any CUDA C++ kernel on the CPU and says what
it did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .simulator import Report

__all__ = ["simulate"]


def simulate(
    source: str,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    *,
    uninitialised: Collection[int] = (),
    path: str = "kernel.cu",
) -> Report:
    """Compiles `source` (CUDA C++) and runs its kernel on the simulator, with every check and every count on.

    `grid` and `block` are one to three ints. `args` are NumPy arrays, updated in place as device buffers
    would be, and scalars, in the kernel's order. `shared_bytes` is the dynamic shared memory.
    `uninitialised` are the indices of array arguments whose contents count as never written. `path` names
    the source in messages.

    Returns a `Report`: findings, accesses by source line, fma and instruction counts. Raises
    `dojo.compile.CompileError` with the compiler's words, `dojo.simulator.Unsupported` for what the
    simulator lacks, `KeyError` for a kernel that is not there, `TypeError` and `ValueError` for arguments
    or sizes that do not fit.
    """
    from . import simulator
    from .compile import compile_cuda
    from .source import Source

    compiled = compile_cuda(source, path)
    text = Source(source)
    return simulator.run(
        compiled.ptx,
        compiled.entry(kernel),
        grid,
        block,
        args,
        shared_bytes=shared_bytes,
        uninitialised=uninitialised,
        parameters=text.parameters(kernel),
        element=text.element,
    )
