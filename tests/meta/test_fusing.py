"""Which shared loads and stores are joined: questions, with the answers that ptxas 12.9 gave for sm_90."""

from __future__ import annotations

import re

import pytest

from dojo.simulator.fusing import fused_widths
from dojo.simulator.parse import parse
from dojo.simulator.program import build

# %a, %b and %c are addresses in `s`: multiples of 16, 8 and 4. `first` has the bytes 0 to 11, `second` those
# from 12, `s` those from 32768. All shared loads are used, %w0 ... %w9 come from global memory.
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{{
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<30>;
    .reg .f32 %f<90>, %w<10>;
    .reg .f64 %d<9>;
    .reg .b64 %rd<9>, %a, %b, %c, %t, %out;
    .shared .align 4 .b8 first[12];
    .shared .align 4 .b8 second[32756];
    .shared .align 16 .b8 s[12288];
    ld.param.u64 %rd0, [data];
    cvta.to.global.u64 %rd1, %rd0;
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %out, %rd1, %rd2;
    mov.u64 %rd3, s;
    add.s64 %c, %rd3, %rd2;
    shl.b64 %rd4, %rd2, 1;
    add.s64 %b, %rd3, %rd4;
    mul.wide.u32 %rd5, %r1, 16;
    add.s64 %a, %rd3, %rd5;
    {data}
    setp.gt.f32 %p0, %w0, 0f3F800000;
    setp.gt.f32 %p1, %w1, 0f3F800000;
    st.shared.f32 [first], %w0;
    st.shared.f32 [%c+8192], %w0;
    bar.sync 0;
    {body}
    bar.sync 0;
    {use}
    ret;
}}
"""
LOOP = (
    'mov.u32 %r2, %r0; L: .pragma "nounroll"; {} add.s32 %r2, %r2, -1; setp.ne.s32 %p2, %r2, 0; @%p2 bra L;'
)
EIGHT = "mov.u32 %r2, 0; L: {} add.s32 %r2, %r2, 1; setp.ne.s32 %p2, %r2, 8; @%p2 bra L;"
WORK = "fma.rn.f32 %w2, %w2, %w3, %w4;" * 20
HALF = "ld.shared.u16 %h{0}, [{1}]; cvt.f32.f16 %f8{0}, %h{0};"


def ptx(body: str) -> str:
    """`ld %a 0 4` stands for two loads of floats, `st %a 0 4` for two stores."""
    used: list[str] = []

    def accesses(match: re.Match[str]) -> str:
        base, *offsets = match[2].split()
        lines = []
        for offset in offsets:
            if match[1] == "ld":
                used.append(f"%f{len(used)}")
                lines.append(f"ld.shared.f32 {used[-1]}, [{base}+{offset}];")
            else:
                lines.append(f"st.shared.f32 [{base}+{offset}], %w{len(lines)};")
        return " ".join(lines)

    body = re.sub(r"\b(ld|st) (%?\w+(?: -?\d+)+);", accesses, body)
    used += re.findall(r"%f8\d", body)
    data = [f"ld.global.f32 %w{n}, [%out+{4096 * n}];" for n in range(10)]
    data += [f"mov.f32 {name}, 0f00000000;" for name in used]
    use = [f"st.global.f32 [%out+{4096 * (n + 10)}], {name};" for n, name in enumerate([*used, "%w2"])]
    return KERNEL.format(data="\n    ".join(data), body=body, use="\n    ".join(use))


LOADS = {
    "four": ("ld %a 0 4 8 12;", "128 . . ."),
    "in any order": ("ld %a 8 0 12 4;", "128 . . ."),
    "three of four": ("ld %a 4 0 12;", "128 . ."),
    "two of four": ("ld %a 0 8;", "32 32"),
    "a half": ("ld %a 8 12;", "64 ."),
    "not the halves of two": ("ld %a 4 8;", "32 32"),
    "five": ("ld %a 0 4 8 12 16;", "128 . . . 32"),
    "from the second word": ("ld %a 4 8 12 16 20;", "128 . . 64 ."),
    "a multiple of 8": ("ld %b 0 4 8 12;", "64 . 64 ."),
    "a multiple of 4": ("ld %c 0 4 8 12;", "32 32 32 32"),
    "two bases": ("ld %a 0; ld %b 4;", "32 32"),
    "a vector and a scalar": (
        "ld.shared.v2.f32 {%f80, %f81}, [%a]; ld %a 8;",
        "128 .",
    ),
    "volatile": ("ld.volatile.shared.f32 %f80, [%a]; ld.volatile.shared.f32 %f81, [%a+4];", "32 32"),
    "four halves": ("".join(HALF.format(n, f"%a+{2 * n}") for n in range(4)), "64 . . ."),
    "two halves": ("".join(HALF.format(n, f"%a+{2 * n}") for n in range(2)), "32 ."),
    "integers of 16 bits": (
        "ld.shared.u16 %h0, [%a]; ld.shared.u16 %h1, [%a+2]; cvt.u32.u16 %r3, %h0; cvt.u32.u16 %r4, %h1;"
        "add.u32 %r3, %r3, %r4; cvt.rn.f32.u32 %f80, %r3;",
        "16 16",
    ),
    # What is known of the address
    "a register that is 4 more": ("add.s64 %t, %a, 4; ld %t -4 0 4 8;", "128 . . ."),
    "two registers": ("add.s64 %t, %a, 8; ld %a 0 4; ld %t 0 4;", "128 . . ."),
    "a sum with 4 more": ("add.s64 %t, %rd5, 4; add.s64 %t, %t, %rd3; ld %t -4 0 4 8;", "32 32 32 32"),
    "the low bits masked off": ("and.b64 %t, %rd2, -16; add.s64 %t, %t, %rd3; ld %t 0 4 8 12;", "128 . . ."),
    "an exclusive or": ("xor.b64 %t, %rd5, 64; add.s64 %t, %t, %rd3; ld %t 0 4 8 12;", "128 . . ."),
    "the smaller one": (
        "shl.b32 %r3, %r1, 4; min.u32 %r4, %r3, 64; cvt.u64.u32 %t, %r4; add.s64 %t, %t, %rd3; ld %t 0 4;",
        "32 32",
    ),
    "a variable at 12": ("ld second 0 4 8 12 16;", "32 128 . . ."),
    "a register from there": (
        "mov.u64 %t, second; add.s64 %t, %t, %rd5; ld %t 0 4 8 12 16;",
        "32 32 32 32 32",
    ),
    "the end of one and the begin of the next": ("ld first 4 8; ld second 0;", "128 . ."),
    # What stands in between
    "a shared store": ("ld %a 0; st %c 8192; ld %a 4;", "32 32 32"),
    "a generic store": ("ld %a 0; st.f32 [%rd0], %w0; ld %a 4;", "32 32"),
    "a global store": ("ld %a 0; st.global.f32 [%out], %w0; ld %a 4;", "64 ."),
    "a barrier": ("ld %a 0; bar.sync 0; ld %a 4;", "32 32"),
    "a warp barrier": ("ld %a 0; bar.warp.sync -1; ld %a 4;", "32 32"),
    "a fence": ("ld %a 0; membar.cta; ld %a 4;", "32 32"),
    "a shuffle": ("ld %a 0; shfl.sync.bfly.b32 %w2, %w2, 1, 31, -1; ld %a 4;", "64 ."),
    "a shared atomic": ("ld %a 0; atom.shared.add.u32 %r9, [%c+8192], 1; ld %a 4;", "32 32"),
    "a global atomic": ("ld %a 0; atom.global.add.u32 %r9, [%out], 1; ld %a 4;", "64 ."),
    "a division": ("ld %a 0; div.rn.f32 %w2, %w2, %w3; ld %a 4;", "32 32"),
    "a fast division": ("ld %a 0; div.full.f32 %w2, %w2, %w3; ld %a 4;", "64 ."),
    "a division of integers": (
        "ld %a 0; div.u32 %r9, %r1, %r0; cvt.rn.f32.u32 %w2, %r9; ld %a 4;",
        "64 .",
    ),
    # Which way the lanes go
    "before a branch and in it": ("ld %a 0; @%p0 bra J; ld %a 4; J:", "64 ."),
    "before a long branch and in it": (f"ld %a 0; @%p0 bra J; {WORK} ld %a 4; J:", "64 ."),
    "before a branch and behind it": (f"ld %a 0; @%p0 bra J; {WORK} J: ld %a 4;", "64 ."),
    "in a branch": ("@%p0 bra J; ld %a 0 4; J:", "64 ."),
    "in a branch and behind it": (f"@%p0 bra J; {WORK} ld %a 0; J: ld %a 4;", "32 32"),
    "in two branches, one after the other": ("@%p0 bra I; ld %a 0; I: @%p1 bra J; ld %a 4; J:", "32 32"),
    "one word before, the others in either branch": (
        f"ld %a 0; @%p0 bra E; {WORK} ld %a 4 8 12; bra J; E: ld %a 8 4 12; J:",
        "128 . . . . . .",
    ),
    "a store in the branch between": (f"ld %a 0; @%p0 bra J; {WORK} st %c 8192; J: ld %a 4;", "32 32 32"),
    "one branch in another": ("ld %a 0; @%p0 bra J; ld %a 4; @%p1 bra J; ld %a 8; J:", "128 . ."),
    "an early exit between": ("ld %a 0; st.global.f32 [%out], %f0; @%p0 exit; ld %a 4;", "64 ."),
    "a loop between": ("ld %a 0; " + LOOP.format(WORK) + "ld %a 4;", "32 32"),
    "a branch with a loop between": ("ld %a 0; @%p0 bra J;" + LOOP.format(WORK) + "J: ld %a 4;", "32 32"),
    "a loop that moves its address by 16": (
        "mov.u64 %t, %a;" + LOOP.format("ld %t 0 4 8 12; add.s64 %t, %t, 16;"),
        "128 . . .",
    ),
    "a loop whose address begins at 8": (
        "add.s64 %t, %a, 8;" + LOOP.format("ld %t -8 -4 0 4; add.s64 %t, %t, 16;"),
        "64 . 64 .",
    ),
    "a loop that moves its address by 8": (
        "mov.u64 %t, %a;" + LOOP.format("ld %t 0 4 8 12; add.s64 %t, %t, 8;"),
        "64 . 64 .",
    ),
}
SUM = "fma.rn.f32 %w2, %f0, %f1, %w2; fma.rn.f32 %w2, %f2, %f3, %w2;"
UNROLLED = {  # eight rounds
    "rounds side by side": (  # two LDS.128
        "mov.u64 %t, %a;" + EIGHT.format("ld %t 0; add.f32 %w2, %w2, %f0; add.s64 %t, %t, 4;"),
        "-128",
    ),
    "rounds side by side that begin at 8": (  # LDS.64, LDS.128, LDS.64: not told
        "add.s64 %t, %a, 8;" + EIGHT.format("ld %t 0; add.f32 %w2, %w2, %f0; add.s64 %t, %t, 4;"),
        "32",
    ),
    "an address that begins at 8": (  # eight LDS.128
        "add.s64 %t, %a, 8;" + EIGHT.format(f"ld %t -8 -4 0 4; {SUM} add.s64 %t, %t, 16;"),
        "128 . . .",
    ),
    "not unrolled": (
        "add.s64 %t, %a, 8;"
        + EIGHT.format(f'.pragma "nounroll"; ld %t -8 -4 0 4; {SUM} add.s64 %t, %t, 16;'),
        "64 . 64 .",
    ),
    "too long": (
        "add.s64 %t, %a, 8;" + EIGHT.format(f"ld %t -8 -4 0 4; {5 * WORK} {SUM} add.s64 %t, %t, 16;"),
        "64 . 64 .",
    ),
}
STORES = {
    "four": ("st %a 0 4 8 12;", "128 . . ."),
    "in any order": ("st %a 8 0 12 4;", "128 . . ."),
    "three": ("st %a 0 4 8;", "64 . 32"),
    "eight": ("st %a 0 4 8 12 16 20 24 28;", "128 . . . 128 . . ."),
    "a multiple of 8": ("st %b 0 4 8 12;", "64 . 64 ."),
    "a multiple of 4": ("st %c 0 4 8 12;", "32 32 32 32"),
    "another store between": ("st %a 0 4; st %c 8192; st %a 8 12;", "64 . 32 64 ."),
    "rows in turn": ("st %a 0 4096 4 4100 8 4104 12 4108;", "32 32 32 32 32 32 32 32"),
    "a load between": ("st %a 0 4; ld %c 8192; st %a 8 12;", "64 . 32 64 ."),
    "a global load between": ("st %a 0 4; ld.global.f32 %w0, [%out+8]; st %a 8 12;", "128 . . ."),
    "a barrier between": ("st %a 0 4; bar.sync 0; st %a 8 12;", "64 . 64 ."),
    "a branch between": ("st %a 0 4; @%p0 bra J; st %a 8 12; J:", "64 . 64 ."),
    "two vectors": (
        "st.shared.v2.f32 [%a], {%w0, %w1}; st.shared.v2.f32 [%a+8], {%w2, %w3};",
        "128 .",
    ),
}


def widths(body: str) -> str:
    """In the order of the text, for each shared access its bits, those of the wide one that it begins, or "."
    for a later part. Negative if it is either, by its address.
    """
    kernel = parse(ptx(body), "k")
    program = build(kernel)
    joined = fused_widths(program, {"first": 0, "second": 12, "s": 32768})
    shared = [i for i in kernel.instructions if i.parts[0] in ("ld", "st") and "shared" in i.parts][2:]
    found = []
    for i in shared:
        bits = int(i.parts[-1][1:]) * (2 if "v2" in i.parts else 1)
        found.append(str(joined.get(id(i), bits) or "."))
    return " ".join(found)


@pytest.mark.parametrize("question", LOADS)
def test_loads(question):
    body, answer = LOADS[question]
    assert widths(body) == answer


@pytest.mark.parametrize("question", UNROLLED)
def test_unrolled_loops(question):
    body, answer = UNROLLED[question]
    assert widths(body) == answer


@pytest.mark.parametrize("question", STORES)
def test_stores(question):
    body, answer = STORES[question]
    assert widths(body) == answer


def test_an_address_that_nothing_sets_or_masks_ends():
    body = "add.s64 %t, %t, 4; shl.b32 %r3, %r3, -1; cvt.u64.u32 %rd6, %r3; add.s64 %rd6, %rd6, %t;"
    assert widths(body + "ld %rd6 0 4; ld %t 0;") == "32 32 32"
