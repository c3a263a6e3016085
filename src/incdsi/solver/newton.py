"""Exact minimisation of a small squared-hinge problem: Newton on the active rows.

    minimise  sum_i w_i max(0, a_i.v - b_i)^2 + lambda2 ||v - p||^2

The function is piecewise quadratic and strongly convex: with the right active rows one linear solve
gives the minimiser, and an exact line search between guesses makes finding them finite.
Rows are (m, h), everything is float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUGH_STEPS = 8  # after which a doubtful linear system is solved carefully
QUICK_STEPS = 20
STEPS = 30
PATH = (1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1.0)  # times the anchor's weight, when quick steps do not arrive
FEW = 32  # rows whose inner products are computed rather than looked up
MOST_PRODUCTS = 2048  # rows between which all inner products are kept


class HingeProblem:
    """A small problem whose rows may grow between two minimisations."""

    def __init__(self, rows: Matrix, bounds: Vector, weights: Vector, anchor: Vector, anchor_weight: float) -> None:
        self.rows = rows
        self.bounds = bounds
        self.weights = weights
        self.anchor = anchor
        self.anchor_weight = anchor_weight
        self._pull = anchor_weight
        self._at_anchor: Vector = rows @ anchor
        self._gram: Matrix = np.empty((0, 0))
        self._known = 0

    def extend(self, rows: Matrix, bounds: Vector, weight: float) -> None:
        """Add rows, all of one weight; what is known of the others is kept."""
        self.rows = np.concatenate([self.rows, rows])
        self.bounds = np.concatenate([self.bounds, bounds])
        self.weights = np.concatenate([self.weights, np.full(len(rows), weight)])
        self._at_anchor = np.concatenate([self._at_anchor, rows @ self.anchor])

    def excess(self, vector: Vector) -> Vector:
        """a_i.v - b_i, positive where violated."""
        return self.rows @ vector - self.bounds

    def objective(self, vector: Vector) -> float:
        hinge = np.maximum(self.excess(vector), 0.0)
        pull = vector - self.anchor
        return float(self.weights @ (hinge * hinge) + self.anchor_weight * pull @ pull)

    def distance_bound(self, vector: Vector) -> float:
        """||v - v*|| is at most this: gradient norm / (2 lambda2), rounding included."""
        hinge = np.maximum(self.excess(vector), 0.0)
        active = np.flatnonzero(hinge)
        force = self.weights[active] * hinge[active]
        rows = self.rows[active]
        half_gradient = force @ rows + self.anchor_weight * (vector - self.anchor)
        lengths = np.linalg.norm(rows, axis=1)
        # Each computed hinge is off by at most h eps |a||v|, each product by m eps.
        slack = self.weights[active] * lengths * (lengths * np.linalg.norm(vector) + np.abs(self.bounds[active]))
        noise = slack.sum() + self.anchor_weight * (np.linalg.norm(vector) + np.linalg.norm(self.anchor))
        rounding = np.finfo(np.float64).eps * np.sqrt(len(vector) + len(active)) * noise
        return float((np.linalg.norm(half_gradient) + rounding) / self.anchor_weight)

    def minimise(self, start: Vector) -> tuple[Vector, bool]:
        """The minimiser from `start`, and whether it was reached.

        Where the anchor hardly pulls and about as many rows as dimensions are in conflict, steps from afar are
        short; then the minimisers for anchors ever weaker lead there.
        """
        v, reached = self._descend(start, QUICK_STEPS)
        for softer in () if reached else PATH:
            self._pull = self.anchor_weight * softer
            v, reached = self._descend(v, STEPS)
        self._pull = self.anchor_weight
        return v, reached

    def _descend(self, start: Vector, steps: int) -> tuple[Vector, bool]:
        """Newton steps with exact line search, at the present pull."""
        v = start
        excess = self.excess(v)
        before: Mask | None = None  # the rows of the last step that was not doubtful
        careful = False
        for number in range(steps):
            active = excess > 0
            target, doubtful = self._minimiser_with(active, careful or number >= ROUGH_STEPS)
            reached = self.excess(target)
            if np.array_equal(reached > 0, active):
                if not doubtful:
                    return target, True
                careful = True  # the rows are found; now their minimiser exactly
                continue
            step = self._best_step(v, excess, target - v, reached - excess)
            if doubtful and step < 1e-6:
                careful = True
                continue
            if step <= 0.0 or (before is not None and np.array_equal(active, before)):
                return v, True  # no way down, or the same rows twice: there is no descent left in float64
            before = None if doubtful else active
            careful = False
            v = v + step * (target - v)
            excess = self.excess(v)
        return v, False

    def _minimiser_with(self, active: Mask, careful: bool) -> tuple[Vector, bool]:
        """Minimiser of the quadratic in which exactly the active rows count, and whether to doubt its last digits.

        A doubtful one is good enough to search with: the line search is exact.
        """
        chosen = np.flatnonzero(active)
        if len(chosen) == 0:
            return self.anchor, False
        fast, stable = (self._dual, self._stable_dual)
        if len(chosen) > len(self.anchor):
            fast, stable = (self._primal, self._stable_primal)
        try:
            target, doubtful = fast(chosen)
        except np.linalg.LinAlgError:
            return stable(chosen), False
        return (stable(chosen), False) if doubtful and careful else (target, doubtful)

    def _dual(self, chosen: NDArray[np.intp]) -> tuple[Vector, bool]:
        # v = p - A'a with (A A' + lambda2/w) a = A p - b: as many unknowns as active rows.
        rows = self.rows[chosen]
        ridge = self._pull / self.weights[chosen]
        gram = self._products(chosen)
        doubtful = _poorly_conditioned(ridge, gram)
        gram.flat[:: len(chosen) + 1] += ridge
        right = self._at_anchor[chosen] - self.bounds[chosen]
        return self.anchor - _solve_refined(gram, right) @ rows, doubtful

    def _products(self, chosen: NDArray[np.intp]) -> Matrix:
        """Inner products of the chosen rows; where they cost more than looking them up, each is computed once."""
        if len(chosen) <= FEW or len(self.rows) > MOST_PRODUCTS:
            rows = self.rows[chosen]
            return np.asarray(rows @ rows.T)
        known, count = self._known, len(self.rows)
        if known < count:
            if count > len(self._gram):
                grown = np.empty((2 * count, 2 * count))
                grown[:known, :known] = self._gram[:known, :known]
                self._gram = grown
            across = self.rows[known:] @ self.rows.T
            self._gram[known:count, :count] = across
            self._gram[:known, known:count] = across[:, :known].T
            self._known = count
        return self._gram[chosen[:, None], chosen]

    def _primal(self, chosen: NDArray[np.intp]) -> tuple[Vector, bool]:
        # (lambda2 + A'WA) (v - p) = A'W (b - A p): as many unknowns as dimensions.
        rows = self.rows[chosen]
        weighted = rows * self.weights[chosen, None]
        system = rows.T @ weighted
        doubtful = _poorly_conditioned(np.array([self._pull]), system)
        system.flat[:: len(system) + 1] += self._pull
        right = (self.bounds[chosen] - self._at_anchor[chosen]) @ weighted
        return self.anchor + _solve_refined(system, right), doubtful

    def _stable_dual(self, chosen: NDArray[np.intp]) -> Vector:
        # The shortest x = [sqrt(lambda2) (v - p), sqrt(w) (b - A v)] that meets A v + (b - A v) = b, by QR of
        # its constraints: the condition number is not squared as it is in A A'.
        rows = self.rows[chosen]
        root = np.sqrt(self._pull)
        stacked = np.concatenate([rows.T / root, np.diag(1 / np.sqrt(self.weights[chosen]))])
        q, r = np.linalg.qr(stacked)
        shortest = q @ np.linalg.solve(r.T, self.bounds[chosen] - self._at_anchor[chosen])
        return np.asarray(self.anchor + shortest[: len(self.anchor)] / root)

    def _stable_primal(self, chosen: NDArray[np.intp]) -> Vector:
        # Least squares on the stacked matrix, for the same reason.
        h = len(self.anchor)
        root = np.sqrt(self.weights[chosen])
        rows = self.rows[chosen]
        stacked = np.concatenate([root[:, None] * rows, np.sqrt(self._pull) * np.eye(h)])
        right = np.concatenate([root * (self.bounds[chosen] - self._at_anchor[chosen]), np.zeros(h)])
        q, r = np.linalg.qr(stacked)
        shift = np.linalg.solve(r, right @ q)
        shift = shift + np.linalg.solve(r, (right - stacked @ shift) @ q)
        return np.asarray(self.anchor + shift)

    def _best_step(self, v: Vector, excess: Vector, move: Vector, change: Vector) -> float:
        """Exact minimiser over s in (0, 1] of the objective at v + s move."""
        w = self.weights
        pull = self._pull * (move @ (v - self.anchor))
        stiffness = self._pull * (move @ move)

        def slope(s: float) -> float:
            return float((w * change) @ np.maximum(excess + s * change, 0.0) + pull + s * stiffness)

        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = -excess / change
        kinks = np.sort(kinks[(kinks > 0) & (kinks < 1)])
        corners = np.concatenate([[0.0], kinks, [1.0]])
        low, high = 0, len(corners) - 1
        if slope(1.0) <= 0:
            return 1.0
        while high - low > 1:
            middle = (low + high) // 2
            if slope(corners[middle]) <= 0:
                low = middle
            else:
                high = middle
        left, right = slope(corners[low]), slope(corners[high])
        if left >= 0:
            return float(corners[low])
        return float(corners[low] + (corners[high] - corners[low]) * left / (left - right))


def _poorly_conditioned(ridge: Vector, gram: Matrix) -> bool:
    return bool(ridge.min() < 1e-11 * np.trace(gram))


def _solve_refined(system: Matrix, right: Vector) -> Vector:
    """Solve a positive definite system, with a second step when the first left a residual."""
    solution = np.linalg.solve(system, right)
    residual = right - system @ solution
    if np.abs(residual).max() > 1e-13 * np.abs(right).max():
        solution = solution + np.linalg.solve(system, residual)
    return np.asarray(solution)
