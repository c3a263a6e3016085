"""Drafts become records: constrain and solve, in order; one that does not win is tried again, harder.

Pure: a view and drafts in, records out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Doubles, Rows, Scored, View
from incdsi.engine.settings import Fusion, Method, Settings
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import Draft
from incdsi.progress import Stopwatch
from incdsi.records import Record, StoredQuery
from incdsi.rows.scores import Spread
from incdsi.search import Fused, Part
from incdsi.solver import Newcomer, Placement, Problem, Status, insist, solve_many
from incdsi.solver.active_set import NO_RIVAL
from incdsi.text.queries import represent

Floats = NDArray[np.float32]
T = TypeVar("T")
BATCH = 128  # documents solved and committed together
MOST_LEAD = 8.0
ROUNDS = 20
MOST_PRESERVED = 64  # queries of one document that others must leave it: the hardest won, and all it was taught
# By how much the anchor is loosened and what was taught is emphasised, tried in order until it is won.
INSISTENCE = ((1.0, 1.0), (0.1, 1.0), (0.01, 1.0), (0.1, 10.0), (0.01, 100.0), (0.001, 1e4))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A record ready to be stored, and what is to be told about it.

    `threatened` are the rows of documents that stand to lose a query to it, or to which it lost one; `outdone` are
    those that were taught before what it was taught now; `outvoted` are taught queries that find another document
    first in fused search, by its words and texts.
    """

    record: Record
    status: Status
    margin: float
    threatened: frozenset[int] = frozenset()
    outdone: frozenset[int] = frozenset()
    outvoted: tuple[str, ...] = ()


