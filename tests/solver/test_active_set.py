"""The exact solver finds the one minimiser, proves it, and does for many what it does for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.errors import InvalidHyperparameters
from incdsi.hyperparameters import Margins, Weights
from incdsi.rows import LocalRows
from incdsi.solver import Newcomer, Problem, Status, solve, solve_many
from tests.solver.oracles import bracket
from tests.solver.zoo import ZOO, indexed, scaled

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("make", ZOO, ids=lambda make: make.__name__)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("anchor", [1e-8, 1e-4, 1.0])
def test_reaches_the_oracles_objective(make, scale, anchor):
    problem = scaled(make(), scale)
    found = solve(problem, retrieve=0.4, anchor=anchor)
    known = bracket(problem, retrieve=0.4, anchor=anchor)
    objective = problem.objective(found.vector, retrieve=0.4, anchor=anchor)
    assert found.objective == pytest.approx(objective, rel=1e-9, abs=1e-300)
    assert objective <= known.lower * (1 + 1e-6) + 1e-300
    assert objective <= known.upper * (1 + 1e-6)
    assert found.status is not Status.UNFINISHED


@given(seeds, st.integers(0, 300), st.integers(2, 20), st.integers(1, 6), st.floats(0.05, 0.95), st.floats(-6, 0))
@settings(max_examples=60, deadline=None)
def test_the_claimed_bound_holds(seed, n, h, k, retrieve, exponent):
    problem = indexed(np.random.default_rng(seed), n, h, k)
    weights = {"retrieve": retrieve, "anchor": 10.0**exponent}
    found, known = solve(problem, **weights), bracket(problem, **weights)
    assert np.linalg.norm(found.vector - known.vector) <= found.bound + 1e-7 * (1 + np.linalg.norm(known.vector))
    assert found.objective <= known.lower * (1 + 1e-6) + 1e-12
    # Nothing is left out of the proof: the objective is that over all rows.
    assert found.objective == pytest.approx(problem.objective(found.vector, **weights), rel=1e-9, abs=1e-300)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_no_vector_nearby_is_better(seed):
    rng = np.random.default_rng(seed)
    problem = indexed(rng, 120, 10, 3)
    weights = {"retrieve": 0.5, "anchor": 0.01}
    found = solve(problem, **weights)
    for size in (1e-3, 1e-1, 10.0):
        elsewhere = found.vector + size * rng.standard_normal(10)
        assert problem.objective(elsewhere, **weights) >= found.objective


def test_the_start_of_the_search_never_matters_for_float32_rows():
    problem = indexed(np.random.default_rng(0), 3000, 32, 4)
    narrow = Problem(
        problem.queries.astype(np.float32),
        problem.floors.astype(np.float32),
        problem.rows.astype(np.float32),
        problem.ceilings.astype(np.float32),
        problem.anchor.astype(np.float32),
    )
    found = solve(narrow, retrieve=0.5, anchor=1e-4)
    gradient = narrow.gradient(found.vector, retrieve=0.5, anchor=1e-4)
    assert np.linalg.norm(gradient) <= 2e-4 * 1e-6
    assert found.bound < 1e-6


def test_says_which_constraints_are_not_met_and_by_how_much():
    problem = Problem(
        queries=np.eye(2),
        floors=np.array([3.0, 3.0]),
        rows=np.eye(2),
        ceilings=np.array([1.0, 9.0]),
        anchor=np.zeros(2),
    )
    found = solve(problem, retrieve=0.5, anchor=1e-9)
    assert found.status is Status.COMPROMISED
    assert found.lost.indices.tolist()[0] == 0
    assert found.stolen.indices.tolist() == [0]
    assert found.stolen.amounts == pytest.approx(found.vector[:1] - 1.0)
    assert found.vector[1] == pytest.approx(3.0, abs=1e-6)


def test_margins_decide_whether_a_query_is_won():
    problem = Problem(
        queries=[[1.0]],
        floors=[4.0],
        rows=[[1.0]],
        ceilings=[3.0],
        anchor=[0.0],
        margins=Margins(retrieve=2, preserve=2),
    )
    assert solve(problem, retrieve=0.5, anchor=1e-9).status is Status.SOLVED  # halfway: 3.5, within both margins


def test_few_passes_over_many_rows():
    found = solve(indexed(np.random.default_rng(3), 20000, 32, 2), retrieve=0.5, anchor=1e-4)
    assert found.passes <= 6
    assert found.working < 1000


@pytest.mark.parametrize(("retrieve", "anchor"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, -1.0), (float("nan"), 1.0)])
def test_weights_out_of_range_are_refused(retrieve, anchor):
    problem = indexed(np.random.default_rng(0), 3, 4, 1)
    with pytest.raises(InvalidHyperparameters, match=r"^weights\.\w+ must be"):
        solve(problem, retrieve=retrieve, anchor=anchor)


# Many at once


def _filled(rng, n, h, per_document=2):
    rows = LocalRows(h)
    centres = rng.standard_normal((max(n // 10, 1), h))
    for _ in range(n):
        queries = centres[rng.integers(0, len(centres))] + 0.6 * rng.standard_normal((per_document, h))
        rows.append_many([8 * queries.mean(axis=0) / np.linalg.norm(queries.mean(axis=0))], [queries])
    return rows, centres


def _newcomers(rng, rows, centres, count, h):
    """Documents of which many come from the same few clusters, so that they meet within a batch."""
    result = []
    for _ in range(count):
        k = int(rng.integers(0, 4))
        queries = centres[rng.integers(0, min(3, len(centres)))] + 0.5 * rng.standard_normal((k, h))
        anchor = 5 * (queries.mean(axis=0) if k else rng.standard_normal(h))
        result.append((queries, anchor))
    return result


def _stolen(solution):
    """What it takes from others, by more than the vector's rounding."""
    stolen = solution.stolen
    return set(stolen.indices[stolen.amounts > 1e-6 * (1 + np.abs(solution.vector).max())].tolist())


