"""What other solvers know about a problem: two numbers between which its least objective lies.

Lawson and Hanson's NNLS on the dual, a dual active-set method (daqp) and a proximal interior-point method (piqp).
Nobody's status is believed: a vector gives an upper bound and multipliers a lower one, whoever found them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import daqp
import numpy as np
import piqp
from numpy.typing import NDArray
from scipy.optimize import nnls

from incdsi.solver import Problem

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bracket:
    """The least objective is at least `lower` and at most `upper`; `vector` reaches the latter."""

    lower: float
    upper: float
    vector: Vector


class QP:
    """min sum w s^2 + lambda2 ||x||^2 subject to A x + excess <= s, where x = v - p; without rows out of all reach."""

    def __init__(self, problem: Problem, retrieve: float, anchor: float) -> None:
        k, n = len(problem.queries), len(problem.rows)
        self.rows = np.concatenate([-problem.queries, problem.rows]).astype(np.float64)
        bounds = np.concatenate([-problem.floors, problem.ceilings]).astype(np.longdouble)
        exact = self.rows.astype(np.longdouble) @ problem.anchor.astype(np.longdouble) - bounds
        self.excess = exact.astype(np.float64)
        self.weights = np.concatenate([np.full(k, retrieve / max(k, 1)), np.full(n, 1 - retrieve)])
        near = self.excess > -1e20
        self.rows, self.excess, self.weights = self.rows[near], self.excess[near], self.weights[near]
        self.pull = anchor

    def objective(self, shift: Vector) -> float:
        if not np.isfinite(shift).all():
            return np.inf
        x = shift.astype(np.longdouble)
        hinge = np.maximum(self.rows.astype(np.longdouble) @ x + self.excess, 0)
        return float(self.weights @ hinge**2 + self.pull * x @ x)

    def dual(self, multipliers: Vector) -> float:
        """A lower bound from any multipliers, at the best length along them."""
        y = np.maximum(np.nan_to_num(multipliers, posinf=0.0), 0).astype(np.longdouble)
        pushed = y @ self.rows.astype(np.longdouble)
        square = pushed @ pushed / (4 * self.pull) + (y * y / (4 * self.weights)).sum()
        return float(max(y @ self.excess, 0) ** 2 / (4 * square)) if square > 0 else 0.0


def by_nnls(qp: QP) -> tuple[Vector, Vector]:
    root = np.sqrt(qp.weights)
    system = np.concatenate([qp.rows.T / (2 * np.sqrt(qp.pull)), np.diag(1 / (2 * root))])
    right = np.concatenate([np.zeros(qp.rows.shape[1]), root * qp.excess])
    try:
        y, _ = nnls(system, right, maxiter=10 * len(qp.rows) + 1000)
    except RuntimeError:  # too many steps: it knows nothing
        y = np.zeros(len(qp.rows))
    return -(y @ qp.rows) / (2 * qp.pull), y


def by_piqp(qp: QP) -> tuple[Vector, Vector]:
    h, P, G, size = *_matrices(qp), np.abs(qp.excess).max()
    solver: Any = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-13
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-13
    solver.setup(np.asfortranarray(P), np.zeros(len(P)), G=np.asfortranarray(G), h_u=-qp.excess / size)
    solver.solve()
    return np.asarray(solver.result.x[:h]) * size, np.asarray(solver.result.z_u) * size


def by_daqp(qp: QP) -> tuple[Vector, Vector]:
    h, P, G, size = *_matrices(qp), np.abs(qp.excess).max()
    lower = np.full(len(G), -1e30)
    x, _, _, info = daqp.solve(P, np.zeros(len(P)), G, -qp.excess / size, lower, iter_limit=10_000, primal_tol=1e-12)
    return np.asarray(x[:h]) * size, np.asarray(info["lam"]) * size


def _matrices(qp: QP) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Dimension, Hessian and constraint matrix over (x, s)."""
    h, m = qp.rows.shape[1], len(qp.rows)
    return h, np.diag(np.concatenate([np.full(h, 2 * qp.pull), 2 * qp.weights])), np.hstack([qp.rows, -np.eye(m)])


Oracle = Callable[[QP], tuple[Vector, Vector]]
QUICK: tuple[Oracle, ...] = (by_nnls, by_daqp)
ALL: tuple[Oracle, ...] = (*QUICK, by_piqp)


def bracket(problem: Problem, *, retrieve: float, anchor: float, oracles: tuple[Oracle, ...] = QUICK) -> Bracket:
    """The best bounds that any of the oracles has."""
    qp = QP(problem, retrieve, anchor)
    pairs = [(np.zeros(problem.anchor.shape), np.zeros(len(qp.rows)))]
    if (qp.excess > 0).any():
        pairs += [oracle(qp) for oracle in oracles]
    upper, shift = min(((qp.objective(shift), shift) for shift, _ in pairs), key=lambda pair: pair[0])
    return Bracket(max(qp.dual(multipliers) for _, multipliers in pairs), upper, problem.anchor + shift)
