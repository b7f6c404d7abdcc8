"""`make kata=register tune`: with the real compiler, and with a card that is none."""

import re
from dataclasses import replace

import pytest
from grading import MODULES
from stand_in import Card
from test_grades import KINDS

from dojo import katas, tiles, tune
from dojo.katas import ROOT
from dojo.tiles import Tile

KATA = katas.find("register")
TILES = [
    Tile(64, 64, 8, 8, 8),
    Tile(64, 64, 8, 4, 4),
    Tile(128, 64, 8, 8, 8),
    Tile(256, 256, 16, 8, 8),
    Tile(256, 256, 8, 4, 4),
]


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """Five tiles, on a card at a size that the CPU multiplies at once."""
    module = MODULES["04_register"]
    size = {**module.CONTEST.size, "M": 128, "N": 128, "K": 64}
    monkeypatch.setattr(tiles, "grid", lambda: TILES)
    monkeypatch.setattr(tune, "module_of", lambda kata: MODULES[kata.stem])
    monkeypatch.setattr(module, "CONTEST", replace(module.CONTEST, size=size, flop=10**9))
    monkeypatch.setattr(module, "TASK", replace(module.TASK, sizes=module.TASK.sizes[:4], gpu_sizes=[size]))


@pytest.fixture
def kernel(tmp_path):
    """A right kernel whose constants are guarded; `kernel.read_text()` can be changed."""
    text = (ROOT / "tests/right/04_register.double_buffered.cu").read_text()
    text = re.sub(r"^(#define (B[MNK]|T[MN]) \d+)", r"#ifndef \2\n\1\n#endif", text, flags=re.MULTILINE)
    text = text.replace("extern", 'static_assert(BM + BN > 64 || BK == 8, "what a file may ask");\nextern', 1)
    file = tmp_path / "my kernel.cu"
    file.write_text(text)
    return file


def rows(text):
    return [line.split() for line in text.split("\n\n")[0].split("\n")[1:]]


def held(text):
    """What every text of this command keeps to."""
    assert max(map(len, text.split("\n"))) <= 80
    assert not re.search(rf"\b({'|'.join(KINDS)}): ", text)
    return text


def test_a_row_for_each_tile_that_compiles(kernel):
    text = held(tune.report(KATA, kernel, "cpu"))
    own, *others = rows(text)
    assert own[:4] == ["64x64x8", "4x4*", "256", "4/8"]
    assert [row[:4] for row in others] == [
        ["64x64x8", "8x8", "64", "4/8"],
        ["128x64x8", "8x8", "128", "6/12"],
    ]
    assert [row[-1] for row in (own, *others)] == ["64", "64", "85"]
    assert own[4] == f"{2 * 8 * (64 + 4 + 64) * 4:,}"  # shared, with the kernel's pad
    assert int(others[0][5]) > 64  # its sums are in registers
    assert text.endswith("\n\nWithout a GPU nothing is timed.")


def test_what_is_not_possible_says_why(kernel):
    text = " ".join(tune.report(KATA, kernel, "cpu").split())
    assert "Not possible: 4,096 threads, and a block has at most 1,024 256x256x8 4x4 " in text
    assert re.search(r"Not possible: sgemm_register declares 66,048 bytes [^:]* 256x256x16 8x8 ", text)


def test_a_static_assert_is_quoted(kernel):
    kernel.write_text(kernel.read_text().replace("BM + BN > 64 ||", "TM == 4 &&"))
    text = held(tune.report(KATA, kernel, "cpu"))
    assert "\nNot possible: what a file may ask\n    64x64x8 8x8, 128x64x8 8x8, 256x256x16 8x8\n" in text


def test_too_many_registers_for_the_threads(kernel, monkeypatch):
    """256 x 256 with 8 x 8 sums a thread: 1,024 threads, each of which wants more than 64 registers."""
    monkeypatch.setattr(tiles, "grid", lambda: [Tile(256, 256, 8, 8, 8)])
    text = " ".join(tune.report(KATA, kernel, "cpu").split())
    assert re.search(r"Not possible: needs \d+ registers for each of 1,024 threads, .* 256x256x8 8x8", text)


def test_constants_without_guards_are_told():
    text = held(tune.report(KATA, ROOT / "tests/right/04_register.double_buffered.cu", "cpu"))
    assert re.fullmatch(
        r"tests/right/04_register.double_buffered.cu fixes (\w+): to let it be varied, define it between "
        r"#ifndef \1 and #endif",
        text.replace("\n", " "),
    )


def test_a_stub_shows_the_arithmetic():
    text = held(tune.report(KATA, KATA.stub, "cpu"))
    assert text.startswith("dojo/stubs/04_register.cu is still the stub. What the constants alone say:\n\n")
    assert "\n256x256x16 8x8     1,024 32/64       -    -     -  -            -   256\n" in text
    assert "4,096 threads" in text


def test_what_does_not_compile_shows_the_arithmetic(kernel):
    kernel.write_text(kernel.read_text().replace("__syncthreads();", "__syncthreads()"))
    text = held(tune.report(KATA, kernel, "cpu"))
    assert " fails at compiles " in text.replace("\n", " ")
    assert "\n64x64x8    4x4       256   4/8       -    -     -  -            -    64\n" in text


def test_other_katas_have_no_tiles():
    tiled = katas.find("tiled")
    assert (
        tune.report(tiled, tiled.solution)
        == "tiled has no tiles of BM, BN, BK, TM, TN: make kata=register tune"
    )


def test_on_a_card_the_fastest_comes_first(kernel, monkeypatch):
    card = Card(monkeypatch, {"128x64x8 8x8": 0.5e-3, "64x64x8 4x4": 2e-3, "cuBLAS": 0.4e-3})
    text = held(tune.report(KATA, kernel))
    assert [(row[0] + row[1], row[-1]) for row in rows(text)] == [
        ("128x64x88x8", "2.0"),
        ("64x64x88x8", "1.0"),
        ("64x64x84x4*", "0.5"),
    ]
    assert card.compared == [["64x64x8 4x4", "64x64x8 8x8", "128x64x8 8x8", "cuBLAS"]]
    assert text.replace("\n", " ").endswith("; cuBLAS 2.5 TFLOP/s in the same run.")


def test_what_is_wrong_on_the_card_is_not_timed(kernel, monkeypatch):
    card = Card(monkeypatch, problem=("bounds", "the kernel wrote beyond the end of C"))
    text = held(tune.report(KATA, kernel))
    assert card.compared == []
    assert rows(text) == []
    assert (
        "Wrong on the card, at M 128, N 128, K 64, alpha 1, beta 0, the kernel wrote beyond the end of C"
        in text.replace("\n", " ")
    )
    assert text.endswith("Not timed: there is none that is right.")


def test_a_kernel_that_is_not_safe_never_meets_the_card(kernel, monkeypatch):
    kernel.write_text(kernel.read_text().replace("    __syncthreads();\n    int now", "    int now"))
    card = Card(monkeypatch, problem=("bounds", "this was launched"))
    text = held(tune.report(KATA, kernel))
    assert card.compared == []
    assert "this was launched" not in text
    assert "Not timed: first it must be safe and right (make kata=register" in text
