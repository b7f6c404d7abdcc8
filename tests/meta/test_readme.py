"""The README shows what the commands print: its transcripts are run again."""

import re
import subprocess
import sys

import pytest

from dojo.katas import ROOT, all_katas

README = (ROOT / "README.md").read_text()
TRANSCRIPTS = re.findall(r"```\n\$ make (kata=[^\n]*) test\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("words", "printed"), TRANSCRIPTS, ids=lambda text: text.split("\n")[0])
def test_a_transcript_is_what_the_command_prints(words, printed):
    asked = dict(word.split("=", 1) for word in words.split())
    command = ["test", asked["kata"], "--from", asked["from"], "--on", asked["on"], "--", asked["ARGS"]]
    done = subprocess.run(
        [sys.executable, "-m", "dojo", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == printed


def test_there_is_a_failing_and_a_passing_transcript():
    assert ["PASS" in printed for _, printed in TRANSCRIPTS] == [False, True]


def test_every_kata_is_listed():
    for kata in all_katas():
        assert f"(katas/{kata.stem}.md)" in README
