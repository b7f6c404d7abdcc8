"""Small kernels: what a row of the instruction table cannot hold. Memory, atomics, shuffles, control.

Each finds its thread's index in %r1, the addresses of the inputs and outputs in %rd1 and %rd2, and those of
its own 8 bytes of them in %rd3 and %rd4.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from exact import add, decode, encode, width
from table import PREFIX, Kernel, pattern

KERNELS: list[Kernel] = []


def kernel(
    name: str, body: str, want: Iterable[int], inputs: Iterable[int] = (0,), **more: Any
) -> list[Kernel]:
    wide = (1 << 64) - 1
    return [Kernel(name, body, tuple(w & wide for w in want), tuple(i & wide for i in inputs), **more)]


def words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 8}Q", data)


def through(space: str, vector: int, type: str) -> list[Kernel]:
    """Each thread carries a vector from the inputs to `space`, and its own or another's to the outputs."""
    size = vector * width(type) // 8
    data = random.Random(size).randbytes(32 * size)
    pieces = [data[size * n : size * n + size] for n in range(32)]
    registers = ", ".join(f"{PREFIX[width(type)]}{10 + n}" for n in range(vector))
    kind, registers = (f"v{vector}.{type}", f"{{{registers}}}") if vector > 1 else (type, registers)
    by_way_of = {
        "global": "",
        "shared": f""".shared .align 16 .b8 tile[{32 * size}];
    mov.u32 %r4, tile;
    mad.lo.s32 %r5, %r1, {size}, %r4;
    st.shared.{kind} [%r5], {registers};
    bar.sync 0;
    sub.s32 %r3, 31, %r1;
    mad.lo.s32 %r5, %r3, {size}, %r4;
    ld.shared.{kind} {registers}, [%r5];""",
        "local": f""".local .align 16 .b8 own[{2 * size}];
    mov.u64 %rd7, own;
    st.local.{kind} [%rd7+{size}], {registers};
    ld.local.{kind} {registers}, [%rd7+{size}];""",
    }[space]
    body = f"""mul.wide.u32 %rd5, %r1, {size};
    add.s64 %rd6, %rd1, %rd5;
    add.s64 %rd5, %rd2, %rd5;
    ld.global.{kind} {registers}, [%rd6];
    {by_way_of}
    st.global.{kind} [%rd5], {registers};"""
    want = b"".join(pieces[::-1] if space == "shared" else pieces)
    return kernel(f"{space} {kind}", body, words(want), words(data))


for space in ("global", "shared", "local"):
    for vector, type in product((1, 2, 4), ("u8", "s16", "b32", "f32", "u64", "f64")):
        if vector * width(type) <= 128:
            KERNELS += through(space, vector, type)

