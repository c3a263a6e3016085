"""The paper's solver agrees with ours where it converges, and is never better."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.hyperparameters import Weights
from incdsi.solver import Problem, solve
from incdsi_lab.lbfgs import LBFGS
from tests.solver.zoo import ZOO, indexed, scaled


def found(solver: LBFGS, problem: Problem, anchor: float) -> NDArray[np.float64]:
    return solver.minimise(problem, Weights(retrieve=0.5, anchor=anchor))[0]


@pytest.mark.parametrize("make", ZOO, ids=lambda make: make.__name__)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("anchor", [1e-8, 1e-3, 1.0])
def test_is_never_below_the_exact_solver(make, scale, anchor):
    problem = scaled(make(), scale)
    ours = solve(problem, retrieve=0.5, anchor=anchor).objective
    theirs = problem.objective(found(LBFGS(steps=10), problem, anchor), retrieve=0.5, anchor=anchor)
    assert ours <= theirs * (1 + 1e-9) + 1e-300


def test_finds_the_same_minimiser_on_an_ordinary_problem():
    problem = indexed(np.random.default_rng(0), 300, 16, 3)
    ours = solve(problem, retrieve=0.5, anchor=1e-2)
    theirs = found(LBFGS(), problem, 1e-2)
    assert problem.objective(theirs, retrieve=0.5, anchor=1e-2) == pytest.approx(ours.objective, rel=1e-4)
    assert theirs == pytest.approx(ours.vector, abs=1e-2)


def test_one_seed_one_answer_and_another_start_another_path():
    problem = indexed(np.random.default_rng(1), 100, 8, 1)
    weights = Weights(retrieve=0.5, anchor=1e-3)
    first, again, other = (LBFGS(seed=s, steps=1, inner=2).minimise(problem, weights)[0] for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_plain_hinge_wins_the_query_as_well():
    problem = indexed(np.random.default_rng(2), 50, 16, 1)
    theirs = found(LBFGS(hinge="plain"), problem, 1e-6)
    assert problem.queries[0] @ theirs > problem.floors[0] - 3.0


def test_the_iterations_are_those_of_the_authors_code():
    problem = indexed(np.random.default_rng(3), 200, 16, 2)
    weights = Weights(retrieve=0.5, anchor=1e-8)
    _, one = LBFGS(steps=1, inner=1).minimise(problem, weights)
    _, all_of_them = LBFGS().minimise(problem, weights)
    assert one < all_of_them <= 30 * 20 * 1.25 + 30