def place(
    view: View, drafts: Sequence[Draft], settings: Settings, *, emphasis: float = 1.0, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for the drafts in order, each as if those before it were in view.

    One that is in view already must be alone: it does not compete with itself. What a draft was taught it should win in
    fused search too, by the settings' weights; it counts `emphasis` times as much as usual.
    """
    watch, how, general = watch or Stopwatch(), settings.hyperparameters, settings.method == "general"
    without = drafts[0].row if drafts[0].row in view else None
    queries = [_queries(draft, settings.method) for draft in drafts]
    ends = np.cumsum([len(some) for some in queries])[:-1]
    with watch.step("constrain"):
        scores, owners = view.rivals(np.concatenate(queries), without)
        ceilings = view.preserve(how.margins.preserve, without)
        rivals = np.split(scores, ends)
        if general:
            for draft, some in zip(drafts, rivals, strict=True):
                _raise_for_taught(some, view, draft, settings.fusion)
    newcomers = [
        _newcomer(draft, some, best, whose, settings, emphasis)
        for draft, some, best, whose in zip(drafts, queries, rivals, np.split(owners, ends), strict=True)
    ]
    with watch.step("solve"):
        placements = solve_many(
            newcomers,
            ceilings,
            margins=how.margins,
            weights=how.weights,
            keep_lost=not general,
            most_preserved=MOST_PRESERVED,
        )
    return [_placed(draft, placement, settings) for draft, placement in zip(drafts, placements, strict=True)]


def _placed(draft: Draft, placement: Placement, settings: Settings) -> Placed:
    """Those whose constraints were active shaped it; those behind whom it stays, or whose query it takes, are told."""
    lost, stolen = placement.solution.lost, placement.solution.stolen
    behind = np.flatnonzero(placement.own_scores <= placement.rivals)
    taken = stolen.owners[stolen.amounts > settings.hyperparameters.margins.preserve]
    queries = list(draft.queries)
    if settings.method == "general":
        for number, place_ in enumerate(draft.used):
            queries[place_] = replace(
                queries[place_],
                preserved=bool(placement.preserved[number]),
                own_score=float(placement.own_scores[number]),
            )
    return Placed(
        record=Record(
            document=draft.document,
            vector=placement.vector,
            anchor=draft.embedding,
            queries=tuple(queries),
            passages=draft.passages,
            constrained_by=_known(placement.rival_owners[lost.indices], stolen.owners),
            row=draft.row,
        ),
        status=placement.solution.status,
        margin=placement.margin,
        threatened=frozenset(_known(placement.rival_owners[behind], taken)),
    )


def _known(*rows: NDArray[np.integer[Any]]) -> tuple[int, ...]:
    """These rows, once each; where there was no rival there is none."""
    return tuple(sorted({row for some in rows for row in some.tolist() if row >= 0}))


def _newcomer(
    draft: Draft, queries: Floats, rivals: Doubles, owners: Rows, settings: Settings, emphasis: float
) -> Newcomer:
    """A draft as the solver takes it; in the general form what was taught is preserved before all else."""
    newcomer = Newcomer(
        queries.astype(np.float64),
        rivals,
        settings.hyperparameters.anchor_scale * draft.embedding.astype(np.float64),
        owner=draft.row,
        rival_owners=owners,
        start=None if draft.start is None else draft.start.astype(np.float64),
    )
    if settings.method == "paper":
        return newcomer
    taught = np.array([draft.queries[place_].taught for place_ in draft.used], dtype=bool)
    return replace(newcomer, emphasis=np.where(taught, emphasis, 1.0), foremost=taught)


def _raise_for_taught(rivals: NDArray[np.float64], view: View, draft: Draft, fusion: Fusion) -> None:
    """Raise the scores to beat at taught queries to what wins the fused ranking: other parts may favour another."""
    for number, place_ in enumerate(draft.used):
        query = draft.queries[place_]
        if query.taught:
            rivals[number] = max(rivals[number], _to_win_fused(view, query, draft, fusion))


def _to_win_fused(view: View, query: StoredQuery, draft: Draft, fusion: Fusion) -> float:
    """The learned score at which the document, with the words and texts it will have, leads the fused ranking.

    At most MOST_LEAD standard deviations above the best rival: what other parts alone decide is left to them.
    """
    contest = _Contest(view, query, draft, fusion)
    if contest.spread.count == 0 or fusion.learned_weight == 0.0:
        return -np.inf
    best = _best_but(draft.row, contest.learned)
    needed, most = best, best + MOST_LEAD * contest.spread.deviation
    for _ in range(ROUNDS):  # a higher score widens the spread it is measured by
        spread, gap = contest.gap(needed)
        needed = min(max(best, spread.mean + spread.deviation / fusion.learned_weight * gap), most)
    return needed


class _Contest:
    """A query of a document that is about to be placed, with the words and texts it will have, among all others."""

    def __init__(self, view: View, query: StoredQuery, draft: Draft, fusion: Fusion) -> None:
        self.learned = view.learned(query.embedding)
        self.spread = self.learned.unit  # of the others' scores
        if draft.row in view:
            self.spread = self.spread.without(float(self.learned.score(np.array([draft.row]))[0]))
        nearest, lexical = view.nearest(query.embedding), view.lexical(query.text)
        self._others = Part.of(nearest, fusion.nearest_weight), Part.of(lexical, fusion.lexical_weight)
        scores = nearest.score_of(draft.texts), lexical.score_of(draft.words)
        self._own = sum(float(part.values(np.array([one]))[0]) for part, one in zip(self._others, scores, strict=True))
        self._row, self._weight = draft.row, fusion.learned_weight

    def gap(self, score: float) -> tuple[Spread, float]:
        """The spread there is by that learned score, and what it must give for the lead in fused search."""
        spread = self.spread.joined(score)
        rival = _best_but(self._row, Fused((Part(self.learned, self._weight, spread), *self._others)))
        return spread, rival - self._own

    def is_won(self, score: float) -> bool:
        """Whether it is first in fused search by that learned score."""
        spread, gap = self.gap(score)
        return bool(self._weight * (score - spread.mean) * spread.scale > gap)


def _outvoted(view: View, draft: Draft, record: Record, fusion: Fusion) -> tuple[str, ...]:
    """What it was taught and is not first for in fused search, however well its vector does."""
    taught = [query for query in record.queries if query.taught]
    contests = [_Contest(view, query, draft, fusion) for query in taught]
    fought = [(query, one) for query, one in zip(taught, contests, strict=True) if one.spread.count]
    return tuple(query.text for query, one in fought if not one.is_won(query.own_score))


def _best_but(row: int, scored: Scored | Fused) -> float:
    """The best score of another document than the one in that row."""
    best = scored.top(2)
    return float(best.scores[best.rows != row][0])


def _queries(draft: Draft, method: Method) -> Floats:
    """What the document should win: each query, or their mean in the paper's form."""
    used = [draft.queries[place].embedding for place in draft.used]
    if method == "general":
        return np.stack(used) if used else np.empty((0, len(draft.embedding)), dtype=np.float32)
    return represent(np.stack(used))[None] if used else draft.embedding[None]


def place_alone(view: View, draft: Draft, settings: Settings, *, watch: Stopwatch | None = None) -> Placed:
    """Solve for one draft, in view or not, until it wins what it was taught: by a looser anchor, then by more emphasis.

    When even the most insistent try does not win (two documents were taught the same), the first solution stands
    and its status says so. In the paper's form, what the paper advises is tried.
    """
    if settings.method == "paper":
        (placed,) = place(view, [draft], settings, watch=watch)
        return placed if placed.status.ok else insisted(view, placed, settings.hyperparameters)
    first = None
    for looser, emphasis in INSISTENCE if draft.taught else INSISTENCE[:1]:
        loosened = replace(settings, hyperparameters=_loosened(settings.hyperparameters, looser))
        (placed,) = place(view, [draft], loosened, emphasis=emphasis, watch=watch)
        first = first or placed
        if all(query.preserved for query in placed.record.queries if query.taught):
            first = placed
            break
    placed = first or placed
    return replace(placed, outvoted=_outvoted(view, draft, placed.record, settings.fusion))


def place_taught(
    view: View, draft: Draft, before: Sequence[Draft], settings: Settings, *, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for those that were taught the same `before`, now without it, then for the one that is taught it now.

    Were they left where they are, it would have to rise above them, and they above it when they are placed again: who
    insists last has the longest vector, which wins what nobody taught.
    """
    if not before:
        return [place_alone(view, draft, settings, watch=watch)]
    bench, placed = view.bench(), list[Placed]()
    for one in before:
        placed.append(place_alone(bench, one, settings, watch=watch))
        bench.put([placed[-1].record])
    last = place_alone(bench, draft, settings, watch=watch)
    return [*placed, replace(last, outdone=frozenset(one.row for one in before))]


def place_in_order(
    view: View, drafts: Sequence[Draft], settings: Settings, *, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for a portion of `portions`; one that is alone may be in view already."""
    if len(drafts) == 1:
        return [place_alone(view, drafts[0], settings, watch=watch)]
    return place(view, drafts, settings, watch=watch)


def place_many(
    view: View, drafts: Sequence[Draft], settings: Settings, *, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for new drafts in order, each as if those before it were in view."""
    parts = list(portions(drafts, settings, lambda draft: draft.taught, len(drafts)))
    if len(parts) == 1:
        return place_in_order(view, drafts, settings, watch=watch)
    bench, placed = view.bench(), list[Placed]()
    for part in parts:
        placed += place_in_order(bench, part, settings, watch=watch)
        bench.put([one.record for one in placed[-len(part) :]])
    return placed


def portions(items: Iterable[T], settings: Settings, is_taught: Callable[[T], bool], most: int) -> Iterator[list[T]]:
    """At most so many at a time, in order; one that may need several tries is alone."""
    portion: list[T] = []
    for item in items:
        alone = settings.method == "paper" or is_taught(item)
        if portion and (alone or len(portion) == most):
            yield portion
            portion = []
        portion.append(item)
        if alone:
            yield portion
            portion = []
    if portion:
        yield portion


def _loosened(how: Hyperparameters, by: float) -> Hyperparameters:
    return replace(how, weights=replace(how.weights, anchor=how.weights.anchor * by))


def insisted(view: View, placed: Placed, how: Hyperparameters) -> Placed:
    """The paper's form when a document does not win as it is: a softer anchor, then fewer queries.

    When nothing wins its vector stays, and "infeasible" means that this is proved. A query that was dropped is given
    up from then on: kept, but not placed by and not measured. Looks at all preserve rows once a try.
    """
    record = placed.record
    used = Draft.of(record).used
    asked = np.stack([record.queries[place].embedding for place in used] or [record.anchor])
    without = record.row if record.row in view else None
    preserve = view.preserve(how.margins.preserve, without)
    (everyone,) = preserve.nearest(np.zeros((1, len(record.vector))), max(1, len(preserve)))
    anchor = how.anchor_scale * record.anchor.astype(np.float64)

    def build(kept: NDArray[np.intp]) -> Problem:
        query = represent(asked[kept])[None]
        best, _ = view.rivals(query, without)
        floors = np.maximum(best, NO_RIVAL) + how.margins.retrieve
        return Problem(query, floors, everyone.rows, everyone.ceilings, anchor, how.margins)

    outcome = insist(build, asked, retrieve=how.weights.retrieve, anchor=how.weights.anchor)
    solution = outcome.solution
    if not solution.status.ok:
        return replace(placed, status=solution.status)
    problem = build(outcome.kept)
    dropped = {used[place] for place in set(range(len(used))) - set(outcome.kept.tolist())}
    return Placed(
        record=replace(
            record,
            vector=solution.vector.astype(np.float32),
            queries=tuple(
                replace(query, given_up=query.given_up or place in dropped)
                for place, query in enumerate(record.queries)
            ),
            constrained_by=_known(everyone.owners[solution.stolen.indices]),
        ),
        status=solution.status,
        margin=float(problem.queries[0] @ solution.vector - problem.floors[0] + how.margins.retrieve),
    )