KERNELS += kernel(
    "loads extend, stores cut",
    """ld.global.s8 %r10, [%rd3];
    ld.global.u8 %r11, [%rd3];
    ld.global.s16 %r12, [%rd3];
    ld.global.u16 %r13, [%rd3+2];
    add.s32 %r10, %r10, %r11;
    add.s32 %r10, %r10, %r12;
    add.s32 %r10, %r10, %r13;
    ld.global.s32 %rd10, [%rd3];
    ld.global.s8 %rs10, [%rd3+3];
    cvt.s64.s16 %rd11, %rs10;
    cvt.s64.s32 %rd12, %r10;
    add.s64 %rd10, %rd10, %rd11;
    add.s64 %rd10, %rd10, %rd12;
    st.global.u64 [%rd4], %rd10;
    st.global.u8 [%rd4+7], %r1;
    st.global.u16 [%rd4+4], %rd10;""",
    [
        low | (low & 0xFFFF) << 32 | (full >> 48 & 0xFF) << 48 | n << 56
        for n, full in enumerate(
            (decode(x, "s8") + decode(x, "u8") + decode(x, "s16") + (x >> 16))
            + decode(x, "s32")
            + decode(x >> 24, "s8")
            & (1 << 64) - 1
            for x in (0x80FF7F00 + 0x01010185 * n & 0xFFFFFFFF for n in range(32))
        )
        for low in [full & 0xFFFFFFFF]
    ],
    [0x80FF7F00 + 0x01010185 * n & 0xFFFFFFFF for n in range(32)],
)
KERNELS += kernel(
    "cache hints and volatile",
    """.shared .align 8 .b64 box[32];
    mov.u64 %rd5, box;
    mul.wide.u32 %rd6, %r1, 8;
    add.s64 %rd5, %rd5, %rd6;
    ld.global.nc.u64 %rd10, [%rd3];
    ld.global.ca.u64 %rd11, [%rd3];
    ld.global.cg.u64 %rd12, [%rd3];
    ld.volatile.global.u64 %rd13, [%rd3];
    add.s64 %rd10, %rd10, %rd11;
    add.s64 %rd10, %rd10, %rd12;
    add.s64 %rd10, %rd10, %rd13;
    st.volatile.shared.u64 [%rd5], %rd10;
    ld.volatile.shared.u64 %rd10, [%rd5];
    st.global.wb.u64 [%rd4], %rd10;
    st.volatile.global.u64 [%rd4], %rd10;""",
    [4 * n * n for n in range(32)],
    [n * n for n in range(32)],
)
KERNELS += kernel(
    "local memory as NVRTC writes it",
    """.local .align 4 .b8 __local_depot0[64];
    .reg .b64 %SP;
    .reg .b64 %SPL;
    mov.u64 %SPL, __local_depot0;
    cvta.local.u64 %SP, %SPL;
    add.u64 %rd5, %SPL, 0;
    mov.u32 %r10, 0;
$fill:
    mul.wide.s32 %rd6, %r10, 4;
    add.s64 %rd7, %rd5, %rd6;
    mad.lo.s32 %r11, %r10, %r10, %r1;
    st.local.u32 [%rd7], %r11;
    add.s32 %r10, %r10, 1;
    setp.lt.s32 %p1, %r10, 16;
    @%p1 bra $fill;
    and.b32 %r12, %r1, 15;
    mul.wide.u32 %rd8, %r12, 4;
    add.s64 %rd9, %rd5, %rd8;
    ld.local.u32 %r13, [%rd9];
    cvt.u64.u32 %rd10, %r13;
    st.global.u64 [%rd4], %rd10;""",
    [(n & 15) ** 2 + n for n in range(32)],
)
KERNELS += kernel(
    "initialised variables",
    """ld.global.u32 %r10, [primes+8];
    mov.u64 %rd5, primes;
    ld.global.u32 %r11, [%rd5+20];
    ld.const.f32 %r12, [half];
    ld.const.u8 %r13, [bytes+1];
    ld.const.s16 %r14, [bytes+2];
    mov.u64 %rd6, big;
    ld.const.u64 %rd7, [%rd6];
    ld.global.u32 %r15, [blank+4];
    add.s32 %r10, %r10, %r11;
    add.s32 %r10, %r10, %r12;
    add.s32 %r10, %r10, %r13;
    add.s32 %r10, %r10, %r14;
    add.s32 %r10, %r10, %r15;
    cvt.u64.u32 %rd8, %r10;
    add.s64 %rd8, %rd8, %rd7;
    st.global.u64 [%rd4], %rd8;""",
    32 * [5 + 0 + 0x3F000000 + 200 - 32766 + 0 + 0x100000000],
    declarations="""
.global .align 4 .u32 primes[6] = {2, 3, 5, 7, 11};
.visible .const .align 4 .f32 half = 0f3F000000;
.const .align 4 .b8 bytes[8] = {1, 200, 2, 128};
.const .align 8 .u64 big = 4294967296;
.global .align 4 .b8 blank[8];
""",
)
KERNELS += kernel(
    "shared memory across warps",
    """.shared .align 4 .b8 Nds[256];
    mov.u32 %r2, Nds;
    shl.b32 %r3, %r1, 2;
    add.s32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    xor.b32 %r5, %r3, 252;
    add.s32 %r6, %r2, %r5;
    ld.shared.u32 %r7, [%r6];
    bar.sync 0;
    st.shared.u32 [%r4], %r7;
    barrier.sync 0;
    ld.shared.u32 %r8, [Nds+4];
    mul.wide.u32 %rd5, %r7, %r8;
    st.global.u64 [%rd4], %rd5;""",
    [(63 - n) * 62 for n in range(64)],
    threads=64,
)

