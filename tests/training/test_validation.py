"""Held-out quality: whose document is found, and no credit for what cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from incdsi.info import Quality
from incdsi.training.validation import own_ranks, quality, tally

BUDGET = 2**20
NAN = float("nan")


@pytest.mark.parametrize(
    ("rows", "ranks"),
    [
        ([[3.0], [2.0], [1.0]], [1, 2, 3]),
        ([[1.0], [1.0], [0.0]], [2, 2, 3]),  # a tie counts against the right document
        ([[0.0], [0.0], [0.0]], [3, 3, 3]),
        ([[NAN], [NAN], [NAN]], [3, 3, 3]),  # so does what cannot be compared
    ],
)
def test_the_rank_of_each_querys_own_document(rows: list[list[float]], ranks: list[int]) -> None:
    queries, owners = torch.ones(3, 1), torch.arange(3)
    assert own_ranks(queries, owners, torch.tensor(rows), budget=BUDGET).tolist() == ranks


def test_quality_is_in_percent_of_the_queries() -> None:
    found = quality(tally(torch.tensor([1, 2, 10, 11])))
    assert found is not None
    assert (found.hits_at_1, found.hits_at_10, found.queries) == (25.0, 75.0, 4)
    assert found.mrr_at_10 == pytest.approx(100 * (1 + 1 / 2 + 1 / 10) / 4)
    assert Quality.of(np.array([1, 2, 10, 11])).mrr_at_10 == pytest.approx(found.mrr_at_10)
    assert quality(tally(torch.zeros(0, dtype=torch.int64))) is None
