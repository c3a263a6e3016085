"""A full disk, a folder that cannot be written, a damaged store: one sentence, nothing lost."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from index_samples import TOY, ToyEncoder, answers, asked, doc, docs, ids, stored, text_of

from incdsi.documents import Document
from incdsi.errors import CorruptStore, DiskFull, InvalidInput
from incdsi.index import Index
from tests.mounts import mounted, read_only

pytestmark = pytest.mark.folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=3m", "tmpfs") as disk:
        yield disk


def long_document(number: int) -> Document:
    return Document(id=f"d{number}", text=text_of(f"d{number}") * 150)


def test_a_full_disk_refuses_the_change_and_keeps_all_the_others(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.engine.local.engine.BASE_EVERY", 1)
    added = 0
    with Index.create(small_disk / "shop", TOY) as index:
        with pytest.raises(DiskFull, match="free some space"):  # noqa: PT012
            for number in range(10_000):
                index.add(long_document(number), asked(f"d{number}"))
                added = number + 1
        assert added > 10
        found, kept = answers(index), stored(index)
        assert (len(index), f"d{added}" in index) == (added, False)
        for change in (
            lambda: index.add(long_document(added)),
            lambda: index.add_many([long_document(added), long_document(added + 1)]),
            lambda: index.update(Document(id="d1", text=text_of("d1") * 20_000)),
        ):
            with pytest.raises(DiskFull):
                change()
        assert answers(index) == found
        assert stored(index) == kept
        assert index.verify() == []
        with pytest.raises(DiskFull):
            index.backup(small_disk / "backup")
        with Index.open(small_disk / "shop", TOY) as reader:
            assert answers(reader) == found
    # Closing had no room for a base, and that is nobody's loss.
    with Index.open(small_disk / "shop", TOY) as index:
        assert answers(index) == found
        subprocess.run(["mount", "-o", "remount,size=24m", str(small_disk)], check=True)
        index.add(long_document(added))
        index.delete("d3")
        index.compact()
        assert index.verify() == []
        assert len(index) == added


def test_a_full_disk_while_adopting_keeps_the_old_encoder(small_disk: Path) -> None:
    with Index.create(small_disk / "shop", TOY) as index:
        index.add_many(docs(40), {f"d{n}": asked(f"d{n}") for n in range(40)})
        found = answers(index)
        with pytest.raises(DiskFull):
            index.adopt(ToyEncoder(dimension=3000))
        assert answers(index) == found
        assert index.info().encoder == TOY.fingerprint
        assert index.verify() == []
    with Index.open(small_disk / "shop", TOY) as again:
        assert answers(again) == found


def test_no_room_to_tune_is_no_refusal_of_what_was_added(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def add(index: Index, first: int, count: int) -> None:
        some = docs(first + count)[first:]
        queries = {document.id: [f"{document.id} asked {time} times" for time in range(5)] for document in some}
        assert len(index.add_many(some, queries)) == count

    with Index.create(small_disk / "shop", TOY) as index:
        add(index, 0, 150)
        monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 4)
        with (small_disk / "filler").open("wb") as filler:  # room for a few documents, not for all of them anew
            filler.write(bytes(shutil.disk_usage(small_disk).free - 200_000))
        add(index, 150, 1)
        assert caplog.text.count("could not finish tuning itself") == 1
        (small_disk / "filler").unlink()
        add(index, 151, 1)
        assert index.last_tuning is None  # it does not try again with every addition
        assert len(index) == 152
        assert index.verify() == []
        found = answers(index)
    with Index.open(small_disk / "shop", TOY) as again:
        assert answers(again) == found


@pytest.mark.parametrize("writer", ["at rest", "at work"])
def test_a_read_only_folder_is_searched_and_not_changed(tmp_path: Path, writer: str) -> None:
    index = Index.create(tmp_path / "shop", TOY)
    index.add_many(docs(8))
    index.compact()
    index.add(doc("x"))
    found = answers(index)
    if writer == "at rest":
        index.close()
    with read_only(tmp_path / "shop") as view, Index.open(view, TOY) as reader:
        assert answers(reader) == found
        assert reader.verify() == []
        assert reader.info().documents == 9
        with pytest.raises(InvalidInput, match="open the index for reading"):
            reader.add(doc("y"))
        assert answers(reader) == found
        reader.backup(tmp_path / "backup")
        if writer == "at work":
            index.delete("x")
            assert "x" not in ids(reader, "boots", 100)
            index.close()  # SQLite keeps a reader's file open while this process has a writer of it
    with Index.open(tmp_path / "backup", TOY) as copy:
        assert answers(copy) == found


@pytest.mark.parametrize("damage", ["empty", "noise", "header", "truncated"])
def test_a_corrupted_store_is_refused_with_the_way_back(tmp_path: Path, damage: str) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(docs(20))
        index.compact()
    file = tmp_path / "shop" / "store.db"
    whole = file.read_bytes()
    damaged = {
        "empty": b"",
        "noise": np.random.default_rng(0).bytes(len(whole)),
        "header": b"x" * 100 + whole[100:],
        "truncated": whole[: len(whole) // 2],
    }[damage]
    file.write_bytes(damaged)
    with pytest.raises(CorruptStore, match="restore a backup with `incdsi restore`"):
        Index.open(tmp_path / "shop", TOY)
    assert file.read_bytes() == damaged


def test_damage_inside_the_store_is_an_error_or_a_problem_never_a_wrong_answer(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(docs(20))
        found, kept = answers(index), stored(index)
    file = tmp_path / "shop" / "store.db"
    whole = file.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(25):
        place = int(rng.integers(100, len(whole) - 64))
        file.write_bytes(whole[:place] + rng.bytes(64) + whole[place + 64 :])
        try:
            with Index.open(tmp_path / "shop", TOY) as again:
                if again.verify() == []:
                    assert stored(again) == kept
                    assert answers(again) == found
        except CorruptStore as error:
            assert "restore a backup" in str(error)  # noqa: PT017
