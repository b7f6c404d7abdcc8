"""The Dockerfile, as far as it can be told without Docker: what it copies is there, and its command runs."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from dojo.katas import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = re.findall(r"^([A-Z]+) (.*)", TEXT, re.MULTILINE)
COPIES = {
    target: source for word, rest in INSTRUCTIONS if word == "COPY" for source, target in [rest.split()]
}
(ENTRYPOINT,) = (json.loads(rest) for word, rest in INSTRUCTIONS if word == "ENTRYPOINT")
COMMANDS = re.findall(r"^#? *(docker .*)", TEXT, re.MULTILINE)


def test_what_is_copied_is_there_and_sent_to_the_builder():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    assert set(COPIES.values()) == sent
    for source in sent:
        assert (ROOT / source).is_file()


def test_what_make_would_install_is_installed():
    installed = [
        word
        for _, rest in INSTRUCTIONS
        for line in rest.split("&&")
        if "pip install" in line
        for word in shlex.split(line)
        if word.endswith(".txt")
    ]
    assert [COPIES[target] for target in installed] == ["requirements/run.txt"]


def test_it_has_make_and_mounts_the_checkout_where_it_works():
    assert any(word == "RUN" and re.search(r"install .*\bmake\b", rest) for word, rest in INSTRUCTIONS)
    (folder,) = (rest for word, rest in INSTRUCTIONS if word == "WORKDIR")
    assert f'-v "$PWD":{folder} ' in COMMANDS[1]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_commands_are_those_of_the_readme(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert len(COMMANDS) == 2
    for command in COMMANDS:
        assert f"\n{command}\n" in text


def test_the_container_grades(tmp_path, monkeypatch):
    """What follows the image's name goes to the entry point; the reference stands in for a learner's file."""
    image = re.search(r"build -t (\S+)", COMMANDS[0])[1]
    words = shlex.split(COMMANDS[1].partition(f" {image} ")[2])
    assert words == ["kata=tiled", "test"]
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON", "kata", "from", "on", "ARGS"):
        monkeypatch.delenv(name, raising=False)
    command = [*ENTRYPOINT, *words, "from=solutions", "on=cpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[-6:]) == (0, "\nPASS\n")
