"""The command line: what it refuses in one line, its exit status, and its silence but for the card."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from dojo import cli, gpu, nvrtc
from dojo.katas import ROOT, Kata, all_katas


def dojo(*arguments, **options):
    command = [sys.executable, "-m", "dojo", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", **options)


def unread(*arguments):
    """The status and standard error of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dojo", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["test"], ["which kata?", "naive, tiled"]),
        (["test", "warp"], ["'warp'", "naive, tiled"]),
        (["test", "tiled", "--from", "nowhere"], ["from=nowhere", "no such file"]),
        (["test", "tiled", "--from", "tests"], ["from=tests", "02_tiled.cu"]),
        (["test", "tiled", "--from", "pyproject.toml"], ["from=pyproject.toml", ".cu"]),
        (["test", "tiled", "--on", "tpu"], ["on=tpu", "cpu", "gpu"]),
        (["test", "tiled", "--frm", "katas"], ["--frm"]),
        (["compare", "warp"], ["'warp'", "naive, tiled"]),
        (["compare", "tiled", "--from", "nowhere"], ["from=nowhere", "no such file"]),
        (["compare", "tiled", "--on", "tpu"], ["on=tpu", "cpu", "gpu"]),
        (["tune"], ["which kata?", "naive, tiled"]),
        (["bench", "warp"], ["'warp'", "naive, tiled"]),
        (["grade"], ["grade"]),
        ([], ["command"]),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments, words, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_on_gpu_without_one_says_why(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "card", lambda: None)
    monkeypatch.setattr(gpu, "why_not", lambda: "no NVIDIA driver here")
    assert cli.main(["test", "tiled", "--on", "gpu"]) == 2
    assert capsys.readouterr().err == "on=gpu: no NVIDIA driver here\n"


def test_bench_without_a_gpu_says_what_there_is_instead(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "card", lambda: None)
    monkeypatch.setattr(gpu, "why_not", lambda: "no NVIDIA driver here")
    assert cli.main(["bench", "tiled"]) == 2
    instead = "without one: make kata=tiled compare"
    assert capsys.readouterr().err == f"bench needs a GPU (no NVIDIA driver here); {instead}\n"


@pytest.mark.parametrize("command", ["compare", "tune"])
def test_what_informs_ends_well_without_a_compiler(command, monkeypatch, capsys):
    def missing():
        raise nvrtc.NoCompiler("NVRTC is not here")

    monkeypatch.setattr(nvrtc, "installed", lambda: "")
    monkeypatch.setattr(nvrtc, "version", missing)
    assert cli.main([command, "register", "--from", "solutions", "--on", "cpu"]) == 0
    assert capsys.readouterr().out == "NVRTC is not here\n"


@pytest.mark.parametrize("command", [["compare", "tiled"], ["tune", "register"]])
def test_what_informs_ends_well_on_a_stub(command):
    done = dojo(*command, "--from", "dojo/stubs", "--on", "cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert " is still the stub." in done.stdout


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("tune register --from dojo/stubs --on cpu", 0),
        ("compare tiled --from dojo/stubs --on cpu", 0),
        ("list", 0),
        ("doctor", 0),
        ("test tiled --from dojo/stubs --on cpu", 1),
    ],
)
def test_a_reader_that_has_left_is_no_error(command, status):
    assert unread(*command.split()) == (status, "")


BENCH = """
import sys
sys.path[:0] = ["tests/meta", "."]
import pytest
from stand_in import Card
from dojo import cli

Card(pytest.MonkeyPatch(), {"yours": 0.26e-6, "the read probe": 0.25e-6})
sys.exit(cli.main(["bench", "reducesum", "--from", sys.argv[1]]))
"""


def bench(file):
    command = [sys.executable, "-c", BENCH, file]
    # pytest-benchmark does nothing where it finds itself in one of several workers, as these tests may be.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", env=env)
    assert done.stderr == ""
    return done


