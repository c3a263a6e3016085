from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from store_samples import content, contents, files_with, sample

from incdsi.documents import Document
from incdsi.errors import CorruptStore, IndexLocked, IndexNotFound, InvalidInput
from incdsi.records import Record, StoredQuery
from incdsi.store import Store
from incdsi.store import connections as connections_module

SECRET = b"a secret nobody may keep"


def secret_record() -> Record:
    ones = np.full(8, 0.12345678, np.float32)
    text = SECRET.decode()
    return Record(
        document=Document(id=f"id {text}", title=text, text=text * 500, metadata={text: text}),
        vector=ones,
        anchor=ones,
        queries=(StoredQuery(text=f"{text}?", embedding=ones),),
    )


def fill(store: Store, count: int = 30) -> None:
    for number in range(count):
        with store.transaction() as tx:
            tx.insert(sample(f"d{number}"))


def alone(store: Store, target: Path) -> dict[str, tuple[object, ...]]:
    """What a copy of store.db holds without its log."""
    target.mkdir()
    shutil.copy(store.path / "store.db", target)
    with Store.open(target, writer=False) as copy:
        assert copy.verify() == []
        return contents(copy)


def test_a_closed_store_is_whole_in_one_file(store: Store, tmp_path: Path) -> None:
    fill(store)
    expected = contents(store)
    with Store.open(store.path, writer=False) as reader:
        assert len(reader) == 30
        store.close()  # a reader that reads nothing just now is no hindrance
        assert (store.path / "store.db-wal").stat().st_size == 0
        assert alone(store, tmp_path / "one") == expected
        assert contents(reader) == expected
    assert alone(store, tmp_path / "two") == expected


def test_closing_beside_a_reader_of_an_older_state_loses_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, 5)
    expected = contents(store)
    with Store.open(store.path, writer=False) as reader:
        reading = reader.changes(0).upserts
        first = next(reading)
        with store.transaction() as tx:
            tx.insert(sample("late"))
        newest = contents(store)
        store.close()  # does not wait for it either
        assert {one.document.id: content(one) for one in (first, *reading)} == expected
        assert contents(reader) == newest
    with Store.open(store.path, writer=True) as again:
        assert contents(again) == newest
    assert alone(store, tmp_path / "copy") == newest


def test_deleted_text_is_in_no_file_after_compaction(store: Store) -> None:
    fill(store)
    with store.transaction() as tx:
        tx.insert(secret_record())
    fill_again = [sample(f"d{number}", 1) for number in range(30)]
    with store.transaction() as tx:
        for record in fill_again:
            tx.replace(record.document.id, record)
    store.write_base({"ids": np.array([secret_record().document.id])}, store.version)
    before = contents(store)
    with Store.open(store.path, writer=False) as reader:  # keeps the log from being folded in by a close
        assert len(reader) == 31
        assert "store.db-wal" in files_with(store.path, SECRET)
        with store.transaction() as tx:
            tx.delete(secret_record().document.id)
        assert "store.db-wal" in files_with(store.path, SECRET)
        store.compact()
        assert files_with(store.path, SECRET) == []
        assert files_with(store.path, np.full(8, 0.12345678, np.float32).tobytes()) == []
        del before[secret_record().document.id]
        assert contents(reader) == contents(store) == before
    assert store.base() is None
    assert store.verify() == []


