"""A trained model becomes records by the rules that hold for every other document."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.documents import Document
from incdsi.index.placement import MOST_PRESERVED
from incdsi.index.stage_one import taken_over
from incdsi.rows.products import exact
from incdsi.training.model import TrainedModel
from incdsi.training.pairs import EmbeddedPairs
from tests.test_demo import WordEncoder

NO_QUERIES = EmbeddedPairs(texts=(), owners=np.empty(0, dtype=np.int64), embeddings=np.empty((0, 3), dtype=np.float32))


def trained(vectors, owners, embeddings) -> TrainedModel:
    """A model with these document vectors and training queries."""
    vectors, embeddings = np.array(vectors, dtype=np.float32), np.array(embeddings, dtype=np.float32)
    texts = tuple(f"query {number}" for number in range(len(owners)))
    return TrainedModel(
        document_vectors=vectors,
        text_embeddings=vectors,
        queries=EmbeddedPairs(texts=texts, owners=np.array(owners, dtype=np.int64), embeddings=embeddings),
        held_out=NO_QUERIES,
        encoder=WordEncoder(),
        encoder_fingerprint="",
        best_epoch=0,
        epochs=(),
    )


def records(model: TrainedModel):
    documents = [Document(id=f"document {number}", text="text") for number in range(len(model.document_vectors))]
    return taken_over(documents, {}, model, "none")


def test_a_tie_is_no_win():
    model = trained([[1, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 1, 2], [[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert [query.preserved for record in records(model) for query in record.queries] == [False, False, True]


def test_a_win_by_a_hair_is_a_win():
    model = trained([[1, 0, 0], [np.nextafter(np.float32(1), 0), 0, 0]], [0, 1], [[1, 0, 0], [1, 0, 0]])
    assert [query.preserved for record in records(model) for query in record.queries] == [True, False]


def test_a_document_with_very_many_queries_preserves_the_hardest():
    count = MOST_PRESERVED + 10
    leads = np.arange(1, count + 1)
    model = trained([[1, 0, 0], [0, 1, 0]], np.zeros(count), [[lead, 0, 0] for lead in reversed(leads)])
    first, second = records(model)
    assert [query.own_score for query in first.queries if query.preserved] == sorted(leads, reverse=True)[10:]
    assert second.queries == ()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_what_is_preserved_is_what_ranks_first_with_ties_against_it(seed, documents, count):
    draw = np.random.default_rng(seed)
    vectors = draw.integers(-2, 3, (documents, 3)).astype(np.float32)  # small whole numbers: many ties
    model = trained(vectors, draw.integers(0, documents, count), draw.integers(-2, 3, (count, 3)).reshape(count, 3))
    for slot, record in enumerate(records(model)):
        for query in record.queries:
            scores = exact(vectors, query.embedding)
            assert query.preserved == (np.count_nonzero(scores >= scores[slot]) == 1)
            assert query.own_score == scores[slot]
