"""A folder appears complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from incdsi.errors import InvalidInput
from incdsi.training.folders import appearing, remove_unfinished


def test_a_folder_appears_with_everything_written_to_it(tmp_path: Path) -> None:
    with appearing(tmp_path / "new" / "folder") as unfinished:
        (unfinished / "file").write_text("whole")
        assert not (tmp_path / "new" / "folder").exists()
    assert (tmp_path / "new" / "folder" / "file").read_text() == "whole"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="folder already exists and is not empty; choose another"), appearing(folder):
        pass
    assert (folder / "file").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [folder]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), appearing(tmp_path / "folder"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    context = appearing(tmp_path / "folder")
    context.__enter__()
    assert list(tmp_path.iterdir())
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == []
