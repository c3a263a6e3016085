"""What was taught stays taught: through tuning, another encoder, and coming back after a delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from index_samples import TOY, WORDS, ToyEncoder, answers, asked_for, docs, ids, record, stored

from incdsi.documents import Taught
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
