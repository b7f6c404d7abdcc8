"""The make commands and the set-up of .venv, with stand-ins for Python and pip: nothing is downloaded."""

import os
import re
import shutil
import subprocess

import pytest

from dojo.katas import ROOT

# A python3 whose venv holds a copy of itself, and whose pip only notes what it is asked for in $DOJO_FAKE.
PYTHON3 = r"""#!/bin/sh
fake=$DOJO_FAKE
case "$*" in
    -V | --version) echo "Python $(cat "$fake/version")" ;;
    "-c import sys;"*) [ "$(cat "$fake/version")" != 3.8.10 ] ;;
    "-c import ensurepip"*) [ ! -e "$fake/no_venv" ] ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo venv >>"$fake/log" ;;
    "-m pip --version") [ ! -e .venv/half_made ] ;;
    "-m pip install"*)
        echo "pip ${*##*/}" >>"$fake/log"
        [ ! -e "$fake/slow" ] || sleep 0.3
        [ ! -e "$fake/no_network" ] ;;
    *) echo "python $*" ;;
esac
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A copy of what make needs, in a folder with a space, and a PATH on which python3 is the stand-in."""
    clone, fake = tmp_path / "my clone", tmp_path / "fake"
    shutil.copytree(ROOT / "requirements", clone / "requirements")
    shutil.copy(ROOT / "Makefile", clone)
    (fake / "bin").mkdir(parents=True)
    (fake / "version").write_text("3.12.1")
    (fake / "bin" / "python3").write_text(PYTHON3)
    (fake / "bin" / "python3").chmod(0o755)
    (fake / "bin" / "uname").write_text("#!/bin/sh\necho Linux\n")
    (fake / "bin" / "uname").chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOJO_FAKE", str(fake))
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON", "kata", "from", "on", "ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(clone)
    return clone


@pytest.fixture
def fake(clone):
    return clone.parent / "fake"


def make(*arguments):
    return subprocess.run(["make", *arguments], capture_output=True, text=True)


def installed(fake):
    """What the stand-in was asked to do; cuBLAS, which depends on this machine's driver, left out."""
    log = fake / "log"
    return [line for line in log.read_text().splitlines() if "gpu" not in line] if log.exists() else []


def test_help_lists_every_command(clone):
    text = make("help").stdout
    assert text == make().stdout
    phony = re.search(r"^\.PHONY: (.*)", (clone / "Makefile").read_text(), re.MULTILINE)
    for target in phony[1].split():
        assert target == "help" or re.search(rf"^make (.* )?{target}  ", text, re.MULTILINE)


def test_help_installs_nothing(clone, fake):
    make()
    assert not (clone / ".venv").exists()


def test_first_command_installs_and_the_second_does_not(fake):
    first = make("kata=tiled", "test")
    assert (first.returncode, first.stderr) == (0, "")
    assert re.match(r"Installing .* once: .* about a minute\.\n", first.stdout)
    assert installed(fake) == ["venv", "pip run.txt"]
    second = make("kata=tiled", "test")
    assert second.stdout == "python -m dojo test tiled\n"
    assert installed(fake) == ["venv", "pip run.txt"]


def test_options_are_handed_on(clone):
    text = make("kata=2", "from=my kernels/it's $$5.cu", "on=cpu", "ARGS=-v -k safe", "test").stdout
    assert text.endswith("python -m dojo test 2 --from my kernels/it's $5.cu --on cpu -- -v -k safe\n")


@pytest.mark.parametrize("command", ["compare", "tune"])
def test_what_informs_gets_the_file_and_the_machine(command, clone):
    text = make("kata=4", "from=my kernels/it's $$5.cu", "on=cpu", command).stdout
    assert text.endswith(f"python -m dojo {command} 4 --from my kernels/it's $5.cu --on cpu\n")
    assert make("kata=4", command).stdout == f"python -m dojo {command} 4\n"


