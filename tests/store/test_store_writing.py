from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_samples import H, content, contents, sample

from incdsi.documents import Document
from incdsi.errors import (
    DuplicateDocument,
    IndexLocked,
    IndexNotFound,
    InvalidDocument,
    InvalidInput,
    UnknownDocument,
)
from incdsi.filters import parse
from incdsi.records import Record, StoredQuery
from incdsi.store import Store


def test_a_record_comes_back_equal_after_reopening(store: Store) -> None:
    with store.transaction() as tx:
        row = tx.insert(sample("a"))
    store.close()
    with Store.open(store.path, writer=False) as opened:
        found = opened.get("a")
        assert content(found) == content(sample("a"))
        assert (found.row, found.sequence) == (row, 1)
        assert "a" in opened
        assert len(opened) == 1
        assert opened.documents([row])[0].text == sample("a").document.text
        assert (opened.ids([row]), opened.row_of("a")) == (["a"], row)


@pytest.mark.parametrize("text", ["", "nul \0 inside", "😀" * 9, "\n\r\t", "'; DROP TABLE documents; --"])
def test_any_text_is_kept_as_it_is(store: Store, text: str) -> None:
    id = text or "empty"
    record = Record(
        document=Document(id=id, text=text, title=text, metadata={text: text}),
        vector=np.ones(3, np.float32),
        anchor=np.zeros(3, np.float32),
        queries=(StoredQuery(text=text, embedding=np.ones(3, np.float32)),),
    )
    with store.transaction() as tx:
        tx.insert(record)
    assert content(store.get(id)) == content(record)
    assert store.filter_rows(parse({text: text})).tolist() == [1]
    assert store.verify() == []


def test_an_exception_undoes_the_whole_block(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("kept"))
    before = contents(store)
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:  # noqa: PT012
        tx.insert(sample("lost"))
        tx.delete("kept")
        tx.set_setting("fusion", 1)
        raise ZeroDivisionError
    assert contents(store) == before
    assert store.version == 1
    assert store.setting("fusion") is None
    with pytest.raises(InvalidInput, match="ended"):
        tx.insert(sample("late"))
    with store.transaction() as tx:
        tx.insert(sample("next"))
    assert store.get("next").sequence == 2


def test_a_refused_change_leaves_the_rest_of_the_block(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
        with pytest.raises(DuplicateDocument, match="'a'"):
            tx.insert(sample("a", 1))
        with pytest.raises(UnknownDocument, match="'b'"):
            tx.delete("b")
        with pytest.raises(UnknownDocument, match="'b'"):
            tx.replace("b", sample("b"))
    assert contents(store) == {"a": content(sample("a"))}
    assert store.version == 1


def test_replacing_keeps_the_row_and_deleting_never_gives_it_again(store: Store) -> None:
    with store.transaction() as tx:
        first, second = tx.insert(sample("a")), tx.insert(sample("b"))
        tx.replace("a", sample("a", 1))
        assert tx.delete("b") == second
    assert store.row_of("a") == first
    assert content(store.get("a")) == content(sample("a", 1))
    store.close()
    with Store.open(store.path, writer=True) as opened:
        opened.compact()
        with opened.transaction() as tx:
            assert tx.insert(sample("b", 1)) > second
        assert opened.get("b").sequence == 5
        assert opened.verify() == []


def test_resolving_changes_the_solution_and_nothing_else(store: Store) -> None:
    record = next(r for r in (sample(f"d{i}") for i in range(99)) if len(r.queries) == 3)
    with store.transaction() as tx:
        row = tx.insert(record)
    vector = np.arange(H, dtype=np.float32)
    solved = tuple(
        replace(query, preserved=preserved, own_score=own_score)
        for query, preserved, own_score in zip(record.queries, (True, False, True), (1.0, 2.0, 3.5), strict=True)
    )
    with store.transaction() as tx:
        tx.replace(record.document.id, replace(record, vector=vector, queries=solved, constrained_by=(7, 5, 7)))
    found = store.get(record.document.id)
    assert found.row == row
    assert found.vector.tolist() == vector.tolist()
    assert found.constrained_by == (5, 7)
    assert [(q.preserved, q.own_score) for q in found.queries] == [(True, 1.0), (False, 2.0), (True, 3.5)]
    assert [q.text for q in found.queries] == [q.text for q in record.queries]
    assert found.anchor.tobytes() == record.anchor.tobytes()
    assert found.sequence == 2
    assert store.verify() == []


def test_the_rows_a_document_constrained_are_found_even_after_it_is_gone(store: Store) -> None:
    base = sample("a")
    with store.transaction() as tx:
        first = tx.insert(base)
        for id in ("b", "c"):
            tx.insert(
                Record(
                    document=Document(id=id, text=id), vector=base.vector, anchor=base.anchor, constrained_by=(first,)
                )
            )
    assert store.constrained_by(first) == (2, 3)
    with store.transaction() as tx:
        tx.delete("a")
        tx.delete("c")
    assert store.constrained_by(first) == (2,)
    assert store.constrained_by(99) == ()


def bad(**changes: object) -> Record:
    fields = {
        "document": Document(id="x", text="x"),
        "vector": np.ones(4, np.float32),
        "anchor": np.ones(4, np.float32),
    }
    return Record(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (bad(vector=np.array([1, np.nan, 1, 1], np.float32)), "finite"),
        (bad(vector=np.ones(4)), "float32"),
        (bad(anchor=np.ones(5, np.float32)), "one length"),
        (bad(queries=(StoredQuery(text="q", embedding=np.ones(3, np.float32)),)), "one length"),
        (
            bad(queries=(StoredQuery(text="q", embedding=np.ones(4, np.float32), own_score=np.inf),)),
            "own scores must be finite",
        ),
        (bad(queries=(StoredQuery(text="q", embedding=np.ones(4)),)), "float32 query"),
        (bad(document=Document(id="x", text="\ud800")), "surrogate"),
    ],
)
def test_what_could_not_come_back_equal_is_refused(store: Store, record: Record, says: str) -> None:
    with pytest.raises(InvalidInput, match=says), store.transaction() as tx:
        tx.insert(record)
    assert (len(store), store.version) == (0, 0)
    assert "\ud800" not in store


