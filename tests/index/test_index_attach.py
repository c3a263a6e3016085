"""Attaching queries to many documents, and deleting many: one transaction, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from index_samples import TOY, ToyEncoder, answers, asked, asked_for, doc, docs, path_of, record, stored, vectors

from incdsi.engine.protocol import View
from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.index import Index
from incdsi.index.draft import held_out_of
from tests.engines import Place

Reopen = Callable[..., Index]


class Counting(ToyEncoder):
    """Remembers what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode(self, texts, progress=None):  # type: ignore[no-untyped-def]
        self.texts += texts
        return super().encode(texts, progress)


def learned_score(index: Index, text: str, id: str) -> float:
    return next(hit.score for hit in index.search(text, 100, mode="learned") if hit.document_id == id)


def test_attached_queries_are_learned_and_nothing_else_changes(index: Index, place: Place, reopen: Reopen) -> None:
    index.set_tuning(False)  # all of them are learned, none held out
    batch = docs(20)
    index.add_many(batch, asked_for(batch))
    others, seen = vectors(index), []
    first = learned_score(index, "zebra crossing at dawn", "d3")
    second = learned_score(index, "a llama in the kitchen", "d7")
    new = {"d3": ["zebra crossing at dawn", *asked("d3")], "d7": ["a llama in the kitchen"], "d9": asked("d9")}
    additions = index.attach(new, progress=lambda done, total: seen.append((done, total)))
    assert [addition.document_id for addition in additions] == ["d3", "d7"]  # d9 knew it all
    assert seen == [(3, 3)]
    assert learned_score(index, "zebra crossing at dawn", "d3") > first + 0.1
    assert learned_score(index, "a llama in the kitchen", "d7") > second + 0.1
    assert index.queries("d3") == [*asked("d3"), "zebra crossing at dawn"]
    assert index.get("d3") == batch[3]
    after = vectors(index)
    assert {id for id in after if after[id] != others[id]} == {"d3", "d7"}
    assert answers(reopen(place("shop"))) == answers(index)
    assert index.verify() == []


def test_attaching_equals_updating_one_by_one(place: Place) -> None:
    batch = docs(20)
    new = {document.id: [f"zebra number {document.id}"] for document in batch[::2]}
    with Index.create(place("a"), TOY, tuning=False) as a, Index.create(place("b"), TOY, tuning=False) as b:
        for index in (a, b):
            index.add_many(batch, asked_for(batch))
        a.attach(new)
        for id, texts in new.items():
            b.update(b.get(id), texts)
        found, expected = vectors(a), vectors(b)
        for id, vector in expected.items():
            assert np.allclose(np.frombuffer(found[id], np.float32), np.frombuffer(vector, np.float32), atol=1e-5)
        texts = [{id: [q[:4] for q in entry[3]] for id, entry in stored(index).items()} for index in (a, b)]
        assert texts[0] == texts[1]


@pytest.mark.folder
def test_only_what_is_new_is_embedded_and_a_portion_is_one_transaction(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, batch, seen = Counting(), docs(6), []
    with Index.create(place("shop"), encoder) as index:
        index.add_many(batch)
        encoder.texts.clear()
        commits: list[int] = []
        begin = index.engine.store.transaction
        monkeypatch.setattr(index.engine.store, "transaction", lambda: (commits.append(1), begin())[1])
        monkeypatch.setattr("incdsi.index.writer.BATCH", 4)
        new = {document.id: [f"zebra {document.id}"] for document in batch}
        index.attach(new, progress=lambda done, total: seen.append((done, total)))
    assert encoder.texts == [f"zebra {document.id}" for document in batch]
    assert len(commits) == 2
    assert seen == [(4, 6), (6, 6)]


def test_a_query_of_a_person_takes_the_place_of_the_same_one_generated(index: Index) -> None:
    index.add(doc("a"))
    generated = next(query.text for query in record(index, "a").queries if query.generated)
    index.teach("zebra crossing", "a")
    index.attach({"a": [generated.upper(), "Zebra  Crossing"]})
    kinds = [(query.text, query.generated, query.taught) for query in record(index, "a").queries]
    assert [kind for kind in kinds if kind[0].casefold() == generated.casefold()] == [(generated.upper(), False, False)]
    assert [kind for kind in kinds if "ebra" in kind[0]] == [("zebra crossing", False, True)]


def test_attached_queries_are_held_out_and_tuned_by(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    batch = docs(30)
    index.add_many(batch)
    assert index.last_tuning is None
    index.attach(asked_for(batch, 4))
    for document in batch:
        held = [query.text for query in record(index, document.id).queries if query.held_out]
        assert held == held_out_of(document.id, asked(document.id, 4))
    assert index.last_tuning is not None
    held = [query.text for query in record(index, "d0").queries if query.held_out]
    index.attach({"d0": ["one more thing"]})
    assert [query.text for query in record(index, "d0").queries if query.held_out] == held


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"d0": ["fine"], "ghost": ["x"]}, UnknownDocument),
        ({"d0": ["fine"], "d1": [" "]}, InvalidInput),
        ({"d0": "no list"}, InvalidInput),
    ],
)
def test_attach_refuses_everything_before_it_writes(
    index: Index, monkeypatch: pytest.MonkeyPatch, bad: dict[str, list[str]], error: type[Exception]
) -> None:
    index.add_many(docs(3))
    monkeypatch.setattr("incdsi.index.writer.BATCH", 1)
    version = index.version
    with pytest.raises(error):
        index.attach(bad)
    assert index.version == version


