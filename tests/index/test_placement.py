"""Placing: what a document preserves when it has very many queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from incdsi.documents import Document
from incdsi.index.draft import Draft
from incdsi.index.live import Live, preserve_won
from incdsi.index.placement import MOST_PRESERVED, place
from incdsi.index.settings import Settings
from incdsi.store import StoredQuery

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


@pytest.fixture
def drafts() -> list[Draft]:
    rng = np.random.default_rng(0)
    centres = unit(rng, 2)
    return [
        Draft(document=Document(id="a", text="a"), embedding=centres[0], queries=asked(rng, centres[0], 3)),
        Draft(document=Document(id="b", text="b"), embedding=centres[1], queries=asked(rng, centres[1], 100, taught=2)),
    ]


def test_of_very_many_queries_the_hardest_won_and_all_taught_are_preserved(drafts):
    _, crowded = place(Live(H, preserve_won), drafts, SETTINGS)
    queries = crowded.record.queries
    kept = [query for query in queries if query.preserved]
    taught = [query for query in queries if query.taught]
    assert MOST_PRESERVED <= len(kept) <= MOST_PRESERVED + len(taught) < len(queries)
    assert all(query.preserved for query in taught)
    rival = place(Live(H, preserve_won), drafts[:1], SETTINGS)[0].record.vector
    leads = {query.text: query.own_score - float(query.embedding @ rival) for query in queries}
    easiest_kept = max(leads[query.text] for query in kept if not query.taught)
    assert all(leads[query.text] >= easiest_kept for query in queries if not query.preserved)


def test_a_document_with_few_queries_preserves_all_it_wins(drafts):
    few, _ = place(Live(H, preserve_won), drafts, SETTINGS)
    assert all(query.preserved for query in few.record.queries)


def test_those_after_it_in_a_batch_meet_only_the_queries_it_will_preserve():
    """Placed together or one by one: the same vectors, also behind a document with very many queries."""
    rng = np.random.default_rng(1)
    centre = unit(rng, 1)[0]
    drafts = [
        Draft(document=Document(id=id, text=id), embedding=centre, queries=asked(rng, centre, count))
        for id, count in (("crowded", 150), ("beside it", 3))
    ]
    _, together = place(Live(H, preserve_won), drafts, SETTINGS)
    live = Live(H, preserve_won)
    for row, draft in enumerate(drafts, start=1):
        (alone,) = place(live, [draft], SETTINGS)
        live.put([replace(alone.record, row=row)])
    assert together.record.vector == pytest.approx(alone.record.vector, abs=1e-5)
