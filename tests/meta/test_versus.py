"""`make kata=tiled compare`, with and without a card. UPDATE_GOLDEN=1 writes the golden texts anew."""

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from grading import MODULES
from stand_in import Card
from test_grades import KINDS

from dojo import counts, entrants, gpu, katas, places, state, versus
from dojo.entrants import same_product
from dojo.katas import ROOT, find

GOLDEN = Path(__file__).parent / "golden/compare"
SOLUTIONS = ROOT / "solutions"
SMALL = {
    "naive": {"Width": 48},
    "tiled": {"Width": 48},
    "swizzle": dict(zip("MND", (48, 48, 48), strict=True)),
}
SMALL["register"] = {"M": 48, "N": 48, "K": 48, "alpha": 1.0, "beta": 0.0}
TIMES = {
    "yours": 2.1e-3,
    "solution": 2e-3,
    "solution, padding": 1.7e-3,
    "naive": 3.2e-3,
    "02_tiled": 4e-3,
    "the stub": 9.4e-3,
    "cuBLAS": 0.35e-3,
    "FMA": 2.25e-3,
    "the read probe": 0.25e-6,
}


def small(kata):
    """The kata's test module with a contest, and sizes on the card, that the CPU multiplies at once."""
    module = MODULES[kata.stem]
    sizes = module.TASK.sizes[:4] if kata.name == "register" else module.TASK.sizes
    task = replace(module.TASK, sizes=sizes, gpu_sizes=sizes[:2], precise=None)
    if kata.name == "reducesum":
        task = replace(task, gpu_sizes=[{"rows": 4, "cols": cols} for cols in (32, 256)])
        contest = replace(module.CONTEST, widths=(32, 256))
    else:
        product = replace(module.CONTEST.cublas, m=48, n=48, k=48)
        contest = replace(module.CONTEST, size=SMALL[kata.name], cublas=product)
    return SimpleNamespace(TASK=task, CONTEST=contest, test_traffic=module.test_traffic)


@pytest.fixture(autouse=True)
def small_katas(monkeypatch):
    for module in (counts, entrants, places, versus):
        monkeypatch.setattr(module, "module_of", small)


def report(name, where, on="", **options):
    """What is said of a file in this folder, or of this very file; what every such text keeps to."""
    kata = find(name)
    file = where / kata.file.name if where.is_dir() else where
    text = versus.report(kata, file, on, **{"own": False, **options})
    assert max(map(len, text.split("\n"))) <= 80
    assert not re.search(rf"\b({'|'.join(KINDS)}): ", text)
    return text


def stable(text):
    """Without the figures that another release of the compiler changes."""
    return re.sub(r"^(instructions|registers|blocks|occupancy)(.*)", r"\1", text, flags=re.MULTILINE)


STUBS = ROOT / "dojo/stubs"
WITHOUT = {
    "stub": ("tiled", STUBS),
    "working_stub": ("swizzle", STUBS),
    "unsafe": ("tiled", ROOT / "tests/wrong/02_tiled.no_second_barrier.cu"),
    "not_compiling": ("naive", ROOT / "tests/wrong/01_naive.syntax_error.cu"),
    "sums": ("reducesum", ROOT / "tests/right/05_reducesum.kahan.cu"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_without_a_card_the_counts_stand_side_by_side(name):
    golden(name, stable(report(*WITHOUT[name], on="cpu")))


@pytest.mark.parametrize("kata", katas.all_katas(), ids=lambda kata: kata.name)
def test_every_stub_and_solution_can_be_compared(kata):
    for where in (STUBS, SOLUTIONS):
        assert "\ninstructions of threads" in report(kata.name, where, on="cpu")


def test_what_the_simulator_lacks_is_no_obstacle():
    text = report("naive", ROOT / "tests/wrong/01_naive.clock.cu", on="cpu")
    again = "make kata=naive from=tests/wrong/01_naive.clock.cu test"
    assert text.replace("\n", " ").endswith(f"01_naive.clock.cu asks for what the simulator lacks ({again}).")


def test_a_launch_without_end_has_no_figures():
    text = report("tiled", ROOT / "tests/wrong/02_tiled.phase_never_grows.cu", on="cpu")
    assert "yours" not in text
    assert "02_tiled.phase_never_grows.cu does not come to its end" in text.replace("\n", " ")


SUMS = {"yours": 0.27e-6, "solution": 0.255e-6}


@pytest.mark.parametrize(
    ("name", "where", "times"),
    [("tiled", "right/02_tiled.skewed.cu", {}), ("reducesum", "right/05_reducesum.kahan.cu", SUMS)],
)
def test_on_a_card_times_and_the_chart(name, where, times, monkeypatch):
    Card(monkeypatch, TIMES | times)
    table, chart = report(name, ROOT / "tests" / where).split("\n\nTFLOP/s\n")
    figures = "\n".join(line[:46].rstrip() for line in table.split("\n"))  # registers are the compiler's
    assert "an SM, 100 %" in table
    golden(f"{name}_card", f"{figures}\n\n{chart}")


def test_the_kata_before_takes_part_where_it_is_the_same_product(monkeypatch):
    before = {name: same_product(find(name), small(find(name)).CONTEST) for name in SMALL}
    assert before == {"naive": None, "tiled": find("naive"), "swizzle": None, "register": find("tiled")}
    card = Card(monkeypatch, TIMES)
    report("register", SOLUTIONS)
    names, _ = card.compared
    assert names[0] == "yours"
    assert "02_tiled" in names
    assert "cuBLAS" in names


def test_the_product_before_is_launched_on_the_same_operands(monkeypatch):
    """kata 02's kernel has other parameters: M, N, P, Width for kata 04's A, B, C."""
    seen = {}
    Card(monkeypatch)
    compare = gpu.compare

    def spy(candidate, baselines, **options):
        if candidate.names:
            seen.update(baselines, yours=candidate)
        return compare(candidate, baselines, **options)

    monkeypatch.setattr(gpu, "compare", spy)
    report("register", SOLUTIONS)
    ours, before = seen["yours"], seen["02_tiled"]
    assert before.args[0] is ours.args[4]
    assert before.args[1] is ours.args[5]
    assert before.args[2] is ours.args[7]
    assert before.args[3] == 48
    assert (before.grid, before.block) == ((3, 3), (16, 16))


@pytest.mark.parametrize("kata", katas.all_katas(), ids=lambda kata: kata.name)
def test_on_a_card_a_stub_leaves_the_others(kata, monkeypatch):
    card = Card(monkeypatch, TIMES)
    text = report(kata.name, STUBS)
    assert ("is still the stub." in text) is not MODULES[kata.stem].TASK.stub_works
    assert ("yours" in card.compared[0]) is MODULES[kata.stem].TASK.stub_works
    assert "\nsolution" in text


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (
            "02_tiled.no_second_barrier.cu",
            "fails at safe (make kata=tiled from=tests/wrong/02_tiled.no_second_barrier.cu test).",
        ),
        (
            "02_tiled.half_sum.cu",
            "fails at result (make kata=tiled from=tests/wrong/02_tiled.half_sum.cu test).",
        ),
    ],
)
def test_what_is_not_safe_and_right_is_not_timed(file, words, monkeypatch):
    card = Card(monkeypatch, TIMES)
    text = report("tiled", ROOT / "tests/wrong" / file)
    assert words in text.replace("\n", " ")
    assert all("yours" not in names for names in card.compared)
    assert "\nyours   " not in text


