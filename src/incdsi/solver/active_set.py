"""The exact solver: small problems on a working set, proved against all rows.

At any vector only violated rows count. So: minimise over the queries alone, find the rows that are violated or
nearly so, add them, minimise again, until no other row is violated. The minimiser of that small problem is then
the minimiser of the whole one, and the small problem's duality gap is the proof. A pass over all rows can be
skipped if the vector moved less than the radius within which no other row can be violated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.hyperparameters import Margins, Weights
from incdsi.preserve import Nearest, PreserveRows
from incdsi.solver.constraints import DenseRows, Ring
from incdsi.solver.newton import HingeProblem
from incdsi.solver.problem import Array, Problem
from incdsi.solver.solution import Solution, Status, Violations

FIRST_LIMIT = 192  # rows to find in the first pass, where the vector is still far from the final one
NEXT_LIMIT = 128  # in the second, which usually only proves; doubled in each one after it
AT_ONCE = 32  # rows to add before minimising again: the worst, which usually fix the others
TOGETHER = 128  # newcomers that share passes: each one keeps the rows near it
RING_BYTES = 64 << 20  # most memory for rows near violation
NO_RIVAL = -1e30  # the score to beat when nothing is indexed
TOLERANCE = 1e-3  # relative to a bound: how closely it must be met when no margin is known


@dataclass(frozen=True, slots=True, eq=False)
class Newcomer:
    """A document to place: `queries` (k, h), for each the best indexed score (`rivals`), and its anchor (h,).

    `owner` is the number that it, and what it preserves, is known by; `rival_owners` (k,) are those of the rivals.
    `emphasis` (k,) multiplies the weight of losing each query; None means 1 for all. The queries `foremost` (k,) are
    preserved before all others. `start` (h,) is where to begin, if it was placed before: the minimiser is the same
    from everywhere, and the first pass finds most of what matters where it was.
    """

    queries: NDArray[np.float64]
    rivals: NDArray[np.float64]
    anchor: NDArray[np.float64]
    emphasis: NDArray[np.float64] | None = None
    foremost: NDArray[np.bool_] | None = None
    owner: int = -1
    rival_owners: NDArray[np.int64] | None = None
    start: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        rivals = np.maximum(np.asarray(self.rivals, dtype=np.float64), NO_RIVAL)
        no_rows = np.empty((0, np.shape(self.anchor)[-1]))
        checked = Problem(self.queries, rivals, no_rows, np.empty(0), self.anchor)
        for name, value in (("queries", checked.queries), ("rivals", rivals), ("anchor", checked.anchor)):
            object.__setattr__(self, name, value.astype(np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """A newcomer placed among all others, including those before it in its batch.

    `vector` (h,) is what to store. By query (k,): the best score of another document and whose it is (-1: nobody's),
    its own score, and whether it is to be preserved from now on.
    """

    vector: NDArray[np.float32]
    solution: Solution
    rivals: NDArray[np.float64]
    rival_owners: NDArray[np.int64]
    own_scores: NDArray[np.float64]
    preserved: NDArray[np.bool_]

    @property
    def margin(self) -> float:
        """The smallest lead over the best rival on any of its queries; infinite without a query or a rival."""
        return float(np.min((self.own_scores - self.rivals)[self.rivals > NO_RIVAL], initial=np.inf))


def solve(problem: Problem, *, retrieve: float, anchor: float) -> Solution:
    """The unique minimiser of the problem, with a proven bound on the distance to it.

    >>> p = Problem(queries=[[1.0, 0.0]], floors=[2.0], rows=[[0.0, 1.0]], ceilings=[1.0], anchor=[0.0, 0.0])
    >>> solve(p, retrieve=0.5, anchor=1e-6).vector.round(3)
    array([2., 0.])
    """
    weights = Weights(retrieve=retrieve, anchor=anchor)
    rows = DenseRows(problem.rows, problem.ceilings)
    search = _Search(problem.queries, problem.floors, problem.anchor, weights)
    _settle([search], rows)
    return search.solution(problem.margins)


def solve_many(
    newcomers: Sequence[Newcomer],
    preserve: PreserveRows,
    *,
    margins: Margins,
    weights: Weights,
    keep_lost: bool = False,
    most_preserved: int | None = None,
) -> list[Placement]:
    """Place documents in order, each as if those before it were already indexed; passes are shared.

    A floor is the best rival's score plus the retrieve margin. The queries a newcomer wins are preserve
    rows for those after it, with its own score minus the preserve margin as ceiling. `keep_lost` also keeps
    those it does not win, as the paper does; `most_preserved` keeps only the hardest of many.
    """
    placed = _Placed(newcomers, len(preserve), margins, keep_lost, most_preserved)
    for start in range(0, len(newcomers), TOGETHER):
        some = newcomers[start : start + TOGETHER]
        searches = [
            _Search(n.queries, n.rivals + margins.retrieve, n.anchor, weights, n.emphasis, n.start) for n in some
        ]
        _settle(searches, preserve)
        for newcomer, search in zip(some, searches, strict=True):
            rivals, owners = placed.best(newcomer)
            search.raise_floors(rivals + margins.retrieve)
            _settle_among(search, placed, preserve)
            placed.append(newcomer, search.solution(margins), rivals, owners)
    return placed.placements


def to_preserve(
    scores: NDArray[np.float64],
    rivals: NDArray[np.float64],
    most: int | None,
    foremost: NDArray[np.bool_] | None = None,
    *,
    keep_lost: bool = False,
) -> NDArray[np.bool_]:
    """Which of a document's queries (k,) become preserve rows: those it wins; a tie is not a win.

    If there are more than `most`, only the hardest; those `foremost` always.
    """
    kept = np.ones(len(scores), dtype=bool) if keep_lost else scores > rivals
    if most is None or np.count_nonzero(kept) <= most:
        return kept
    first = np.zeros_like(kept) if foremost is None else foremost & kept
    leads = np.where(kept, scores - rivals, np.inf)
    leads[first] = -np.inf
    hardest = np.zeros_like(kept)
    hardest[np.argsort(leads, kind="stable")[:most]] = True
    return hardest | first


def _settle(searches: Sequence[_Search], preserve: PreserveRows) -> None:
    """Minimise each search over all preserve rows; searches not proved yet share passes."""
    while pending := [search for search in searches if not search.settled]:
        limit = max(search.limit for search in pending)
        room = max(RING_BYTES // (4 * limit * len(pending[0].vector)), 1)
        for start in range(0, len(pending), room):
            group = pending[start : start + room]
            nearest = preserve.nearest(np.stack([search.vector for search in group]), limit)
            for search, near in zip(group, nearest, strict=True):
                search.look(near)


def _settle_among(search: _Search, placed: _Placed, preserve: PreserveRows) -> None:
    """Minimise over the preserve rows and those of the batch's earlier documents."""
    _settle([search], preserve)
    while search.take_in(placed.violated(search.vector)):
        search.minimise_among_near()
        _settle([search], preserve)


class _Placed:
    """The documents of a batch placed so far: their vectors, and the rows they preserve."""

    def __init__(
        self, newcomers: Sequence[Newcomer], first_index: int, margins: Margins, keep_lost: bool, most: int | None
    ) -> None:
        self._first_index = first_index
        self._margins = margins
        self._keep_lost = keep_lost
        self._most = most
        room, width = sum(len(n.queries) for n in newcomers), len(newcomers[0].anchor) if newcomers else 0
        self._vectors = np.empty((len(newcomers), width))
        self._rows = np.empty((room, width))
        self._ceilings = np.empty(room)
        self._row_owners = np.empty(room, dtype=np.int64)
        self._owners = np.array([n.owner for n in newcomers], dtype=np.int64)
        self._count = 0
        self.placements: list[Placement] = []

    def best(self, newcomer: Newcomer) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """For each of its queries the best score among indexed and placed documents, and whose it is."""
        owners = newcomer.rival_owners
        if owners is None:
            owners = np.full(len(newcomer.rivals), -1, dtype=np.int64)
        if not self.placements:
            return newcomer.rivals, owners
        scores = newcomer.queries @ self._vectors[: len(self.placements)].T
        higher = scores.max(axis=1) > newcomer.rivals
        return np.maximum(newcomer.rivals, scores.max(axis=1)), np.where(
            higher, self._owners[scores.argmax(axis=1)], owners
        )

    def append(
        self, newcomer: Newcomer, solution: Solution, rivals: NDArray[np.float64], owners: NDArray[np.int64]
    ) -> None:
        stored = solution.vector.astype(np.float32)  # as later documents will see it
        vector = stored.astype(np.float64)
        scores = newcomer.queries @ vector
        kept = to_preserve(scores, rivals, self._most, newcomer.foremost, keep_lost=self._keep_lost)
        stop = self._count + int(np.count_nonzero(kept))
        self._vectors[len(self.placements)] = vector
        self._rows[self._count : stop] = newcomer.queries[kept]
        self._ceilings[self._count : stop] = scores[kept] - self._margins.preserve
        self._row_owners[self._count : stop] = newcomer.owner
        self._count = stop
        self.placements.append(
            Placement(
                vector=stored, solution=solution, rivals=rivals, rival_owners=owners, own_scores=scores, preserved=kept
            )
        )

    def violated(self, vector: NDArray[np.float64]) -> Nearest:
        """The rows violated at the vector."""
        rows, ceilings = self._rows[: self._count], self._ceilings[: self._count]
        chosen = np.flatnonzero(rows @ vector > ceilings)
        return Nearest(
            indices=self._first_index + chosen,
            owners=self._row_owners[chosen],
            rows=rows[chosen],
            ceilings=ceilings[chosen],
            radius=-np.inf,
        )


class _Search:
    """One document's constraints in three rings, its current minimiser, and how far it is proved.

    The outer ring is all rows; within it, those seen near violation; within those, the rows that were ever
    violated, which form the small problem. A ring is only looked at once the one inside it is minimised.
    """

    def __init__(
        self,
        queries: Array,
        floors: Array,
        anchor: Array,
        weights: Weights,
        emphasis: Array | None = None,
        start: Array | None = None,
    ) -> None:
        self._count = len(queries)
        self._preserve_weight = 1.0 - weights.retrieve
        each = np.full(self._count, weights.retrieve / max(self._count, 1))
        self._small = HingeProblem(
            -queries.astype(np.float64),
            -floors.astype(np.float64),
            each if emphasis is None else each * emphasis,
            anchor.astype(np.float64),
            weights.anchor,
        )
        self._taken: list[int] = []
        self._owners: list[int] = []
        self._ring: Ring | None = None
        self._passes = 0
        self._centre, self._radius = self._small.anchor, -np.inf
        self._placed_before = start is not None
        self.vector = self._small.anchor if start is None else start.astype(np.float64)
        if start is None:
            self._minimise(self.vector)

    @property
    def settled(self) -> bool:
        """Whether no row outside those seen near can be violated at the vector."""
        return bool(np.linalg.norm(self.vector - self._centre) <= self._radius)

    @property
    def limit(self) -> int:
        """How many rows the next pass should find: enough that some are not violated."""
        if self._passes == 0:
            return FIRST_LIMIT
        return max(NEXT_LIMIT << (self._passes - 1), 2 * len(self._taken))

    def look(self, near: Nearest) -> None:
        """Minimise over the rows that a pass found nearest; its proof replaces those of earlier passes."""
        self._passes += 1
        self._centre, self._radius = self.vector, near.radius
        self._ring = Ring(near, self._taken)
        if self._placed_before and self._passes == 1:  # what is violated where it was most likely stays so
            self._take(self._ring.worst(self.vector, len(near)))
        self.minimise_among_near()

    def take_in(self, violated: Nearest) -> bool:
        """Minimise over these violated rows too; False if all of them already were in the small problem."""
        taken = set(self._taken)
        new = [place for place, index in enumerate(violated.indices.tolist()) if index not in taken]
        if not new:
            return False
        self._take(violated.at(np.array(new, dtype=np.intp)))
        return True

    def minimise_among_near(self) -> None:
        """Minimise over every row that the last pass saw near violation."""
        while self._ring is not None:
            worst = self._ring.worst(self.vector, AT_ONCE)
            if len(worst) == 0:
                break
            self._take(worst)

    def _take(self, rows: Nearest) -> None:
        self._taken += rows.indices.tolist()
        self._owners += rows.owners.tolist()
        self._small.extend(rows.rows.astype(np.float64), rows.ceilings, self._preserve_weight)
        self._minimise(self.vector)

    def raise_floors(self, floors: NDArray[np.float64]) -> None:
        """Update the floors, and minimise again if they changed."""
        if not np.array_equal(-floors, self._small.bounds[: self._count]):
            self._small.bounds[: self._count] = -floors
            self._minimise(self.vector)
            self.minimise_among_near()

    def solution(self, margins: Margins | None) -> Solution:
        excess = self._small.excess(self.vector)
        lost = Violations.worst_first(excess[: self._count], np.arange(self._count), np.full(self._count, -1))
        taken, owners = np.array(self._taken, dtype=np.intp), np.array(self._owners, dtype=np.int64)
        stolen = Violations.worst_first(excess[self._count :], taken, owners)
        return Solution(
            vector=self.vector,
            objective=self._found.objective,
            bound=self._small.distance_bound(self._found),
            status=self._status(excess, margins),
            lost=lost,
            stolen=stolen,
            passes=self._passes,
            working=len(self._taken),
        )

    def _minimise(self, start: NDArray[np.float64]) -> None:
        self._found = self._small.minimise(start)
        self.vector = self._found.vector

    def _status(self, excess: NDArray[np.float64], margins: Margins | None) -> Status:
        if not self._small.proves(self._found):
            return Status.UNFINISHED
        if margins is None:
            allowed = TOLERANCE * np.maximum(1.0, np.abs(self._small.bounds))
        else:
            allowed = np.full(len(excess), margins.preserve)
            allowed[: self._count] = margins.retrieve
        return Status.COMPROMISED if (excess > allowed).any() else Status.SOLVED
