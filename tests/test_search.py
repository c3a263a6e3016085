"""Fusing and ranking against sorting every document's score, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.engine.protocol import Best, Likely
from incdsi.engine.settings import Fusion
from incdsi.errors import InvalidInput
from incdsi.rows.scores import WHOLE, Share, Spread
from incdsi.search import FIRST, Fused, Part, check_k, check_mode, evidence, fused, rank_within

LIMIT = 5.0  # no lexical score reaches it
FUSIONS = st.builds(Fusion, st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.95]), st.sampled_from([0.0, 0.4, 0.8, 1.0]))


class Known:
    """Scores that are all known, and how many of them were asked for."""

    def __init__(self, scores: Sequence[float], allowed: np.ndarray | None = None, *, hides_zero: bool = False) -> None:
        self.scores = np.array(scores, dtype=np.float64)
        self._allowed = np.ones(len(self.scores), bool) if allowed is None else allowed
        self._hides_zero = hides_zero
        self.depth = 0

    @property
    def unit(self) -> Spread | Share:
        if self._hides_zero:
            return Share(LIMIT)
        n = len(self.scores)
        return Spread(n, float(self.scores.mean()), float(self.scores.var() * n)) if n else Spread(0, 0.0, 0.0)

    def top(self, k: int) -> Best:
        self.depth = max(self.depth, k)
        there = np.flatnonzero(self._allowed & (self.scores > 0) if self._hides_zero else self._allowed)
        order = there[np.lexsort((there, -self.scores[there]))]
        beyond = 0.0 if self._hides_zero else -np.inf
        if len(order) > k:
            beyond = float(self.scores[order[k - 1]])
        return Best(order[:k].astype(np.int64) + 1, self.scores[order[:k]], beyond)

    def likely(self, k: int) -> Likely:
        """In another order, and with an end that is too high."""
        best = self.top(k)
        return Likely(best.rows[::-1], best.beyond + 0.01)

    def at_most(self, rows: np.ndarray) -> np.ndarray:
        return self.score(rows) + 0.01

    def score(self, rows: np.ndarray) -> np.ndarray:
        return self.scores[np.asarray(rows) - 1]


def standardised(scores: np.ndarray) -> np.ndarray:
    deviation = float(np.float32(scores.std())) if len(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)


def by_sorting(total: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    return sorted((np.flatnonzero(allowed) + 1).tolist(), key=lambda row: (-total[row - 1], row))[:k]


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Learned scores with twins, the nearest text's, lexical scores mostly 0 and often equal, and a filter."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 40) | st.integers(500, 900))
    learned = rng.standard_normal(max(n // 2, 1))[rng.integers(0, max(n // 2, 1), n)].round(draw(st.integers(0, 6)))
    lexical = rng.integers(0, 5, n) * (rng.random(n) < draw(st.sampled_from([0.02, 0.5, 1.0])))
    nearest = learned.round(1) + rng.standard_normal(n).round(1)
    return learned, nearest, lexical.astype(float), rng.random(n) < draw(st.sampled_from([0.1, 0.8, 1.0]))


@given(cases(), st.integers(1, 60), FUSIONS)
@settings(max_examples=150, deadline=None)
def test_fused_search_finds_what_sorting_every_fused_score_finds(case, k, fusion):
    learned, nearest, lexical, allowed = case
    rest = (1 - fusion.nearest_share) * standardised(learned) + fusion.nearest_share * standardised(nearest)
    total = (1 - fusion.lexical_weight) * rest + fusion.lexical_weight * WHOLE * (lexical / LIMIT) ** 2
    both = fused(Known(learned, allowed), Known(nearest, allowed), Known(lexical, allowed, hides_zero=True), fusion)
    found = both.top(k)
    expected = by_sorting(total, allowed, k)
    assert found.rows.tolist() == expected or found.scores == pytest.approx(total[np.array(expected) - 1], abs=1e-9)
    assert found.scores == pytest.approx(total[found.rows - 1], abs=1e-9)
    assert len(found.rows) == min(k, np.count_nonzero(allowed))
    assert both.score(found.rows).tobytes() == found.scores.tobytes()
    assert np.sum([part.of_rows(found.rows) for part in both.parts], axis=0).tobytes() == found.scores.tobytes()


@given(cases(), st.integers(1, 60))
@settings(max_examples=50, deadline=None)
def test_by_words_alone_only_documents_with_a_word_are_found(case, k):
    *_, lexical, allowed = case
    found = Fused((Part.of(Known(lexical, allowed, hides_zero=True), 1.0),)).top(k)
    assert found.rows.tolist() == by_sorting(lexical, allowed & (lexical > 0), k)


@given(cases(), FUSIONS)
@settings(max_examples=50, deadline=None)
def test_a_rank_counts_everybody_who_is_at_least_as_good(case, fusion):
    learned, nearest, lexical, _ = case
    both = fused(Known(learned), Known(nearest), Known(lexical, hides_zero=True), fusion)
    total = both.score(np.arange(1, len(learned) + 1))
    for row in (1, len(learned), int(np.argmax(total)) + 1):
        rank = int(np.count_nonzero(total >= total[row - 1]))
        assert rank_within(both, row, 10) == min(rank, 11)


def test_few_scores_are_asked_for_where_the_best_lead():
    rng = np.random.default_rng(0)
    parts = [Known(rng.normal(size=5000)) for _ in range(3)]
    for part in parts:
        part.scores[7] = 9.0
    assert fused(*parts, Fusion(0.3, 0.5)).top(1).rows.tolist() == [8]
    assert {part.depth for part in parts} == {FIRST}


def test_a_part_that_is_the_same_for_all_says_nothing():
    learned, same = Known([3.0, 1.0, 2.0]), Known([7.0, 7.0, 7.0])
    both = fused(learned, learned, same, Fusion(0.4, 0.5))
    assert both.top(3).rows.tolist() == [1, 3, 2]
    assert both.top(3).scores == pytest.approx(0.6 * standardised(learned.scores)[[0, 2, 1]], abs=1e-6)


def test_one_document_is_found_and_of_none_nothing():
    some = Fusion(0.3, 0.5)
    assert fused(Known([4.0]), Known([4.0]), Known([2.0]), some).top(5).scores.tolist() == [0.0]
    assert len(fused(Known([]), Known([]), Known([], hides_zero=True), some).top(5).rows) == 0


@pytest.mark.parametrize("k", [0, -3, 2.5, "3", None, True])
def test_a_k_that_is_no_number_of_documents_is_refused(k):
    with pytest.raises(InvalidInput, match="at least 1"):
        check_k(k)


@pytest.mark.parametrize("mode", ["fused", "learned", "lexical"])
def test_the_three_modes_are_known(mode):
    assert check_mode(mode) == mode


@pytest.mark.parametrize("mode", ["dense", "", None, 3])
def test_any_other_mode_is_refused_with_those_there_are(mode):
    with pytest.raises(InvalidInput, match="fused, learned, lexical"):
        check_mode(mode)


def test_evidence_is_the_score_the_leads_and_whether_people_asked_for_it() -> None:
    parts = Known([1.0, 3.0, 2.0]), Known([5.0, 1.0, 0.0]), Known([0.0, 0.0, 0.0], hides_zero=True)
    whole = fused(*parts, Fusion(0.0, 0.5))
    best = whole.top(3)
    found = evidence(whole, best.rows, best.scores, np.array([True, False, True]))
    assert found.shape == (3, 6)
    assert found[:, 0].tolist() == best.scores.tolist()
    assert found[:, 1] == pytest.approx(best.scores - best.scores[[1, 0, 0]])
    for column, part in zip(found[:, 2:5].T, whole.parts, strict=True):
        values = part.of_rows(best.rows)
        others = [np.delete(part.of_rows(np.arange(1, 4)), row - 1).max() for row in best.rows]
        assert column == pytest.approx(values - others)
    assert found[:, 5].tolist() == [1.0, 0.0, 1.0]
