"""Ceilings: a pass looks closely at about as many rows as were asked for, whatever was removed before."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.rows import LocalRows, preserve
from incdsi.rows.table import BLOCK_ROWS

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

    class Watched(preserve._Found):
        def __init__(self, found: np.ndarray, *others: np.ndarray) -> None:
            seen.append(len(found))
            super().__init__(found, *others)

    monkeypatch.setattr(preserve, "_Found", Watched)
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
