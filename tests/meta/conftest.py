"""A copy of the course for the tests that change it: the repository's own katas are the learner's."""

import shutil

import pytest

from dojo import katas


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder with every kata as a stub, where dojo now finds the katas, hints and history."""
    root = tmp_path / "my course"
    for folder in ("dojo/stubs", "dojo/hints", "solutions", "tests/katas"):
        shutil.copytree(katas.ROOT / folder, root / folder)
    shutil.copytree(root / "dojo/stubs", root / "katas")
    monkeypatch.setattr(katas, "ROOT", root)
    return root
