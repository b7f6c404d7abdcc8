"""What a learner reads: whole gradings against golden texts, and what all of them have in common.

tests/meta/golden/gradings holds cards of kernels in tests/wrong, which test_grades.py grades anyway and
compares; golden/changed those of CHANGED below, each a right kernel with something altered; golden/timed
those with a made-up card. UPDATE_GOLDEN=1 writes them anew; read the diff. For one more kernel of
tests/wrong, make an empty file of its name first.
"""

import re
from dataclasses import replace

import pytest
from grading import GOLDEN, MODULES, check_golden, fresh, steady_card
from stand_in import Card
from test_grades import KINDS

from dojo import card, gpu
from dojo.katas import ROOT, all_katas

RIGHT = ROOT / "tests/right"
A_WARP_A_ROW = (RIGHT / "05_reducesum.warp_a_row.cu").read_text()
NAIVE = (ROOT / "solutions/01_naive.cu").read_text()
TILE_WIDTH = "constexpr int TILE_WIDTH = 16;"
ROWS = "constexpr int ROWS_PER_BLOCK = THREADS / 32;  // a warp for each row"
ONE, TWO = "rows_per_block(int cols)", "rows_per_block(int cols, int rows)"

# By the name of the golden file: the kata, its source, what is altered.
CHANGED = {
    "constant_is_a_variable": ("01_naive", NAIVE, TILE_WIDTH, "int TILE_WIDTH = 16;"),
    "constant_is_a_float": ("01_naive", NAIVE, TILE_WIDTH, "#define TILE_WIDTH 16.0f"),
    "constant_is_zero": ("01_naive", NAIVE, TILE_WIDTH, "constexpr int TILE_WIDTH = 0;"),
    "host_function": ("01_naive", NAIVE, TILE_WIDTH, f"float zero() {{ return 0.0f; }}\n{TILE_WIDTH}"),
    "many_errors": ("01_naive", NAIVE, "int Row = ", "int row = "),
    "no_kernel": ("01_naive", NAIVE, "__global__", "__device__"),
    "template": ("01_naive", NAIVE, 'extern "C"', "template <int UNROLL>"),
    "assertion": ("01_naive", NAIVE, "{\n", "{\n    assert(Width < 2);\n"),
    "trap": ("01_naive", NAIVE, "{\n", "{\n    if (Width > 2) __trap();\n"),
    "changed_input": (
        "01_naive",
        NAIVE,
        "float Pvalue = 0.0f;",
        "const_cast<float *>(M)[Row * Width + Col] = 0.0f; if (Width) return; float Pvalue = 0.0f;",
    ),
    "printf": ("01_naive", NAIVE, "float Pvalue = 0.0f;", 'float Pvalue; printf("%d %d", Row, Col);'),
    "function_of_two": ("05_reducesum", A_WARP_A_ROW, ROWS, f"constexpr int {TWO} {{ return 8; }}"),
    "function_without_end": (
        "05_reducesum",
        A_WARP_A_ROW,
        ROWS,
        f"constexpr int {ONE} {{ return rows_per_block(cols); }}",
    ),
    "function_for_the_card": ("05_reducesum", A_WARP_A_ROW, ROWS, f"__device__ int {ONE} {{ return 8; }}"),
    "function_below_one": (
        "05_reducesum",
        A_WARP_A_ROW,
        ROWS,
        f"constexpr int {ONE} {{ return 32 - cols; }}",
    ),
    "function_and_constant": (
        "05_reducesum",
        A_WARP_A_ROW,
        ROWS,
        f"{ROWS}\nconstexpr int {ONE} {{ return cols > 99 ? 1 : 8; }}",
    ),
    "threads_of_no_whole_warp": ("05_reducesum", A_WARP_A_ROW, "THREADS = 256", "THREADS = 48"),
    "threads_below_a_warp": ("05_reducesum", A_WARP_A_ROW, "THREADS = 256", "THREADS = 16"),
}
GRADINGS = sorted((GOLDEN / "gradings").glob("*.txt"))
CARDS = [
    file for folder in ("gradings", "changed", "timed") for file in sorted((GOLDEN / folder).glob("*.txt"))
]
FAILURE = re.compile(r"FAIL   (\w+):(?: |$)", re.MULTILINE)
KIND = re.compile(rf"\b({'|'.join(KINDS)}): ")


def name_of(file):
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.parametrize("name", CHANGED)
def test_the_card_of_a_changed_kernel_is_the_golden_one(name, tmp_path):
    kata, source, old, new = CHANGED[name]
    assert old in source
    file = tmp_path / "changed.cu"
    file.write_text(source.replace(old, new).replace("ROWS_PER_BLOCK + ", "THREADS / 32 + "))
    grade = fresh(file, kata=kata)
    grade.path = f"katas/{kata}.cu"
    check_golden(f"changed/{name}", steady_card(grade))


