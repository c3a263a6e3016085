"""How well an index finds what it was never shown: its held-out queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Scored, View
from incdsi.info import Quality
from incdsi.preserve import product_error
from incdsi.records import Record
from incdsi.rows.products import exact
from incdsi.search import FIRST, fused, rank_within

MOST_PROBES = 2000
WORST = 10  # the last rank that counts
PORTION = 512  # documents whose dense scores are looked at together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probe:
    """A query that was held out, the row of the document it should find, and that one's score by its text alone."""

    text: str
    embedding: NDArray[np.float32]
    row: int
    dense: float


def probes(records: Iterable[Record], count: int) -> Iterator[Probe]:
    """The held-out queries, of which there are `count`, evenly thinned to a number that is quick to ask."""
    wanted = set(np.linspace(0, count - 1, min(count, MOST_PROBES)).astype(int).tolist())
    held_out = ((record, query) for record in records for query in record.queries if query.held_out)
    for number, (record, query) in enumerate(held_out):
        if number in wanted:
            dense = float(exact(record.anchor[None], query.embedding)[0])
            yield Probe(text=query.text, embedding=query.embedding, row=record.row, dense=dense)


def learned_ranks(view: View, asked: Sequence[Probe]) -> NDArray[np.intp]:
    """The rank of each probe's document by the learned score, as far as it counts."""
    return np.array([rank_within(view.learned(p.embedding), p.row, WORST) for p in asked], dtype=np.intp)


def ranks_by_weight(view: View, asked: Sequence[Probe], weights: Sequence[float]) -> NDArray[np.intp]:
    """The rank of each probe's document at each lexical weight, 0 being learned alone and 1 lexical alone.

    (weights, probes), as far as ranks count.
    """
    ranks = [_ranks(view.learned(p.embedding), view.lexical(p.text), p.row, weights) for p in asked]
    return np.array(ranks, dtype=np.intp).reshape(len(asked), len(weights)).T


def _ranks(learned: Scored, lexical: Scored, row: int, weights: Sequence[float]) -> list[int]:
    """By the best of both parts, which are looked up once; where they cannot tell, by a search at that weight."""
    lists = learned.top(FIRST), lexical.top(FIRST)
    rows = np.unique(np.concatenate([lists[0].rows, lists[1].rows, [row]]))
    own = rows == row
    scores = learned.score(rows), lexical.score(rows)
    ranks = []
    for weight in weights:
        both = fused(learned, lexical, weight)
        totals = np.sum([part.values(some) for part, some in zip(both.parts, scores, strict=True)], axis=0)
        at_least = int(np.count_nonzero(totals >= totals[own]))
        sure = at_least > WORST or totals[own][0] > both.beyond(lists)
        ranks.append(at_least if sure else rank_within(both, row, WORST))
    return ranks


def dense_ranks(records: Iterable[Record], asked: Sequence[Probe]) -> NDArray[np.intp]:
    """The rank of each probe's document by its text's embedding alone."""
    ranks = np.zeros(len(asked), dtype=np.intp)
    if not asked:
        return ranks
    queries = np.stack([probe.embedding for probe in asked])
    own = np.array([probe.dense for probe in asked])
    lengths = np.linalg.norm(queries, axis=1)
    stream = iter(records)
    while portion := [record.anchor for record in islice(stream, PORTION)]:
        anchors = np.stack(portion)
        scores = anchors.astype(np.float64) @ queries.T.astype(np.float64)
        doubt = product_error(scores.dtype, anchors.shape[1]) * np.outer(np.linalg.norm(anchors, axis=1), lengths)
        ranks += np.count_nonzero(scores - doubt > own, axis=0)
        place, query = np.nonzero(np.abs(scores - own) <= doubt)
        unsure = exact(anchors[place], queries[query]) >= own[query]
        ranks += np.bincount(query[unsure], minlength=len(asked))
    return ranks


def reached(view: View, asked: Sequence[Probe], lexical_weight: float) -> dict[str, Quality]:
    """What learned, lexical and fused search find."""
    ranks = ranks_by_weight(view, asked, (0.0, 1.0, lexical_weight))
    return {mode: Quality.of(some) for mode, some in zip(("learned", "lexical", "fused"), ranks, strict=True)}


def quality(view: View, records: Iterable[Record], asked: Sequence[Probe]) -> dict[str, Quality]:
    """What learned, lexical, fused and dense search find of the probes; empty without any.

    Those of documents that are gone from the view are left out.
    """
    there = [probe for probe in asked if probe.row in view]
    if not there:
        return {}
    dense = Quality.of(dense_ranks(records, there))
    return {**reached(view, there, view.settings.lexical_weight), "dense": dense}
