"""Every verb: what it does, and what it refuses."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_samples import (
    MODES,
    TOY,
    WORDS,
    ToyEncoder,
    answers,
    asked,
    asked_for,
    doc,
    docs,
    ids,
    record,
    stored,
    text_of,
    vectors,
)
from numpy.typing import NDArray

from incdsi.documents import Addition, Document, Taught
from incdsi.errors import (
    DiskFull,
    DuplicateDocument,
    IndexNotFound,
    InvalidInput,
    UnknownDocument,
    VersionConflict,
)
from incdsi.index import Index
from incdsi.progress import Progress
from incdsi.records import Answer, Record
from incdsi.rows.growing import Growing
from incdsi.store.transaction import Transaction
from tests.engines import Place

Reopen = Callable[..., Index]


# create, open, close


def test_an_index_begins_empty_and_the_first_add_works(index: Index) -> None:
    assert len(index) == 0
    assert index.version == 0
    for mode in MODES:
        assert index.search("boots", mode=mode) == []
    addition = index.add(doc("a"), queries=["dry feet"])
    assert (addition.document_id, addition.status, addition.conflicts) == ("a", "solved", ())
    assert addition.margin == np.inf
    assert {"generate", "encode", "constrain", "solve", "commit", "append"} <= addition.seconds.keys()
    for mode in MODES:
        assert ids(index, "dry feet edition", mode=mode) == ["a"]


@pytest.mark.folder
def test_create_refuses_a_folder_with_something_in_it(index: Index, place: Place) -> None:
    with pytest.raises(InvalidInput, match="already holds an index; open it"):
        Index.create(place("shop"), TOY)
    (place("other")).mkdir()
    (place("other") / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="is not an empty folder; choose a new or an empty folder"):
        Index.create(place("other"), TOY)


@pytest.mark.folder
def test_open_creates_a_missing_index_on_request_and_opens_the_one_that_is_there(place: Place) -> None:
    for count in (1, 1, 2):  # a notebook's cell, run again
        with Index.open(place("deep") / "shop", TOY, create=True) as index:
            index.upsert(doc(f"d{count}"))
            assert len(index) == count
    with pytest.raises(InvalidInput, match="not an empty folder"):
        Index.open(place("deep"), TOY, create=True)
    with pytest.raises(InvalidInput, match="a server has its own index"):
        Index.open("http://127.0.0.1:1", create=True)


def test_an_index_says_where_it_is_and_how_much_it_holds(place: Place) -> None:
    with Index.create(place("shop"), TOY) as index:
        index.add_many(docs(3))
        assert repr(index) == f"Index({str(place('shop'))!r}, 3 documents)"
    assert repr(index) == f"Index({str(place('shop'))!r}, closed)"


def test_documents_deleted_while_they_are_listed_are_left_out(index: Index) -> None:
    index.add_many(docs(9))
    listed = index.documents({"lang": {"exists": True}})
    index.delete(["d0", "d4", "d8"])
    assert [one.id for one in listed] == ["d1", "d2", "d3", "d5", "d6", "d7"]


@pytest.mark.folder
def test_open_refuses_a_folder_without_an_index(place: Place) -> None:
    with pytest.raises(IndexNotFound, match=r"it has no store\.db"):
        Index.open(place("nothing"), TOY)


def test_opening_again_shows_the_same(index: Index, place: Place, reopen: Reopen) -> None:
    batch = docs(12)
    index.add_many(batch, asked_for(batch))
    before = answers(index)
    index.close()
    assert answers(reopen(place("shop"))) == before


def test_closing_twice_is_harmless_and_a_closed_index_refuses_everything(place: Place) -> None:
    for writes in (False, True):
        index = Index.create(place(f"shop {writes}"), TOY)
        if writes:
            index.add(doc("a"))
        index.close()
        index.close()
        for use in (
            lambda one=index: one.search("boots"),
            lambda one=index: one.add(doc("b")),
            lambda one=index: one.get("a"),
            lambda one=index: len(one),
        ):
            with pytest.raises(InvalidInput, match="closed; open it again"):
                use()
    with Index.open(place("shop True"), TOY) as again:
        assert [document.id for document in again.documents()] == ["a"]


# add


def test_added_documents_are_there_with_all_they_came_with(index: Index) -> None:
    given = Document(id="a", title="Boots", text="They survive a river.", metadata={"lang": "en", "year": 2020})
    index.add(given, queries=["dry feet", "wet  feet", "Dry feet"])
    assert index.get("a") == given
    assert "a" in index
    assert "b" not in index
    assert 3 not in index
    assert index.queries("a") == ["dry feet", "wet feet"]
    assert index.search("river")[0].document == given
    assert [document.id for document in index.documents()] == ["a"]


def test_adding_changes_no_other_vector(index: Index) -> None:
    batch = docs(8)
    index.add_many(batch, asked_for(batch))
    before = vectors(index)
    index.add(doc("new"), queries=asked("d3"))
    assert {id: v for id, v in vectors(index).items() if id != "new"} == before


def test_an_addition_says_whether_the_document_wins_its_queries(index: Index) -> None:
    won = 0
    for document in docs(30):
        addition = index.add(document, asked(document.id))
        used = [q for q in record(index, document.id).queries if not q.held_out]
        first = [ids(index, q.text, 1, mode="learned") == [document.id] for q in used]
        assert (addition.margin > 0) == all(first)
        assert [q.preserved for q in used] == first
        won += addition.margin > 0
        assert addition.status in ("solved", "compromised")
        if addition.status == "solved":
            assert addition.margin > 0
    assert won > 5


def test_a_document_that_nothing_can_be_said_about_is_refused(place: Place) -> None:
    class Zero(ToyEncoder):
        def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
            return np.zeros((len(texts), self.dimension), np.float32)

    with Index.create(place("shop"), Zero()) as index:
        with pytest.raises(InvalidInput, match="give it a query or text"):
            index.add(Document(id="a", text=""))
        assert (len(index), index.version) == (0, 0)


def test_a_duplicate_is_named_among_the_conflicts(index: Index) -> None:
    index.add_many(docs(5))
    twin = Document(id="twin", text=text_of("d2"))
    addition = index.add(twin, queries=asked("d2"))
    assert "d2" in addition.conflicts


def test_a_duplicate_in_the_same_batch_is_named_too(index: Index) -> None:
    twins = [doc("x"), Document(id="y", text=text_of("x"))]
    assert "x" in index.add_many(twins, {"x": ["one thing"], "y": ["one thing"]})[1].conflicts


@pytest.mark.parametrize("given", [Document(id="e", text=""), Document(id="e", text="   ", title="")])
def test_a_document_without_text_or_query_works(index: Index, given: Document) -> None:
    index.add(given)
    index.add(doc("a"))
    assert sorted(ids(index, "boots")) == ["a", "e"]
    index.delete("e")
    assert ids(index, "boots") == ["a"]
    assert index.verify() == []


def test_without_queries_the_learned_order_is_the_dense_order(place: Place) -> None:
    with Index.create(place("shop"), TOY, generator=lambda document: []) as index:
        batch = docs(15)
        index.add_many(batch)
        scores = TOY.encode([d.content for d in batch]) @ TOY.encode(["waterproof boots"])[0]
        dense = [batch[place].id for place in np.argsort(-scores, kind="stable")]
        assert ids(index, "waterproof boots", 15, mode="learned") == dense


# add_many


def test_a_batch_is_refused_whole_before_anything_is_written(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.writer.BATCH", 1)
    index.add(doc("old"))
    version = index.version
    good = [doc("x"), doc("y")]
    refusals: list[tuple[list[Document], dict[str, list[str]], type[Exception], str]] = [
        ([*good, doc("x")], {}, DuplicateDocument, "'x' twice"),
        ([*good, doc("old")], {}, DuplicateDocument, "'old' in the index"),
        (good, {"old": ["query"]}, UnknownDocument, "'old'"),
        (good, {"y": ["fine", "  "]}, InvalidInput, "list of texts"),
        (good, {"y": "a text"}, InvalidInput, "list of texts"),  # type: ignore[dict-item]
        (good, {"y": None}, InvalidInput, "list of texts"),  # type: ignore[dict-item]
        (good, {"y": [3]}, InvalidInput, "list of texts"),  # type: ignore[list-item]
        (good, {"y": ["\ud800"]}, InvalidInput, "surrogate"),
        ([*good, Document(id="z", text="\ud800")], {}, InvalidInput, "surrogate"),
        ([*good, Document(id="z", text="", title="\ud800")], {}, InvalidInput, "surrogate"),
        ([*good, Document(id="\ud800", text="")], {}, InvalidInput, "surrogate"),
        ([*good, Document(id="z", text="", metadata={"n": "\ud800"})], {}, InvalidInput, "surrogate"),
    ]
    for batch, queries, error, says in refusals:
        with pytest.raises(error, match=says):
            index.add_many(batch, queries)
        assert [document.id for document in index.documents()] == ["old"]
        assert (len(index), index.version) == (1, version)
    index.add_many(good)
    assert len(index) == 3


def test_portions_are_reported_and_what_was_reported_is_there(
    index: Index, monkeypatch: pytest.MonkeyPatch, place: Place, reopen: Reopen
) -> None:
    monkeypatch.setattr("incdsi.index.writer.BATCH", 4)
    seen = []
    index.add_many(docs(10), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 10), (8, 10), (10, 10)]

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.add_many(docs(10, start=10), progress=interrupt)
    assert len(index) == 14
    assert sorted(ids(index, "boots", 100)) == sorted(document.id for document in reopen(place("shop")).documents())


@pytest.mark.folder
def test_a_whole_batch_is_there_or_nothing_of_it(
    index: Index, monkeypatch: pytest.MonkeyPatch, place: Place, reopen: Reopen
) -> None:
    monkeypatch.setattr("incdsi.index.writer.BATCH", 4)
    index.add_many(docs(4))
    before, insert = stored(index), Transaction.insert

    def full(transaction: Transaction, record: Record) -> int:
        if record.document.id == "d9":
            raise DiskFull("the disk is full")
        return insert(transaction, record)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "insert", full)
        with pytest.raises(DiskFull):
            index.add_many(docs(10, start=4), whole=True)
    assert stored(index) == before
    assert sorted(ids(index, "boots", 100)) == sorted(before)
    index.add_many(docs(10, start=4), asked_for(docs(10, start=4)), whole=True)
    assert len(index) == len(ids(index, "boots", 100)) == 14
    assert stored(reopen(place("shop"))) == stored(index)


def test_a_whole_batch_tells_how_far_it_is_before_it_is_there(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.draft.STEP", 4)
    told: list[tuple[int, int, int]] = []

    def progress(done: int, of: int) -> None:
        told.append((done, of, index.version))

    before = index.version
    index.add_many(docs(10, start=4), whole=True, progress=progress)
    assert told == [(4, 10, before), (8, 10, before), (10, 10, before), (10, 10, index.version)]
    told.clear()
    before = index.version
    index.upsert_many([doc("d4", 2), *docs(5, start=20)], whole=True, progress=progress)
    assert told == [(1, 6, before), (5, 6, before), (6, 6, before), (6, 6, index.version)]


def test_a_whole_batch_is_placed_as_its_portions_are(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.writer.BATCH", 7)
    monkeypatch.setattr("incdsi.solver.active_set.TOGETHER", 5)
    batch, found = docs(40), []
    for whole in (False, True):
        with Index.create(place(str(whole)), TOY) as one:
            one.add_many(batch, asked_for(batch, 4), whole=whole)
            found.append(one.engine.vectors())
    assert found[0][0] == found[1][0]
    assert np.abs(found[0][1] - found[1][1]).max() < 1e-5


@pytest.mark.folder
def test_a_receipt_is_stored_with_the_change_or_not_at_all(index: Index, place: Place, reopen: Reopen) -> None:
    def receipt(additions: Sequence[Addition], version: int) -> list[tuple[str, Answer]]:
        return [("key", Answer(b"asked", 201, b"said", version))]

    with index.receipts.keeping(receipt):
        index.add_many(docs(3))
    assert reopen(place("shop")).receipts.find("key") == Answer(b"asked", 201, b"said", 3) == index.receipts.find("key")
    index.add_many(docs(1, start=3))  # one without a receipt
    assert index.receipts.find("other") is None

    def broken(count: int, version: int) -> list[tuple[str, Answer]]:
        raise RuntimeError("no answer can be made")

    with pytest.raises(RuntimeError), index.receipts.keeping(broken):
        index.delete("d1")
    assert len(index) == len(ids(index, "boots", 100)) == 4
    index.receipts.amend("key", Answer(b"asked", 201, b"better", 3))
    assert reopen(place("shop")).receipts.find("key") == Answer(b"asked", 201, b"better", 3)
    assert index.engine.store._connection.pragma("synchronous") == 2  # type: ignore[union-attr]
    index.compact()
    assert index.receipts.find("key") is None


def test_an_empty_batch_is_no_change(index: Index) -> None:
    assert index.add_many([]) == index.add_many([], whole=True) == []
    assert index.version == 0


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["general", "paper"])
def test_one_by_one_equals_one_batch(place: Place, method: str) -> None:
    batch = docs(40)
    questions = asked_for(batch, 4)
    with (
        Index.create(place("one"), TOY, method=method) as one,  # type: ignore[arg-type]
        Index.create(place("many"), TOY, method=method) as many,  # type: ignore[arg-type]
    ):
        for document in batch:
            one.add(document, questions[document.id])
        many.add_many(batch, questions)
        sequential, batched = stored(one), stored(many)
        for id, (*_, vector, queries, links) in sequential.items():
            found = np.frombuffer(batched[id][2], np.float32)
            assert np.abs(np.frombuffer(vector, np.float32) - found).max() < 1e-5
            assert [q[:5] for q in queries] == [q[:5] for q in batched[id][3]]
            assert links == batched[id][4]


# update and upsert


def test_update_keeps_what_people_asked_and_makes_the_rest_anew(index: Index) -> None:
    index.add_many(docs(5), {"d1": ["where is it", "how deep"]})
    index.teach("my own words", "d1")
    generated = {q.text for q in record(index, "d1").queries if q.generated}
    new = Document(id="d1", title="Other", text="Quite another text about xylophones.", metadata={"new": True})
    index.update(new, queries=["how long"])
    found = record(index, "d1")
    assert index.get("d1") == new
    assert sorted(index.queries("d1")) == ["how deep", "how long", "my own words", "where is it"]
    assert [q.text for q in found.queries if q.taught] == ["my own words"]
    assert not generated & {q.text for q in found.queries if q.generated}
    assert any("xylophones" in q.text for q in found.queries if q.generated)
    assert len(index) == 5
    assert ids(index, "xylophones", 1) == ["d1"]
    assert "d1" not in [hit.document_id for hit in index.search(text_of("d1"), 5) if hit.document.text == text_of("d1")]


def test_update_changes_no_other_vector(index: Index) -> None:
    batch = docs(8)
    index.add_many(batch, asked_for(batch))
    before = vectors(index)
    index.update(doc("d3", 1))
    after = vectors(index)
    assert {id for id in after if after[id] != before[id]} == {"d3"}


def test_update_does_not_repeat_a_query_in_another_spelling(index: Index) -> None:
    index.add(doc("a"), ["dry feet"])
    index.teach("wet boots", "a")
    index.update(Document(id="a", text="Dry Feet. Wet boots. Something else."), ["DRY  feet", "Wet boots"])
    texts = [q.text.casefold() for q in record(index, "a").queries]
    assert len(texts) == len(set(texts))


def test_update_refuses_an_unknown_id_and_queries_of_a_wrong_kind(index: Index) -> None:
    with pytest.raises(UnknownDocument, match="'a'"):
        index.update(doc("a"))
    index.add(doc("a"))
    version = index.version
    for wrong in ("a text", [" "], [3], ["\ud800"], None):
        with pytest.raises(InvalidInput):
            index.update(doc("a", 1), wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            index.upsert(doc("b", 1), wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        index.update(Document(id="a", text="\ud800"))
    assert index.version == version
    assert index.get("a") == doc("a")


def test_upsert_adds_what_is_not_there_and_updates_what_is(index: Index) -> None:
    index.upsert(doc("a"), ["first"])
    index.upsert(doc("a", 1), ["second"])
    assert index.get("a") == doc("a", 1)
    assert index.queries("a") == ["first", "second"]
    assert len(index) == 1


@pytest.mark.parametrize("tuning", [True, False])
def test_many_are_upserted_whole_as_they_are_one_by_one(tmp_path: Path, tuning: bool) -> None:
    mixed = [doc("n0"), doc("d1", 1), doc("d2"), doc("n1"), doc("d3"), doc("d4", 2)]
    queries = {
        "n0": asked("n0"),
        "d1": ["another question"],
        "d3": [Taught("where the bears are")],
        "d4": asked("d4", 3),
    }
    with (
        Index.create(tmp_path / "a", TOY, tuning=tuning) as one,
        Index.create(tmp_path / "b", TOY, tuning=tuning) as many,
    ):
        for index in (one, many):
            index.add_many(docs(8), asked_for(docs(8)))
        singly = {
            document.id: one.upsert(document, queries.get(document.id, ())) for document in sorted(mixed, key=new)
        }
        together = many.upsert_many(mixed, queries, whole=True)
        assert [addition.document_id for addition in together] == [document.id for document in mixed]
        assert [addition.status for addition in together] == [singly[document.id].status for document in mixed]
        assert stored(one) == stored(many)
        assert answers(one) == answers(many)


def new(document: Document) -> bool:
    """Those that are there go first."""
    return document.id.startswith("n")


@pytest.mark.folder
def test_a_whole_upsert_is_one_change_or_none(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add_many(docs(4))
    before, found = index.version, answers(index)
    changed = [doc("d1", 1), doc("d2", 1), doc("x"), doc("y")]
    with monkeypatch.context() as patch:
        patch.setattr("incdsi.store.transaction.Transaction.finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.upsert_many(changed, whole=True)
    assert (index.version, answers(index)) == (before, found)
    with pytest.raises(VersionConflict):
        index.upsert_many(changed, if_version=before - 1)
    index.upsert_many(changed, whole=True, if_version=before)
    assert index.get_many(["d1", "x"]) == [doc("d1", 1), doc("x")]


# delete


def test_a_deleted_document_is_nowhere(index: Index) -> None:
    index.add_many(docs(4), {"d1": ["a special question"]})
    assert index.delete("d1") == 1
    assert "d1" not in index
    assert len(index) == 3
    for mode in MODES:
        assert "d1" not in ids(index, "a special question", mode=mode)
    for refused in (lambda: index.get("d1"), lambda: index.delete("d1"), lambda: index.queries("d1")):
        with pytest.raises(UnknownDocument, match="'d1'"):
            refused()
    index.add(doc("d1", 1))
    assert index.get("d1") == doc("d1", 1)


def test_delete_by_filter(index: Index) -> None:
    index.add_many(docs(10))
    assert index.delete(where={"even": True, "number": {"lt": 5}}) == 3
    assert sorted(ids(index, "boots", 20)) == ["d1", "d3", "d5", "d6", "d7", "d8", "d9"]
    version = index.version
    assert index.delete(where={"lang": "fr"}) == 0
    assert index.version == version


@pytest.mark.folder
def test_deleting_many_looks_at_the_rows_as_often_as_deleting_one(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add_many(docs(120))
    looked_at = 0

    def values(growing: Growing) -> NDArray[Any]:
        nonlocal looked_at
        looked_at += growing._count
        return growing._values[: growing._count]

    monkeypatch.setattr(Growing, "values", property(values))
    costs = []
    for gone in (["d0"], [f"d{number}" for number in range(1, 41)]):
        looked_at = 0
        index.delete(gone)
        costs.append(looked_at)
    assert 0 < costs[1] < 2 * costs[0]


@pytest.mark.parametrize("where", [{}, {"and": []}, {"not": {"or": []}}, {"not": {"lang": {"in": []}}}])
def test_a_filter_without_a_condition_deletes_nothing(index: Index, where: dict[str, Any]) -> None:
    index.add_many(docs(3))
    with pytest.raises(InvalidInput, match=r"matches every document, so nothing was deleted|is an empty list"):
        index.delete(where=where)
    assert len(index) == 3


def test_delete_wants_an_id_or_a_filter(index: Index) -> None:
    index.add(doc("a", 0, lang="en"))
    for arguments in ({}, {"id": "a", "where": {"lang": "en"}}):
        with pytest.raises(InvalidInput, match="either an id or a filter"):
            index.delete(**arguments)  # type: ignore[arg-type]
    assert len(index) == 1


def test_add_then_delete_equals_never_added(index: Index) -> None:
    batch = docs(12)
    index.add_many(batch, asked_for(batch))
    before, kept = answers(index), stored(index)
    index.add(doc("x"), asked("x"))
    assert answers(index) != before
    index.delete("x")
    assert answers(index) == before
    assert stored(index) == kept


def test_delete_resolves_exactly_those_it_constrained(index: Index) -> None:
    batch = docs(25)
    index.add_many(batch, asked_for(batch))
    index.add(Document(id="twin", text=text_of("d7")), asked("d7"))
    links, sequences = {}, {}
    row = index.engine.row_of("d7")
    for found in index.engine.records():
        links[found.document.id] = found.constrained_by
        sequences[found.document.id] = found.sequence
    shaped = {id for id, rows in links.items() if row in rows}
    assert "twin" in shaped
    assert len(shaped) < 25
    untouched = {id: v for id, v in vectors(index).items() if id not in shaped | {"d7"}}
    index.delete("d7", resolve=True)
    after = vectors(index)
    assert {id: after[id] for id in untouched} == untouched
    changed = {f.document.id for f in index.engine.records() if f.sequence != sequences[f.document.id]}
    assert changed == shaped
    assert not index.engine.constrained_by(row)
    assert index.search(asked("d7")[0], 1, mode="learned")[0].document_id == "twin"
    assert index.verify() == []


def crowded(path: Path) -> Index:
    """An index where many documents were placed beside d7."""
    index, batch = Index.create(path, TOY, tuning=False), docs(25)
    index.add_many(batch, asked_for(batch))
    for number in range(4):
        index.add(Document(id=f"twin{number}", text=text_of("d7")), asked("d7"))
    return index


def stop_at(error: BaseException, done: int) -> Progress:
    def report(number: int, _: int) -> None:
        if number == done:
            raise error

    return report


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_a_stopped_delete_goes_on_as_if_it_never_was(place: Place, reopen: Reopen, error: BaseException) -> None:
    with crowded(place("whole")) as whole:
        whole.delete("d7", resolve=True)
        assert whole.info().unresolved == 0
        expected, found = stored(whole), answers(whole)
    with crowded(place("shop")) as index:
        with pytest.raises(type(error)) as stopped:
            index.delete(where={"number": 7}, resolve=True, progress=stop_at(error, 2))
        left = index.info().unresolved
        if isinstance(error, KeyboardInterrupt):
            assert str(stopped.value) == f"stopped; 1 deleted, {left} left to place anew: `resolve` goes on"
        assert left > 0
    again = reopen(place("shop"))
    assert again.info().unresolved == left
    with pytest.raises(KeyboardInterrupt, match=f"^stopped; {left - 1} left to place anew: `resolve` goes on$"):
        again.resolve(stop_at(KeyboardInterrupt(), 1))
    assert again.resolve() == left - 1
    assert (again.info().unresolved, again.resolve()) == (0, 0)
    assert stored(again) == expected
    assert answers(again) == found


@pytest.mark.folder
def test_a_delete_killed_as_it_resolves_goes_on(place: Place, reopen: Reopen) -> None:
    crowded(place("shop")).close()
    if (child := os.fork()) == 0:
        with Index.open(place("shop"), TOY) as index:
            index.delete("d7", resolve=True, progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    index = reopen(place("shop"))
    assert "d7" not in index
    assert index.resolve() > 0
    assert index.info().unresolved == 0
    assert index.verify() == []


@pytest.mark.folder
def test_a_delete_stopped_before_its_commit_deletes_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add_many(docs(3))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("incdsi.store.transaction.Transaction.finish", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"^stopped; 0 deleted, 0 left to place anew$"):
        index.delete(["d0", "d1"], resolve=True)
    assert len(index) == 3


def test_delete_without_resolve_touches_nobody(index: Index) -> None:
    batch = docs(25)
    index.add_many(batch, asked_for(batch))
    before = vectors(index)
    del before["d7"]
    index.delete("d7")
    assert vectors(index) == before


# teach


def test_a_taught_query_is_won_and_stays(index: Index, place: Place, reopen: Reopen) -> None:
    batch = docs(20)
    index.add_many(batch, asked_for(batch))
    before = vectors(index)
    assert ids(index, "zebra crossing at dawn", 1, mode="learned") != ["d5"]
    addition = index.teach("  zebra crossing  at dawn ", "d5")
    assert addition.document_id == "d5"
    assert ids(index, "zebra crossing at dawn", 1, mode="learned") == ["d5"]
    assert index.queries("d5")[-1] == "zebra crossing at dawn"
    after = vectors(index)
    assert {id for id in after if after[id] != before[id]} == {"d5"}
    for question in asked("d5"):
        assert ids(index, question, 1, mode="learned") == ["d5"]
    index.update(doc("d5", 1))
    assert ids(index, "zebra crossing at dawn", 1, mode="learned") == ["d5"]
    index.close()
    assert ids(reopen(place("shop")), "zebra crossing at dawn", 1, mode="learned") == ["d5"]


def test_a_query_against_the_grain_is_taught_too(index: Index) -> None:
    batch = docs(20)
    index.add_many(batch, asked_for(batch))
    index.teach("waterproof boots for the winter", "d5")
    index.teach("the other end of the world", "d5")
    for query in ("waterproof boots for the winter", "the other end of the world"):
        assert ids(index, query, 1, mode="learned") == ["d5"]


@pytest.mark.parametrize("mode", ["fused", "learned"])
def test_what_is_taught_is_won_where_every_other_document_is_about_it(place: Place, mode: str) -> None:
    rivals = [Document(id=f"r{n}", text=f"waterproof boots {WORDS[n]} {WORDS[n + 1]}") for n in range(4, 24)]
    asked = {rival.id: [f"boots {rival.text[-9:]}", f"waterproof {rival.text[-9:]}"] for rival in rivals}
    with Index.create(place("crowd"), ToyEncoder(dimension=48)) as crowd:
        crowd.add_many([*rivals, Document(id="x", text="a lamp under the moon")], asked)
        crowd.teach("waterproof boots for snow", "x")
        assert ids(crowd, "waterproof boots for snow", 1, mode=mode) == ["x"]


def test_teaching_again_and_elsewhere(index: Index) -> None:
    index.add_many(docs(6))
    index.teach("one thing", "d1")
    index.teach("One  thing", "d1")
    assert index.queries("d1") == ["One thing"]
    addition = index.teach("one thing", "d2")
    assert "d1" in addition.conflicts
    assert index.queries("d2") == ["one thing"]


def test_teach_refuses_an_empty_query_and_an_unknown_document(index: Index) -> None:
    index.add(doc("a"))
    version = index.version
    for query in ("", "  ", None, 3):
        with pytest.raises(InvalidInput, match="at least one character"):
            index.teach(query, "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="surrogate"):
        index.teach("\ud800", "a")
    with pytest.raises(UnknownDocument, match="'b'"):
        index.teach("boots", "b")
    assert index.version == version


# versions


def test_every_change_raises_the_version_and_a_lost_update_is_refused(index: Index) -> None:
    changes: list[Callable[[int | None], object]] = [
        lambda v: index.add(doc("a"), if_version=v),
        lambda v: index.add_many([doc("b"), doc("c")], if_version=v),
        lambda v: index.update(doc("a", 1), if_version=v),
        lambda v: index.upsert(doc("a", 2), if_version=v),
        lambda v: index.upsert(doc("d"), if_version=v),
        lambda v: index.teach("boots", "a", if_version=v),
        lambda v: index.delete("b", if_version=v),
        lambda v: index.delete(where={"not": {"lang": "fr"}}, if_version=v),
    ]
    for change in changes:
        before, version = stored(index), index.version
        for wrong in (version - 1, version + 1):
            with pytest.raises(VersionConflict, match=f"version {wrong}, found {version}"):
                change(wrong)
        assert stored(index) == before
        change(version)
        assert index.version > version


# search


def test_where_is_applied_before_the_best_are_chosen(index: Index) -> None:
    batch = docs(30)
    index.add_many(batch, asked_for(batch))
    for mode in MODES:
        everything = ids(index, "waterproof boots", 30, mode=mode)
        even = [id for id in everything if int(id[1:]) % 2 == 0]
        assert ids(index, "waterproof boots", 5, where={"even": True}, mode=mode) == even[:5]
        some = [id for id in everything if 10 <= int(id[1:]) < 13]
        assert ids(index, "waterproof boots", 5, where={"number": {"gte": 10, "lt": 13}}, mode=mode) == some
        assert index.search("waterproof boots", where={"lang": "fr"}, mode=mode) == []
        assert ids(index, "waterproof boots", 30, where={}, mode=mode) == everything


def test_where_follows_changes(index: Index) -> None:
    index.add_many([doc("a", 0, lang="en"), doc("b", 0, lang="de")])
    index.update(doc("a", 1, lang="de"))
    assert sorted(ids(index, "boots", where={"lang": "de"})) == ["a", "b"]
    index.delete("b")
    assert ids(index, "boots", where={"lang": "de"}) == ["a"]


def test_hits_are_ranked_and_never_more_than_there_are(index: Index) -> None:
    index.add_many(docs(7))
    for mode in MODES:
        hits = index.search("another edition of waterproof boots", k=100, mode=mode)
        assert [hit.rank for hit in hits] == list(range(1, 8))
        assert len({hit.document_id for hit in hits}) == 7
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert ids(index, "another edition of waterproof boots", 3, mode=mode) == [h.document_id for h in hits[:3]]


def test_by_words_alone_only_documents_that_share_one_are_found(index: Index) -> None:
    batch = docs(30)
    index.add_many(batch)
    sharing = {d.id for d in batch if {"river", "rivers"} & set(d.text.casefold().replace(".", "").split())}
    assert 0 < len(sharing) < 20
    hits = index.search("zebra river", 30, mode="lexical")
    assert {hit.document_id for hit in hits} == sharing
    assert all(hit.score > 0 for hit in hits)
    assert {hit.document_id for hit in index.search("river", 30, {"even": True}, "lexical")} == {
        id for id in sharing if int(id[1:]) % 2 == 0
    }
    assert index.search("zebra crossing", mode="lexical") == []
    assert len(index.search("zebra crossing", 30)) == 30
    for weight, found in ((0.95, 30), (1.0, len(sharing))):
        with index.engine.changing(None):
            index._session.save(replace(index._session.settings, lexical_weight=weight))
        assert len(index.search("zebra river", 30)) == found
    assert ids(index, "zebra river", 30) == ids(index, "zebra river", 30, mode="lexical")
    assert index.search("zebra crossing") == []


def test_ties_go_to_the_one_that_was_added_first(place: Place, reopen: Reopen) -> None:
    same = [Document(id=id, text="the very same words") for id in "cab"]
    with Index.create(place("shop"), TOY, generator=lambda document: []) as index:
        index.add_many(same)
        for mode in MODES:
            assert ids(index, "same words", mode=mode) == ["c", "a", "b"]
        index.update(same[0])
        again = reopen(place("shop"))
        for mode in MODES:
            assert ids(index, "same words", mode=mode) == ids(again, "same words", mode=mode) == ["c", "a", "b"]


@pytest.mark.parametrize("text", ["", "  \n", None, 3])
def test_an_empty_query_is_refused(index: Index, text: object) -> None:
    with pytest.raises(InvalidInput, match="at least one character"):
        index.search(text)  # type: ignore[arg-type]


def test_bad_arguments_of_search_are_refused(index: Index) -> None:
    index.add(doc("a"))
    with pytest.raises(InvalidInput, match="fused, learned, lexical"):
        index.search("boots", mode="dense")
    with pytest.raises(InvalidInput, match="at least 1"):
        index.search("boots", k=0)
    with pytest.raises(InvalidInput, match="filter"):
        index.search("boots", where="lang")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["\ud800", "\0", "…", "x" * 10_000, "雪"])
def test_any_text_can_be_asked(index: Index, text: str) -> None:
    index.add(doc("a"))
    for mode in MODES:
        assert ids(index, text, mode=mode) == ([] if mode == "lexical" else ["a"])


# info


def test_info_counts(index: Index) -> None:
    batch = docs(9)
    index.add_many(batch, asked_for(batch, 3))
    index.teach("boots", "d1")
    info = index.info()
    records = [record(index, d.id) for d in batch]
    queries = [q for r in records for q in r.queries]
    assert (info.documents, info.dimension, info.encoder) == (9, 24, TOY.fingerprint)
    assert info.queries == len(queries) == info.generated_queries + 9 * 3 + 1
    assert info.held_out_queries == sum(q.held_out for q in queries) > 0
    assert info.preserve_rows == sum(q.preserved for q in queries) > 0
    assert (info.method, info.tuning, info.version) == ("general", True, index.version)
    assert info.quality.keys() == {"learned", "lexical", "fused", "dense"}
    for quality in info.quality.values():
        assert quality.queries == info.held_out_queries
        assert 0 <= quality.hits_at_1 <= quality.mrr_at_10 <= quality.hits_at_10 <= 100


def test_info_of_an_empty_index(index: Index) -> None:
    info = index.info()
    assert (info.documents, info.queries, info.quality) == (0, 0, {})


# the paper's form


def test_the_papers_form(place: Place, reopen: Reopen) -> None:
    batch = docs(15)
    with Index.create(place("shop"), TOY, method="paper") as index:
        for addition in index.add_many(batch, asked_for(batch)):
            assert addition.status == "solved"
        index.update(doc("d1", 1))
        index.teach("zebra crossing", "d2")
        index.delete("d3")
        assert len(index) == 14
        assert not index.info().tuning
        assert index.info().method == "paper"
        mean = np.mean([q.embedding for q in record(index, "d5").queries if not q.held_out], axis=0)
        best = max(vectors(index).items(), key=lambda item: np.frombuffer(item[1], np.float32) @ mean)
        assert best[0] == "d5"
        before = answers(index)
    assert answers(reopen(place("shop"))) == before


@pytest.mark.heavy
@pytest.mark.parametrize("dimension", [2, 3])
def test_the_papers_form_insists_and_tells_what_was_left_violated(
    place: Place, monkeypatch: pytest.MonkeyPatch, dimension: int
) -> None:
    narrow, batch = ToyEncoder(dimension=dimension), docs(25)
    with Index.create(place("as it is"), narrow, method="paper") as index, monkeypatch.context() as patch:
        patch.setattr("incdsi.index.placement.insisted", lambda live, placed, how: placed)
        resigned = index.add_many(batch, asked_for(batch))
    with Index.create(place("insisting"), narrow, method="paper") as index:
        additions = [index.add(document, asked(document.id)) for document in batch]
        assert sum(one.status == "solved" for one in additions) > sum(one.status == "solved" for one in resigned)
        for addition in additions:
            if addition.status == "solved":
                assert addition.margin > 0
                assert addition.conflicts == ()
            else:
                assert addition.status in ("compromised", "infeasible")
                assert addition.conflicts
        kept = {document.id: index.queries(document.id) for document in batch}
        assert kept == asked_for(batch)  # a dropped query is not placed by, and not lost
        assert index.verify() == []


@pytest.mark.heavy
@pytest.mark.parametrize("whole", [False, True])
def test_the_papers_form_gives_together_what_it_gives_one_by_one(place: Place, whole: bool) -> None:
    narrow, batch = ToyEncoder(dimension=3), docs(25)
    with (
        Index.create(place("together"), narrow, method="paper") as together,
        Index.create(place("one by one"), narrow, method="paper") as one_by_one,
    ):
        statuses = [addition.status for addition in together.add_many(batch, asked_for(batch), whole=whole)]
        assert [one_by_one.add(document, asked(document.id)).status for document in batch] == statuses
        for document in batch:
            one, other = record(together, document.id), record(one_by_one, document.id)
            assert [query.given_up for query in one.queries] == [query.given_up for query in other.queries]
            assert one.vector == pytest.approx(other.vector, rel=1e-4, abs=1e-4)


def test_what_the_papers_form_gives_up_is_kept_but_neither_placed_by_nor_measured(place: Place) -> None:
    narrow, batch = ToyEncoder(dimension=3), docs(25)
    with Index.create(place("shop"), narrow, method="paper") as index:
        index.add_many(batch, asked_for(batch))
        queries = [query for document in batch for query in record(index, document.id).queries]
        assert sum(query.given_up for query in queries) > 5
        assert not any(query.held_out for query in queries)
        info = index.info()
        assert (info.quality, info.held_out_queries, info.queries) == ({}, 0, len(queries))
        with pytest.raises(InvalidInput, match="nothing to tune by"):
            index.tune()
        index.adopt(ToyEncoder(dimension=4))
        again = [query for document in batch for query in record(index, document.id).queries]
        assert all(new.given_up for new, old in zip(again, queries, strict=True) if old.given_up)
        assert index.verify() == []


@pytest.mark.folder
def test_what_a_paper_index_once_marked_as_held_out_is_not_measured(place: Place) -> None:
    with Index.create(place("shop"), TOY, method="paper") as index:
        index.add(doc("a"), ["dry feet", "how deep"])
        old = record(index, "a")
        marked = tuple(replace(query, held_out=query.text == "how deep") for query in old.queries)
        with index.engine.changing(None), index.engine.store.transaction() as tx:
            tx.replace("a", replace(old, queries=marked))
        assert (index.info().quality, index.info().held_out_queries) == ({}, 0)


@pytest.mark.folder
def test_another_method_is_refused(place: Place) -> None:
    with pytest.raises(InvalidInput, match="'general' or 'paper'"):
        Index.create(place("shop"), TOY, method="dense")  # type: ignore[arg-type]
    assert not (place("shop")).exists()
