"""When a document cannot win: proof that no vector can, and what to try.

The hard constraints, without margins, are q_i.v >= f_i and z_j.v <= u_j. For multipliers a, b >= 0
every vector that meets them has (sum a_i q_i - sum b_j z_j).v >= sum a_i f_i - sum b_j u_j, so it is at
least `radius` = right side / ||left side|| long. That is the certificate; anyone can check it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from incdsi.hyperparameters import Margins
from incdsi.solver.active_set import solve
from incdsi.solver.problem import Array, Problem
from incdsi.solver.solution import Solution, Status

SOFTER = (1e-2, 1e-4)  # of the anchor's weight, tried in this order
TIED = 1e-6  # relative to the scores: shortfalls this close differ only by rounding and the pull of a weak anchor
OUT_OF_REACH = 1e3  # times the length of the best compromise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """Proof that every vector meeting the hard constraints is at least `radius` long."""

    query_multipliers: NDArray[np.float64]
    row_indices: NDArray[np.intp]
    row_multipliers: NDArray[np.float64]
    radius: float

    def holds_for(self, problem: Problem) -> bool:
        """Check the proof against the problem, wherever it comes from."""
        hard = _without_margins(problem)
        combination, gap = _combine(hard, self.query_multipliers, self.row_indices, self.row_multipliers)
        signs = (self.query_multipliers >= 0).all() and (self.row_multipliers >= 0).all()
        length = float(np.linalg.norm(combination))
        return bool(signs and gap > 0 and gap >= self.radius * length * (1 - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Insistence:
    """What insisting led to: the solution, and the indices of the queries it was made for."""

    solution: Solution
    kept: NDArray[np.intp]


def certify(problem: Problem) -> Certificate | None:
    """Proof that the hard constraints cannot be met by a vector of useful length, or None if they can."""
    hard = _without_margins(problem)
    softness = 1e-9 * _largest_square(hard)
    solution = solve(hard, retrieve=0.5, anchor=softness)
    query_multipliers = np.zeros(len(hard.queries))
    query_multipliers[solution.lost.indices] = solution.lost.amounts / max(len(hard.queries), 1)
    rows, amounts = solution.stolen.indices, solution.stolen.amounts
    combination, gap = _combine(hard, query_multipliers, rows, amounts)
    length = float(np.linalg.norm(combination))
    radius = gap / length if length > 0 else np.inf
    if gap <= 0 or radius < OUT_OF_REACH * float(np.linalg.norm(solution.vector)):
        return None
    return Certificate(
        query_multipliers=query_multipliers,
        row_indices=rows,
        row_multipliers=amounts,
        # If the combination is zero up to rounding, no finite length will do.
        radius=min(radius, 1e12 * max(1.0, float(np.linalg.norm(solution.vector)))),
    )


def insist(
    build: Callable[[NDArray[np.intp]], Problem], queries: Array, *, retrieve: float, anchor: float
) -> Insistence:
    """Solve and, if the document does not win, try what the paper advises, in that order.

    A different start cannot help an exact solver: the minimiser is unique. So: a softer anchor, then without
    the worst query, then without the next. `build` makes the problem for the queries kept (indices into
    `queries`, (k, h)). When nothing wins, the first solution comes back; its status is INFEASIBLE if that is proved.
    """
    kept = np.arange(len(queries))
    problem = build(kept)
    first = solution = solve(problem, retrieve=retrieve, anchor=anchor)
    for factor in SOFTER:
        if solution.status.ok:
            break
        solution = solve(problem, retrieve=retrieve, anchor=anchor * factor)
    while not solution.status.ok and len(kept) > 1:
        worst = _worst_query(build(kept), queries[kept], solution)
        kept = np.delete(kept, worst)
        solution = solve(build(kept), retrieve=retrieve, anchor=anchor)
    if not solution.status.ok:
        status = Status.INFEASIBLE if certify(problem) else first.status
        solution, kept = replace(first, status=status), np.arange(len(queries))
    return Insistence(solution=solution, kept=kept)


def _worst_query(problem: Problem, queries: Array, solution: Solution) -> int:
    """The query furthest below its floor, the first of equals; if they share one floor, the lowest-scoring."""
    scores = queries @ solution.vector
    shortfall = problem.floors - scores if len(problem.floors) == len(queries) else -scores
    nearly = TIED * max(float(np.abs(problem.floors).max()), float(np.abs(scores).max()))
    return int(np.argmax(shortfall >= shortfall.max() - nearly))


def _without_margins(problem: Problem) -> Problem:
    margins = problem.margins or Margins(retrieve=0.0, preserve=0.0)
    return Problem(
        problem.queries,
        problem.floors - margins.retrieve,
        problem.rows,
        problem.ceilings + margins.preserve,
        problem.anchor,
    )


def _combine(
    problem: Problem, query_multipliers: Array, row_indices: NDArray[np.intp], row_multipliers: Array
) -> tuple[NDArray[np.float64], float]:
    """sum a_i q_i - sum b_j z_j, and sum a_i f_i - sum b_j u_j."""
    rows = problem.rows[row_indices].astype(np.float64)
    combination = query_multipliers @ problem.queries.astype(np.float64) - row_multipliers @ rows
    gap = query_multipliers @ problem.floors - row_multipliers @ problem.ceilings[row_indices]
    return np.asarray(combination), float(gap)


def _largest_square(problem: Problem) -> float:
    squares = [float(np.einsum("ij,ij->i", a, a).max(initial=0.0)) for a in (problem.queries, problem.rows)]
    return max(*squares, float(np.finfo(np.float32).tiny))
