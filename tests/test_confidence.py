"""Probabilities that mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.confidence import Confidence


def simulated(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Evidence of which the second column says nothing and the third is always the same."""
    rng = np.random.default_rng(seed)
    evidence = np.column_stack([rng.normal(3.0, 2.0, count), rng.normal(size=count), np.full(count, 7.0)])
    return evidence, rng.random(count) < 1 / (1 + np.exp(-(1.5 * evidence[:, 0] - 4.0)))


def test_it_is_calibrated_on_what_it_has_not_seen() -> None:
    confidence = Confidence.fitted(*simulated(0, 2000))
    evidence, right = simulated(1, 20_000)
    told = confidence.of(evidence)
    for low in np.arange(0.0, 1.0, 0.1):
        some = (told >= low) & (told < low + 0.1)
        assert abs(told[some].mean() - right[some].mean()) < 0.05
    assert confidence.slopes[0] == pytest.approx(1.5, abs=0.2)
    assert confidence.slopes[2] == pytest.approx(0.0, abs=1e-9)


def test_few_questions_that_part_perfectly_do_not_make_it_certain() -> None:
    evidence = np.array([[float(number)] for number in range(-5, 5)])
    told = Confidence.fitted(evidence, evidence[:, 0] >= 0).of(evidence)
    assert (np.diff(told) > 0).all()
    assert 0.0 < told[0] < 0.1
    assert 0.9 < told[-1] < 1.0


def test_evidence_beyond_all_measure_is_still_a_probability() -> None:
    with np.errstate(all="raise"):
        assert Confidence(0.0, (1.0,)).of(np.array([[-1e9], [0.0], [1e9]])).tolist() == [0.0, 0.5, 1.0]


def test_a_fit_by_less_evidence_leaves_the_rest_unread() -> None:
    older = Confidence(0.5, (1.0, -2.0))
    evidence = np.array([[0.3, 0.1, 1.0], [2.0, 0.4, 0.0]])
    assert older.of(evidence).tolist() == older.of(evidence[:, :2]).tolist()
