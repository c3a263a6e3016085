"""How well an index finds what it was never shown: its held-out queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.index.live import Live, preserve_nothing
from incdsi.index.settings import Method, Settings
from incdsi.info import Quality
from incdsi.rows import LocalRows
from incdsi.search import fused, lexical_part
from incdsi.store import Record

MOST_PROBES = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probe:
    """A query that was held out, and the row of the document it should find."""

    text: str
    embedding: NDArray[np.float32]
    row: int


def probes(records: Iterable[Record], method: Method) -> list[Probe]:
    """The held-out queries, evenly thinned to a number that is quick to ask.

    The paper's form holds nothing out: what older versions marked so in its indexes was given up.
    """
    if method == "paper":
        return []
    found = [
        Probe(text=query.text, embedding=query.embedding, row=record.row)
        for record in records
        for query in record.queries
        if query.held_out
    ]
    return [found[i] for i in np.linspace(0, len(found) - 1, min(len(found), MOST_PROBES)).astype(int)]


def learned_ranks(live: Live, asked: Sequence[Probe]) -> NDArray[np.intp]:
    """The rank of each probe's document by the learned score."""
    return np.array([live.rows.scores(p.embedding).rank_of(live.slot(p.row)) for p in asked], dtype=np.intp)


def ranks_by_weight(live: Live, asked: Sequence[Probe], weights: Sequence[float]) -> NDArray[np.intp]:
    """The rank of each probe's document at each lexical weight, 0 being learned alone and 1 lexical alone.

    (weights, probes).
    """
    ranks = np.empty((len(weights), len(asked)), dtype=np.intp)
    for place, probe in enumerate(asked):
        learned, spread = live.rows.scores_and_spread(probe.embedding)
        words = lexical_part(live.lexical.scores(probe.text, len(learned.alive)), learned.alive, 1.0)
        for number, weight in enumerate(weights):
            ranking = fused(learned, spread, weight * words, weight)
            ranks[number, place] = ranking.scores.rank_of(live.slot(probe.row))
    return ranks


def dense_ranks(anchors: NDArray[np.float32], rows: NDArray[np.int64], asked: Sequence[Probe]) -> NDArray[np.intp]:
    """The rank of each probe's document by its text's embedding alone; `anchors` (n, h) of the store's `rows`."""
    place = {int(row): number for number, row in enumerate(rows)}
    dense = LocalRows(anchors.shape[1])
    dense.fill(anchors)
    return np.array([dense.scores(p.embedding).rank_of(place[p.row]) for p in asked], dtype=np.intp)


def reached(live: Live, asked: Sequence[Probe], lexical_weight: float) -> dict[str, Quality]:
    """What learned, lexical and fused search find."""
    ranks = ranks_by_weight(live, asked, (0.0, 1.0, lexical_weight))
    return {mode: Quality.of(some) for mode, some in zip(("learned", "lexical", "fused"), ranks, strict=True)}


def quality(records: Sequence[Record], settings: Settings) -> dict[str, Quality]:
    """What learned, lexical, fused and dense search find of the held-out queries; empty without any."""
    asked = probes(records, settings.method)
    if not asked:
        return {}
    live = Live(settings.dimension, preserve_nothing)
    live.put(records)
    anchors = np.stack([record.anchor for record in records])
    ranks = dense_ranks(anchors, np.array([record.row for record in records]), asked)
    return {**reached(live, asked, settings.lexical_weight), "dense": Quality.of(ranks)}