def _add(rows, batch, margins, weights, keep_lost):
    newcomers = [Newcomer(q, rows.best(q)[0], a) for q, a in batch]
    ceilings = rows.under(margins.preserve)
    placements = solve_many(newcomers, ceilings, margins=margins, weights=weights, keep_lost=keep_lost)
    for (queries, _), placement in zip(batch, placements, strict=True):
        rows.append_many([placement.vector], [queries[placement.preserved]])
    return [placement.solution for placement in placements]


@given(seeds, st.integers(0, 60), st.booleans(), st.sampled_from([3e-9, 1e-6, 1e-2, 0.3]))
@settings(max_examples=30, deadline=None)
def test_a_batch_gives_what_adding_one_by_one_gives(seed, n, keep_lost, anchor):
    h = 12
    margins, weights = Margins(retrieve=2.0, preserve=1.0), Weights(retrieve=0.5, anchor=anchor)
    one, centres = _filled(np.random.default_rng(seed), n, h)
    many, _ = _filled(np.random.default_rng(seed), n, h)
    batch = _newcomers(np.random.default_rng(seed + 1), one, centres, 9, h)
    # float32 queries, as an encoder gives them
    batch = [(q.astype(np.float32).astype(np.float64), a) for q, a in batch]
    singly = [_add(one, [document], margins, weights, keep_lost)[0] for document in batch]
    together = _add(many, batch, margins, weights, keep_lost)
    for a, b in zip(singly, together, strict=True):
        assert b.vector == pytest.approx(a.vector, abs=1e-5 * (1 + np.abs(a.vector).max()))
        assert b.status is a.status
        assert _stolen(b) == _stolen(a)


