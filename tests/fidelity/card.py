"""Launches what `measure.py` has prepared, one after the other in one process, for a tool to watch.

    ncu ... python card.py launches.pickle [first last]

Every array has an allocation of its own, by cudaMalloc: a pool would hide from a sanitizer what lies
outside. An output that the launch should find unset is not written before. After an error of CUDA the
context is lost and the process ends; the tool has said why.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from dojo.slab import Launch, scalar

HOST_TO_DEVICE = 1


def load(cubin: bytes, folder: str, modules: dict[bytes, Any]) -> Any:
    """The module of this code, loaded once. CuPy reads the file when it is asked for the first kernel."""
    import cupy

    if cubin not in modules:
        path = Path(folder, f"{len(modules)}.cubin")
        path.write_bytes(cubin)
        modules[cubin] = cupy.RawModule(path=str(path))
    return modules[cubin]


def run(launch: Launch, module: Any) -> None:
    import cupy

    runtime = cupy.cuda.runtime
    kernel = module.get_function(launch.entry)
    if launch.shared_bytes:
        kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
    args, allocated = [scalar(arg) for arg in launch.args], []
    for index, array in launch.arrays().items():
        address = runtime.malloc(array.nbytes)
        allocated.append(address)
        args[index] = np.uint64(address)
        if index not in launch.outputs:
            runtime.memcpy(address, array.ctypes.data, array.nbytes, HOST_TO_DEVICE)
    kernel(tuple(launch.grid), tuple(launch.block), tuple(args), shared_mem=launch.shared_bytes)
    runtime.deviceSynchronize()
    for address in allocated:
        runtime.free(address)


def main() -> int:
    path, *bounds = sys.argv[1:]
    launches: list[Launch] = pickle.loads(Path(path).read_bytes())
    first, last = map(int, bounds or (0, len(launches)))
    modules: dict[bytes, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, launch in enumerate(launches[first:last]):
            try:
                run(launch, load(launch.cubin, folder, modules))
            except Exception as error:  # CuPy's, whatever CUDA says
                print(f"\nended at launch {number}, {launch.entry}: {error}", flush=True)
                return 1
    print("\nended well", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
