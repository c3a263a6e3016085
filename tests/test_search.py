"""Fusing and ranking against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from incdsi.errors import InvalidInput
from incdsi.search import check_mode, fuse, rank

SCORES = hnp.arrays(
    np.float32, st.integers(0, 40), elements=st.integers(-50, 50).map(float)
)  # whole numbers: many ties


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    scores = draw(SCORES)
    return scores, draw(hnp.arrays(np.bool_, len(scores)))


@given(scored(), st.integers(1, 50))
def test_rank_equals_sorting_everything(case: tuple[np.ndarray, np.ndarray], k: int) -> None:
    scores, allowed = case
    expected = sorted(np.flatnonzero(allowed).tolist(), key=lambda slot: (-scores[slot], slot))[:k]
    assert rank(scores, allowed, k).tolist() == expected


def test_rank_filters_before_it_chooses() -> None:
    scores = np.array([5, 4, 3, 2, 1], dtype=np.float32)
    assert rank(scores, np.array([False, False, True, False, True]), 2).tolist() == [2, 4]


@pytest.mark.parametrize("k", [0, -3])
def test_rank_refuses_less_than_one(k: int) -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        rank(np.zeros(3, np.float32), np.ones(3, bool), k)


@pytest.mark.parametrize("k", [2.5, "3", None, True])
def test_rank_refuses_what_is_no_number_of_documents(k: object) -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        rank(np.zeros(3, np.float32), np.ones(3, bool), k)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["fused", "learned", "lexical"])
def test_the_three_modes_are_known(mode: str) -> None:
    assert check_mode(mode) == mode


@pytest.mark.parametrize("mode", ["dense", "", None, 3])
def test_any_other_mode_is_refused_with_those_there_are(mode: object) -> None:
    with pytest.raises(InvalidInput, match="fused, learned, lexical"):
        check_mode(mode)  # type: ignore[arg-type]


def test_fuse_is_the_weighted_sum_of_standard_scores() -> None:
    rng = np.random.default_rng(0)
    learned, lexical = rng.normal(3, 2, 50).astype(np.float32), rng.exponential(4, 50).astype(np.float32)
    expected = 0.7 * (learned - learned.mean()) / learned.std() + 0.3 * (lexical - lexical.mean()) / lexical.std()
    assert np.allclose(fuse(learned, lexical, np.ones(50, bool), 0.3), expected, atol=1e-5)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_dead_leave_no_trace_in_the_fused_scores_of_the_living(weight: float) -> None:
    rng = np.random.default_rng(1)
    learned, lexical = rng.normal(size=20).astype(np.float32), rng.normal(size=20).astype(np.float32)
    alive = rng.random(20) < 0.6
    with_dead = np.where(alive, learned, -np.inf).astype(np.float32)
    fused = fuse(with_dead, lexical, alive, weight)
    alone = fuse(learned[alive], lexical[alive], np.ones(alive.sum(), bool), weight)
    assert fused[alive].tobytes() == alone.tobytes()


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_scores_that_are_all_equal_say_nothing(weight: float) -> None:
    learned = np.array([3, 1, 2], dtype=np.float32)
    same = np.full(3, 7, dtype=np.float32)
    everyone = np.ones(3, bool)
    assert np.allclose(fuse(learned, same, everyone, weight), (1 - weight) * fuse(learned, same, everyone, 0.0))


def test_one_document_and_none_are_fused_without_a_warning() -> None:
    one = np.array([4], dtype=np.float32)
    assert fuse(one, one, np.ones(1, bool), 0.3).tolist() == [0.0]
    assert fuse(one[:0], one[:0], np.ones(0, bool), 0.3).tolist() == []


def test_the_ends_of_the_weight_are_the_parts_alone() -> None:
    rng = np.random.default_rng(2)
    learned, lexical = rng.normal(size=30).astype(np.float32), rng.normal(size=30).astype(np.float32)
    everyone = np.ones(30, bool)
    for weight, part in ((0.0, learned), (1.0, lexical)):
        assert np.array_equal(rank(fuse(learned, lexical, everyone, weight), everyone, 30), rank(part, everyone, 30))
