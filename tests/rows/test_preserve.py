"""Ceilings: a pass looks closely at about as many rows as were asked for, whatever was removed before."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.rows import LocalRows, ceilings
from incdsi.rows.table import BLOCK_ROWS, Table

WIDTH, EACH = 8, 4
DOCUMENTS = 3 * BLOCK_ROWS // EACH


@pytest.fixture
def rows() -> LocalRows:
    draw = np.random.default_rng(0)
    made = LocalRows(WIDTH)
    queries = draw.standard_normal((DOCUMENTS, EACH, WIDTH), dtype=np.float32)
    made.append_many(list(20 * queries.mean(axis=1)), list(queries))
    return made


@pytest.mark.parametrize("removed", [0, DOCUMENTS // 3, DOCUMENTS // 2])
def test_removing_the_oldest_documents_makes_no_pass_look_at_everything(
    rows: LocalRows, removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Watched(ceilings._Found):
        def __init__(self, found: np.ndarray, *others: np.ndarray) -> None:
            seen.append(len(found))
            super().__init__(found, *others)

    monkeypatch.setattr(ceilings, "_Found", Watched)
    for slot in range(removed):
        rows.remove_many([slot])
    (near,) = rows.under(1.0).nearest(np.ones((1, WIDTH)), 100)
    assert len(near.indices) <= 100
    assert max(seen) < 1000  # of some 6,000 to 12,000
    assert not set(near.owners.tolist()) & set(range(removed))


def test_removed_rows_are_never_near(rows: LocalRows) -> None:
    for slot in range(3, DOCUMENTS):
        rows.remove_many([slot])
    (near,) = rows.under(1.0).nearest(np.ones((1, WIDTH)), 100)
    assert set(near.owners.tolist()) == {0, 1, 2}
    assert near.radius == np.inf


@pytest.mark.parametrize("step", [0.0, 1e-3, 0.1, 1.0, 10.0, 1e6])
def test_a_vector_that_moves_is_told_a_radius_within_which_no_other_row_is_violated(
    rows: LocalRows, step: float
) -> None:
    draw, margin = np.random.default_rng(1), 1.0
    owners, whole, own = rows.preserve_arrays()
    lengths = np.linalg.norm(whole.astype(np.float64), axis=1)
    ceilings, vector = rows.under(margin), 20 * draw.standard_normal(WIDTH)
    for limit in (200, 100, 200, 400):
        (near,) = ceilings.nearest(vector[None], limit)
        slack = (own - margin - whole.astype(np.float64) @ vector) / lengths
        others = np.ones(len(slack), dtype=bool)
        others[near.indices] = False
        assert len(near) <= limit
        assert np.array_equal(near.owners, owners[near.indices])
        assert slack[others].min() >= near.radius
        vector = vector + step * draw.standard_normal(WIDTH)


def test_a_vector_that_moves_little_is_not_compared_with_all_rows_again(
    rows: LocalRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceilings, vector = rows.under(1.0), np.full(WIDTH, 2.0)
    (first,) = ceilings.nearest(vector[None], 100)
    monkeypatch.setattr(Table, "scan", lambda *_: pytest.fail("all rows were looked at"))
    (second,) = ceilings.nearest(vector[None] + 0.01, 100)
    assert abs(second.radius - first.radius) < 0.1
    assert len(set(first.indices.tolist()) & set(second.indices.tolist())) > 50


def test_one_vector_is_near_to_what_it_is_near_to_among_others(rows: LocalRows) -> None:
    vectors = 20 * np.random.default_rng(2).standard_normal((3, WIDTH))
    for vector, near in zip(vectors, rows.under(1.0).nearest(vectors, 100), strict=True):
        (alone,) = rows.under(1.0).nearest(vector[None], 100)
        assert len(set(alone.indices.tolist()) & set(near.indices.tolist())) >= 80


def test_a_pass_that_proved_nothing_is_not_asked_again_for_more(rows: LocalRows) -> None:
    ceilings, vector = rows.under(1.0), np.full((1, WIDTH), 2.0)
    (few,) = ceilings.nearest(vector, 100)
    (many,) = ceilings.nearest(vector, 10_000)
    assert few.radius < 0  # more than so many are violated
    assert many.radius > 0
