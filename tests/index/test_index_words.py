"""Lexical search learns: by a document's text and by what people asked for it or taught it, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_samples import TOY, answers, asked_for, doc, docs, ids, path_of, record

from incdsi.index import Index
from incdsi.lexical import LexicalIndex
from incdsi.lexical import index as lexical_index
from incdsi.store import Store
from tests.engines import Place

QUESTIONS = st.lists(st.sampled_from(["zebra crossing", "violin", "copper kettle", "how deep", "snow"]), max_size=4)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "attach", "teach", "delete"]), st.sampled_from(["a", "b", "c"]), QUESTIONS
    ),
    max_size=8,
)


def expected(index: Index, probe: str) -> dict[str, float]:
    """BM25 over text and natural queries that are not held out, by an index made for the purpose."""
    with Store.open(path_of(index), writer=False) as store:
        records = list(store.changes(0).upserts)
    words = LexicalIndex()
    texts = [
        " ; ".join([r.document.content, *(q.text for q in r.queries if not q.generated and not q.held_out)])
        for r in records
    ]
    words.add_many(range(len(texts)), texts)
    scores = words.scores(probe, len(texts))
    return {r.document.id: float(score) for r, score in zip(records, scores, strict=True) if score > 0}


def by_words(index: Index, probe: str) -> dict[str, float]:
    return {hit.document_id: hit.score for hit in index.search(probe, k=100, mode="lexical")}


def test_a_document_is_found_by_a_word_that_only_a_question_has(index: Index) -> None:
    index.add_many(docs(6), {"d2": ["where do zebras sleep"]})
    index.teach("the violin", "d4")
    assert ids(index, "zebra", mode="lexical") == ["d2"]
    assert ids(index, "violin", mode="lexical") == ["d4"]
    index.delete("d2")
    assert ids(index, "zebra", mode="lexical") == []


def test_words_of_a_lesson_count_as_those_of_any_question(index: Index) -> None:
    index.add_many(docs(6), {"d2": ["where do zebras sleep"]})
    index.teach("where do camels sleep", "d4")
    scores = by_words(index, "where do they sleep")
    assert scores["d4"] == scores["d2"]
    assert index.search("where do camels sleep")[0].document_id == "d4"


@pytest.mark.folder
def test_what_is_held_out_and_what_was_generated_add_no_word(index: Index) -> None:
    batch = docs(12)
    index.add_many(batch, asked_for(batch, 4))
    held_out = {id: q.text for id in (one.id for one in batch) for q in record(index, id).queries if q.held_out}
    assert held_out
    for id, question in held_out.items():
        number = question.split()[-1]  # in no text and in no other question of this document
        assert by_words(index, f"{id} {number}") == expected(index, f"{id} {number}")
        assert number not in " ".join(record(index, id).words).split()
    for one in batch:
        queries = record(index, one.id).queries
        (words,) = record(index, one.id).words
        assert words.split("\n") == [one.content, *(q.text for q in queries if not q.generated and not q.held_out)]


@given(CHANGES)
@settings(max_examples=30, deadline=None)
def test_after_any_changes_words_are_those_of_a_fresh_index(tmp_path_factory: pytest.TempPathFactory, changes) -> None:
    with Index.create(tmp_path_factory.mktemp("words") / "shop", TOY) as index:
        index.add(doc("z"), ["violin"])
        for number, (verb, id, questions) in enumerate(changes):
            if verb == "add":
                index.upsert(doc(id, number), questions)
            elif id in index and verb == "update":
                index.update(doc(id, number), questions)
            elif id in index and verb == "attach":
                index.attach({id: questions})
            elif id in index and verb == "teach":
                index.teach("my own words", id)
            elif id in index and verb == "delete":
                index.delete(id)
        for probe in ("zebra violin", "my own words", "how deep is the snow"):
            assert by_words(index, probe) == expected(index, probe)


def test_what_came_and_went_with_its_questions_leaves_every_score_bit_for_bit(index: Index) -> None:
    index.add_many(docs(8), asked_for(docs(8)))
    probes = ("zebra violin", "waterproof boots d3 1", "river")
    before = [by_words(index, probe) for probe in probes]
    index.add(doc("x"), ["zebra river", "boots of d3"])
    index.attach({"x": ["a violin in the rain"]})
    index.teach("waterproof river", "x")
    assert [by_words(index, probe) for probe in probes] != before
    index.delete("x")
    assert [by_words(index, probe) for probe in probes] == before


@pytest.mark.folder
def test_a_base_from_before_words_learned_is_read_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.create(place("shop"), TOY) as index, monkeypatch.context() as older:
        index.add_many(docs(6), {"d2": ["where do zebras sleep"]})
        found = answers(index, ("zebra", "river"))
        older.setattr(lexical_index, "FORMAT", 1)
        index.compact()
    with Store.open(place("shop"), writer=False) as store:
        base = store.base()
        assert base is not None
        assert np.array(base.arrays["lexical.format"]).tolist() == [1]
    with Index.open(place("shop"), TOY) as again:
        assert answers(again, ("zebra", "river")) == found
