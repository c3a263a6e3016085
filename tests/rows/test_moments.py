"""Mean and spread from running sums are those of the scores themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.rows import LocalRows
from incdsi.rows.moments import Moments
from incdsi.rows.scores import Spread

seeds = st.integers(0, 2**32 - 1)


def direct(vectors, query):
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    return scores.mean(), scores.std()


@given(seeds, st.integers(1, 50), st.integers(1, 20), st.floats(-2, 2))
@settings(max_examples=60, deadline=None)
def test_they_follow_every_addition_and_removal(seed, n, h, exponent):
    rng = np.random.default_rng(seed)
    scale = 10.0**exponent
    vectors = (scale * (5 * rng.standard_normal(h) + rng.standard_normal((n, h)))).astype(np.float32)
    gone = rng.random(n) < 0.4
    gone[rng.integers(0, n)] = False
    moments = Moments.none(h)
    for part in np.array_split(vectors, 3):
        moments = moments.added(part)
    moments = moments.removed(vectors[gone])
    query = rng.standard_normal(h).astype(np.float32)
    spread = moments.spread(query)
    mean, deviation = direct(vectors[~gone], query)
    size = scale * float(np.linalg.norm(query))
    assert spread.count == np.count_nonzero(~gone)
    assert spread.mean == pytest.approx(mean, abs=1e-6 * size)
    assert spread.deviation == pytest.approx(deviation, abs=1e-6 * size)


def test_documents_that_are_all_the_same_have_no_spread():
    vectors = np.repeat(np.random.default_rng(0).standard_normal((1, 384)).astype(np.float32), 50, axis=0)
    spread = Moments.none(384).added(vectors).spread(vectors[0])
    assert spread.deviation == 0
    assert spread.standardised(np.array([spread.mean])).tolist() == [0]


@given(seeds, st.integers(2, 30), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_what_went_leaves_no_trace_in_the_spread_of_what_is_left(seed, n, left):
    """One document, or twins, among many that were deleted one by one: their scores are all the same."""
    rng = np.random.default_rng(seed)
    vectors = (20 * rng.standard_normal((n + left, 24))).astype(np.float32)
    vectors[n:] = vectors[n]
    order = rng.permutation(n + left)
    rows = LocalRows(24)
    rows.append_many(list(vectors[order]), [np.empty((0, 24))] * (n + left))
    for slot in rng.permutation(np.flatnonzero(order < n)):
        rows.remove_many([int(slot)])
    ((scores, spread),) = rows.scores_and_spreads(rng.standard_normal((1, 24)).astype(np.float32))
    assert spread.count == left
    assert spread.deviation == 0
    assert spread.standardised(scores.exact(np.flatnonzero(scores.allowed))).tolist() == [0] * left


def test_nothing_and_one_document():
    assert Moments.none(4).spread(np.ones(4, dtype=np.float32)) == Spread(0, 0.0, 0.0)
    one = Moments.none(4).added(np.ones((1, 4), dtype=np.float32))
    assert one.spread(np.ones(4, dtype=np.float32)) == Spread(1, 4.0, 0.0)
    assert one.removed(np.ones((1, 4), dtype=np.float32)).count == 0


@given(seeds, st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_a_score_may_join_and_leave(seed, n):
    scores = np.random.default_rng(seed).normal(3, 2, n)
    spread = Spread(0, 0.0, 0.0)
    for score in scores:
        spread = spread.joined(float(score))
    assert (spread.mean, spread.deviation) == pytest.approx((scores.mean(), scores.std()))
    without = spread.without(float(scores[0]))
    assert (without.mean, without.deviation) == pytest.approx((scores[1:].mean(), scores[1:].std()), abs=1e-6)


def test_what_was_saved_is_used_and_what_does_not_fit_is_computed_anew():
    rng = np.random.default_rng(1)
    vectors, query = rng.standard_normal((20, 6)).astype(np.float32), rng.standard_normal(6).astype(np.float32)
    rows = LocalRows(6)
    rows.append_many(list(vectors), [np.empty((0, 6))] * 20)
    rows.remove_many([3])
    kept = np.delete(vectors, 3, axis=0)
    saved = rows.saved(np.flatnonzero(rows.alive))
    for wrong in ({}, {"moments.count": np.array([7])}, {"moments.squares": np.zeros((2, 2))}):
        opened = LocalRows(6)
        opened.fill_saved({**saved, "vectors": kept, **wrong}, preserve=False)
        ((_, spread),) = opened.scores_and_spreads(query[None])
        assert (spread.mean, spread.deviation) == pytest.approx(direct(kept, query))
