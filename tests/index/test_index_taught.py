"""What was taught stays taught, through tuning, another encoder and coming back; of two lessons the last counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from index_samples import TOY, WORDS, ToyEncoder, answers, asked_for, doc, docs, ids, record, stored, vectors

from incdsi.documents import Document, Taught
from incdsi.engine.settings import Fusion
from incdsi.index import Index, tuning
from tests.engines import Place

pytestmark = pytest.mark.heavy

ODD = ("zebra", "piano", "harbour", "orange", "violin", "copper", "marble", "window", "engine")
TAUGHT = {f"d{number}": f"{odd} {WORDS[number]}" for number, odd in enumerate(ODD)}  # words favour others


def taught_index(path: Path, lexical_weight: float) -> Index:
    """Sixty documents, nine of them taught a query with a word of others."""
    index, batch = Index.create(path, ToyEncoder(dimension=192)), docs(60)
    index.add_many(batch, asked_for(batch, 4))
    weigh(index, lexical_weight)
    for id, query in TAUGHT.items():
        index.teach(query, id)
    return index


def weigh(index: Index, lexical_weight: float) -> None:
    with index.engine.changing(None):
        index._session.save(replace(index._session.settings, lexical_weight=lexical_weight))


def found_first(index: Index) -> list[str]:
    return [id for id, query in TAUGHT.items() if ids(index, query, 1) == [id]]


def test_what_was_taught_is_first_in_fused_search_under_another_encoder(place: Place) -> None:
    with taught_index(place("shop"), 0.5) as index:
        assert found_first(index) == list(TAUGHT)
        index.adopt(ToyEncoder(dimension=200, seed=1))
        assert found_first(index) == list(TAUGHT)


@pytest.mark.parametrize("chosen", [0.2, 0.6])
def test_what_was_taught_is_first_in_fused_search_at_the_weight_that_tuning_chose(
    place: Place, monkeypatch: pytest.MonkeyPatch, chosen: float
) -> None:
    monkeypatch.setattr(tuning, "best_fusion", lambda asked: Fusion(chosen, 0.4))
    with taught_index(place("shop"), 0.3) as index:
        result = index.tune()
        assert (index.info().lexical_weight, index.info().quality) == (chosen, result.after)
        assert found_first(index) == list(TAUGHT)
        with Index.open(place("shop"), ToyEncoder(dimension=192)) as again:
            assert answers(again) == answers(index)
        assert index.verify() == []


# Coming back after a delete


def ranks(index: Index) -> list[int]:
    """Where each taught document stands in fused search for its query."""
    return [ids(index, query, 60).index(id) + 1 for id, query in TAUGHT.items()]


def test_documents_added_again_with_what_they_had_are_taught_again(place: Place) -> None:
    with taught_index(place("shop"), 0.5) as index:
        assert ranks(index) == [1] * 9
        for id in TAUGHT:
            document, queries = index.get(id), index.queries(id)
            held_out = [query.text for query in record(index, id).queries if query.held_out]
            assert [query for query in queries if isinstance(query, Taught)] == [TAUGHT[id]]
            index.delete(id)
            index.add(document, queries)
            assert index.queries(id) == queries
            assert [query.text for query in record(index, id).queries if query.taught] == [TAUGHT[id]]
            assert [query.text for query in record(index, id).queries if query.held_out] == held_out
        assert ranks(index) == [1] * 9


@pytest.mark.parametrize(("portion", "whole"), [(2, False), (128, False), (2, True)])
def test_taught_documents_added_one_by_one_equal_those_of_one_batch(
    place: Place, monkeypatch: pytest.MonkeyPatch, portion: int, whole: bool
) -> None:
    batch = docs(14)
    questions = {
        id: [*texts, *([Taught(TAUGHT[id])] if id in TAUGHT else [])] for id, texts in asked_for(batch).items()
    }
    with Index.create(place("one"), TOY) as one, Index.create(place("many"), TOY) as many:
        sequential = [one.add(document, questions[document.id]) for document in batch]
        monkeypatch.setattr("incdsi.index.writer.BATCH", portion)
        together = many.add_many(batch, questions, whole=whole)
        assert [(a.status, a.conflicts) for a in together] == [(a.status, a.conflicts) for a in sequential]
        found = stored(many)
        for id, (*_, vector, queries, links) in stored(one).items():
            assert np.abs(np.frombuffer(vector, np.float32) - np.frombuffer(found[id][2], np.float32)).max() < 1e-4
            assert ([q[:5] for q in queries], links) == ([q[:5] for q in found[id][3]], found[id][4])
        assert many.verify() == []


@pytest.mark.parametrize("change", ["update", "upsert", "attach"])
def test_a_query_becomes_taught_by_every_verb_that_takes_queries(index: Index, change: str) -> None:
    index.add_many(docs(6), {"d1": ["zebra crossing", "how deep"]})
    new = Taught("Zebra  crossing")
    if change == "attach":
        index.attach({"d1": [new]})
    else:
        getattr(index, change)(index.get("d1"), [new])
    assert index.queries("d1") == ["how deep", "Zebra crossing"]
    assert [query.text for query in record(index, "d1").queries if query.taught] == ["Zebra crossing"]
    assert ids(index, "zebra crossing", 1) == ["d1"]
    index.update(index.get("d1"), ["zebra crossing"])  # asked again: taught all the same
    assert [query.text for query in record(index, "d1").queries if query.taught] == ["Zebra crossing"]


def test_a_taught_query_is_never_held_out(place: Place) -> None:
    batch = docs(6)
    with Index.create(place("shop"), TOY) as index:
        index.add_many(batch, {id: [Taught(text) for text in texts] for id, texts in asked_for(batch, 4).items()})
        assert index.info().held_out_queries == 0


@pytest.mark.parametrize(("text", "first"), [("a zebra by the river", "d1"), ("zebra crossing " * 60, "rival")])
def test_teaching_says_so_where_other_documents_have_more_of_the_words(index: Index, text: str, first: str) -> None:
    index.add_many([*docs(12), Document(id="rival", text=text)])
    addition = index.teach("zebra crossing", "d1")
    assert ids(index, "zebra crossing", 1, mode="learned") == ["d1"]
    assert ids(index, "zebra crossing", 1) == [first]
    said = "other documents still come first for 'zebra crossing'" in addition.explanation
    assert said == (first == "rival")


# The same query taught to one document after another

QUERY = "zebra crossing at dawn"


@pytest.fixture
def crossing(index: Index) -> Index:
    batch = docs(20)
    index.add_many(batch, {**asked_for(batch), "d9": [QUERY]})
    return index


def first(index: Index) -> set[str]:
    """Who is first for the query, by the learned vectors and in fused search."""
    return {ids(index, QUERY, 1, mode=mode)[0] for mode in ("learned", "fused")}


def lengths(index: Index) -> list[float]:
    return [float(np.linalg.norm(np.frombuffer(one, np.float32))) for one in vectors(index).values()]


def test_a_document_gives_up_what_another_is_taught_and_the_answer_says_so(crossing: Index) -> None:
    crossing.teach(QUERY, "d1")
    before = vectors(crossing)
    addition = crossing.teach(f"  {QUERY.upper()} ", "d2")
    assert "d1" in addition.conflicts
    assert addition.explanation.endswith("'d1' was taught this query before and has given it up")
    assert first(crossing) == {"d2"}
    after = vectors(crossing)
    assert {id for id in after if after[id] != before[id]} == {"d1", "d2"}  # not d9, for which it was asked
    (given_up,) = [query for query in record(crossing, "d1").queries if query.given_up]
    assert (given_up.text, given_up.taught, given_up.preserved) == (QUERY, False, False)
    assert [type(query) for query in crossing.queries("d1") if query == QUERY] == [str]
    (asked,) = [query for query in record(crossing, "d9").queries if query.text == QUERY]
    assert asked.used
    assert crossing.verify() == []


def test_no_vector_grows_by_teaching_to_and_fro(crossing: Index) -> None:
    longest = max(lengths(crossing))
    for _ in range(4):
        for id in ("d1", "d2", "d3"):
            crossing.teach(QUERY, id)
            assert first(crossing) == {id}
    assert max(lengths(crossing)) < 2 * longest
    assert [id for id in ("d1", "d2", "d3") if any(query.taught for query in record(crossing, id).queries)] == ["d3"]


def test_the_last_word_stays_when_either_document_changes(crossing: Index, place: Place) -> None:
    crossing.teach(QUERY, "d2")
    crossing.teach(QUERY, "d1")
    for change in (
        lambda: crossing.update(doc("d2", 1)),
        lambda: crossing.attach({"d2": [f"how far {number}" for number in range(40)]}),
        lambda: crossing.update(doc("d2", 1), [QUERY]),
        lambda: crossing.update(doc("d1", 1)),
    ):
        change()
        assert first(crossing) == {"d1"}
        (given_up,) = [query for query in record(crossing, "d2").queries if query.given_up]
        assert (given_up.text, given_up.held_out) == (QUERY, False)
    with Index.open(place("shop"), TOY) as again:
        assert answers(again, [QUERY]) == answers(crossing, [QUERY])


def test_what_was_given_up_is_tried_again_with_another_text_once_nobody_else_has_it(index: Index) -> None:
    index.add_many(docs(20))
    index.teach(QUERY, "d2")
    index.teach(QUERY, "d1")
    index.delete("d1")
    index.update(doc("d2", 1))
    assert [query.used for query in record(index, "d2").queries if query.text == QUERY] == [True]


def test_the_last_word_counts_after_tuning_and_under_another_encoder(place: Place) -> None:
    with taught_index(place("shop"), 0.5) as index:
        last = dict(zip(TAUGHT.values(), reversed(TAUGHT), strict=True))  # half of them to a lower row
        for query, id in last.items():
            index.teach(query, id)
        for change in (lambda: None, index.tune, lambda: index.adopt(ToyEncoder(dimension=200, seed=1))):
            change()
            assert {query: ids(index, query, 1)[0] for query in last} == last


def test_a_document_that_comes_with_a_lesson_takes_none_and_leaves_everything_as_it_was(crossing: Index) -> None:
    crossing.teach(QUERY, "d1")
    before = answers(crossing, [QUERY])
    crossing.add(doc("passing"), [Taught(QUERY)])
    crossing.delete("passing")
    assert answers(crossing, [QUERY]) == before


def test_the_only_lesson_of_a_document_without_other_queries_can_be_taken(place: Place) -> None:
    with Index.create(place("bare"), TOY, generator=lambda document: []) as index:
        index.add_many(docs(3))
        for id in ("d0", "d1", "d0"):
            index.teach(QUERY, id)
            assert first(index) == {id}


def test_in_the_papers_form_too_the_lesson_is_given_up(place: Place) -> None:
    with Index.create(place("paper"), TOY, method="paper") as index:
        index.add_many(docs(6))
        index.teach(QUERY, "d1")
        assert "d1" in index.teach(QUERY, "d2").conflicts
        assert [query.text for query in record(index, "d1").queries if query.given_up] == [QUERY]
