"""One launch on the card between guard zones: what goes up, what must come back, what the card may answer.

All arrays of a launch lie in one slab of device memory, the rest of which is a known pattern: an allocator's
own padding would hide a stray write. The zones are laid and inspected by NumPy, on the host.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ALIGNMENT = 256  # of every buffer, as cudaMalloc gives it
GUARD = 64 * 1024  # bytes between two buffers
GUARD_WORD = 0xFFF5  # a NaN in every float format: a read beyond the end shows in the result
POISON = 0xFF  # all bits one is another NaN: an element that the kernel never wrote

# What the card says when it stops a kernel or refuses a launch: CUDA's error number -> kind and message.
REFUSALS = {
    1: ("launch", "the card refuses to run it: grid, block or shared bytes are outside its limits"),
    2: ("launch", "the card has too little free memory for these arrays"),
    209: ("launch", "the kernel was compiled for another architecture than this card's"),
    700: ("bounds", "the card stopped the kernel: it used an address outside every array"),
    701: ("launch", "the card refuses to run it: a block needs more registers or shared bytes than it has"),
    702: ("timeout", "the driver ended the kernel: it took too long on a card that also drives a display"),
    710: ("result", "an assert in the kernel failed"),
    715: ("result", "the card stopped the kernel at an illegal instruction or a trap"),
    716: ("bounds", "the card stopped the kernel: a misaligned address"),
    717: ("bounds", "the card stopped the kernel: an address in the wrong memory space"),
    718: ("bounds", "the card stopped the kernel: it jumped to an address outside its code"),
    719: ("bounds", "the card stopped the kernel: an access outside shared or local memory, or a trap"),
}


@dataclass(frozen=True, eq=False)
class Stream:
    """A float32 input too large to send: so many elements of `period`, over and over, made on the card."""

    period: np.ndarray
    size: int

    def sums(self, edges: np.ndarray, shift: int, values: np.ndarray) -> np.ndarray:
        """The sum of the first `edges` elements, in float64, once the stream is rolled by `shift`.

        `values` stand in for the period: the period itself, or what is to be summed in its place.
        """
        before = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])

        def first(count: np.ndarray) -> np.ndarray:
            return np.asarray(count // len(values) * before[-1] + before[count % len(values)])

        tail = self.size - shift  # what comes first once it is rolled
        start = first(np.asarray(tail))
        return np.asarray(
            first(tail + np.minimum(edges, shift)) - start + first(np.maximum(edges - shift, 0))
        )


@dataclass(frozen=True)
class Launch:
    """One kernel launch: everything that the card needs. `args`, `outputs`, `inout` as for `dojo.gpu.run`."""

    cubin: bytes
    entry: str  # the kernel's name in the cubin: compiled.entry("matmul_tiled")
    grid: Sequence[int]
    block: Sequence[int]
    args: Sequence[Any]
    outputs: Collection[int]
    shared_bytes: int = 0
    inout: Collection[int] = ()
    names: Sequence[str] = ()

    def arrays(self) -> dict[int, Any]:
        """The array arguments by index: NumPy's, and in what is timed also a Stream."""
        return {i: arg for i, arg in enumerate(self.args) if isinstance(arg, np.ndarray | Stream)}

    def name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else f"argument {index}"


@dataclass(frozen=True)
class Outcome:
    """What one launch left: `arrays`, one for each array argument in order (the inputs too), or a problem.

    `problem` is (kind, message): `bounds` (a guard zone was written, or the card stopped an access), `result`
    (an input was changed), `timeout`, `launch` (more threads, registers or shared bytes than the card has).
    `arrays` is empty if the kernel did not come to its end.
    """

    arrays: Sequence[Any]
    problem: tuple[str, str] | None = None


