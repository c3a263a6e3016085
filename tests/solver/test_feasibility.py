"""Infeasible is a normal outcome: proved, worked around in the paper's order, reported."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from incdsi.solver import Problem, Status, certify, insist, solve
from tests.solver.zoo import contradicting_queries, indexed, infeasible, many_indexed


def feasible_by_linear_programming(problem: Problem) -> bool:
    A = np.concatenate([-problem.queries, problem.rows])
    b = np.concatenate([-problem.floors, problem.ceilings])
    return linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=b, bounds=(None, None)).status == 0


@pytest.mark.parametrize("make", [infeasible, contradicting_queries])
def test_an_infeasible_problem_gets_a_certificate_that_anyone_can_check(make):
    problem = make()
    certificate = certify(problem)
    assert certificate is not None
    assert certificate.holds_for(problem)
    assert not feasible_by_linear_programming(problem)


def test_a_forged_certificate_does_not_hold():
    problem = infeasible()
    certificate = certify(problem)
    assert certificate is not None
    forged = dataclasses.replace(certificate, row_multipliers=-certificate.row_multipliers)
    assert not forged.holds_for(problem)
    assert not certificate.holds_for(dataclasses.replace(problem, floors=problem.floors - 100))


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_certificates_agree_with_linear_programming(seed, n, k):
    problem = indexed(np.random.default_rng(seed), n, 5, k)
    certificate = certify(problem)
    if certificate is not None:
        assert certificate.holds_for(problem)
        assert not feasible_by_linear_programming(problem)


def test_a_feasible_problem_has_no_certificate():
    assert certify(indexed(np.random.default_rng(0), 5, 32, 1)) is None


def _each(problem: Problem):
    def build(kept):
        return Problem(problem.queries[kept], problem.floors[kept], problem.rows, problem.ceilings, problem.anchor)

    return build


def test_what_wins_at_once_is_left_alone():
    problem = indexed(np.random.default_rng(0), 5, 32, 2)
    outcome = insist(_each(problem), problem.queries, retrieve=0.5, anchor=1e-8)
    assert outcome.kept.tolist() == [0, 1]
    assert np.array_equal(outcome.solution.vector, solve(problem, retrieve=0.5, anchor=1e-8).vector)


def test_a_softer_anchor_is_tried_before_a_query_is_dropped():
    problem = indexed(np.random.default_rng(0), 5, 32, 2)
    assert solve(problem, retrieve=0.5, anchor=0.5).status is Status.COMPROMISED
    outcome = insist(_each(problem), problem.queries, retrieve=0.5, anchor=0.5)
    assert outcome.solution.status is Status.SOLVED
    assert outcome.kept.tolist() == [0, 1]


def test_the_query_that_cannot_be_won_is_dropped():
    base = indexed(np.random.default_rng(1), 20, 32, 2)
    hopeless = base.rows[3]
    problem = Problem(
        np.vstack([base.queries, hopeless]),
        np.append(base.floors, base.ceilings[3] + 5),
        base.rows,
        base.ceilings,
        base.anchor,
    )
    outcome = insist(_each(problem), problem.queries, retrieve=0.5, anchor=1e-8)
    assert outcome.kept.tolist() == [0, 1]
    assert outcome.solution.status is Status.SOLVED


def test_equal_queries_are_dropped_in_their_order():
    base = indexed(np.random.default_rng(0), 30, 8, 1)
    count = 15
    queries = np.repeat(base.rows[3:4], count, axis=0)
    floor = base.ceilings[3] + 50.0
    asked = []

    def build(kept):
        asked.append(kept.tolist())
        return Problem(queries[kept], np.full(len(kept), floor), base.rows, base.ceilings, base.anchor)

    insist(build, queries, retrieve=0.5, anchor=1e-6)
    assert [kept for kept, _ in itertools.groupby(asked)] == [list(range(first, count)) for first in range(count)]


def test_the_mean_is_taken_again_without_the_dropped_query():
    rows, ceilings = np.eye(8)[:4], np.full(4, 1.0)
    queries = np.array([np.eye(8)[6], np.eye(8)[7], 9 * np.eye(8)[0]])

    def build(kept):
        return Problem(queries[kept].mean(axis=0)[None], [30.0], rows, ceilings, np.zeros(8))

    outcome = insist(build, queries, retrieve=0.5, anchor=1e-9)
    assert outcome.solution.status is Status.SOLVED


def test_what_cannot_be_won_at_all_is_reported_with_those_in_conflict():
    problem = contradicting_queries()
    both = Problem(problem.queries, problem.floors, np.vstack([np.eye(3), -np.eye(3)]), np.full(6, 1.0), problem.anchor)
    outcome = insist(_each(both), both.queries, retrieve=0.5, anchor=1e-6)
    assert outcome.solution.status is Status.INFEASIBLE
    assert certify(both).holds_for(both)
    assert len(outcome.solution.stolen) + len(outcome.solution.lost) > 0
    assert "drop" in outcome.solution.status.value
    assert outcome.kept.tolist() == [0, 1]


def test_every_status_says_what_it_means():
    assert all(len(status.value) > 20 for status in Status)
    assert solve(many_indexed(), retrieve=0.5, anchor=1.0).status in set(Status)
