"""Katas are found by number and by name; the folder listing is the registry."""

import pytest

from dojo import katas


@pytest.mark.parametrize("name", ["tiled", "02_tiled", "2", "02"])
def test_find(name):
    kata = katas.find(name)
    assert (kata.number, kata.name, kata.stem) == (2, "tiled", "02_tiled")


@pytest.mark.parametrize(
    "name", ["tile", "Tiled", "0", "3000", "-2", "2.0", "²", "*", "../katas/02_tiled", "02_tiled.cu"]
)
def test_unknown_name_lists_the_names(name):
    with pytest.raises(katas.UnknownKata, match="naive, tiled") as info:
        katas.find(name)
    assert name in str(info.value)


def test_no_name_lists_the_names():
    with pytest.raises(katas.UnknownKata, match="naive, tiled"):
        katas.find("")


@pytest.mark.parametrize("kata", katas.all_katas(), ids=lambda kata: kata.stem)
def test_every_part_is_there(kata):
    for part in (kata.file, kata.lesson, kata.stub, kata.solution, kata.test):
        assert part.is_file()


def test_numbers_are_unique_and_in_order():
    numbers = [kata.number for kata in katas.all_katas()]
    assert numbers == sorted(set(numbers))


def test_folder_is_the_registry(tmp_path, monkeypatch):
    monkeypatch.setattr(katas, "ROOT", tmp_path)
    for name in (
        "katas/10_last.cu",
        "katas/9_first.cu",
        "katas/notes.cu",
        "katas/10_last.md",
        "dojo/stubs/11_removed.cu",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [kata.name for kata in katas.all_katas()] == ["first", "last", "removed"]
    assert katas.find("10").file == tmp_path / "katas" / "10_last.cu"
