"""Problems whose answers an independent oracle knows, and that oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from incdsi.solver import Problem


@dataclass(frozen=True)
class Oracle:
    """The minimiser by Lawson and Hanson's NNLS on the dual, and a lower bound on the objective."""

    vector: NDArray[np.float64]
    lower_bound: float


def oracle(problem: Problem, *, retrieve: float, anchor: float) -> Oracle:
    """Maximise y.(Ap - b) - ||A'y||^2 / (4 lambda2) - sum y^2 / (4 w) over y >= 0; any y gives a bound."""
    k = max(len(problem.queries), 1)
    A = np.concatenate([-problem.queries, problem.rows]).astype(np.float64)
    b = np.concatenate([-problem.floors, problem.ceilings]).astype(np.float64)
    w = np.concatenate([np.full(len(problem.queries), retrieve / k), np.full(len(problem.rows), 1 - retrieve)])
    p = problem.anchor.astype(np.float64)
    c = A @ p - b
    if len(A) == 0:
        return Oracle(p, 0.0)
    M = np.concatenate([A.T / (2 * np.sqrt(anchor)), np.diag(1 / (2 * np.sqrt(w)))])
    y, _ = nnls(M, np.concatenate([np.zeros(len(p)), np.sqrt(w) * c]), maxiter=100 * len(A) + 1000)
    y = y.astype(np.longdouble)
    pushed = A.T.astype(np.longdouble) @ y
    value = y @ c - pushed @ pushed / (4 * anchor) - (y * y / (4 * w)).sum()
    return Oracle(p - (pushed / (2 * anchor)).astype(np.float64), float(value))


def indexed(rng: np.random.Generator, n: int, h: int, k: int, scale: float = 1.0, spread: float = 1.0) -> Problem:
    """A document among n others: clustered queries, margins of a few tenths of a typical own score."""
    centres = rng.standard_normal((max(n // 8, 1), h))
    Z = centres[rng.integers(0, len(centres), n)] + spread * rng.standard_normal((n, h))
    V = 10 * Z / np.maximum((Z * Z).sum(axis=1, keepdims=True), 1e-9)
    q = centres[rng.integers(0, len(centres))] + spread * rng.standard_normal((k, h))
    own = (Z * V).sum(axis=1)
    floors = (q @ V.T).max(axis=1, initial=0.0)
    p = 5 * q.mean(axis=0) / np.linalg.norm(q.mean(axis=0)) if k else rng.standard_normal(h)
    return Problem(q * scale, (floors + 3) * scale, Z * scale, (own - 2) * scale, p * rng.integers(0, 2) if k else p)


def _with(problem: Problem, **arrays: NDArray[np.float64]) -> Problem:
    fields = {name: getattr(problem, name) for name in ("queries", "floors", "rows", "ceilings", "anchor")}
    return Problem(**{**fields, **arrays})


def nothing_indexed() -> Problem:
    return indexed(np.random.default_rng(1), 0, 8, 3)


def one_indexed() -> Problem:
    return indexed(np.random.default_rng(2), 1, 8, 1)


def many_indexed() -> Problem:
    return indexed(np.random.default_rng(3), 400, 24, 5)


def duplicate_of_an_indexed_query() -> Problem:
    base = indexed(np.random.default_rng(4), 60, 16, 2)
    return _with(base, queries=base.rows[[7, 8]].copy())


def duplicate_rows() -> Problem:
    base = indexed(np.random.default_rng(5), 60, 16, 2)
    return _with(base, rows=np.repeat(base.rows[:20], 3, axis=0))


def infeasible() -> Problem:
    base = duplicate_of_an_indexed_query()
    return _with(base, floors=base.ceilings[[7, 8]] + 5.0)


def contradicting_queries() -> Problem:
    q = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    return Problem(q, np.array([4.0, 4.0]), np.eye(3), np.array([1.0, 1.0, 1.0]), np.zeros(3))


def rank_deficient() -> Problem:
    rng = np.random.default_rng(6)
    base = indexed(rng, 80, 16, 3)
    plane = rng.standard_normal((2, 16))
    return _with(base, rows=rng.standard_normal((80, 2)) @ plane, queries=rng.standard_normal((3, 2)) @ plane)


def more_active_rows_than_dimensions() -> Problem:
    base = indexed(np.random.default_rng(7), 300, 6, 2)
    return _with(base, ceilings=base.ceilings - 30.0)


def document_without_query() -> Problem:
    return indexed(np.random.default_rng(8), 50, 12, 0)


def indexed_document_without_query() -> Problem:
    base = indexed(np.random.default_rng(9), 50, 12, 2)
    rows = base.rows.copy()
    rows[::5] = 0.0
    return _with(base, rows=rows)


def far_from_its_anchor() -> Problem:
    base = indexed(np.random.default_rng(10), 100, 16, 2)
    return _with(base, anchor=1e3 * np.ones(16))


ZOO: list[Callable[[], Problem]] = [
    nothing_indexed,
    one_indexed,
    many_indexed,
    duplicate_of_an_indexed_query,
    duplicate_rows,
    infeasible,
    contradicting_queries,
    rank_deficient,
    more_active_rows_than_dimensions,
    document_without_query,
    indexed_document_without_query,
    far_from_its_anchor,
]


def scaled(problem: Problem, scale: float) -> Problem:
    return _with(
        problem,
        queries=problem.queries * scale,
        floors=problem.floors * scale,
        rows=problem.rows * scale,
        ceilings=problem.ceilings * scale,
    )
