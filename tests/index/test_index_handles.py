"""Several handles of one folder in one process: each writes through the first."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from index_samples import TOY, answers, asked, asked_for, doc, docs, stored
from test_store_fork import ended_well, fork

from incdsi.errors import IndexLocked, InvalidInput
from incdsi.index import Index
from incdsi.store import Store

Reopen = Callable[..., Index]
pytestmark = pytest.mark.folder  # another engine has no lock to share


def free(path: Path) -> bool:
    """Whether another process could write: no handle holds the lock."""
    try:
        Store.open(path, writer=True).close()
    except IndexLocked:
        return False
    return True


def test_two_handles_write_and_end_where_one_would(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    other = reopen(tmp_path / "shop")
    with Index.create(tmp_path / "one", TOY) as one:
        for first, second in ((index, other), (one, one)):
            first.add_many(docs(8), asked_for(docs(8)))
            second.add(doc("x"), asked("x"))
            first.update(doc("x", 1))
            second.teach("zebra crossing", "d3")
            first.upsert_many(docs(3, 7))
            second.delete("d4", resolve=True)
            first.compact()
            second.add(doc("y"))
        assert stored(index) == stored(one)
        assert answers(index) == answers(other) == answers(one)
        assert (index.version, len(index)) == (other.version, len(other)) == (one.version, len(one))


def test_threads_with_handles_of_their_own_lose_nothing(index: Index, tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with Index.open(tmp_path / "shop", TOY) as mine:
                for one in range(4):
                    mine.add(doc(f"{number}-{one}"))
                    assert f"{number}-{one}" in [hit.document_id for hit in mine.search("boots", 100)]
                mine.delete(f"{number}-0")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(one.id for one in index.documents()) == [f"{n}-{one}" for n in range(4) for one in range(1, 4)]
    assert free(tmp_path / "shop")


def test_closing_one_leaves_the_other_working(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    second, third = reopen(tmp_path / "shop"), reopen(tmp_path / "shop")
    index.add(doc("a"))
    second.add(doc("b"))
    index.close()
    for verb in (
        lambda: index.add(doc("c")),
        lambda: index.search("boots"),
        lambda: index.get("a"),
        lambda: len(index),
    ):
        with pytest.raises(InvalidInput, match="is closed; open it again"):
            verb()
    second.add(doc("c"))
    third.add(doc("d"))
    second.close()
    assert not free(tmp_path / "shop")
    third.update(doc("a", 1))
    assert answers(third) == answers(reopen(tmp_path / "shop"))
    third.close()
    assert free(tmp_path / "shop")
    with Index.open(tmp_path / "shop", TOY) as again:
        assert sorted(one.id for one in again.documents()) == ["a", "b", "c", "d"]


def test_a_handle_that_nobody_closed_holds_up_nobody(index: Index, tmp_path: Path) -> None:
    """A notebook's cell that is run again leaves the handle of before behind."""
    index.close()
    for number in range(3):
        cell = Index.open(tmp_path / "shop", TOY)
        cell.add(doc(f"d{number}"))
    del cell
    gc.collect()
    assert free(tmp_path / "shop")


def test_a_change_that_fails_in_one_is_seen_by_neither(
    index: Index, tmp_path: Path, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = reopen(tmp_path / "shop")
    index.add_many(docs(5))
    other.add(doc("x"))
    before = answers(index)
    with monkeypatch.context() as patch:
        patch.setattr("incdsi.store.transaction.Transaction.finish", _fail)
        with pytest.raises(RuntimeError):
            other.add(doc("y"))
    assert answers(index) == answers(other) == before
    index.add(doc("y"))
    assert answers(index) == answers(other)


def _fail(_: object) -> None:
    raise RuntimeError


def test_a_folder_made_anew_under_the_same_name_is_another_index(index: Index, tmp_path: Path) -> None:
    index.add(doc("a"))
    shutil.rmtree(tmp_path / "shop")
    with Index.create(tmp_path / "shop", TOY) as new:
        new.add(doc("b"))
        assert [one.id for one in new.documents()] == ["b"]


def test_a_forked_child_does_not_write_through_its_parent(index: Index, tmp_path: Path) -> None:
    index.add(doc("a"))

    def child() -> None:
        with Index.open(tmp_path / "shop", TOY) as own:
            assert [one.id for one in own.documents()] == ["a"]
            with pytest.raises(IndexLocked):
                own.add(doc("b"))

    assert ended_well(fork(child))
    index.add(doc("c"))
    assert [one.id for one in index.documents()] == ["a", "c"]
