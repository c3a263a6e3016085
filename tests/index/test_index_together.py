"""Several processes and several threads at one index."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crash_harness import line, worker
from index_samples import MODES, TOY, ToyEncoder, answers, asked, doc, docs, ids

from incdsi.documents import Document
from incdsi.engine.local import Live
from incdsi.errors import IndexLocked
from incdsi.index import Index

pytestmark = pytest.mark.folder

Reopen = Callable[..., Index]
WORKER = Path(__file__).with_name("index_worker.py")


def test_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index, worker(WORKER, "hold", str(tmp_path / "shop")) as holder:
        said = line(holder)
        assert said == f"writing {holder.pid}"
        for change in (
            lambda: index.add(doc("a")),
            lambda: index.delete("held"),
            lambda: index.teach("boots", "held"),
            lambda: index.compact(),
        ):
            with pytest.raises(IndexLocked, match=f"process {holder.pid} is writing"):
                change()
        assert ids(index, "boots") == ["held"]
        assert holder.stdin is not None
        holder.stdin.close()
        assert holder.wait() == 0
        index.add(doc("a"))
        assert len(index) == 2


def test_a_killed_writer_leaves_the_lock_to_the_next(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index, worker(WORKER, "hold", str(tmp_path / "shop")) as holder:
        line(holder)
        holder.kill()
        holder.wait()
        index.add(doc("a"))
        assert sorted(ids(index, "boots")) == ["a", "held"]


def test_another_process_sees_a_document_in_the_first_search_after_its_commit(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as reader:
        assert reader.search("boots") == []
        with worker(WORKER, "hold", str(tmp_path / "shop")) as holder:
            line(holder)  # said after the commit
            assert ids(reader, "boots") == ["held"]


def test_a_reader_follows_every_verb(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    reader = reopen(tmp_path / "shop")
    changes: list[Callable[[], object]] = [
        lambda: index.add_many(docs(10)),
        lambda: index.add(doc("x"), asked("x")),
        lambda: index.update(doc("x", 1)),
        lambda: index.teach("zebra crossing", "d3"),
        lambda: index.delete("d4"),
        lambda: index.delete(where={"even": True}, resolve=True),
        lambda: index.compact(),
        lambda: index.add(doc("d4", 1)),
    ]
    for change in changes:
        change()
        assert answers(reader) == answers(index)
        assert len(reader) == len(index)
        assert reader.version == index.version


def test_a_reader_that_slept_over_deletion_and_compaction_reads_all_anew(
    index: Index, tmp_path: Path, reopen: Reopen
) -> None:
    index.add_many(docs(10))
    reader = reopen(tmp_path / "shop")
    reader.search("boots")
    index.delete("d3")
    index.update(doc("d5", 1))
    index.compact()
    index.add(doc("x"))
    assert answers(reader) == answers(index)


def test_a_reader_sees_tuning_of_the_fusion(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    batch = docs(30)
    index.add_many(batch, {d.id: asked(d.id, 4) for d in batch})
    reader = reopen(tmp_path / "shop")
    reader.search("boots")
    index.tune()
    assert reader.info() == index.info()
    assert answers(reader) == answers(index)


def test_an_index_used_for_reading_becomes_a_writer_and_knows_what_others_wrote(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as first, Index.open(tmp_path / "shop", TOY) as second:
        first.add(doc("a"))
        first.close()
        second.add(doc("b"))
        assert sorted(ids(second, "boots")) == ["a", "b"]
        with Index.open(tmp_path / "shop", TOY) as third:
            assert answers(third) == answers(second)


class Searching:
    """Threads that search all the time; the first thing that goes wrong is kept."""

    def __init__(self, search: Callable[[], None], threads: int = 3) -> None:
        self._search = search
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        self.errors: list[BaseException] = []
        self.searches = 0

    def __enter__(self) -> Searching:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._search()
                self.searches += 1
            except BaseException as error:
                self.errors.append(error)
                return


def test_threads_that_search_while_one_writes_miss_nothing_and_see_nothing_twice(tmp_path: Path) -> None:
    steady = [f"d{number}" for number in range(12)]
    edited = {f"d{number}" for number in range(4)}
    with Index.create(tmp_path / "shop", TOY) as made:
        made.add_many(docs(12))
    index = Index.open(tmp_path / "shop", TOY)  # a reader at first: becoming the writer is part of it
    turn = iter(range(10**9))

    def search() -> None:
        number = next(turn)
        where = {"number": {"gte": 0}} if number % 2 else None
        hits = index.search("waterproof boots in the snow", 100, where=where, mode=MODES[number % 3])
        found = [hit.document_id for hit in hits]
        assert len(found) == len(set(found)), found
        assert set(found) >= set(steady), set(steady) - set(found)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        len(index), index.get("d5"), "d5" in index

    with Searching(search) as searching:
        for round_ in range(25):
            index.add(doc(f"x{round_}", 0, number=round_), asked("x"))
            index.update(doc(f"d{round_ % len(edited)}", round_, number=round_))
            index.add_many([doc(f"y{round_}"), doc(f"z{round_}")])
            index.delete(f"x{round_}")
            index.delete(f"y{round_}")
            if round_ % 10 == 5:
                index.teach(f"lesson {round_}", "d7")
                index.compact()
    index.close()
    assert searching.errors == []
    assert searching.searches > 20


def test_threads_of_a_reader_miss_nothing_while_another_index_writes(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index, Index.open(tmp_path / "shop", TOY) as reader:
        index.add_many(docs(10))
        latest = ["d9"]

        def search() -> None:
            known = latest[-1]
            found = ids(reader, "boots", 1000)
            assert known in found
            assert len(found) == len(set(found))

        with Searching(search) as searching:
            for number in range(40):
                index.add(doc(f"x{number}"))
                latest.append(f"x{number}")
                index.update(doc("d3", number))
                if number > 5:
                    latest[:] = latest[-2:]
        assert searching.errors == []
        assert searching.searches > 10


def test_searches_go_on_while_another_encoder_is_adopted(index: Index) -> None:
    index.add_many(docs(30))
    encoders = [ToyEncoder(dimension=16 + 4 * number, seed=number) for number in range(6)]

    def search() -> None:
        assert len(index.search("waterproof boots", 100)) == 30

    with Searching(search) as searching:
        for encoder in encoders:
            index.adopt(encoder)
    assert searching.errors == []


def test_a_search_does_not_wait_for_a_long_change(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add(doc("a"))
    found: list[list[str]] = []

    def search_elsewhere(done: int, total: int) -> None:
        thread = threading.Thread(target=lambda: found.append(ids(index, "boots")))
        thread.start()
        thread.join(timeout=30)
        assert not thread.is_alive()

    monkeypatch.setattr("incdsi.index.writer.BATCH", 1)
    index.add_many([doc("b"), doc("c")], progress=search_elsewhere)
    assert [sorted(some) for some in found] == [["a", "b"], ["a", "b", "c"]]


def test_a_document_deleted_while_it_is_found_makes_room_for_the_next(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add_many(docs(8))
    expected = [id for id in ids(index, "waterproof boots", 8) if id not in ("d2", "d3")]
    live = index.engine.live
    with index.engine.store.transaction() as tx:  # the moment between commit and disappearance
        tx.delete("d2")
        tx.delete("d3")
    assert index.engine.live is live
    for k in (1, 3, 8):
        assert ids(index, "waterproof boots", k) == expected[:k]
    assert [hit.rank for hit in index.search("waterproof boots", 8)] == list(range(1, 7))


def test_an_index_opened_before_a_fork_is_refused_in_the_child(index: Index) -> None:
    index.add(Document(id="a", text="words"))
    pid = os.fork()
    if pid == 0:
        refused = 0
        with contextlib.suppress(BaseException):
            for act in (lambda: index.search("words"), lambda: index.add(doc("b")), lambda: len(index)):
                try:
                    act()
                except ValueError as error:
                    refused += "before a fork" in str(error)
            index.close()  # nothing of it is the child's
            refused += 4
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert ids(index, "words") == ["a"]
    index.add(doc("c"))
    assert len(index) == 2


def test_a_child_that_forks_opens_the_index_anew(index: Index, tmp_path: Path) -> None:
    index.add_many(docs(5))
    expected = answers(index)
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException), Index.open(tmp_path / "shop", TOY) as mine:
            code = 7 if answers(mine) == expected else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_reader_that_fails_while_catching_up_begins_again(
    index: Index, tmp_path: Path, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add_many(docs(10))
    reader = reopen(tmp_path / "shop")
    index.add_many(docs(20)[10:])
    index.delete("d3")

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(reader.engine.live.vectors, "append_many", no_memory)
        with pytest.raises(MemoryError):
            reader.search("boots")
    assert answers(reader) == answers(index)
    assert len(reader) == len(index)


def test_an_index_that_nobody_closed_leaves_its_lock_when_nobody_has_it(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "shop", TOY)
    index.add(doc("a"))
    del index
    gc.collect()
    with Index.open(tmp_path / "shop", TOY) as another:
        another.add(doc("b"))
        assert len(another) == 2


def test_a_build_that_fails_leaves_no_lock(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(docs(5), path=tmp_path / "shop", encoder=TOY, progress=stop)
    with Index.open(tmp_path / "shop", TOY) as index:
        index.upsert(doc("d1"))


def test_searches_go_on_while_the_first_change_reads_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(docs(5))
    reading, go_on = threading.Event(), threading.Event()
    load = Live.load

    def slowly(*arguments: Any, **options: Any) -> Live:
        if options["writer"]:
            reading.set()
            assert go_on.wait(60)
        return load(*arguments, **options)

    with Index.open(tmp_path / "shop", TOY) as index:
        monkeypatch.setattr(Live, "load", slowly)
        change = threading.Thread(target=index.add, args=(docs(1, start=9)[0],))
        change.start()
        assert reading.wait(60)
        searched: list[int] = []
        search = threading.Thread(target=lambda: searched.append(len(index.search("boots"))))
        search.start()
        search.join(30)  # waited for the change before
        found = list(searched)
        go_on.set()
        change.join()
        search.join()
        assert found == [5]
        assert len(index.search("boots")) == 6
