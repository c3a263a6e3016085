"""Drafts placed in order, each as if those before it were there; one that does not win is tried again, harder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.hyperparameters import Hyperparameters
from incdsi.index.live import Live, embeddings
from incdsi.index.placing import Draft, Others, Placed, place
from incdsi.index.settings import Settings
from incdsi.progress import Stopwatch
from incdsi.solver import Problem, insist
from incdsi.solver.active_set import NO_RIVAL
from incdsi.text.queries import represent

T = TypeVar("T")
# By how much the anchor is loosened and what was taught is emphasised, tried in order until it is won.
INSISTENCE = ((1.0, 1.0), (0.1, 1.0), (0.01, 1.0), (0.1, 10.0), (0.01, 100.0), (0.001, 1e4))


def place_alone(live: Live, draft: Draft, settings: Settings, *, watch: Stopwatch | None = None) -> Placed:
    """Solve for one draft, live or not, until it wins what it was taught: by a looser anchor, then by more emphasis.

    When even the most insistent try does not win (two documents were taught the same), the first solution stands
    and its status says so. In the paper's form, what the paper advises is tried.
    """
    if settings.method == "paper":
        (placed,) = place(live, [draft], settings, again=draft.row in live, watch=watch)
        return placed if placed.status == "solved" else insisted(live, placed, settings.hyperparameters)
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
        return replace(placed, status=status.name.lower())
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
        status=status.name.lower(),
        margin=float(problem.queries[0] @ outcome.solution.vector - problem.floors[0] + how.margins.retrieve),
        constrainers=Others(rows=frozenset(constrainers.tolist()), places=frozenset()),
        threatened=Others(rows=frozenset(), places=frozenset()),
    )
