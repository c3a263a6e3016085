"""Placing: what a document preserves when it has very many queries."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.documents import Document
from incdsi.engine.local import Live
from incdsi.engine.settings import Settings
from incdsi.index.draft import Draft
from incdsi.index.placement import MOST_PRESERVED, place
from incdsi.records import StoredQuery

H = 16
SETTINGS = Settings(fingerprint="", dimension=H, model=None)


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    rows = rng.normal(size=(*shape, H)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def asked(rng: np.random.Generator, about: np.ndarray, count: int, taught: int = 0) -> tuple[StoredQuery, ...]:
    embeddings = about + 0.1 * unit(rng, count)
    return tuple(
        StoredQuery(text=f"q{number}", embedding=row, generated=False, taught=number >= count - taught)
        for number, row in enumerate(embeddings)
    )


def draft(row: int, embedding: np.ndarray, queries: tuple[StoredQuery, ...]) -> Draft:
    return Draft(document=Document(id=f"d{row}", text="text"), embedding=embedding, queries=queries, row=row)


@pytest.fixture
def drafts() -> list[Draft]:
    rng = np.random.default_rng(0)
    centres = unit(rng, 2)
    return [
        draft(1, centres[0], asked(rng, centres[0], 3)),
        draft(2, centres[1], asked(rng, centres[1], 100, taught=2)),
    ]


def test_of_very_many_queries_the_hardest_won_and_all_taught_are_preserved(drafts):
    _, crowded = place(Live(SETTINGS), drafts, SETTINGS)
    queries = crowded.record.queries
    kept = [query for query in queries if query.preserved]
    taught = [query for query in queries if query.taught]
    assert MOST_PRESERVED <= len(kept) <= MOST_PRESERVED + len(taught) < len(queries)
    assert all(query.preserved for query in taught)
    rival = place(Live(SETTINGS), drafts[:1], SETTINGS)[0].record.vector
    leads = {query.text: query.own_score - float(query.embedding @ rival) for query in queries}
    easiest_kept = max(leads[query.text] for query in kept if not query.taught)
    assert all(leads[query.text] >= easiest_kept for query in queries if not query.preserved)


def test_a_document_with_few_queries_preserves_all_it_wins(drafts):
    few, _ = place(Live(SETTINGS), drafts, SETTINGS)
    assert all(query.preserved for query in few.record.queries)


def test_those_after_it_in_a_batch_meet_only_the_queries_it_will_preserve():
    """Placed together or one by one: the same vectors, also behind a document with very many queries."""
    rng = np.random.default_rng(1)
    centre = unit(rng, 1)[0]
    drafts = [draft(row, centre, asked(rng, centre, count)) for row, count in ((1, 150), (2, 3))]
    _, together = place(Live(SETTINGS), drafts, SETTINGS)
    live = Live(SETTINGS)
    for one in drafts:
        (alone,) = place(live, [one], SETTINGS)
        live.put([alone.record])
    assert together.record.vector == pytest.approx(alone.record.vector, abs=1e-5)
