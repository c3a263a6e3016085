"""The solver always arrives: whatever the scale, the anchor, the crowd or the processor, the optimum is proved."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.preserve import Nearest
from incdsi.solver import Problem, Status, solve
from incdsi.solver.constraints import Ring
from tests.solver.oracles import ALL, QP, QUICK, Oracle, bracket
from tests.solver.zoo import (
    Weighted,
    crowded,
    drawn,
    duplicate_of_an_indexed_query,
    indexed,
    indexed_document_without_query,
    many_indexed,
    scaled,
)


def check(case: Weighted, oracles: tuple[Oracle, ...]) -> float:
    """How far the objective is above what the oracles prove nobody can go below, relatively."""
    problem, weights = case.problem, case.weights
    found, known = solve(problem, **weights), bracket(problem, **weights, oracles=oracles)
    objective = problem.objective(found.vector, **weights)
    assert found.status is not Status.UNFINISHED
    assert found.objective == pytest.approx(objective, rel=1e-9, abs=1e-300)
    assert known.lower <= objective * (1 + 1e-9)
    assert objective <= known.lower * (1 + 1e-6) + 1e-300
    # The oracle's vector is off by as much as its own bounds leave open.
    away = np.linalg.norm(found.vector - known.vector)
    doubt = np.sqrt(max(known.upper - known.lower, 1e-15 * known.upper) / case.anchor)
    assert away <= found.bound + doubt + 1e-12 * np.linalg.norm(known.vector)
    assert np.isfinite(found.bound)
    return objective / known.lower - 1 if known.lower > 0 else 0.0


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_random_problems_end_where_the_oracles_do(first: int) -> None:
    for seed in range(first, first + 25):
        check(drawn(seed), ALL if seed % 25 == 0 else QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3400, 200))
def test_thousands_of_random_problems_end_where_all_oracles_do(first: int) -> None:
    largest = max(check(drawn(seed), ALL) for seed in range(first, first + 200))
    print(f"largest relative gap: {largest:.1e}")  # shown by pytest -rP


@pytest.mark.parametrize("anchor", [1e-9, 1e-8])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("make", [many_indexed, indexed_document_without_query], ids=lambda make: make.__name__)
def test_the_papers_anchors_at_any_scale(make, scale: float, anchor: float) -> None:
    assert check(Weighted(scaled(make(), scale), 0.4, anchor), ALL) < 1e-9


@pytest.mark.parametrize("anchor", [1e-9, 1e-8])
def test_a_newcomer_in_a_crowd(anchor: float) -> None:
    problem = crowded(np.random.default_rng(0), n=5000, h=128, k=15, scale=0.05)
    found = solve(problem, retrieve=0.5, anchor=anchor)
    qp = QP(problem, 0.5, anchor)
    # Its own hinges are multipliers, and any multipliers prove a lower bound over all rows.
    lower = qp.dual(2 * qp.weights * np.maximum(qp.rows @ found.vector + qp.excess, 0.0))
    assert found.status is Status.COMPROMISED
    assert lower * (1 - 1e-12) <= qp.objective(found.vector) <= lower * (1 + 1e-6)
    assert found.objective == pytest.approx(qp.objective(found.vector), rel=1e-9)
    assert found.bound < 0.1 * np.linalg.norm(found.vector)


def test_constant_rows_count_in_the_objective_and_nowhere_else() -> None:
    base = indexed(np.random.default_rng(1), 40, 8, 3)
    rows = np.concatenate([np.zeros((500, 8)), base.rows])
    problem = Problem(base.queries, base.floors, rows, np.concatenate([np.full(500, -0.5), base.ceilings]), base.anchor)
    for dtype in (np.float32, np.float64):
        narrow = Problem(base.queries, base.floors, rows.astype(dtype), problem.ceilings, base.anchor)
        found = solve(narrow, retrieve=0.5, anchor=1e-9)
        assert found.objective == pytest.approx(problem.objective(found.vector, retrieve=0.5, anchor=1e-9), rel=1e-6)
        without = solve(base, retrieve=0.5, anchor=1e-9)
        assert found.objective - 0.5 * 500 * 0.25 == pytest.approx(without.objective, rel=1e-4)


@pytest.mark.parametrize("anchor", [1e-300, 1e-60])
def test_an_anchor_too_weak_for_float64_is_told_and_the_bound_stays_finite(anchor: float) -> None:
    found = solve(scaled(duplicate_of_an_indexed_query(), 1e12), retrieve=0.5, anchor=anchor)
    assert found.status is Status.UNFINISHED
    assert np.isfinite(found.vector).all()
    assert np.isfinite(found.bound)


def test_tiny_rows_too_near_to_tell_are_taken_in() -> None:
    row = np.full((1, 4), 1e-25, dtype=np.float32)
    vector = np.ones(4)
    just_above = np.array([float(row[0].astype(np.float64) @ vector) * (1 + 1e-8)])
    ring = Ring(Nearest(indices=np.array([0]), owners=np.array([0]), rows=row, ceilings=just_above, radius=0.0))
    assert len(ring.worst(vector, 1)) == 1