# Atomics: a cell per lane tells what they return and leave, one cell for all lanes tells that none is lost.


def atomic(operation: str, type: str, spec: Callable[..., Any], *operands: tuple[float, ...]) -> list[Kernel]:
    """Lanes of one warp, each with its own cell: memory, then the operands; out come old and new."""
    bits = width(type)
    register, stride = PREFIX[bits], 8 * len(operands[0])
    cases = [[pattern(x, bits) for x in case] for case in operands]
    more = "".join(f", {register}{11 + n}" for n in range(len(cases[0]) - 1))
    loads = " ".join(f"ld.global.b{bits} {register}{10 + n}, [%rd5+{8 * n}];" for n in range(len(cases[0])))
    mask = (1 << bits) - 1
    want, kernels = [], []
    for cell, *rest in cases:
        value = spec(*(decode(x, type) for x in (cell, *rest)))
        want += [cell, encode(value, type) if type[0] == "f" else int(value) & mask]
    for space in ("global", "shared"):
        memory = {
            "global": "add.s64 %rd7, %rd6, 0;",
            "shared": f""".shared .align 8 .b64 cells[{len(cases)}];
    mov.u64 %rd7, cells;
    mad.wide.u32 %rd7, %r1, 8, %rd7;
    st.shared.b{bits} [%rd7], {register}10;""",
        }[space]
        body = f"""mul.wide.u32 %rd5, %r1, {stride};
    add.s64 %rd5, %rd1, %rd5;
    mul.wide.u32 %rd6, %r1, 16;
    add.s64 %rd6, %rd2, %rd6;
    {loads}
    st.global.b{bits} [%rd6], {register}10;
    {memory}
    atom.{space}.{operation}.{type} {register}15, [%rd7]{more};
    ld.{space}.b{bits} {register}16, [%rd7];
    st.global.b{bits} [%rd6], {register}15;
    st.global.b{bits} [%rd6+8], {register}16;"""
        flat = [x for case in cases for x in case]
        kernels += kernel(f"atom.{space}.{operation}.{type}", body, want, flat, threads=len(cases))
    return kernels


for type in ("u32", "s32", "u64"):
    KERNELS += atomic(
        "add", type, lambda a, b: a + b, (1, 2), (-1, 1), (5, -7), 2 * (1 << 31,), 2 * (1 << 63,)
    )
for type in ("u32", "s32", "u64", "s64"):
    KERNELS += atomic("min", type, min, (1, 2), (-1, 1), (5, -7), (1 << 31, 0), (1 << 63, 0))
    KERNELS += atomic("max", type, max, (1, 2), (-1, 1), (5, -7), (1 << 31, 0), (1 << 63, 0))
KERNELS += atomic("add", "f32", add, (1.0, 2.5), (1.0, 2.0**-24), (1.0, 3 * 2.0**-25), (-2.0, 2.0))
KERNELS += atomic("add", "f64", add, (1.0, 2.5), (1.0, 2.0**-53), (1.0, 3 * 2.0**-54))
for type in ("b32", "b64"):
    KERNELS += atomic("exch", type, lambda a, b: b, (1, 2), (-1, 1 << 60))
    KERNELS += atomic("cas", type, lambda a, b, c: c if a == b else a, (1, 1, 2), (1, 2, 3), (-1, -1, 0))
    KERNELS += atomic("and", type, lambda a, b: a & b, (0b1100, 0b1010), (-1, 1 << 60))
    KERNELS += atomic("or", type, lambda a, b: a | b, (0b1100, 0b1010), (5, 1 << 60))
    KERNELS += atomic("xor", type, lambda a, b: a ^ b, (0b1100, 0b1010), (-1, 1 << 60))
KERNELS += atomic("inc", "u32", lambda a, b: 0 if a >= b else a + 1, (0, 3), (2, 3), (3, 3), (9, 3), (-1, -1))
KERNELS += atomic("dec", "u32", lambda a, b: b if a == 0 or a > b else a - 1, (0, 3), (1, 3), (3, 3), (9, 3))