def test_replaced_text_is_in_no_file_after_compaction(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(secret_record())
    plain = secret_record()
    plain = Record(document=Document(id=plain.document.id, text="plain"), vector=plain.vector, anchor=plain.anchor)
    with store.transaction() as tx:
        tx.replace(plain.document.id, plain)
    store.compact()
    assert all(SECRET * 2 not in file.read_bytes() for file in store.path.iterdir())


def test_compaction_gives_back_the_space_of_what_was_deleted(store: Store) -> None:
    fill(store, 60)
    store.compact()
    before = (store.path / "store.db").stat().st_size
    with store.transaction() as tx:
        for number in range(50):
            tx.delete(f"d{number}")
    store.compact()
    assert (store.path / "store.db").stat().st_size < before / 2


def test_compaction_keeps_a_base_that_holds_nothing_deleted(store: Store) -> None:
    fill(store, 3)
    with store.transaction() as tx:
        tx.delete("d1")
    store.write_base({"rows": np.array([1, 3])}, store.version)
    fill_more = sample("late")
    with store.transaction() as tx:
        tx.insert(fill_more)
    store.compact()
    base = store.base()
    assert base is not None
    changes = store.changes(base.sequence)
    assert not changes.reload
    assert [record.document.id for record in changes.upserts] == ["late"]


def test_compaction_says_when_a_reader_holds_it_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_module, "BUSY_MILLISECONDS", 50)
    store.close()
    with Store.open(store.path, writer=True) as opened:
        fill(opened, 2)
        held = opened.changes(0)
        with opened.transaction() as tx:
            tx.delete("d0")
        with pytest.raises(IndexLocked, match="compact again"):
            opened.compact()
        assert len(list(held.upserts)) == 2
        opened.compact()
        assert [*contents(opened)] == ["d1"]
        assert opened.verify() == []


def test_a_backup_is_one_moment_of_the_store_with_its_model(store: Store, tmp_path: Path) -> None:
    fill(store)
    (store.path / "model" / "deep").mkdir(parents=True)
    (store.path / "model" / "deep" / "weights").write_bytes(b"w" * 100)
    before, version = contents(store), store.version
    seen: list[tuple[int, int]] = []

    def write_meanwhile(done: int, total: int) -> None:
        seen.append((done, total))
        with store.transaction() as tx:
            tx.insert(sample(f"during {done}"))

    store.backup(tmp_path / "backup", progress=write_meanwhile)
    assert seen
    assert seen[-1][0] == seen[-1][1]
    assert len(store) == 30 + len(seen)
    with store.transaction() as tx:
        tx.delete("d0")
    Store.restore(tmp_path / "backup", tmp_path / "again")
    with Store.open(tmp_path / "again", writer=True) as restored:
        assert contents(restored) == before
        assert (restored.version, restored.setting("encoder")) == (version, "none")
        assert (restored.path / "model" / "deep" / "weights").read_bytes() == b"w" * 100
        assert restored.base() is None
        with restored.transaction() as tx:
            assert tx.insert(sample("next")) == 31
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "backup", "shop"]


def test_backup_and_restore_never_overwrite(store: Store, tmp_path: Path) -> None:
    fill(store, 1)
    store.backup(tmp_path / "backup")
    with pytest.raises(InvalidInput, match="already holds an index"):
        store.backup(tmp_path / "backup")
    with pytest.raises(InvalidInput, match="already holds an index"):
        Store.restore(tmp_path / "backup", store.path)
    with pytest.raises(IndexNotFound, match="nowhere"):
        Store.restore(tmp_path / "nowhere", tmp_path / "again")


def test_a_damaged_backup_is_refused_and_nothing_appears(store: Store, tmp_path: Path) -> None:
    fill(store)
    store.backup(tmp_path / "backup")
    file = tmp_path / "backup" / "store.db"
    content_ = file.read_bytes()
    position = content_.index(b"d7/0 d7/0")
    file.write_bytes(content_[:position] + b"X" + content_[position + 1 :])
    with pytest.raises(CorruptStore, match=r"backup.*'d7'"):
        Store.restore(tmp_path / "backup", tmp_path / "again")
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(CorruptStore, match=r"backup/store\.db"):
        Store.restore(tmp_path / "backup", tmp_path / "again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "shop"]


def test_a_reader_can_make_the_backup(store: Store, tmp_path: Path) -> None:
    fill(store, 3)
    with Store.open(store.path, writer=False) as reader:
        reader.backup(tmp_path / "backup")
    with Store.open(tmp_path / "backup", writer=False) as backup:
        assert contents(backup) == {f"d{n}": content(sample(f"d{n}")) for n in range(3)}
