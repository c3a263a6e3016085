"""Drafts become records: constrain and solve, in order; one that does not win is tried again, harder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import Draft
from incdsi.index.live import Live, embeddings
from incdsi.index.settings import Method, Settings
from incdsi.progress import Stopwatch
from incdsi.search import fused, lexical_part
from incdsi.solver import Newcomer, Placement, Problem, Status, Violations, insist, solve_many
from incdsi.solver.active_set import NO_RIVAL
from incdsi.store import Record, StoredQuery
from incdsi.text.queries import represent

Floats = NDArray[np.float32]
T = TypeVar("T")
BATCH = 128  # documents solved and committed together
MOST_LEAD = 8.0
ROUNDS = 20
MOST_PRESERVED = 64  # queries of one document that others must leave it: the hardest won, and all it was taught
# By how much the anchor is loosened and what was taught is emphasised, tried in order until it is won.
INSISTENCE = ((1.0, 1.0), (0.1, 1.0), (0.01, 1.0), (0.1, 10.0), (0.01, 100.0), (0.001, 1e4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Documents, by row in the store where they are indexed and by place in the batch where they are not yet."""

    rows: frozenset[int]
    places: frozenset[int]

    def counted_from(self, first: int) -> Others:
        """With places counted from the `first` of a part; a row below 0 is the place of one before it."""
        places = {*(first + place for place in self.places), *(~row for row in self.rows if row < 0)}
        return Others(rows=frozenset(row for row in self.rows if row > 0), places=frozenset(places))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A record ready to be stored, and what is to be told about it.

    `constrainers` had constraints that shaped the vector; `threatened` stand to lose a query to it, or it
    lost one to them.
    """

    record: Record
    status: Status
    margin: float
    constrainers: Others
    threatened: Others

    def counted_from(self, first: int) -> Placed:
        """The same as part of a larger batch."""
        others = self.constrainers.counted_from(first), self.threatened.counted_from(first)
        return replace(self, constrainers=others[0], threatened=others[1])

    def knowing(self, batch: Sequence[int]) -> Record:
        """The record with the rows of those that constrained it; `batch` are the rows of its batch."""
        rows = {*self.constrainers.rows, *(batch[place] for place in self.constrainers.places)}
        return replace(self.record, constrained_by=tuple(sorted(rows)))


def place(
    live: Live,
    drafts: Sequence[Draft],
    settings: Settings,
    *,
    again: bool = False,
    emphasis: float = 1.0,
    watch: Stopwatch | None = None,
) -> list[Placed]:
    """Solve for the drafts in order, each as if those before it were live.

    `again` is for one draft that is live already: it does not compete with itself. What a draft was taught it
    should win in fused search too, at the settings' lexical weight; it counts `emphasis` times as much as usual.
    """
    watch, how, method = watch or Stopwatch(), settings.hyperparameters, settings.method
    without = live.slot(drafts[0].row) if again else None
    queries = [_queries(draft, method) for draft in drafts]
    ends = np.cumsum([len(some) for some in queries])[:-1]
    with watch.step("constrain"):
        best, rival_slots = live.rows.best(np.concatenate(queries), without)
        ceilings = live.rows.under(how.margins.preserve, without)
        rivals = np.split(best, ends)
        if method == "general":
            for draft, scores in zip(drafts, rivals, strict=True):
                _raise_for_taught(scores, live, draft, without, settings.lexical_weight)
    newcomers = [
        Newcomer(
            some.astype(np.float64),
            scores,
            how.anchor_scale * draft.embedding.astype(np.float64),
            *(_by_lesson(draft, emphasis) if method == "general" else ()),
        )
        for some, scores, draft in zip(queries, rivals, drafts, strict=True)
    ]
    with watch.step("solve"):
        placements = solve_many(
            newcomers,
            ceilings,
            margins=how.margins,
            weights=how.weights,
            keep_lost=method == "paper",
            most_preserved=MOST_PRESERVED,
        )
    batch = _Batch(live, len(ceilings), placements)
    return [
        batch.placed(number, draft, slots, how, method)
        for number, (draft, slots) in enumerate(zip(drafts, np.split(rival_slots, ends), strict=True))
    ]


def _by_lesson(draft: Draft, emphasis: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How much each of the used queries counts, and which are preserved before all others: those taught."""
    taught = np.array([draft.queries[place_].taught for place_ in draft.used], dtype=bool)
    return np.where(taught, emphasis, 1.0), taught