CROWD = {
    "add.u32": sum(range(64)),
    "add.f32": pattern(float(sum(range(64))), 32),
    "max.s32": 63,
    "min.s32": 0,
    "or.b32": 63,
    "xor.b32": 0,
    "inc.u32": 64 % 10,
    "add.u64": sum(range(64)),
}
for operation, want in CROWD.items():
    type = operation[-3:]
    operand = {"add.f32": "%r10", "inc.u32": "9", "add.u64": "%rd10"}.get(operation, "%r1")
    result = PREFIX[width(type)] + "11"
    for space in ("global", "shared"):
        KERNELS += kernel(
            f"64 lanes atom.{space}.{operation}",
            f""".shared .align 8 .b64 cell;
    mov.u64 %rd5, {"cell" if space == "shared" else "%rd2"};
    mov.u64 %rd6, 0;
    cvt.rn.f32.u32 %r10, %r1;
    cvt.u64.u32 %rd10, %r1;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 st.{space}.u64 [%rd5], %rd6;
    bar.sync 0;
    atom.{space}.{operation} {result}, [%rd5], {operand};
    bar.sync 0;
    @%p1 ld.{space}.u64 %rd7, [%rd5];
    @%p1 st.global.u64 [%rd2], %rd7;""",
            [want],
            threads=64,
        )


def shuffle(mode: str, b: Sequence[int], c: int) -> list[Kernel]:
    """Lane n gives 100 + n, asks with b[n]; out come the value and, in bit 32, the predicate."""
    want = []
    for thread in range(64):
        lane, base = thread % 32, thread - thread % 32
        segment = c >> 8 & 31
        low, last = lane & segment, lane & segment | c & 31 & ~segment
        step = b[thread] & 31
        sources = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": low | step & ~segment}
        source = sources[mode]
        valid = source >= last if mode == "up" else source <= last
        want.append(100 + base + (source if valid else lane) | valid << 32)
    return kernel(
        f"shfl.sync.{mode} {b[1]} {c:#x}",
        f"""ld.global.u32 %r2, [%rd3];
    add.s32 %r3, %r1, 100;
    shfl.sync.{mode}.b32 %r4|%p1, %r3, %r2, {c}, -1;
    selp.u32 %r5, 1, 0, %p1;
    mov.b64 %rd5, {{%r4, %r5}};
    st.global.u64 [%rd4], %rd5;""",
        want,
        b,
        threads=64,
    )


for sub in (32, 8, 1):  # __shfl_*_sync's width
    for step in (1, 5, 33):
        KERNELS += shuffle("up", 64 * [step], (32 - sub) << 8)
        KERNELS += shuffle("down", 64 * [step], (32 - sub) << 8 | 31)
        KERNELS += shuffle("bfly", 64 * [step], (32 - sub) << 8 | 31)
    KERNELS += shuffle("idx", 64 * [5], (32 - sub) << 8 | 31)