def test_bench_is_the_grade_and_the_times():
    done = bench("solutions")
    assert done.returncode == 0
    assert "\n  speed      ok     4," in done.stdout
    assert "\nPASS\n" in done.stdout
    table = done.stdout.partition("Legend:")[0]
    assert len(re.findall(r"^yours +260\.0000 ", table, re.MULTILINE)) == 4  # ns, at each width
    assert max(map(len, table.splitlines())) <= 80


def test_bench_times_nothing_that_is_not_safe():
    done = bench("tests/wrong/05_reducesum.no_barrier_between_partials.cu")
    assert done.returncode == 1
    assert "\n  speed      -      not run until it is safe\n" in done.stdout
    assert "the read probe" not in done.stdout


def test_an_attempt_is_the_katas_own_or_a_folders_or_any_file(tmp_path):
    tiled = all_katas()[1]
    spaced = tmp_path / "my kernels"
    spaced.mkdir()
    for name in ("02_tiled.cu", "other.cu"):
        (spaced / name).write_text("")
    assert cli.attempt(tiled, "") == tiled.file
    assert cli.attempt(tiled, "solutions") == tiled.solution
    assert cli.attempt(tiled, str(spaced)) == spaced / "02_tiled.cu"
    assert cli.attempt(tiled, str(spaced / "other.cu")) == spaced / "other.cu"


def test_a_missing_kata_says_how_to_begin_anew(monkeypatch, tmp_path):
    monkeypatch.setattr("dojo.katas.ROOT", tmp_path)
    with pytest.raises(cli.Usage, match=r"^katas/02_tiled.cu is missing; .*make kata=tiled reset$"):
        cli.attempt(Kata("02_tiled"), "")


def test_pytests_arguments_stand_after_the_dashes():
    assert cli.split(["test", "tiled", "--", "-v", "--seed=3"]) == (["test", "tiled"], ["-v", "--seed=3"])


def test_a_pass_is_the_card_alone_and_status_0():
    done = dojo("test", "tiled", "--from", "solutions", "--on", "cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("02_tiled · ")
    assert done.stdout.endswith("\n\nPASS\n")
    assert done.stdout.count("\n") == 9


def test_a_stub_is_one_line_and_status_1():
    done = dojo("test", "tiled", "--from", "dojo/stubs", "--on", "cpu")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("untouched: dojo/stubs/02_tiled.cu is still the stub;")
    assert done.stdout.count("\n") == 1


def test_random_bytes_are_one_compile_failure_and_status_1(tmp_path):
    file = tmp_path / "random bytes.cu"
    file.write_bytes(bytes(range(256)) * 8)
    done = dojo("test", "tiled", "--from", file, "--on", "cpu")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("compile: ") == 1
    assert "Traceback" not in done.stdout


def test_arguments_for_pytest_show_its_own_lines():
    done = dojo("test", "naive", "--from", "solutions", "--on", "cpu", "--", "-v", "--seed=3")
    assert done.returncode == 0
    assert "test_01_naive.py::test_traffic PASSED" in done.stdout
    assert "\nPASS\n" in done.stdout
    assert "ARGS=--seed=3" in done.stdout


def test_a_seed_is_no_negative_number():
    done = dojo("test", "naive", "--from", "solutions", "--on", "cpu", "--", "--seed=-1")
    assert done.returncode == 4
    assert "'-1'" in done.stderr
    assert "internal error" not in done.stdout + done.stderr


def test_control_c_is_one_line(tmp_path):
    slow = tmp_path / "slow.cu"
    text = (ROOT / "solutions/01_naive.cu").read_text(encoding="utf-8")
    slow.write_text(text.replace("for (int k", "for (int again = 0; again < 20; ++again) for (int k"))
    command = [sys.executable, "-m", "dojo", "test", "naive", "--from", str(slow), "--on", "cpu"]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert out + err == "\nstopped\n"