def _raise_for_taught(
    rivals: NDArray[np.float64], live: Live, draft: Draft, slot: int | None, lexical_weight: float
) -> None:
    """Raise the scores to beat at taught queries to what wins the fused ranking: words may favour another."""
    for number, place_ in enumerate(draft.used):
        query = draft.queries[place_]
        if query.taught:
            rivals[number] = max(rivals[number], _to_win_fused(live, query, slot, lexical_weight))


def _to_win_fused(live: Live, query: StoredQuery, slot: int | None, lexical_weight: float) -> float:
    """The learned score at which the document in that slot (None: a new one) leads the fused ranking.

    At most MOST_LEAD standard deviations above the best rival: what words alone decide is left to them.
    """
    learned, spread = live.rows.scores_and_spread(query.embedding)
    lexical = live.lexical.scores(query.text, len(learned.alive))
    others = learned.alive.copy()
    if slot is not None:
        others[slot] = False
        spread = spread.without(float(learned.exact(np.array([slot]))[0]))
    if spread.count == 0 or lexical_weight >= 1.0:
        return -np.inf
    if slot is None:  # words say nothing for a document that is not there yet
        words = lexical_part(np.append(lexical, np.float32(0)), np.append(learned.alive, True), lexical_weight)
        words, own_words = words[:-1], float(words[-1])
    else:
        words = lexical_part(lexical, learned.alive, lexical_weight)
        own_words = float(words[slot])
    best = float(learned.best(1, others)[1][0])
    needed, most = best, best + MOST_LEAD * spread.deviation
    for _ in range(ROUNDS):  # a higher score widens the spread it is measured by
        with_own = spread.joined(needed)
        rival = float(fused(learned, with_own, words, lexical_weight).scores.best(1, others)[1][0])
        lead = with_own.deviation / (1 - lexical_weight) * (rival - own_words)
        needed = min(max(best, with_own.mean + lead), most)
    return needed


def _queries(draft: Draft, method: Method) -> Floats:
    """What the document should win: each query, or their mean in the paper's form."""
    used = embeddings([draft.queries[place].embedding for place in draft.used], len(draft.embedding))
    if method == "general":
        return used
    return represent(used)[None] if len(used) else draft.embedding[None]


class _Batch:
    """Who is who among the placements of a batch and the rows they met."""

    def __init__(self, live: Live, indexed: int, placements: Sequence[Placement]) -> None:
        self._live = live
        self._indexed = indexed
        self._placements = placements
        self._ends = np.cumsum([np.count_nonzero(placement.preserved) for placement in placements])

    def placed(
        self, number: int, draft: Draft, rival_slots: NDArray[np.intp], how: Hyperparameters, method: Method
    ) -> Placed:
        placement = self._placements[number]
        solution = placement.solution
        behind = np.flatnonzero(placement.own_scores <= placement.rivals)
        hard = Violations(
            indices=solution.stolen.indices[solution.stolen.amounts > how.margins.preserve],
            amounts=solution.stolen.amounts[solution.stolen.amounts > how.margins.preserve],
        )
        return Placed(
            record=_record(draft, placement, method),
            status=solution.status,
            margin=placement.margin,
            constrainers=self._others(placement, rival_slots, solution.lost.indices, solution.stolen),
            threatened=self._others(placement, rival_slots, behind, hard),
        )

    def _others(
        self, placement: Placement, rival_slots: NDArray[np.intp], queries: NDArray[np.intp], stolen: Violations
    ) -> Others:
        """The rivals at these queries and the owners of these rows."""
        in_batch = placement.rival_places[queries]
        slots = rival_slots[queries][in_batch < 0]
        old = stolen.indices[stolen.indices < self._indexed]
        new = stolen.indices[stolen.indices >= self._indexed] - self._indexed
        slots = np.concatenate([slots[slots >= 0], self._live.rows.owners(old)])
        places = np.concatenate([in_batch[in_batch >= 0], np.searchsorted(self._ends, new, side="right")])
        return Others(
            rows=frozenset(self._live.store_rows(slots).tolist()), places=frozenset(int(place) for place in places)
        )


def _record(draft: Draft, placement: Placement, method: Method) -> Record:
    queries = list(draft.queries)
    if method == "general":
        for number, place_ in enumerate(draft.used):
            queries[place_] = replace(
                queries[place_],
                preserved=bool(placement.preserved[number]),
                own_score=float(placement.own_scores[number]),
            )
    return Record(
        document=draft.document,
        vector=placement.vector,
        anchor=draft.embedding,
        queries=tuple(queries),
        row=draft.row,
    )


