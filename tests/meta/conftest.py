"""Fixtures: a copy of the course for tests that change it, as the own katas are the learner's; the card."""

import shutil

import pytest

from dojo import gpu, katas


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder with every kata as a stub, where dojo now finds the katas, hints and history."""
    root = tmp_path / "my course"
    for folder in ("dojo/stubs", "dojo/hints", "solutions", "tests/katas"):
        shutil.copytree(katas.ROOT / folder, root / folder)
    shutil.copytree(root / "dojo/stubs", root / "katas")
    monkeypatch.setattr(katas, "ROOT", root)
    return root


@pytest.fixture
def on_card():
    """The GPU; without one the test is skipped, with the reason."""
    if gpu.card() is None:
        pytest.skip(f"not run: {gpu.why_not()}")
    return gpu.card()
