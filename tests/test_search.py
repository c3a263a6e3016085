"""Fusing and ranking against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from incdsi.errors import InvalidInput
from incdsi.rows import LocalRows
from incdsi.rows.products import exact
from incdsi.search import by_words, check_mode, fuse, fused, lexical_part, standardised
from tests.rows.screens import SCREENS

SCORES = hnp.arrays(
    np.float32, st.integers(0, 40), elements=st.integers(-50, 50).map(float)
)  # whole numbers: many ties


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    scores = draw(SCORES)
    return scores, draw(hnp.arrays(np.bool_, len(scores)))


def best(scores: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    return by_words(scores, np.ones(len(scores), bool)).scores.best(k, allowed)[0].tolist()


@given(scored(), st.integers(1, 50))
def test_best_equals_sorting_everything(case: tuple[np.ndarray, np.ndarray], k: int) -> None:
    scores, allowed = case
    expected = sorted(np.flatnonzero(allowed).tolist(), key=lambda slot: (-scores[slot], slot))[:k]
    assert best(scores, allowed, k) == expected


def test_best_filters_before_it_chooses() -> None:
    scores = np.array([5, 4, 3, 2, 1], dtype=np.float32)
    assert best(scores, np.array([False, False, True, False, True]), 2) == [2, 4]


@pytest.mark.parametrize("k", [0, -3, 2.5, "3", None, True])
def test_a_k_that_is_no_number_of_documents_is_refused(k: object) -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        best(np.zeros(3, np.float32), np.ones(3, bool), k)  # type: ignore[arg-type]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
@settings(max_examples=60, deadline=None)
def test_every_screen_ranks_fused_scores_as_sorting_all_of_them_does(seed: int, n: int, k: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    h = 6
    vectors = rng.standard_normal((max(n // 2, 1), h)).astype(np.float32)[rng.integers(0, max(n // 2, 1), n)]  # twins
    lexical = rng.integers(0, 4, n).astype(np.float32)
    query = rng.standard_normal(h).astype(np.float32)
    gone = rng.random(n) < 0.3
    gone[rng.integers(0, n)] = False
    allowed = rng.random(n) < 0.8
    alive = ~gone
    learned = exact(vectors, query)
    values = learned[alive]
    deviation = values.std() if np.ptp(values) > 0 else np.inf  # all the same: they say nothing
    total = (1 - weight) * (learned - values.mean()) / deviation + weight * standardised(lexical, alive)
    expected = sorted(np.flatnonzero(alive & allowed).tolist(), key=lambda slot: (-total[slot], slot))[:k]
    for screen in SCREENS:
        rows = LocalRows(h, screen())
        rows.append_many(list(vectors), [np.empty((0, h))] * n)
        rows.remove_many(np.flatnonzero(gone).tolist())
        scores, spread = rows.scores_and_spread(query)
        ranking = fused(scores, spread, lexical_part(lexical, alive, weight), weight)
        slots, found = ranking.scores.best(k, allowed)
        assert found == pytest.approx(total[expected], abs=1e-6)
        assert all(total[a] == pytest.approx(total[b], abs=1e-9) for a, b in zip(slots, expected, strict=True))
        first, second = ranking.parts(slots)
        assert first + second == pytest.approx(found, abs=1e-12)


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
