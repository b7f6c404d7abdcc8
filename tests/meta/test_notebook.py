"""colab.ipynb holds every kata's stub, and its cells run: UPDATE_GOLDEN=1 puts the stubs into it anew.

The cells run in a copy of the repository, by the few things that IPython would do here; git and pip are
stand-ins, /content is a folder of the test, and no GPU is seen.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from dojo.katas import ROOT, all_katas

NOTEBOOK = ROOT / "colab.ipynb"
ADDRESS = "https://example.org/katas.git"
STAND_INS = {
    "git": 'echo "git $*" >>"$LOG"\nfor folder; do :; done\ncp -r "$REPOSITORY" "$folder"\n',
    "python3": f'[ "$2" != pip ] || {{ echo "$*" >>"$LOG"; exit; }}\nexec "{sys.executable}" "$@"\n',
}


def read():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def code():
    return ["".join(cell["source"]) for cell in read()["cells"] if cell["cell_type"] == "code"]


def stub_cell(kata):
    return f"%%writefile katas/{kata.stem}.cu\n{kata.stub.read_text(encoding='utf-8')}".rstrip("\n")


class Session:
    """What is left of IPython: a folder, variables, what the commands printed and the last one's status."""

    def __init__(self, content):
        self.content, self.folder, self.names = content, content, {}
        self.output, self.status = "", 0

    def run(self, cell):
        """A whole cell; returns what it printed."""
        self.output = ""
        if written := re.match(r"%%writefile (\S+)\n", cell):
            (self.folder / written[1]).write_text(cell[written.end() :] + "\n", encoding="utf-8")
            return ""
        for line in cell.replace("/content", str(self.content)).splitlines():
            if line.startswith("%cd "):
                self.folder = self.folder / line.removeprefix("%cd ")
            elif line.startswith("!"):
                command = re.sub(r"\{(\w+)\}", lambda name: self.names[name[1]], line[1:])
                done = subprocess.run(
                    command, shell=True, cwd=self.folder, capture_output=True, text=True, check=False
                )
                self.output += done.stdout + done.stderr
                self.status = done.returncode
            else:
                exec(line, self.names)
        return self.output


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session in an empty /content, with a repository to be cloned whose katas are untouched."""
    repository, commands = tmp_path / "repository", tmp_path / "bin"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("dojo", "solutions", "requirements", "tests/katas"):
        shutil.copytree(ROOT / name, repository / name, ignore=ignored)
    shutil.copytree(ROOT / "dojo/stubs", repository / "katas")
    for name in ("Makefile", "conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, repository)
    commands.mkdir()
    for name, script in STAND_INS.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("REPOSITORY", str(repository))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON", "kata", "from", "on", "ARGS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "content").mkdir()
    return Session(tmp_path / "content")


def filled_in(cell):
    """The first cell as the learner leaves it."""
    assert cell.startswith('REPOSITORY = ""')
    return cell.replace('""', f'"{ADDRESS}"', 1)


def test_every_kata_has_a_cell_with_its_stub_and_one_that_grades_it():
    if os.environ.get("UPDATE_GOLDEN"):
        renew()
    cells = code()
    for kata in all_katas():
        place = cells.index(stub_cell(kata))
        assert cells[place + 1] == f"!make PYTHON=python3 kata={kata.name} test"
    assert len([cell for cell in cells if "%%writefile" in cell]) == len(all_katas())


def renew():
    notebook = read()
    for kata in all_katas():
        for cell in notebook["cells"]:
            if "".join(cell["source"]).startswith(f"%%writefile katas/{kata.stem}.cu\n"):
                cell["source"] = stub_cell(kata).splitlines(keepends=True)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def test_it_is_a_notebook_without_outputs_for_a_machine_with_a_card():
    notebook = read()
    assert (notebook["nbformat"], notebook["metadata"]["accelerator"]) == (4, "GPU")
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert not cell.get("outputs")
        assert "".join(cell["source"]).strip()


def test_the_cells_run(session, tmp_path):
    first, *cells = code()
    first = filled_in(first)
    assert "compiler; it needs no GPU" in session.run(first)  # doctor's line
    log = (tmp_path / "log").read_text().splitlines()
    assert log == [
        f"git clone --quiet {ADDRESS} {session.content}/katas",
        "-m pip install --quiet --requirement requirements/run.txt",
    ]
    graded = 0
    for cell in cells:
        output = session.run(cell)
        if cell.endswith(" test"):
            graded += 1
            assert ("is still the stub" in output) or ("FAIL at traffic" in output), output
            assert session.status
    assert graded == len(all_katas())
    for kata in all_katas():
        assert (session.folder / f"katas/{kata.stem}.cu").read_bytes() == kata.stub.read_bytes()
    assert "01 naive" in output  # of make list
    session.run(first)  # a second time: nothing is cloned over what is there
    assert (tmp_path / "log").read_text().count("git clone") == 1


def test_what_is_written_into_a_cell_is_graded(session):
    session.run(filled_in(code()[0]).replace("!make PYTHON=python3 doctor", ""))
    kata = all_katas()[0]
    session.run(f"%%writefile katas/{kata.stem}.cu\n{kata.solution.read_text(encoding='utf-8')}")
    assert session.run(f"!make PYTHON=python3 kata={kata.name} test").endswith("\nPASS\n")
    assert session.status == 0
