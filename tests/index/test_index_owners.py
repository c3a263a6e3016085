"""Generated queries that documents share: who keeps them depends on the order of the changes, on nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_samples import TOY, doc, record

from incdsi.documents import Document
from incdsi.engine.local.owners import QueryOwners
from incdsi.index import Index
from tests.engines import Place

SENTENCES = (
    "river and boots",
    "River  and boots",
    "a tent at night",
    "snow on the summit",
    "the map",
    "a lamp",
    "rope",
)


def sentences(document: Document) -> list[str]:
    return document.text.split(". ") if document.text else []


def said(id: str, texts: Sequence[str]) -> Document:
    return Document(id=id, title=id, text=". ".join(texts))


def queries(index: Index) -> dict[str, list[tuple[str, bool, bool]]]:
    return {d.id: [(q.text, q.generated, q.held_out) for q in record(index, d.id).queries] for d in index.documents()}


def generated(index: Index, id: str) -> list[str]:
    return [query.text for query in record(index, id).queries if query.generated]


def test_a_generated_query_stays_with_the_first_document_that_has_it(place: Place) -> None:
    with Index.create(place("shop"), TOY, generator=sentences) as index:
        index.add(said("a", ["the map", "a lamp"]), ["where am I"])
        index.add_many([said("b", ["The  map", "rope"]), said("c", ["rope", "Where am I", "a tent"])])
        assert generated(index, "a") == ["the map", "a lamp"]
        assert generated(index, "b") == ["rope"]
        assert generated(index, "c") == ["a tent"]  # what a person asked for another is not generated for it
        index.update(said("c", ["a tent", "rope", "snow"]))
        assert generated(index, "c") == ["a tent", "snow"]
        index.add(said("twin", ["rope"]))
        assert generated(index, "twin") == ["rope"]  # otherwise it would have nothing to be placed by
        index.delete("a")
        index.add(said("d", ["the map", "where am I", "rope"]))
        assert generated(index, "d") == ["the map", "where am I"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "update", "delete"]),
        st.sampled_from("abcdefgh"),
        st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4),
        st.lists(st.sampled_from(SENTENCES[2:]), max_size=4),
        st.booleans(),
    ),
    max_size=14,
)

pytestmark = pytest.mark.heavy


@settings(max_examples=12, deadline=None)
@given(changes=CHANGES, size=st.integers(1, 5))
def test_one_by_one_equals_any_grouping_also_after_opening_again(changes: list, size: int) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("incdsi.index.writer.BATCH", size)
        one = Index.create(Path(folder, "one"), TOY, generator=sentences)
        grouped = Index.create(Path(folder, "grouped"), TOY, generator=sentences)
        waiting: dict[str, tuple[Document, list[str]]] = {}

        def add_waiting() -> None:
            grouped.add_many([d for d, _ in waiting.values()], {id: asked for id, (_, asked) in waiting.items()})
            waiting.clear()

        for verb, id, texts, asked, reopened in changes:
            if (verb == "add") == (id in one):
                continue
            if verb == "add":
                one.add(said(id, texts), asked)
                waiting[id] = said(id, texts), asked
            else:
                add_waiting()
                for index in (one, grouped):
                    index.delete(id) if verb == "delete" else index.update(said(id, texts), asked)
            if reopened:
                one.compact() if size % 2 else one.close()
                one.close()
                one = Index.open(Path(folder, "one"), TOY, generator=sentences)
        add_waiting()
        try:
            assert queries(one) == queries(grouped)
        finally:
            one.close()
            grouped.close()


@pytest.mark.parametrize("size", [1, 64, 300])
def test_batches_beyond_a_portion_are_like_one_by_one(place: Place, size: int) -> None:
    batch = [said(f"d{n}", [SENTENCES[n % 7], f"number {n // 2}", f"only {n}"]) for n in range(140)]
    with Index.create(place("shop"), TOY, generator=sentences, tuning=False) as index:
        for start in range(0, len(batch), size):
            index.add_many(batch[start : start + size])
        kept = {document.id: generated(index, document.id) for document in batch}
    first = {f"d{n}": [SENTENCES[n]] for n in (0, 2, 3, 4, 5, 6)}
    assert kept == {
        f"d{n}": [*first.get(f"d{n}", []), *([f"number {n // 2}"] if n % 2 == 0 else []), f"only {n}"]
        for n in range(140)
    }


@pytest.mark.folder
def test_a_base_written_before_this_rule_is_read_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from incdsi.engine.local.live import Live

    arrays = Live.to_arrays
    with Index.create(place("shop"), TOY, generator=sentences) as index:
        index.add(said("a", ["the map"]))
        with monkeypatch.context() as patch:
            patch.setattr(
                Live, "to_arrays", lambda self: {k: v for k, v in arrays(self).items() if not k.startswith("queries.")}
            )
            index.engine._refresh_base()
    with Index.open(place("shop"), TOY, generator=sentences) as index:
        assert index.search("map")
        index.add(said("b", ["the map", "rope"]))
        assert generated(index, "b") == ["rope"]
        index.add(doc("c"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.none() | st.lists(st.sampled_from(SENTENCES), max_size=4)), max_size=30),
    st.integers(0, 30),
)
def test_owners_know_what_a_plain_dictionary_knows_before_and_after_saving(
    changes: list[tuple[int, list[str] | None]], saved_after: int
) -> None:
    owners, plain = QueryOwners(), dict[int, set[str]]()
    for number, (row, texts) in enumerate(changes):
        if number == saved_after:
            opened, rows = QueryOwners(), sorted(plain, reverse=True)
            opened.fill(rows, owners.to_arrays(rows))
            owners = opened
        if texts is None:
            owners.remove(row)
            plain.pop(row, None)
        else:
            owners.put(row, texts)
            plain[row] = {" ".join(text.lower().split()) for text in texts}
        for text in SENTENCES:
            folded = " ".join(text.lower().split())
            for asking in range(7):
                expected = any(folded in some for row, some in plain.items() if row != asking)
                assert owners.elsewhere(text, asking) == expected
                others = sorted(row for row, some in plain.items() if folded in some and row != asking)
                assert owners.others(text, asking) == others


def test_owners_that_came_and_went_leave_nothing_behind() -> None:
    owners = QueryOwners()
    for row in range(100):
        owners.put(row, SENTENCES)
        owners.remove(row)
    assert not owners._changed
    assert not owners._more
