"""The READMEs show what the commands print: UPDATE_GOLDEN=1 runs the transcripts again and writes them.

The Chinese one is held to the English one: what a reader types, counts or follows is the same in both.
"""

import functools
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from dojo import simulate
from dojo.katas import ROOT, all_katas

FILES = ("README.md", "README.zh-CN.md")
TRANSCRIPT = re.compile(r"(?<=```\n)\$ make (kata=[^\n]*) test\n.*?(?=```)", re.DOTALL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def printed(words):
    """What `make WORDS test` prints."""
    asked = dict(word.split("=", 1) for word in words.split())
    command = ["test", asked["kata"], "--from", asked["from"], "--on", asked["on"], "--", asked["ARGS"]]
    done = subprocess.run(
        [sys.executable, "-m", "dojo", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout


def sections(name):
    """A heading's level and what follows it, without code blocks, for every heading."""
    parts = re.split(r"^(#+) .*\n", BLOCK.sub("", read(name)), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", FILES)
def test_transcripts_are_what_the_commands_print(name):
    text = read(name)
    fresh = TRANSCRIPT.sub(lambda old: f"$ make {old[1]} test\n{printed(old[1])}", text)
    if os.environ.get("UPDATE_GOLDEN"):
        (ROOT / name).write_text(fresh, encoding="utf-8")
    assert fresh == read(name)


def test_there_is_a_failing_and_a_passing_transcript():
    found = [old[0] for old in TRANSCRIPT.finditer(read("README.md"))]
    assert ["\nPASS\n" in text for text in found] == [False, True]
    assert ["\nFAIL at safe." in text for text in found] == [True, False]


@pytest.mark.parametrize("name", FILES)
def test_every_kata_is_listed(name):
    for kata in all_katas():
        assert f"(katas/{kata.stem}.md)" in read(name)


@pytest.mark.parametrize("name", FILES)
def test_every_link_leads_somewhere(name):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", read(name)) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_size_of_the_set_up_is_what_make_says():
    told = re.search(r"once: (\d+ MB)", read("requirements/install.sh"))[1]
    assert told in read("README.md")


def test_the_python_example_runs():
    code = next(body for language, body in BLOCK.findall(read("README.md")) if language == "python")
    source = """extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
                { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }"""
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    names = {"source": source, "a": np.float32(2), "x": x, "y": y, "n": 1000, "simulate": simulate}
    exec(code, names)
    assert (y == 2 * x + 1).all()
    assert names["report"].findings == []
    assert {access.op for access in names["report"].accesses} == {"load", "store"}


# ----------------------------------------------------------------------------------- the two, side by side


def test_the_headings_are_in_step():
    english, chinese = map(sections, FILES)
    assert [level for level, _ in chinese] == [level for level, _ in english]


def test_code_blocks_are_the_same():
    english, chinese = (BLOCK.findall(read(name)) for name in FILES)
    assert chinese == english


def numbers(text):
    """Those of a text but for a heading's own words: "1,000" is one, "float64" none."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    return Counter(re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z\d]|[.,]\d)", text, re.ASCII))


SAME = {
    "number": numbers,
    "command or name": lambda text: Counter(re.findall(r"`[^`\n]+`", text)),
    "link": lambda text: Counter(re.findall(r"\]\(((?!README)[^)]+)\)", text)),
    "table row": lambda text: [line.count("|") for line in text.splitlines() if line.startswith("|")],
    "list item": lambda text: len(re.findall(r"^- ", text, re.MULTILINE)),
    "mark": lambda text: re.findall(r"<!--.*?-->", text),
}


@pytest.mark.parametrize("what", SAME)
def test_every_section_has_the_same(what):
    english, chinese = map(sections, FILES)
    for number, ((_, one), (_, other)) in enumerate(zip(english, chinese, strict=True)):
        assert SAME[what](other) == SAME[what](one), f"section {number}"


def test_a_difference_is_noticed():
    assert numbers("3 of 1,000 at 4 x 4, not float64") == Counter({"3": 1, "1,000": 1, "4": 2})
    assert numbers("第 3 个") == Counter({"3": 1})
    assert SAME["command or name"]("`make` or `make`") == Counter({"`make`": 2})


def test_they_name_each_other():
    assert "(README.zh-CN.md)" in read("README.md")
    assert "(README.md)" in read("README.zh-CN.md")