def place(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Byte offsets of buffers in one slab, and the slab's size.

    A buffer starts on ALIGNMENT; the guard zone behind it begins at its very next byte. A guard of at least
    GUARD bytes lies before the first buffer, between any two and behind the last.
    """
    offsets, end = [], 0
    for size in sizes:
        offsets.append(-(-(end + GUARD) // ALIGNMENT) * ALIGNMENT)
        end = offsets[-1] + size
    return offsets, -(-(end + GUARD) // ALIGNMENT) * ALIGNMENT


def guard(size: int) -> np.ndarray:
    """`size` bytes (even) of guard pattern."""
    return np.full(size // 2, GUARD_WORD, np.dtype("<u2")).view(np.uint8)


def as_bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def pack(launch: Launch) -> tuple[np.ndarray, dict[int, int]]:
    """The slab as the kernel will find it (uint8), and the offset of each array argument in it."""
    arrays = launch.arrays()
    offsets, size = place([array.nbytes for array in arrays.values()])
    slab = guard(size)
    for (index, array), offset in zip(arrays.items(), offsets, strict=True):
        slab[offset : offset + array.nbytes] = POISON if index in launch.outputs else as_bytes(array)
    return slab, dict(zip(arrays, offsets, strict=True))


def inspect(launch: Launch, slab: np.ndarray, offsets: Mapping[int, int]) -> Outcome:
    """The arrays in a slab after the launch, and what the kernel did that it must not."""
    arrays = launch.arrays()
    after = {
        i: slab[offsets[i] : offsets[i] + array.nbytes].view(array.dtype).reshape(array.shape)
        for i, array in arrays.items()
    }
    problem = stray_write(launch, slab, offsets)
    for i, array in arrays.items():
        if problem is None and i not in launch.outputs and i not in launch.inout:
            problem = changed_input(launch.name(i), array, after[i])
    return Outcome([array.copy() for array in after.values()], problem)


def stray_write(launch: Launch, slab: np.ndarray, offsets: Mapping[int, int]) -> tuple[str, str] | None:
    """A `bounds` problem if any byte outside the buffers differs from the guard pattern."""
    arrays = launch.arrays()
    clean = guard(len(slab))
    begin = 0
    for index, start in [*offsets.items(), (-1, len(slab))]:
        wrong = np.flatnonzero(slab[begin:start] != clean[begin:start]) + begin
        if len(wrong):
            before = [i for i, offset in offsets.items() if offset < begin]
            behind = bool(before) and (index < 0 or wrong[0] - begin < start - wrong[-1])
            owner = before[-1] if behind else index
            array, name = arrays[owner], launch.name(owner)
            element = int((wrong[0] if behind else wrong[-1]) - offsets[owner]) // array.itemsize
            side = "beyond the end of" if behind else "before the start of"
            size = "1 element" if array.size == 1 else f"{array.size:,} elements"
            return "bounds", f"the kernel wrote {side} {name}, which has {size}: {name}[{element}]"
        begin = start + (arrays[index].nbytes if index >= 0 else 0)
    return None


def changed_input(name: str, before: np.ndarray, after: np.ndarray) -> tuple[str, str] | None:
    """A `result` problem if an input is not bit for bit what it was."""
    wrong = np.flatnonzero(as_bytes(before) != as_bytes(after))
    if not len(wrong):
        return None
    i = int(wrong[0]) // before.itemsize
    old, new = (array.reshape(-1)[i].item() for array in (before, after))
    return "result", f"the kernel changed its input {name}: {name}[{i}] was {old:.7g} and is {new:.7g}"


def scalar(value: Any) -> Any:
    """A scalar argument with the width that the kernel expects: int and float of CUDA are 32 bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return np.int32(value) if -(2**31) <= value < 2**31 else np.int64(value)
    return np.float32(value) if isinstance(value, float) and not isinstance(value, np.generic) else value


def refusal(error: Exception) -> tuple[str, str]:
    """Kind and message of an exception that CuPy raised for a launch."""
    status = 2 if isinstance(error, MemoryError) else getattr(error, "status", 0)
    first_line = (str(error) or type(error).__name__).splitlines()[0]
    return REFUSALS.get(status, ("launch", f"the launch failed on the card ({first_line})"))


def load(launch: Launch) -> Callable[[Sequence[Any]], None]:
    """The kernel on the card as a function of its arguments. From a file: text, RawModule would compile."""
    import cupy

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(launch.cubin)
        file.flush()
        kernel = cupy.RawModule(path=file.name).get_function(launch.entry)
    if launch.shared_bytes:
        kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
    grid, block = tuple(launch.grid), tuple(launch.block)
    return lambda args: kernel(grid, block, tuple(args), shared_mem=launch.shared_bytes)


def run(launch: Launch) -> Outcome:
    """One launch between guard zones. Raises what CuPy raises."""
    import cupy

    kernel = load(launch)
    slab, offsets = pack(launch)
    device = cupy.asarray(slab)
    args = [scalar(arg) for arg in launch.args]
    for i, array in launch.arrays().items():
        args[i] = cupy.ndarray(array.shape, array.dtype, memptr=device.data + offsets[i])
    kernel(args)
    cupy.cuda.runtime.deviceSynchronize()
    return inspect(launch, cupy.asnumpy(device), offsets)