def test_vectors_of_two_lengths_are_refused_unless_all_change_at_once(store: Store) -> None:
    def of_length(id: str, length: int) -> Record:
        ones = np.ones(length, np.float32)
        return Record(document=Document(id=id, text=id), vector=ones, anchor=ones)

    with store.transaction() as tx:
        tx.insert(of_length("a", 4))
        tx.insert(of_length("b", 4))
    with pytest.raises(InvalidInput, match="one length, found 4 and"), store.transaction() as tx:  # noqa: PT012
        tx.insert(of_length("c", 6))
        tx.insert(of_length("d", 4))
    with store.transaction() as tx:
        tx.replace("a", of_length("a", 6))
        tx.replace("b", of_length("b", 6))
    assert [len(store.get(id).vector) for id in ("a", "b")] == [6, 6]
    with store.transaction() as tx:
        tx.delete("a")
        tx.delete("b")
    with store.transaction() as tx:
        tx.insert(of_length("a", 2))
    assert (len(store.get("a").vector), store.verify()) == (2, [])


def test_settings_hold_json_and_count_as_changes(store: Store) -> None:
    value = {"weights": [0.3, 0.7], "on": True, "name": "é"}
    with store.transaction() as tx:
        tx.set_setting("fusion", value)
        tx.set_setting("fusion", {**value, "on": False})
    assert store.setting("fusion") == {**value, "on": False}
    assert store.setting("encoder") == "none"
    assert store.setting("absent", 3) == 3
    assert store.version == 2
    with pytest.raises(InvalidInput, match="JSON"), store.transaction() as tx:
        tx.set_setting("bad", float("nan"))


def test_a_second_writer_is_refused_with_the_pid_of_the_first(store: Store) -> None:
    with pytest.raises(IndexLocked, match=f"process {os.getpid()} "):
        Store.open(store.path, writer=True)
    store.close()
    Store.open(store.path, writer=True).close()


def test_the_lock_does_not_outlive_the_writer_in_a_forked_child(tmp_path: Path) -> None:
    # In a process of its own, because a test runner has threads and must not fork.
    script = f"""
import os, signal, sys
from incdsi.store import Store
from incdsi.errors import InvalidInput
store = Store.create({str(tmp_path / "shop")!r}, {{}})
child = os.fork()
if child == 0:
    try:
        with store.transaction(): pass
    except InvalidInput as error:
        assert "fork" in str(error)
        store.close()
        signal.alarm(50)
        signal.pause()
    os._exit(1)
store.close()
Store.open(store.path, writer=True).close()
os.kill(child, signal.SIGKILL)
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL else 1)
"""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)


def test_wrong_use_gets_a_sentence(store: Store, tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match=r"no store\.db"):
        Store.open(tmp_path / "nowhere", writer=False)
    with pytest.raises(InvalidInput, match="already holds an index"):
        Store.create(store.path, {})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InvalidInput, match="empty folder"):
        Store.create(tmp_path / "full", {})
    reader = Store.open(store.path, writer=False)
    with reader, pytest.raises(InvalidInput, match="reading only"), reader.transaction():
        pass
    with store.transaction() as tx:
        with pytest.raises(InvalidInput, match="a transaction is already open"), store.transaction():
            pass
        with pytest.raises(InvalidInput, match="end it before closing the store"):
            store.close()
        with pytest.raises(InvalidInput, match="record of document 'a'"):
            tx.replace("a", sample("b"))
        with pytest.raises(InvalidDocument):
            tx.set_setting("\ud800", 1)
    with pytest.raises(InvalidInput, match="ended"):
        tx.insert(sample("late"))
    store.close()
    with pytest.raises(InvalidInput, match="closed"):
        len(store)


