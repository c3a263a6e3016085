"""Problems of every kind that a solver has to meet; `tests.solver.oracles` knows their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.solver import Problem


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


def crowded(rng: np.random.Generator, n: int, h: int, k: int, scale: float) -> Problem:
    """Clusters of twenty, and a newcomer whose queries all lie beside one indexed query."""
    centres = rng.standard_normal((n // 20, h))
    Z = np.repeat(centres, 20, axis=0) + 0.3 * rng.standard_normal((n, h))
    V = 10 * Z / (Z * Z).sum(axis=1, keepdims=True)
    q = Z[7] + 0.3 / np.sqrt(h) * rng.standard_normal((k, h))
    floors, ceilings = (q @ V.T).max(axis=1) + 3, (Z * V).sum(axis=1) - 2
    return Problem(q * scale, floors * scale, Z * scale, ceilings * scale, np.zeros(h))


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


@dataclass(frozen=True)
class Weighted:
    """A problem with the weights to solve it at."""

    problem: Problem
    retrieve: float
    anchor: float

    @property
    def weights(self) -> dict[str, float]:
        return {"retrieve": self.retrieve, "anchor": self.anchor}


def drawn(seed: int) -> Weighted:
    """A random problem: sizes, scales 1e-3 to 1e3, anchors 1e-9 to 1, one query to fifty, duplicates, crowding."""
    rng = np.random.default_rng(seed)
    n, h = int(rng.choice([1, 5, 40, 120, 300])), int(rng.choice([2, 8, 24, 64]))
    k = int(rng.choice([1, 2, 5, 15, 50]))
    centres = rng.standard_normal((max(n // int(rng.choice([1, 8, 40])), 1), h))
    Z = centres[rng.integers(0, len(centres), n)] + rng.choice([0.1, 0.3, 1.0]) * rng.standard_normal((n, h))
    if rng.random() < 0.2:  # the same rows again
        Z = Z[rng.integers(0, n, n)]
    if rng.random() < 0.1:  # documents without a query
        Z[rng.random(n) < 0.2] = 0.0
    if rng.random() < 0.1:  # rank-deficient
        Z = Z[:, :1] * centres[:1] + 0.5 * Z[:, -1:] * rng.standard_normal((1, h))
    V = 10 * Z / np.maximum((Z * Z).sum(axis=1, keepdims=True), 1e-9)
    near = Z if rng.random() < 0.6 else centres  # crowded, or merely from the same clusters
    near = near[rng.integers(0, len(near)) if rng.random() < 0.5 else rng.integers(0, len(near), k)]
    q = near + rng.choice([0.0, 0.02, 0.3, 1.0]) * rng.standard_normal((k, h))
    p = rng.choice([0.0, 1.0, 5.0, 100.0]) * (q.mean(axis=0) if rng.random() < 0.7 else rng.standard_normal(h))
    scale = 10 ** rng.uniform(-3, 3)
    floors = (q @ V.T).max(axis=1, initial=0.0) + rng.uniform(0, 8)
    ceilings = np.where(Z.any(axis=1), (Z * V).sum(axis=1) - rng.uniform(0, 8), rng.choice([-1.0, 0.0, 1.0], n))
    if rng.random() < 0.1:  # queries without a rival
        floors[rng.random(k) < 0.5] = -1e30
    arrays = [q * scale, floors * scale, Z * scale, ceilings * scale, p]
    if rng.random() < 0.3:
        arrays = [array.astype(np.float32) for array in arrays]
    return Weighted(Problem(*arrays), float(rng.uniform(0.05, 0.95)), float(10 ** rng.uniform(-9, 0)))