# ----------------------------------------------------------------------------------------- with a card


def timed(monkeypatch, kata, file, seconds, gpu_sizes=(), **changed):
    """A made-up card that takes so many seconds, and the grade of a right kernel on it at small sizes."""
    module = MODULES[kata]
    monkeypatch.setattr(module, "CONTEST", replace(module.CONTEST, **changed))
    for name, value in {"gpu_sizes": gpu_sizes, "precise": None}.items():
        monkeypatch.setitem(vars(module.TASK), name, value)
    stand_in = Card(monkeypatch, seconds)
    grade = fresh(file, kata=kata)
    grade.on = ""
    return stand_in, grade


TIMED = {
    "slow_tiled": (
        "02_tiled",
        RIGHT / "02_tiled.macro.cu",
        {"yours": 4e-3, "naive": 4e-3, "cuBLAS": 4e-4},
        {"size": {"Width": 48}, "flop": 3.2e10},
    ),
    "slow_reducesum": (
        "05_reducesum",
        RIGHT / "05_reducesum.warp_a_row.cu",
        {"yours": 2e-6, "the read probe": 1e-6},
        {"widths": (32, 256), "gpu_sizes": [{"rows": 3, "cols": 32}, {"rows": 3, "cols": 256}]},
    ),
}


@pytest.mark.parametrize("name", TIMED)
def test_the_card_of_a_slow_kernel_is_the_golden_one(name, monkeypatch):
    kata, file, seconds, changed = TIMED[name]
    _, grade = timed(monkeypatch, kata, file, seconds, **changed)
    check_golden(f"timed/{name}", steady_card(grade))


def noise(monkeypatch, *, steady):
    """A made-up card on which a wrong number is the same in each launch, or another one."""
    stand_in, grade = timed(monkeypatch, "02_tiled", RIGHT / "02_tiled.macro.cu", {})
    run, launches = stand_in.run, []

    def run_badly(*args, **kwargs):
        outcome = run(*args, **kwargs)
        launches.append(outcome)
        outcome.arrays[-1][0, 0] = 1.0 if steady else len(launches)
        return outcome

    monkeypatch.setattr(gpu, "run", run_badly)
    grade.on = "gpu"
    return grade


def test_what_differs_from_launch_to_launch_is_said_to(monkeypatch):
    check_golden("timed/noise", steady_card(noise(monkeypatch, steady=False)))


def test_what_is_wrong_in_every_launch_is_not_called_noise(monkeypatch):
    text = steady_card(noise(monkeypatch, steady=True))
    assert "P[0][0]" in text
    assert "second launch" not in text


# ------------------------------------------------------------------------------------- what all of them keep


def test_there_is_a_card_for_every_kind_and_for_most_in_every_kata():
    kinds = {name_of(file): FAILURE.findall(file.read_text()) for file in CARDS}
    assert {kind for found in kinds.values() for kind in found} == {*KINDS}
    for kata in all_katas():
        mine = {
            kind
            for name, found in kinds.items()
            if name.startswith(f"gradings/{kata.stem}")
            for kind in found
        }
        assert mine >= {"compile", "launch", "bounds", "result", "traffic"} - (
            {"launch"} if kata.number == 3 else set()
        )
        assert mine & {"race", "barrier", "uninitialised"}


def test_a_kind_and_a_colon_stand_at_the_start_of_a_failure_only():
    for file in CARDS:
        text = re.sub(r"\n\s+", " ", file.read_text())
        assert len(KIND.findall(text)) == len(FAILURE.findall(text)) == 1, name_of(file)


def test_a_failure_ends_with_one_question():
    for file in CARDS:
        end = file.read_text().partition("\nFAIL at ")[2].replace("\n", " ").strip()
        assert re.fullmatch(r"\w+\. Next: [^?]+\? +make kata=\w+ hint", end), name_of(file)


def test_a_card_is_80_columns_wide_but_for_the_compilers_own_lines():
    for file in CARDS:
        text = file.read_text()
        if ": error: " in text:
            text = text[text.index("\n\n  safe") :]
        assert max(map(len, text.split("\n"))) <= 80, name_of(file)


def test_a_wrong_result_lists_five_elements_at_most():
    for file in CARDS:
        listed = re.findall(r"^ +\w+(?:\[\d+\])+ +is ", file.read_text(), re.MULTILINE)
        assert len(listed) <= 5, name_of(file)


def test_every_question_is_asked_somewhere():
    asked = " ".join(file.read_text().replace("\n", " ") for file in CARDS)
    told_by_a_card = {"changed its input", "must not change"}
    for kind, part, question in card.QUESTIONS:
        assert question in asked or part in told_by_a_card, f"{kind}, {part}"