def test_the_writer_commits_to_the_disk_and_deletes_for_good(store: Store) -> None:
    connection = store._connection
    assert connection is not None
    wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "fullfsync": 1}
    assert {name: connection.pragma(name) for name in wanted} == wanted


def test_a_folder_gets_its_name_only_when_all_in_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    synced, renamed = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        synced(descriptor)

    def rename(source: Path, target: Path) -> None:
        events.append(f"rename to {Path(target).name}")
        renamed(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    with Store.create(tmp_path / "new" / "deep" / "shop", {}, prepare=lambda f: (f / "weights").touch()) as store:
        before, after = events[: (at := events.index("rename to shop"))], events[at + 1 :]
        assert {"store.db", "weights"} < {*before}
        assert before[-1].startswith(".shop.incdsi-")
        assert after == ["deep", "new", tmp_path.name]
        events.clear()
        store.write_base({"rows": np.zeros(3)}, 0)
        assert events == ["base.1.bin.tmp", "rename to base.1.bin", "shop"]


def with_model(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "weights").write_bytes(b"weights")
    (folder / "notes").touch()


def test_an_empty_folder_becomes_an_index(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / "lost+found").mkdir()
    inode = folder.stat().st_ino
    with Store.create(folder, {"encoder": "none"}, prepare=with_model) as store:
        with store.transaction() as tx:
            tx.insert(sample("a"))
        (tmp_path / "backup").mkdir()
        store.backup(tmp_path / "backup")
    assert folder.stat().st_ino == inode  # the same folder: a mount point cannot be replaced
    assert {path.name for path in folder.iterdir()} == {"lost+found", "model", "notes", "store.db", "writer.lock"}
    (tmp_path / "again").mkdir()
    Store.restore(tmp_path / "backup", tmp_path / "again")
    with Store.open(tmp_path / "again", writer=False) as copy:
        assert contents(copy) == {"a": content(sample("a"))}
    assert not list(tmp_path.glob("*/.*"))


def test_creating_in_an_empty_folder_leaves_it_empty_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = os.rename

    def fail_at(last: int) -> Callable[..., None]:
        left = iter(range(last))

        def rename(source: Path, target: Path) -> None:
            if next(left, None) is None:
                raise OSError(errno.EIO, "a broken disk")
            renamed(source, target)

        return rename

    for moved in range(3):
        monkeypatch.setattr(os, "rename", fail_at(moved))
        with pytest.raises(OSError, match="check the disk"):
            Store.create(tmp_path, {}, prepare=with_model)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moved", range(4))
def test_a_creation_killed_in_an_empty_folder_is_whole_or_made_anew(tmp_path: Path, moved: int) -> None:
    renamed = os.rename
    if (child := os.fork()) == 0:
        left = iter(range(moved))

        def rename(source: Path, target: Path) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            renamed(source, target)

        os.rename = rename
        Store.create(tmp_path, {"made": 1}, prepare=with_model)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if moved < 3:
        with pytest.raises(IndexNotFound):
            Store.open(tmp_path, writer=False)
        Store.create(tmp_path, {"made": 2}, prepare=with_model).close()
    else:
        with pytest.raises(InvalidInput, match="already holds an index; open it"):
            Store.create(tmp_path, {})
    with Store.open(tmp_path, writer=True) as store:
        assert (store.setting("made"), store.verify()) == (1 if moved == 3 else 2, [])
    assert (tmp_path / "model" / "weights").read_bytes() == b"weights"


def test_two_creations_in_one_folder_do_not_meet(tmp_path: Path) -> None:
    def meanwhile(folder: Path) -> None:
        with pytest.raises(InvalidInput, match="another process is making an index"):
            Store.create(tmp_path, {"made": 2})

    with Store.create(tmp_path, {"made": 1}, prepare=meanwhile) as store:
        assert store.setting("made") == 1


def test_creating_leaves_nothing_when_it_fails(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "model").mkdir()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Store.create(tmp_path / "shop", {}, prepare=fail)
    with pytest.raises(InvalidInput, match="JSON"):
        Store.create(tmp_path / "shop", {"x": object()})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_creation_left_is_swept_by_the_next(tmp_path: Path) -> None:
    litter = tmp_path / ".shop.incdsi-0123"
    litter.mkdir()
    (litter / "store.db").touch()
    with Store.create(tmp_path / "shop", {}, prepare=lambda folder: (folder / "model").mkdir()):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
    assert (tmp_path / "shop" / "model").is_dir()
