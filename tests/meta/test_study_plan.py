"""katas/README.md says of the katas what their lessons, hints and grades say.

UPDATE_GOLDEN=1 copies the lessons' questions into it anew.
"""

import os
import re

from dojo import hints
from dojo.katas import ROOT, all_katas

PLAN = ROOT / "katas/README.md"
QUESTIONS = "Questions that follow each kernel, without their answers: those are in the lessons.\n"
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)


def read():
    return PLAN.read_text(encoding="utf-8")


def questions(kata):
    return SUMMARY.findall(kata.lesson.read_text(encoding="utf-8"))


def test_the_questions_are_the_lessons():
    parts = [
        f"\n**{kata.number:02} {kata.name}**\n\n" + "".join(f"- {question}\n" for question in questions(kata))
        for kata in all_katas()
    ]
    before, _, _ = read().partition(QUESTIONS)
    fresh = before + QUESTIONS + "".join(parts)
    if os.environ.get("UPDATE_GOLDEN"):
        PLAN.write_text(fresh, encoding="utf-8")
    assert read() == fresh
    assert all(len(questions(kata)) >= 5 for kata in all_katas())


def test_how_often_each_is_asked():
    for kata in all_katas():
        assert f"| {kata.name} | {hints.asked(kata)} | [{kata.stem}.md]({kata.stem}.md) |\n" in read()


def test_every_kata_is_new_on_one_day_and_comes_back_later():
    weeks = [line.split("|")[2:-1] for line in read().splitlines() if line.startswith("| week ")]
    assert [len(days) for days in weeks] == [5] * 4
    days = [day for days in weeks for day in days]
    for kata in all_katas():
        when = [number for number, day in enumerate(days) if re.search(rf"\b{kata.name}\b", day)]
        assert [number for number in when if f"**{kata.name}**" in days[number]] == when[:1]
        assert len(when) >= 4


def test_the_logs_example_is_measured():
    measured = re.search(r"^measure +(.*)", read(), re.MULTILINE)[1]
    assert measured in (ROOT / "README.md").read_text(encoding="utf-8")
