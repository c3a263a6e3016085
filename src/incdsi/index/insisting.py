"""The paper's form when a document does not win as it is: what the paper advises, and what was given up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from incdsi.hyperparameters import Hyperparameters
from incdsi.index.live import Live, embeddings
from incdsi.index.placing import Draft, Others, Placed
from incdsi.solver import Problem, insist
from incdsi.store import Record
from incdsi.text.queries import represent


def insisted(live: Live, record: Record, how: Hyperparameters) -> tuple[str, Placed | None]:
    """The status after a softer anchor and then fewer queries were tried, and the live document placed so that it wins.

    None when nothing wins: its vector stays, and "infeasible" means that this is proved. A query that was
    dropped is given up from then on: kept, but not placed by and not measured. Looks at all preserve rows once a try.
    """
    used = Draft.of(record).used
    asked = embeddings([record.queries[place].embedding for place in used] or [record.anchor], len(record.vector))
    slot = live.slot(record.row)
    owners, rows, own_scores = live.rows.preserve_arrays()
    others = np.flatnonzero(owners != slot)
    rows, ceilings = rows[others], own_scores[others] - how.margins.preserve
    anchor = how.anchor_scale * record.anchor.astype(np.float64)

    def build(kept: NDArray[np.intp]) -> Problem:
        query = represent(asked[kept])[None]
        best, _ = live.rows.best(query, slot)
        return Problem(query, best + how.margins.retrieve, rows, ceilings, anchor, how.margins)

    outcome = insist(build, asked, retrieve=how.weights.retrieve, anchor=how.weights.anchor)
    status = outcome.solution.status
    if not status.ok:
        return status.name.lower(), None
    constrainers = live.store_rows(owners[others[outcome.solution.stolen.indices]])
    problem = build(outcome.kept)
    margin = float(problem.queries[0] @ outcome.solution.vector - problem.floors[0] + how.margins.retrieve)
    dropped = {used[place] for place in set(range(len(used))) - set(outcome.kept.tolist())}
    placed = Placed(
        record=replace(
            record,
            vector=outcome.solution.vector.astype(np.float32),
            queries=tuple(
                replace(query, given_up=query.given_up or place in dropped)
                for place, query in enumerate(record.queries)
            ),
        ),
        status=status.name.lower(),
        margin=margin,
        constrainers=Others(rows=frozenset(constrainers.tolist()), places=frozenset()),
        threatened=Others(rows=frozenset(), places=frozenset()),
    )
    return placed.status, placed
