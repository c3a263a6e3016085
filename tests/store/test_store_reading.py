from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest
from store_samples import content, contents, sample

from incdsi.errors import UnknownDocument
from incdsi.filters import parse
from incdsi.store import Store


def test_changes_are_what_is_newer_in_order(store: Store) -> None:
    with store.transaction() as tx:
        rows = [tx.insert(sample(id)) for id in "abc"]
    seen = store.changes(0).sequence
    with store.transaction() as tx:
        tx.replace("a", sample("a", 1))
        tx.delete("b")
        tx.insert(sample("d"))
    changes = store.changes(seen)
    assert [(r.document.id, r.sequence) for r in changes.upserts] == [("a", 4), ("d", 6)]
    assert (changes.removed, changes.sequence, changes.reload) == ((rows[1],), 6, False)
    again = store.changes(6)
    assert (list(again.upserts), again.removed) == ([], ())


def test_changes_hold_one_snapshot_while_writing_goes_on(store: Store) -> None:
    with store.transaction() as tx:
        for number in range(50):
            tx.insert(sample(f"d{number}"))
    changes = store.changes(0)
    first = next(changes.upserts)
    with store.transaction() as tx:
        for number in range(50):
            tx.replace(f"d{number}", sample(f"d{number}", 1))
    found = [first, *changes.upserts]
    assert [content(r) for r in found] == [content(sample(f"d{n}")) for n in range(50)]
    assert changes.sequence == 50


def test_an_abandoned_iterator_does_not_hold_up_compaction(store: Store) -> None:
    with store.transaction() as tx:
        for number in range(3):
            tx.insert(sample(f"d{number}"))
    store.changes(0)
    partly = store.changes(0)
    next(partly.upserts)
    del partly
    gc.collect()
    with store.transaction() as tx:
        tx.delete("d0")
    store.compact()  # IndexLocked if a snapshot were still held
    assert [record.document.id for record in store.changes(0).upserts] == ["d1", "d2"]
    assert (store.path / "store.db-wal").stat().st_size == 0


def test_a_reader_that_missed_a_purged_deletion_is_told_to_reload(store: Store) -> None:
    with store.transaction() as tx:
        for id in "abc":
            tx.insert(sample(id))
    with store.transaction() as tx:
        tx.delete("b")
    with store.transaction() as tx:
        tx.insert(sample("e"))
    store.compact()
    assert not store.changes(4).reload
    behind = store.changes(3)
    assert behind.reload
    assert behind.removed == ()
    assert [r.document.id for r in behind.upserts] == ["a", "c", "e"]
    assert store.changes(99).reload


def test_another_process_polls_and_pulls(store: Store) -> None:
    script = """
import sys
from incdsi.store import Store
with Store.open(sys.argv[1], writer=False) as store:
    seen = 0
    assert not store.poll()
    print("ready", flush=True)
    for _ in sys.stdin:
        changed = store.poll()
        changes = store.changes(seen)
        seen = changes.sequence
        print(changed, *[r.document.id for r in changes.upserts], *changes.removed, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"

        def ask() -> str:
            reader.stdin.write("\n")  # type: ignore[union-attr]
            reader.stdin.flush()  # type: ignore[union-attr]
            return reader.stdout.readline().strip()  # type: ignore[union-attr]

        assert ask() == "False"
        with store.transaction() as tx:
            tx.insert(sample("a"))
            tx.insert(sample("b"))
        assert ask() == "True a b"
        assert ask() == "False"
        with store.transaction() as tx:
            tx.delete("a")
        assert ask() == "True 1"
        reader.stdin.close()
    assert reader.returncode == 0


def test_threads_read_whole_transactions_while_one_writes(store: Store) -> None:
    ids = [f"d{number}" for number in range(6)]
    with store.transaction() as tx:
        for id in ids:
            tx.insert(sample(id))
    expected = [{id: content(sample(id, revision)) for id in ids} for revision in range(25)]
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                if contents(store) not in expected:
                    problems.append("saw half a transaction")
                assert store.documents(range(1, 7))[0].id == "d0"
                assert len(store.filter_rows(parse({"revision": {"gte": 0}}))) == 6
        except Exception as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for revision in range(1, 25):
        with store.transaction() as tx:
            for id in ids:
                tx.replace(id, sample(id, revision))
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert contents(store) == expected[-1]


def test_unknown_rows_and_ids_are_errors(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    assert store.documents([]) == []
    assert [d.id for d in store.documents([1, 1])] == ["a", "a"]
    with pytest.raises(UnknownDocument, match="2"):
        store.documents([1, 2])
    with pytest.raises(UnknownDocument, match="'b'"):
        store.get("b")
    with pytest.raises(UnknownDocument, match="'b'"):
        store.row_of("b")