def test_a_wrong_result_in_a_timed_launch_is_left_out(monkeypatch):
    Card(monkeypatch, TIMES, wrong=["yours"])
    text = report("tiled", ROOT / "tests/right/02_tiled.skewed.cu")
    assert "tests/right/02_tiled.skewed.cu is not timed: at Width 48, P[0][0]" in text.replace("\n", " ")
    assert "\nyours   " not in text


def test_when_nothing_can_be_timed_one_line_says_so(monkeypatch):
    Card(monkeypatch, problem=("launch", "no memory is left"))
    monkeypatch.setattr(
        gpu,
        "compare",
        lambda *_, name="yours", **__: gpu.Timings(name, problem=("launch", "no memory is left")),
    )
    assert report("tiled", STUBS) == "solutions/02_tiled.cu is not timed: at Width 48, no memory is left"


def test_a_kernel_without_others_that_cannot_be_timed(monkeypatch):
    Card(monkeypatch, TIMES, wrong=["yours"])
    monkeypatch.setattr(entrants, "solutions", lambda kata, task: [])
    text = report("reducesum", SOLUTIONS)
    assert text.startswith("solutions/05_reducesum.cu is not timed: at rows ")


# ------------------------------------------------------------------------------------------- the katas so far


def test_ones_own_kernels_are_in_the_charts_of_other_katas(course, monkeypatch):
    Card(monkeypatch, TIMES)
    for name in ("naive", "tiled"):
        (find(name).file).write_text(find(name).solution.read_text(encoding="utf-8"), encoding="utf-8")
        report(name, course / "katas", own=True)
    text = report("reducesum", course / "solutions")
    assert "\n1  your 01_naive" in text
    assert "\n2  your 02_tiled" in text
    Card(monkeypatch, {name: 2 * seconds for name, seconds in TIMES.items()})
    report("naive", course / "katas", own=True)
    assert report("reducesum", course / "solutions").count("your 01_naive") == 1


def test_from_keeps_nothing(course, monkeypatch):
    Card(monkeypatch, TIMES)
    report("naive", course / "solutions", own=False)
    assert not state.file().exists()


def test_a_solution_that_is_no_more_is_one_sentence(course, monkeypatch):
    (course / "solutions/01_naive.cu").write_text("nonsense", encoding="utf-8")
    Card(monkeypatch)
    text = report("naive", course / "katas").replace("\n", " ")
    assert text.startswith("Nothing is timed, solutions/01_naive.cu(1): error")


def test_the_best_on_this_card_counts(course):
    def event(tflops, card="NVIDIA H200", intensity="4", kata="02_tiled", what="compare"):
        state.add(state.Event(state.now(), kata, what, speed=tflops, card=card, intensity=intensity))

    event("7.5 TFLOP/s")
    event("8.1 TFLOP/s")
    event("7.9 TFLOP/s")
    event("9.9 TFLOP/s", card="Tesla T4")
    event("9.9 TFLOP/s", intensity="")
    event("", kata="01_naive")
    event("5 TFLOP/s", kata="04_register")
    for speed, intensity in (("0 TFLOP/s", "4"), ("nan", "4"), ("1e999", "4"), ("9 TFLOP/s", "-1")):
        event(speed, intensity=intensity)  # damaged lines: the chart's scale is logarithmic
    event("9 TFLOP/s", kata="no_kata")
    (point,) = places.earlier(find("register"), "NVIDIA H200")
    assert (point.mark, point.name, point.tflops, point.intensity) == ("2", "your 02_tiled", 8.1, 4.0)


def golden(name, text):
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(f"{text}\n", encoding="utf-8")
    assert f"{text}\n" == file.read_text(encoding="utf-8")