def test_bench_gets_what_pytest_shall_have(clone):
    text = make("kata=4", "from=my kernels", "ARGS=--benchmark-autosave --seed=3", "bench").stdout
    assert text.endswith("python -m dojo bench 4 --from my kernels -- --benchmark-autosave --seed=3\n")


def test_scoreboard_needs_no_kata(clone):
    assert make("PYTHON=python3", "scoreboard").stdout == "python -m dojo scoreboard\n"


def test_python_of_ones_own_installs_nothing(clone, fake):
    assert make("PYTHON=python3", "kata=tiled", "test").stdout == "python -m dojo test tiled\n"
    assert not (clone / ".venv").exists()
    assert installed(fake) == []


def test_python_in_the_environment_is_not_meant(clone, monkeypatch):
    monkeypatch.setenv("PYTHON", "python2")
    assert make("kata=tiled", "test").stdout.endswith("python -m dojo test tiled\n")


def test_check_brings_its_own_tools(fake):
    make("kata=tiled", "test")
    text = make("check").stdout
    assert installed(fake) == ["venv", "pip run.txt", "pip check.txt"]
    for tool in ("ruff check", "ruff format --check", "mypy", "pytest tests/meta"):
        assert f"python -m {tool}" in text


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("version", "3.8.10", "Python 3.10 or newer is needed, and python3 is Python 3.8.10: "),
        ("no_venv", "", "This python3 cannot make a virtual environment: install its venv module"),
        ("bin/uname", "#!/bin/sh\necho Darwin\n", "does not exist for macOS: work in a Linux container"),
    ],
)
def test_what_stops_the_set_up_is_one_line(file, content, sentence, clone, fake):
    (fake / file).write_text(content)
    result = make("kata=tiled", "test")
    assert result.returncode != 0
    line, of_make = result.stderr.splitlines()
    assert sentence in line
    assert of_make.startswith("make: ***")
    assert not (clone / ".venv").exists()


def test_interrupted_installation_is_continued(clone, fake):
    (fake / "no_network").touch()
    result = make("kata=tiled", "test")
    assert result.returncode != 0
    assert "the next make continues it" in result.stderr
    (fake / "no_network").unlink()
    assert make("kata=tiled", "test").returncode == 0
    assert installed(fake) == ["venv", "pip run.txt", "pip run.txt"]


def test_half_made_environment_is_made_anew(clone, fake):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "half_made").touch()
    assert make("kata=tiled", "test").returncode == 0
    assert not (clone / ".venv" / "half_made").exists()


def test_changed_list_is_installed(clone, fake):
    make("kata=tiled", "test")
    with open("requirements/run.txt", "a") as file:
        file.write("another\n")
    make("kata=tiled", "test")
    assert installed(fake) == ["venv", "pip run.txt", "pip run.txt"]


def test_another_python_is_installed_for(clone, fake):
    make("kata=tiled", "test")
    (fake / "version").write_text("3.13.0")
    make("kata=tiled", "test")
    assert installed(fake).count("pip run.txt") == 2


@pytest.mark.skipif(not shutil.which("flock"), reason="no flock here")
def test_two_at_once_install_once(clone, fake):
    (fake / "slow").touch()
    both = [subprocess.Popen(["make", "kata=tiled", "test"], stdout=subprocess.PIPE) for _ in range(2)]
    for one in both:
        assert one.communicate()[0].endswith(b"python -m dojo test tiled\n")
        assert one.returncode == 0
    assert installed(fake) == ["venv", "pip run.txt"]


def test_clean_leaves_the_learners_files(clone):
    make("kata=tiled", "test")
    (clone / "katas").mkdir()
    (clone / "katas" / "02_tiled.cu").write_text("mine")
    (clone / "dojo" / "__pycache__").mkdir(parents=True)
    assert make("clean").returncode == 0
    assert sorted(path.name for path in clone.iterdir()) == ["Makefile", "dojo", "katas", "requirements"]
    assert not (clone / "dojo" / "__pycache__").exists()
