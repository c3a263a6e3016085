"""The reliable way to minimise a squared-hinge problem: a primal-dual interior-point method.

    minimise  sum_i w_i s_i^2 + lambda2 ||x||^2   subject to  a_i.x + e_i - s_i + t_i = 0  and  t_i >= 0

Here x = v - p is the shift from the anchor and e_i = a_i.p - b_i the excess there; the multipliers are
y_i = 2 w_i s_i >= 0. Every row counts in every step, with a weight that depends on its multiplier and its slack t_i,
so steps stay long where guessing the active rows stalls: 10 to 50 steps, each a least-squares problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

STEPS = 200
STIFF = 1e-12  # relative to the largest weight: below it, normal equations, which square the condition number, fail
PATIENCE = 10  # steps without a smaller gap: the limit of float64
ENOUGH = 1e-14  # relative to the objective: a gap this small is closed
INSIDE = 0.995  # of the way to the boundary
FIRST_SLACK = 0.1  # of the largest excess


def interior_point(rows: Matrix, excess: Vector, weights: Vector, pull: float) -> tuple[Vector, Vector]:
    """The shift and the multipliers, given the excess at the anchor."""
    multipliers = 2 * weights * np.maximum(excess, 0.0)
    lengths = np.linalg.norm(rows, axis=1)
    live = np.flatnonzero(lengths)  # a zero row's hinge is a constant
    lengths = lengths[live]
    size = np.max(excess[live] / lengths, initial=0.0)
    if size == 0.0:
        return np.zeros(rows.shape[1]), multipliers
    # Scaled to order one: rows of length one, largest excess one, largest weight one.
    stiffness = weights[live] * lengths**2
    most = stiffness.max()
    basis, corner = np.linalg.qr((rows[live] / lengths[:, None]).T)  # the shift is a combination of rows
    small = _Interior(corner.T, excess[live] / (lengths * size), stiffness / most, pull / most)
    shift, found = small.minimise()
    multipliers[live] = found * (most * size) / lengths
    return basis @ shift * size, multipliers


class _Interior:
    def __init__(self, rows: Matrix, excess: Vector, weights: Vector, pull: float) -> None:
        self._rows, self._excess, self._weights, self._pull = rows, excess, weights, pull
        self._shift = np.zeros(rows.shape[1])
        self._slack = np.maximum(-excess, 0.0) + FIRST_SLACK
        # Rows far from violation start with a small multiplier, in inverse proportion to their slack.
        self._multipliers = 2 * weights * (np.maximum(excess, 0.0) + FIRST_SLACK**2 / self._slack)

    def minimise(self) -> tuple[Vector, Vector]:
        """Step until the gap is closed or stops shrinking; the best pair seen."""
        best, smallest, since = (self._shift, self._multipliers), np.inf, 0
        for _ in range(STEPS):
            gap, objective = self._gap()
            if gap < smallest:
                best, smallest, since = (self._shift, self._multipliers), gap, -1
            since += 1
            if smallest <= ENOUGH * objective or since == PATIENCE:
                break
            try:
                self._step()
            except np.linalg.LinAlgError:
                break
        return best

    def _gap(self) -> tuple[float, float]:
        excess = self._rows @ self._shift + self._excess
        hinge = np.maximum(excess, 0.0)
        residual = self._shift + self._multipliers @ self._rows / (2 * self._pull)
        objective = self._weights @ hinge**2 + self._pull * self._shift @ self._shift
        return duality_gap(excess, self._multipliers, self._weights, residual, self._pull), float(objective)

    def _step(self) -> None:
        """Mehrotra's step: see how far plain Newton gets, then aim for the centre accordingly."""
        rows, y, t = self._rows, self._multipliers, self._slack
        unbalanced = 2 * self._pull * self._shift + y @ rows
        unmet = rows @ self._shift + self._excess - y / (2 * self._weights) + t
        weight = 1 / (1 / (2 * self._weights) + t / y)
        root, root_pull = np.sqrt(weight), np.sqrt(2 * self._pull)
        stacked = np.concatenate([root[:, None] * rows, root_pull * np.eye(rows.shape[1])])
        left, factor = (stacked, stacked.T @ stacked) if self._pull > STIFF else np.linalg.qr(stacked)

        def towards(product: Vector) -> tuple[Vector, Vector, Vector]:
            # Newton's step to where both residuals vanish and y t has shrunk by `product`.
            target = unmet - product / y
            shift = np.linalg.solve(factor, -np.concatenate([root * target, unbalanced / root_pull]) @ left)
            multipliers = weight * (rows @ shift + target)
            return shift, multipliers, -(product + t * multipliers) / y

        _, dy, dt = towards(y * t)
        reach = min(_reach(y, dy), _reach(t, dt))
        mean = y @ t / len(y)
        reached = (y + reach * dy) @ (t + reach * dt) / len(y)
        shift, dy, dt = towards(y * t + dy * dt - mean * (reached / mean) ** 3)
        reach = INSIDE * min(_reach(y, dy), _reach(t, dt))
        self._shift = self._shift + reach * shift
        self._multipliers = y + reach * dy
        self._slack = t + reach * dt


def duality_gap(excess: Vector, multipliers: Vector, weights: Vector, residual: Vector, pull: float) -> float:
    """The objective minus the dual objective at multipliers y >= 0: a bound on how far the objective can still fall.

    No term is negative, so rounding cannot hide it: lambda2 ||residual||^2 + sum w (hinge - y/2w)^2
    + sum y (hinge - excess), where the residual is v - p + A'y / (2 lambda2).
    """
    hinge = np.maximum(excess, 0.0)
    apart = hinge - multipliers / (2 * weights)
    return float(pull * (residual @ residual) + weights @ (apart * apart) + multipliers @ (hinge - excess))


def _reach(values: Vector, change: Vector) -> float:
    """The largest fraction of the change that keeps every value from falling below zero."""
    falling = change < 0
    return float(np.min(values[falling] / -change[falling], initial=1.0))
