"""A problem is checked when it is made, and its objective is what the page says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.errors import IncDSIError, InvalidProblem
from incdsi.solver import Newcomer, Problem
from tests.solver.zoo import indexed

GOOD = {
    "queries": np.ones((2, 3)),
    "floors": np.ones(2),
    "rows": np.ones((4, 3)),
    "ceilings": np.ones(4),
    "anchor": np.zeros(3),
}
WEIGHTS = {"retrieve": 0.3, "anchor": 0.2}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"queries": np.array([[1.0, np.nan, 0.0]] * 2)}, "NaN or infinity in queries"),
        ({"rows": np.full((4, 3), np.inf)}, "NaN or infinity in rows"),
        ({"floors": [1.0, np.nan]}, "NaN or infinity in floors"),
        ({"ceilings": [np.inf] * 4}, "NaN or infinity in ceilings"),
        ({"anchor": [np.nan] * 3}, "NaN or infinity in anchor"),
        ({"queries": np.ones((2, 5))}, "expected queries of dimension 3, like the anchor, found 5"),
        ({"rows": np.ones((4, 2))}, "expected rows of dimension 3"),
        ({"floors": np.ones(3)}, "expected 2 floors, one per query, found 3"),
        ({"ceilings": np.ones(1)}, "expected 4 ceilings, one per row, found 1"),
        ({"queries": np.ones(3)}, "queries must have 2 dimensions, not shape"),
        ({"queries": []}, "queries must have 2 dimensions, not shape"),
        ({"queries": np.empty((0, 3)), "floors": []}, "it has no query and its anchor is zero"),
        ({"queries": [["a", "b", "c"]] * 2}, "queries must be an array of numbers"),
        ({"anchor": 0.0}, "anchor must have 1 dimension, not shape"),
        ({"rows": np.full((4, 3), -1e60)}, "rows has numbers above 1e\\+50, too large to compute with; scale down"),
    ],
)
def test_bad_arrays_are_refused_in_one_sentence(changed, sentence):
    with pytest.raises(InvalidProblem, match=sentence) as refused:
        Problem(**{**GOOD, **changed})
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, IncDSIError)


def test_large_finite_numbers_are_not_taken_for_infinity():
    huge = np.full((40, 3), 3e38, dtype=np.float32)
    assert Problem(**{**GOOD, "rows": huge, "ceilings": np.ones(40)}).rows.shape == (40, 3)


def test_a_newcomer_is_checked_like_a_problem():
    with pytest.raises(InvalidProblem, match="expected queries of dimension 3"):
        Newcomer(np.ones((1, 2)), np.zeros(1), np.ones(3))
    assert np.isfinite(Newcomer(np.ones((1, 3)), np.array([-np.inf]), np.ones(3)).rivals).all()


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_the_objective_is_convex(seed, t):
    rng = np.random.default_rng(seed)
    problem = indexed(rng, 40, 6, 3)
    a, b = 5 * rng.standard_normal((2, 6))
    along = problem.objective(t * a + (1 - t) * b, **WEIGHTS)
    chord = t * problem.objective(a, **WEIGHTS) + (1 - t) * problem.objective(b, **WEIGHTS)
    assert along <= chord * (1 + 1e-12) + 1e-9


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_gradient_is_the_slope_of_the_objective(seed):
    rng = np.random.default_rng(seed)
    problem = indexed(rng, 40, 6, 3)
    at, along = 3 * rng.standard_normal(6), rng.standard_normal(6)
    step = 1e-6
    ahead, behind = (problem.objective(at + s * along, **WEIGHTS) for s in (step, -step))
    slope = problem.gradient(at, **WEIGHTS) @ along
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_the_papers_problem_is_the_special_case_with_one_query_and_no_anchor():
    q, z = np.array([1.0, 2.0]), np.array([[0.5, -1.0], [2.0, 0.0]])
    own, rival, v = np.array([3.0, 4.0]), 2.5, np.array([0.7, -0.2])
    gamma1, gamma2, lambda1, lambda2 = 1.5, 0.5, 0.3, 0.01
    problem = Problem(q[None], [rival + gamma1], z, own - gamma2, np.zeros(2))
    printed = (
        lambda1 * max(0.0, rival + gamma1 - q @ v) ** 2
        + (1 - lambda1) * sum(max(0.0, z[j] @ v - own[j] + gamma2) ** 2 for j in range(2))
        + lambda2 * v @ v
    )
    assert problem.objective(v, retrieve=lambda1, anchor=lambda2) == pytest.approx(printed)
