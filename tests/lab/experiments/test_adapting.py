"""Stage 1 in a study: the encoder learns from the initial documents alone, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from incdsi_lab.collection import Collection
from incdsi_lab.experiments import adapting
from incdsi_lab.experiments.adapting import Lesson, adapted
from incdsi_lab.experiments.datasets import Dataset, Given
from incdsi_lab.splits import Split, split
from tests.lab.experiments.study_problems import TINY, collection
from tests.training.training_problems import tiny_encoder

SETTINGS = replace(TINY, encoder_epochs=1)


@pytest.fixture
def dataset() -> Dataset:
    return Dataset(collection=collection())


@pytest.fixture
def parts(dataset: Dataset) -> Split:
    return split(dataset.collection, 0, (0.7, 0.2, 0.1))


def test_the_lesson_is_of_initial_documents_and_holds_no_test_query(dataset: Dataset, parts: Split) -> None:
    lesson = Lesson.of(dataset, parts)
    asked = {query.text: query for query in dataset.collection.queries}
    assert {document.id for document in lesson.documents} == set(parts.initial)
    assert set(lesson.queries) == set(lesson.validation) == set(parts.initial)
    assert {asked[text].split for text in lesson.natural} == {"train"}
    assert len(lesson.natural) == 2 * len(parts.initial)
    for id, texts in lesson.validation.items():
        assert [(asked[text].split, asked[text].document_id) for text in texts] == [("val", id)]
    tested = {query.text for query in dataset.collection.of("test")}
    assert not tested & {text for texts in lesson.queries.values() for text in texts}


def test_generated_queries_of_the_collection_are_in_the_lesson(dataset: Dataset, parts: Split) -> None:
    first, second = parts.initial[:2]
    given = replace(dataset, generator=Given({first: ["asked of one", "of both"], second: ["of both"]}))
    lesson = Lesson.of(given, parts)
    assert "asked of one" in lesson.queries[first]
    assert "of both" not in lesson.queries[first] + lesson.queries[second]


def test_a_query_that_several_documents_share_adapts_nothing(dataset: Dataset, parts: Split) -> None:
    first, second = parts.initial[:2]
    shared = [
        replace(query, text=f" What  is {'this' if query.document_id in (first, second) else query.id}? ")
        for query in dataset.collection.queries
    ]
    whole = Collection(name="shared", documents=dataset.collection.documents, queries=shared)
    lesson = Lesson.of(Dataset(collection=whole), parts)
    assert lesson.natural
    assert "What is this?" not in lesson.natural
    taught = {text for texts in lesson.queries.values() for text in texts}
    assert taught >= set(lesson.natural)  # folded alike, or none would be found again


def test_the_adapted_encoder_is_another_one_and_is_learned_once(
    dataset: Dataset, parts: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny_encoder(tmp_path / "tiny")
    parts = replace(parts, val=())  # with nothing to choose by, the last epoch is kept
    before = base.fingerprint
    learned, seconds = adapted(dataset, parts, base, SETTINGS, cache=tmp_path / "cache")
    assert seconds > 0
    assert base.fingerprint == before != learned.fingerprint
    monkeypatch.setattr(adapting, "train", None)
    again, took = adapted(dataset, parts, base, SETTINGS, cache=tmp_path / "cache")
    assert took == seconds
    assert again.fingerprint == learned.fingerprint
    assert not list((tmp_path / "cache").rglob("checkpoint"))
    np.testing.assert_allclose(again.encode(["river"]), learned.encode(["river"]), atol=1e-6)
    with pytest.raises(TypeError):  # other epochs are another encoder: it would have to learn
        adapted(dataset, parts, base, replace(SETTINGS, encoder_epochs=2), cache=tmp_path / "cache")
