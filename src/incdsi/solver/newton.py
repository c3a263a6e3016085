"""Exact minimisation of a small squared-hinge problem: Newton on the active rows, with a fallback where that fails.

    minimise  sum_i w_i max(0, a_i.v - b_i)^2 + lambda2 ||v - p||^2

The function is piecewise quadratic and strongly convex: given the right active rows, one linear solve yields the
minimiser, and an exact line search between guesses finds them in finitely many steps. The result is judged by its
duality gap, never by how the search ended. Rows are (m, h), everything is float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.solver.interior import Matrix, Vector, duality_gap, interior_point

Mask = NDArray[np.bool_]

STEPS = 20  # Newton steps; if these do not converge, hundreds may not
CLOSED = 1e-12  # relative to the objective: the gap Newton's minimiser must reach
PROVED = 1e-9  # relative to the objective: the gap that counts as optimal
MOST_PRODUCTS = 2048  # rows up to which all inner products are kept
ALONE = 1 << 18  # multiplications that BLAS does on one thread; waking another costs more than a small problem
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Minimiser:
    """A vector, and multipliers that prove its objective to be at most `gap` above the minimum."""

    vector: Vector
    multipliers: Vector
    objective: float
    gap: float


class HingeProblem:
    """A small problem that can gain rows between minimisations."""

    def __init__(self, rows: Matrix, bounds: Vector, weights: Vector, anchor: Vector, anchor_weight: float) -> None:
        self.rows = rows
        self.bounds = bounds
        self.weights = weights
        self.anchor = anchor
        self.anchor_weight = anchor_weight
        self._at_anchor: Vector = rows @ anchor
        self._gram: Matrix = np.empty((0, 0))
        self._known = 0

    def extend(self, rows: Matrix, bounds: Vector, weight: float) -> None:
        """Add rows of one weight; what is known about the others is kept."""
        self.rows = np.concatenate([self.rows, rows])
        self.bounds = np.concatenate([self.bounds, bounds])
        self.weights = np.concatenate([self.weights, np.full(len(rows), weight)])
        self._at_anchor = np.concatenate([self._at_anchor, rows @ self.anchor])

    def excess(self, vector: Vector) -> Vector:
        """a_i.v - b_i, positive where violated."""
        return self.rows @ vector - self.bounds

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")  # what overflows proves nothing
    def minimise(self, start: Vector) -> Minimiser:
        """The minimiser: Newton's from `start` if its gap closes, else the interior point's if that is better."""
        quick = self._judged(*self._descend(start))
        if self.proves(quick, CLOSED):
            return quick
        at_anchor = self._at_anchor - self.bounds
        shift, multipliers = interior_point(self.rows, at_anchor, self.weights, self.anchor_weight)
        vector = self.anchor + shift
        sure = self._judged(vector, multipliers, self.excess(vector))
        best = sure if sure.gap < quick.gap else quick
        return best if best.gap < np.inf else self._judged(self.anchor, np.zeros(len(self.rows)), at_anchor)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def proves(self, found: Minimiser, share: float = PROVED) -> bool:
        """Whether the gap is at most this fraction of the objective, or what rounding the data does to it."""
        return found.gap <= share * found.objective or found.gap <= self._grain(found)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def distance_bound(self, found: Minimiser) -> float:
        """||v - v*|| is at most this, by strong convexity, rounding included.

        The gradient's norm / (2 lambda2), or sqrt(gap / lambda2) where hinges are too small for float64.
        """
        by_gradient = self._gradient_bound(found.vector)
        if by_gradient <= np.sqrt(EPS) * np.linalg.norm(found.vector):  # the other cannot be closer
            return by_gradient
        by_gap = np.sqrt(found.gap + self._rounding(found)) / np.sqrt(self.anchor_weight)
        return float(np.fmin(by_gap, by_gradient))

    def _judged(self, vector: Vector, multipliers: Vector, excess: Vector) -> Minimiser:
        hinge, shift = np.maximum(excess, 0.0), vector - self.anchor
        objective = float(self.weights @ (hinge * hinge) + self.anchor_weight * (shift @ shift))
        residual = shift + (multipliers / (2 * self.anchor_weight)) @ self.rows
        gap = duality_gap(excess, multipliers, self.weights, residual, self.anchor_weight)
        return Minimiser(vector, multipliers, objective, gap if np.isfinite(gap) else np.inf)

    def _grain(self, found: Minimiser) -> float:
        """How large the objective can be at the anchor when every row is met there, up to rounding."""
        counting = np.flatnonzero(self.excess(found.vector) + found.multipliers / (2 * self.weights) > 0)
        lengths = np.linalg.norm(self.rows[counting], axis=1)
        anchor = np.linalg.norm(self.anchor)
        sizes = lengths * anchor + np.abs(self.bounds[counting])
        return float(len(self.anchor) * EPS**2 * (self.weights[counting] @ sizes**2 + self.anchor_weight * anchor**2))

    def _rounding(self, found: Minimiser) -> float:
        """How much larger the gap can be than computed."""
        v, y, w, pull = found.vector, found.multipliers, self.weights, self.anchor_weight
        excess, lengths = self.excess(v), np.linalg.norm(self.rows, axis=1)
        # What rounding does to an excess and to the residual.
        blur = EPS * np.sqrt(len(v)) * (lengths * np.linalg.norm(v) + np.abs(self.bounds))
        of_hinge = np.where(excess < -blur, 0.0, blur)
        smear = EPS * (np.linalg.norm(v) + np.linalg.norm(self.anchor) + np.sqrt(len(y)) * (y @ lengths) / (2 * pull))
        residual = np.linalg.norm(v - self.anchor + y @ self.rows / (2 * pull))
        apart = np.abs(np.maximum(excess, 0.0) - y / (2 * w))
        return float(pull * smear * (smear + 2 * residual) + (w * of_hinge) @ (of_hinge + 2 * apart) + y @ blur)

    def _gradient_bound(self, vector: Vector) -> float:
        hinge = np.maximum(self.excess(vector), 0.0)
        active = np.flatnonzero(hinge)
        force = self.weights[active] * hinge[active]
        rows = self.rows[active]
        half_gradient = force @ rows + self.anchor_weight * (vector - self.anchor)
        lengths = np.linalg.norm(rows, axis=1)
        # Each computed hinge is off by at most h eps |a||v|, each product by m eps.
        slack = self.weights[active] * lengths * (lengths * np.linalg.norm(vector) + np.abs(self.bounds[active]))
        noise = slack.sum() + self.anchor_weight * (np.linalg.norm(vector) + np.linalg.norm(self.anchor))
        rounding = EPS * np.sqrt(len(vector) + len(active)) * noise
        return float((np.linalg.norm(half_gradient) + rounding) / self.anchor_weight)

    def _descend(self, start: Vector) -> tuple[Vector, Vector, Vector]:
        """Newton steps with exact line search: the final vector, multipliers and excess."""
        v = start
        excess = self.excess(v)
        before: Mask | None = None
        for _ in range(STEPS):
            active = excess > 0
            try:
                target, multipliers = self._minimiser_with(active)
            except np.linalg.LinAlgError:
                break
            reached = self.excess(target)
            if np.array_equal(reached > 0, active) or (before is not None and np.array_equal(active, before)):
                return target, multipliers, reached
            step = self._best_step(v, excess, target - v, reached - excess)
            before = active
            v = v + step * (target - v)
            excess = self.excess(v)
        return v, 2 * self.weights * np.maximum(excess, 0.0), excess

    def _minimiser_with(self, active: Mask) -> tuple[Vector, Vector]:
        """Minimiser of the quadratic in which exactly the active rows count, and its multipliers, at least 0."""
        chosen = np.flatnonzero(active)
        multipliers = np.zeros(len(active))
        if len(chosen) == 0:
            return self.anchor, multipliers
        target, found = self._primal(chosen) if len(chosen) > len(self.anchor) else self._dual(chosen)
        multipliers[chosen] = np.maximum(found, 0.0)
        return target, multipliers

    def _dual(self, chosen: NDArray[np.intp]) -> tuple[Vector, Vector]:
        # v = p - A'a with (A A' + lambda2/w) a = A p - b: as many unknowns as active rows.
        gram = self._products(chosen)
        gram.flat[:: len(chosen) + 1] += self.anchor_weight / self.weights[chosen]
        solved = _solve_refined(gram, self._at_anchor[chosen] - self.bounds[chosen])
        spread = np.zeros(len(self.rows))
        spread[chosen] = solved
        return self.anchor - spread @ self.rows, 2 * self.anchor_weight * solved

    def _products(self, chosen: NDArray[np.intp]) -> Matrix:
        """Inner products of the chosen rows; unless there are very many, each is computed once and kept."""
        if len(self.rows) > MOST_PRODUCTS:
            rows = self.rows[chosen]
            return np.asarray(rows @ rows.T)
        known, count = self._known, len(self.rows)
        if known < count:
            if count > len(self._gram):
                grown = np.empty((2 * count, 2 * count))
                grown[:known, :known] = self._gram[:known, :known]
                self._gram = grown
            across = _products(self.rows[known:], self.rows)
            self._gram[known:count, :count] = across
            self._gram[:known, known:count] = across[:, :known].T
            self._known = count
        return self._gram.take(chosen, axis=0).take(chosen, axis=1)

    def _primal(self, chosen: NDArray[np.intp]) -> tuple[Vector, Vector]:
        # (lambda2 + A'WA) (v - p) = A'W (b - A p): as many unknowns as dimensions.
        rows = self.rows[chosen]
        weighted = rows * self.weights[chosen, None]
        system = rows.T @ weighted
        system.flat[:: len(system) + 1] += self.anchor_weight
        room = self.bounds[chosen] - self._at_anchor[chosen]
        shift = _solve_refined(system, room @ weighted)
        return self.anchor + shift, 2 * self.weights[chosen] * (rows @ shift - room)

    def _best_step(self, v: Vector, excess: Vector, move: Vector, change: Vector) -> float:
        """Exact minimiser over s in (0, 1] of the objective at v + s move."""
        w = self.weights
        pull = self.anchor_weight * (move @ (v - self.anchor))
        stiffness = self.anchor_weight * (move @ move)

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


def _products(some: Matrix, rows: Matrix) -> Matrix:
    """Inner products (m, n) of rows (m, h) with rows (n, h), on one thread if they are few."""
    size = ALONE // rows.size
    if size < 2 or len(some) <= size:
        return np.asarray(some @ rows.T)
    return np.concatenate([some[start : start + size] @ rows.T for start in range(0, len(some), size)])


def _solve_refined(system: Matrix, right: Vector) -> Vector:
    """Solve a positive definite system, refining once if the first solve left a residual."""
    solution = np.linalg.solve(system, right)
    residual = right - system @ solution
    if np.abs(residual).max() > 1e-13 * np.abs(right).max():
        solution = solution + np.linalg.solve(system, residual)
    return np.asarray(solution)