KERNELS += shuffle("idx", [7 * n + 3 for n in range(64)], 31)
KERNELS += shuffle("idx", [7 * n + 3 for n in range(64)], 24 << 8 | 31)
KERNELS += kernel(
    "sum of a warp by shfl.sync without a predicate",
    """mov.u32 %r2, %r1;
    shfl.sync.down.b32 %r3, %r2, 16, 31, -1;
    add.s32 %r2, %r2, %r3;
    shfl.sync.down.b32 %r3, %r2, 8, 31, -1;
    add.s32 %r2, %r2, %r3;
    shfl.sync.down.b32 %r3, %r2, 4, 31, 0xffffffff;
    add.s32 %r2, %r2, %r3;
    shfl.sync.down.b32 %r3, %r2, 2, 31, -1;
    add.s32 %r2, %r2, %r3;
    shfl.sync.down.b32 %r3, %r2, 1, 31, -1;
    add.s32 %r2, %r2, %r3;
    shfl.sync.idx.b32 %r4, %r2, 0, 31, -1;
    cvt.u64.u32 %rd5, %r4;
    st.global.u64 [%rd4], %rd5;""",
    [496 + 1024 * (n // 32) for n in range(64)],
    threads=64,
)

KERNELS += kernel(
    "a loop of its own length in each lane",
    """mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $done;
    bra.uni $loop;
$loop:
    add.s32 %r2, %r2, 1;
    mad.lo.s32 %r3, %r2, %r2, %r3;
    setp.lt.s32 %p1, %r2, %r1;
    @%p1 bra $loop;
$done:
    cvt.u64.u32 %rd5, %r3;
    st.global.u64 [%rd4], %rd5;""",
    [sum(k * k for k in range(n + 1)) for n in range(40)],
    threads=40,
)
KERNELS += kernel(
    "if and else, one inside the other",
    """mov.u32 %r4, 1000;
    and.b32 %r2, %r1, 1;
    setp.eq.s32 %p1, %r2, 0;
    @!%p1 bra $odd;
    and.b32 %r3, %r1, 2;
    setp.ne.s32 %p2, %r3, 0;
    @%p2 bra $two;
    add.s32 %r4, %r4, 1;
    bra $join;
$two:
    add.s32 %r4, %r4, 2;
    bra $join;
$odd:
    add.s32 %r4, %r4, 3;
$join:
    add.s32 %r4, %r4, %r1;
    cvt.u64.u32 %rd5, %r4;
    st.global.u64 [%rd4], %rd5;""",
    [1000 + n + (3 if n & 1 else 2 if n & 2 else 1) for n in range(32)],
)
KERNELS += kernel(
    "ret in a branch, exit, and a predicated ret",
    """cvt.u64.u32 %rd5, %r1;
    setp.gt.s32 %p1, %r1, 19;
    @%p1 bra $out;
    setp.lt.s32 %p2, %r1, 3;
    @%p2 ret;
    setp.eq.s32 %p3, %r1, 10;
    @%p3 exit;
    st.global.u64 [%rd4], %rd5;
    bra $end;
$out:
    st.global.u64 [%rd4], -1;
    ret;
$end:""",
    [-1 if n > 19 else 0 if n < 3 or n == 10 else n for n in range(32)],
)
KERNELS += kernel(
    "warp barriers and fences",
    """.shared .align 4 .u32 box[32];
    mov.u32 %r2, box;
    mad.lo.s32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    bar.warp.sync 0xffffffff;
    membar.cta;
    xor.b32 %r4, %r1, 1;
    mad.lo.s32 %r5, %r4, 4, %r2;
    ld.shared.u32 %r6, [%r5];
    bar.warp.sync -1;
    membar.gl;
    fence.acq_rel.cta;
    fence.sc.gpu;
    membar.sys;
    st.shared.u32 [%r3], %r6;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r7, [%r5];
    cvt.u64.u32 %rd5, %r7;
    st.global.u64 [%rd4], %rd5;""",
    list(range(32)),
)
KERNELS += kernel(
    "special registers",
    """mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.y;
    mov.u32 %r4, %ntid.y;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, %nctaid.x;
    mov.u32 %r7, %laneid;
    mov.u32 %r8, %tid.z;
    mad.lo.s32 %r2, %r2, 1000, %r7;
    mad.lo.s32 %r3, %r3, 7, %r4;
    mad.lo.s32 %r3, %r3, 3, %r5;
    mad.lo.s32 %r3, %r3, 2, %r6;
    add.s32 %r3, %r3, %r8;
    mov.b64 %rd5, {%r2, %r3};
    st.global.u64 [%rd4], %rd5;""",
    [48 * 1000 + n % 32 | 7 << 32 for n in range(48)],
    threads=48,
)
KERNELS += kernel(
    "scopes with names of their own",
    """mov.u32 %r10, %r1;
    { .reg .b32 t; .reg .pred q; add.s32 t, %r10, 5; setp.gt.s32 q, t, 20; selp.b32 %r10, t, %r10, q; }
    {
    .reg .b32 t;
    .reg .b64 %rd10;
    mul.lo.s32 t, %r10, 2;
    cvt.u64.u32 %rd10, t;
    st.global.u64 [%rd4], %rd10;
    }""",
    [2 * (n + 5 if n > 15 else n) for n in range(32)],
)
