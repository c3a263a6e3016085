"""Files and folders that appear whole, and who may read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from incdsi import durable
from incdsi.durable import appearing_file, appearing_folder, remove_unfinished
from incdsi.errors import InvalidInput
from incdsi.store import Store
from incdsi.trec import write_lines


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_link_laid_out_for_the_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".run.trec.part").symlink_to(victim)
    assert write_lines(tmp_path / "run.trec", ["a", "b"]) == 2
    assert victim.read_text() == "mine"
    assert (tmp_path / "run.trec").read_text() == "a\nb\n"


def test_a_link_under_the_file_s_own_name_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "run.trec").symlink_to(victim)
    write_lines(tmp_path / "run.trec", ["a"])
    assert victim.read_text() == "mine"
    assert not (tmp_path / "run.trec").is_symlink()


def test_a_missing_folder_is_told_by_the_file_s_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing/run\.trec"):
        write_lines(tmp_path / "missing" / "run.trec", ["a"])


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old")

    def lines() -> Iterator[str]:
        yield "half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(path, lines())
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("kept", "old")]


def test_a_file_is_as_readable_as_the_one_it_replaces_and_otherwise_as_the_umask_says(tmp_path: Path) -> None:
    private, new = tmp_path / "private", tmp_path / "new"
    private.write_text("old")
    private.chmod(0o600)
    for path in (private, new):
        with appearing_file(path) as file:
            file.write(b"text")
    assert (mode(private), mode(new)) == (0o600, 0o644)


def test_an_index_and_its_backup_are_their_owner_s_alone(tmp_path: Path) -> None:
    with Store.create(tmp_path / "shop", {}) as store:
        store.backup(tmp_path / "backup")
    assert (mode(tmp_path / "shop"), mode(tmp_path / "backup")) == (0o700, 0o700)


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir(mode=0o750)
    Store.create(tmp_path / "shop", {}).close()
    assert mode(tmp_path / "shop") == 0o750


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_a_folder_appears_when_its_block_ends_and_not_before(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "new" / "model"
    if there:
        path.mkdir(parents=True)
    with appearing_folder(path) as unfinished:
        (unfinished / "weights").write_text("all of them")
        assert not path.exists() or not names(path)
    assert names(path.parent) == ["model"]
    assert names(path) == ["weights"]


def test_a_folder_whose_block_fails_never_appears(tmp_path: Path) -> None:
    def fail() -> None:
        with appearing_folder(tmp_path / "model") as unfinished:
            (unfinished / "weights").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["full", "file", "link"])
def test_a_folder_never_takes_a_place_that_is_taken(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "model", tmp_path / "other"
    if kind == "full":
        path.mkdir()
        (path / "weights").write_text("mine")
    elif kind == "file":
        path.write_text("mine")
    else:
        other.mkdir()
        path.symlink_to(other)
    before = names(tmp_path)
    with pytest.raises(InvalidInput, match=r"model is (not an empty folder|a file); choose"), appearing_folder(path):
        pytest.fail("nothing may be written")
    assert names(tmp_path) == before


def test_a_folder_that_may_be_replaced_stays_whole_until_the_new_one_is(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(ZeroDivisionError), appearing_folder(path, replace=True):
        raise ZeroDivisionError
    assert names(path) == ["old"]
    with appearing_folder(path, replace=True) as unfinished:
        (unfinished / "new").touch()
        assert names(path) == ["old"]
    assert (names(path), names(tmp_path)) == (["new"], ["model"])


def test_what_the_living_are_filling_is_not_removed_and_what_the_dead_left_is(tmp_path: Path) -> None:
    (tmp_path / ".a[b.incdsi-0123").mkdir()
    (tmp_path / ".other.incdsi-0123").mkdir()
    with appearing_folder(tmp_path / "a[b") as unfinished:
        assert names(tmp_path) == sorted([unfinished.name, ".other.incdsi-0123"])
        remove_unfinished(tmp_path)
        assert names(tmp_path) == [unfinished.name]
    assert names(tmp_path) == ["a[b"]


def test_a_folder_has_its_name_only_once_everything_in_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    fsync = durable.fsync
    monkeypatch.setattr(
        durable, "fsync", lambda path: (synced.append((path.name, (tmp_path / "shop").exists())), fsync(path))[1]
    )
    with appearing_folder(tmp_path / "shop") as folder:
        (folder / "a").write_text("a")
    assert ("a", False) in synced
    assert synced[-1] == (tmp_path.name, True)