@given(seeds, st.integers(0, 400), st.sampled_from([1e-6, 1e-2, 0.3]), st.sampled_from([0.0, 0.1, 100.0]))
@settings(max_examples=30, deadline=None)
def test_where_the_search_for_a_placed_document_begins_never_matters(seed, n, anchor, away):
    h, rng = 12, np.random.default_rng(seed)
    margins, weights = Margins(retrieve=2.0, preserve=1.0), Weights(retrieve=0.5, anchor=anchor)
    rows, centres = _filled(rng, n, h)
    newcomers = [Newcomer(q, rows.best(q)[0], a) for q, a in _newcomers(rng, rows, centres, 9, h)]
    ceilings = rows.under(margins.preserve)
    placed = solve_many(newcomers, ceilings, margins=margins, weights=weights)
    starts = [one.vector.astype(np.float64) + away * rng.standard_normal(h) for one in placed]
    moved = [replace(newcomer, start=start) for newcomer, start in zip(newcomers, starts, strict=True)]
    again = solve_many(moved, ceilings, margins=margins, weights=weights)
    for a, b in zip(placed, again, strict=True):
        assert b.vector == pytest.approx(a.vector, abs=1e-5 * (1 + float(np.abs(a.vector).max())))
        assert b.solution.status is a.solution.status
        assert _stolen(b.solution) == _stolen(a.solution)


def test_a_document_that_stays_where_it_is_takes_one_pass():
    rng = np.random.default_rng(3)
    rows, centres = _filled(rng, 3000, 16)
    margins, weights = Margins(retrieve=2.0, preserve=1.0), Weights(retrieve=0.5, anchor=0.1)
    (queries, anchor), *_ = ((q, a) for q, a in _newcomers(rng, rows, centres, 20, 16) if len(q) > 2)
    newcomer, ceilings = Newcomer(queries, rows.best(queries)[0], anchor), rows.under(margins.preserve)
    (placed,) = solve_many([newcomer], ceilings, margins=margins, weights=weights)
    (again,) = solve_many([replace(newcomer, start=placed.vector)], ceilings, margins=margins, weights=weights)
    assert again.solution.passes == 1


def test_adding_changes_no_row_that_is_there():
    rng = np.random.default_rng(5)
    rows, centres = _filled(rng, 50, 10)
    before = rows.vectors(np.arange(50)).copy()
    _add(rows, _newcomers(rng, rows, centres, 6, 10), Margins(), Weights(), False)
    assert np.array_equal(rows.vectors(np.arange(50)), before)


def test_later_documents_respect_earlier_ones_of_the_same_batch():
    rows = LocalRows(3)
    twins = [(np.eye(3)[:1], np.zeros(3)), (np.array([[1.0, 0.2, 0.0]]), np.zeros(3))]
    margins = Margins(retrieve=1.0, preserve=0.5)
    first, second = _add(rows, twins, margins, Weights(retrieve=0.5, anchor=1e-6), True)
    own = first.vector @ twins[0][0][0]
    assert twins[0][0][0] @ second.vector < own
    assert twins[1][0][0] @ second.vector > twins[1][0][0] @ first.vector
    assert second.status is Status.SOLVED


def test_a_placement_names_its_rivals_and_the_queries_it_won():
    rows = LocalRows(2)
    rows.append_many([[5.0, 0.0]], [[[1.0, 0.0]]])
    queries = np.array([[1.0, 0.0], [0.0, 1.0]])
    batch = [
        Newcomer(queries[1:], rows.best(queries[1:])[0], np.zeros(2), owner=7, rival_owners=np.array([5])),
        Newcomer(queries, rows.best(queries)[0], np.zeros(2), owner=8, rival_owners=np.array([5, 5])),
    ]
    first, second = solve_many(batch, rows.under(1.0), margins=Margins(retrieve=1, preserve=1), weights=Weights())
    assert second.rival_owners.tolist() == [5, 7]
    assert second.rivals[0] == pytest.approx(5.0)
    assert second.rivals[1] == pytest.approx(first.own_scores[0])
    assert second.preserved.tolist() == (second.own_scores > second.rivals).tolist()
    assert second.margin == pytest.approx((second.own_scores - second.rivals).min())


def test_a_document_with_nothing_indexed_wins_at_once():
    rows = LocalRows(4)
    query = np.ones((1, 4))
    newcomer = Newcomer(query, rows.best(query)[0], 3 * np.ones(4))
    (found,) = solve_many([newcomer], rows.under(1.0), margins=Margins(), weights=Weights())
    assert found.vector == pytest.approx(3 * np.ones(4))
    assert found.solution.status is Status.SOLVED
    assert found.preserved.tolist() == [True]


def test_no_newcomer_no_solution():
    assert solve_many([], LocalRows(4).under(1.0), margins=Margins(), weights=Weights()) == []