def test_an_interrupted_attach_shows_what_was_committed(
    index: Index, place: Place, monkeypatch: pytest.MonkeyPatch, reopen: Reopen
) -> None:
    batch = docs(10)
    index.add_many(batch)
    monkeypatch.setattr("incdsi.index.writer.BATCH", 3)

    def stop(done: int, total: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.attach({document.id: [f"zebra {document.id}"] for document in batch}, progress=stop)
    assert [bool(index.queries(document.id)) for document in batch] == [True] * 6 + [False] * 4
    assert answers(index) == answers(reopen(place("shop")))


@pytest.mark.folder
def test_many_are_deleted_in_one_transaction_or_none(
    index: Index, monkeypatch: pytest.MonkeyPatch, place: Place, reopen: Reopen
) -> None:
    index.add_many(docs(10))
    before = answers(index)
    with pytest.raises(UnknownDocument, match="ghost"):
        index.delete(["d1", "ghost", "d2"])
    assert answers(index) == before
    commits: list[int] = []
    begin = index.engine.store.transaction
    monkeypatch.setattr(index.engine.store, "transaction", lambda: (commits.append(1), begin())[1])
    assert index.delete(id for id in ("d1", "d2", "d1", "d5")) == 3
    assert len(commits) == 1
    assert len(index) == 7
    assert index.delete([]) == 0
    with Index.create(place("never"), TOY) as never:
        never.add_many(docs(10))
        for id in ("d1", "d2", "d5"):
            never.delete(id)
        assert answers(never) == answers(index) == answers(reopen(path_of(index)))


def test_deleting_many_resolves_each_neighbour_once(index: Index) -> None:
    batch = docs(12)
    index.add_many(batch, asked_for(batch))
    for twin in ("d3", "d4"):
        index.add(doc(twin).__class__(id=f"like {twin}", text=doc(twin).text), asked(twin))
    seen: list[tuple[int, int]] = []
    index.delete(["d3", "d4"], resolve=True, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen == [(number, len(seen)) for number in range(1, len(seen) + 1)]
    assert index.verify() == []


def test_a_view_knows_which_documents_people_asked_for(index: Index, place: Place, reopen: Reopen) -> None:
    def known(view: View) -> set[str]:
        rows = np.array([row for row in ids if row in view])
        return {ids[row] for row in rows[view.asked_for(rows)].tolist()}

    batch = docs(8)
    index.add_many(batch, asked_for(batch[:3], 1))
    index.attach({"d4": ["river of four"]})
    index.teach("something entirely new", "d5")
    index.update(doc("d6", 1))
    index.delete(["d0"])
    ids = {one.row: one.document.id for one in index.engine.records()}
    view = index.engine.view()
    assert known(view) == {"d1", "d2", "d4", "d5"}
    assert view.asked_for(np.empty(0, dtype=np.int64)).tolist() == []
    bench, one = view.bench(), record(index, "d4")
    bench.put([replace(one, queries=tuple(query for query in one.queries if query.generated))])
    bench.remove([record(index, "d5").row])
    assert known(bench) == {"d1", "d2"}
    assert known(bench.bench()) == {"d1", "d2"}
    assert known(view) == {"d1", "d2", "d4", "d5"}
    index.close()
    assert known(reopen(place("shop")).engine.view()) == {"d1", "d2", "d4", "d5"}