def place_alone(live: Live, draft: Draft, settings: Settings, *, watch: Stopwatch | None = None) -> Placed:
    """Solve for one draft, live or not, until it wins what it was taught: by a looser anchor, then by more emphasis.

    When even the most insistent try does not win (two documents were taught the same), the first solution stands
    and its status says so. In the paper's form, what the paper advises is tried.
    """
    if settings.method == "paper":
        (placed,) = place(live, [draft], settings, again=draft.row in live, watch=watch)
        return placed if placed.status.ok else insisted(live, placed, settings.hyperparameters)
    first = None
    for looser, emphasis in INSISTENCE if draft.taught else INSISTENCE[:1]:
        loosened = replace(settings, hyperparameters=_loosened(settings.hyperparameters, looser))
        (placed,) = place(live, [draft], loosened, again=draft.row in live, emphasis=emphasis, watch=watch)
        first = first or placed
        if all(query.preserved for query in placed.record.queries if query.taught):
            return placed
    return first or placed


def place_in_order(
    live: Live, drafts: Sequence[Draft], settings: Settings, *, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for a portion of `portions`; one that is alone may be live already."""
    if len(drafts) == 1:
        return [place_alone(live, drafts[0], settings, watch=watch)]
    return place(live, drafts, settings, watch=watch)


def place_many(
    live: Live, drafts: Sequence[Draft], settings: Settings, *, watch: Stopwatch | None = None
) -> list[Placed]:
    """Solve for new drafts in order, each as if those before it were live."""
    parts = list(portions(drafts, settings, lambda draft: draft.taught, len(drafts)))
    if len(parts) == 1:
        return place_in_order(live, drafts, settings, watch=watch)
    beside, placed = live.compacted(), list[Placed]()
    for part in parts:
        first = len(placed)
        placed += [one.counted_from(first) for one in place_in_order(beside, part, settings, watch=watch)]
        beside.put([replace(placed[place].record, row=~place) for place in range(first, len(placed))])
    return placed


def portions(items: Sequence[T], settings: Settings, is_taught: Callable[[T], bool], most: int) -> Iterator[list[T]]:
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


def insisted(live: Live, placed: Placed, how: Hyperparameters) -> Placed:
    """The paper's form when a document does not win as it is: a softer anchor, then fewer queries.

    When nothing wins its vector stays, and "infeasible" means that this is proved. A query that was dropped is given
    up from then on: kept, but not placed by and not measured. Looks at all preserve rows once a try.
    """
    record = placed.record
    used = Draft.of(record).used
    asked = embeddings([record.queries[place].embedding for place in used] or [record.anchor], len(record.vector))
    slot = live.slot(record.row) if record.row in live else None
    owners, rows, own_scores = live.rows.preserve_arrays()
    others = np.flatnonzero(owners != (-1 if slot is None else slot))
    rows, ceilings = rows[others], own_scores[others] - how.margins.preserve
    anchor = how.anchor_scale * record.anchor.astype(np.float64)

    def build(kept: NDArray[np.intp]) -> Problem:
        query = represent(asked[kept])[None]
        best, _ = live.rows.best(query, slot)
        floors = np.maximum(best, NO_RIVAL) + how.margins.retrieve
        return Problem(query, floors, rows, ceilings, anchor, how.margins)

    outcome = insist(build, asked, retrieve=how.weights.retrieve, anchor=how.weights.anchor)
    status = outcome.solution.status
    if not status.ok:
        return replace(placed, status=status)
    constrainers = live.store_rows(owners[others[outcome.solution.stolen.indices]])
    problem = build(outcome.kept)
    dropped = {used[place] for place in set(range(len(used))) - set(outcome.kept.tolist())}
    return Placed(
        record=replace(
            record,
            vector=outcome.solution.vector.astype(np.float32),
            queries=tuple(
                replace(query, given_up=query.given_up or place in dropped)
                for place, query in enumerate(record.queries)
            ),
        ),
        status=status,
        margin=float(problem.queries[0] @ outcome.solution.vector - problem.floors[0] + how.margins.retrieve),
        constrainers=Others(rows=frozenset(constrainers.tolist()), places=frozenset()),
        threatened=Others(rows=frozenset(), places=frozenset()),
    )
