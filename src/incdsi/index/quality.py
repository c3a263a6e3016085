"""How well an index finds what it was never shown: its held-out queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.confidence import LEAST, Confidence
from incdsi.engine.protocol import Best, Spreading, View, Worded
from incdsi.engine.settings import Fusion
from incdsi.info import Quality
from incdsi.preserve import product_error
from incdsi.records import Record, StoredQuery
from incdsi.rows.products import exact
from incdsi.search import evidence, fused, rank_within

Parts = tuple[Spreading, Spreading, Worded]
T = TypeVar("T")
MOST_PROBES = 2000
WORST = 10  # the last rank that counts
LEARNED_ALONE, NEAREST_ALONE, WORDS_ALONE = Fusion(0.0, 0.0), Fusion(0.0, 1.0), Fusion(1.0, 0.0)
LISTED = 128  # the best by each part, of which ranks are told; nearly always they do
RIVALS = 32  # the best by each part, that a probe's document is compared with
HITS = 5  # of a probe, to learn from which are right
PORTION = 512  # documents whose dense scores are looked at together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probe:
    """A query that was held out, the row of the document it should find, and that one's score by its text alone."""

    text: str
    embedding: NDArray[np.float32]
    row: int
    dense: float

    @classmethod
    def of(cls, record: Record, query: StoredQuery) -> Probe:
        dense = float(exact(record.anchor[None], query.embedding)[0])
        return cls(text=query.text, embedding=query.embedding, row=record.row, dense=dense)


class Panel(NamedTuple):
    """Probes, the documents among which they are asked, and how much each of them counts.

    `told` are contributions of others like them, which were asked among documents that are gone.
    """

    view: View
    asked: Sequence[Probe]
    weight: float = 1.0
    told: Sequence[NDArray[np.float64]] = ()

    @property
    def telling(self) -> int:
        """How many probes tell."""
        return len(self.asked) + len(self.told)

    def contributions(self) -> Iterator[NDArray[np.float64]]:
        """Those of all probes."""
        yield from self.told
        yield from contributions(self.view, self.asked)


def evenly(some: Sequence[T], count: int) -> list[T]:
    """So many of these, evenly chosen; all where there are no more."""
    return [some[place] for place in np.linspace(0, len(some) - 1, min(count, len(some))).astype(int).tolist()]


def probes(records: Iterable[Record], count: int) -> Iterator[Probe]:
    """The held-out queries, of which there are `count`, evenly thinned to a number that is quick to ask."""
    wanted = set(evenly(range(count), MOST_PROBES))
    held_out = ((record, query) for record in records for query in record.queries if query.held_out)
    for number, (record, query) in enumerate(held_out):
        if number in wanted:
            yield Probe.of(record, query)


def learned_ranks(view: View, asked: Sequence[Probe]) -> NDArray[np.intp]:
    """The rank of each probe's document by the learned score, as far as it counts."""
    found = zip(view.learned_many(_embeddings(asked)), asked, strict=True) if asked else ()
    return np.array([rank_within(learned, probe.row, WORST) for learned, probe in found], dtype=np.intp)


def ranks_by_fusion(view: View, asked: Sequence[Probe], fusions: Sequence[Fusion]) -> NDArray[np.intp]:
    """The rank of each probe's document at each fusion, (fusions, probes), as far as ranks count."""
    ranks = [_ranks(parts, probe, fusions) for parts, probe in zip(_parts(view, asked), asked, strict=True)]
    return np.array(ranks, dtype=np.intp).reshape(len(asked), len(fusions)).T


def _embeddings(asked: Sequence[Probe]) -> NDArray[np.float32]:
    return np.stack([probe.embedding for probe in asked])


def _parts(view: View, asked: Sequence[Probe]) -> Iterator[Parts]:
    """The three scores of each probe."""
    if asked:
        learned, nearest = (score(_embeddings(asked)) for score in (view.learned_many, view.nearest_many))
        yield from zip(learned, nearest, (view.lexical(probe.text) for probe in asked), strict=True)


def contributions(view: View, asked: Sequence[Probe]) -> Iterator[NDArray[np.float64]]:
    """For each probe what the parts of a score give the best documents of each, less what they give its own, (3, m).

    Its own is among them.
    """
    for parts, probe in zip(_parts(view, asked), asked, strict=True):
        values, own = _values(parts, probe, [part.top(RIVALS) for part in parts])
        yield values - values[:, own]


def _values(parts: Parts, probe: Probe, lists: Sequence[Best]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What the parts of a score give the documents listed and the probe's own, (3, m); which of them is its own."""
    rows = np.unique(np.concatenate([*(found.rows for found in lists), [probe.row]]))
    return np.stack([part.unit.standardised(part.score(rows)) for part in parts]), rows == probe.row


def _ranks(parts: Parts, probe: Probe, fusions: Sequence[Fusion]) -> NDArray[np.intp]:
    """By the best of each part, which are looked up once; where they cannot tell, by a search at that fusion."""
    lists = [part.top(LISTED) for part in parts]
    values, is_own = _values(parts, probe, lists)
    weights = np.array([(one.learned_weight, one.nearest_weight, one.lexical_weight) for one in fusions])
    totals = (weights[:, :, None] * values).sum(axis=1)  # (fusions, rows)
    own = totals[:, is_own]
    ranks: NDArray[np.intp] = np.count_nonzero(totals >= own, axis=1)
    if any(found.beyond == -np.inf for found in lists):
        return ranks
    ends = [part.unit.standardised(np.array([found.beyond]))[0] for part, found in zip(parts, lists, strict=True)]
    unsure = (ranks <= WORST) & (own[:, 0] <= (weights * np.array(ends)).sum(axis=1))
    for place in np.flatnonzero(unsure).tolist():
        ranks[place] = rank_within(fused(*parts, fusions[place]), probe.row, WORST)
    return ranks


def fitted_confidence(panels: Sequence[Panel], fusion: Fusion) -> Confidence | None:
    """How far hits of such a search can be trusted, by the best hits of the probes; None where they cannot tell."""
    seen: list[NDArray[np.float64]] = []
    right: list[NDArray[np.bool_]] = []
    for view, asked, *_ in panels:
        for parts, probe in zip(_parts(view, asked), asked, strict=True):
            whole = fused(*parts, fusion)
            found = whole.top(HITS)
            seen.append(evidence(whole, found.rows, found.scores, view.asked_for(found.rows)))
            right.append(found.rows == probe.row)
    both = right and len({bool(one) for some in right for one in some}) == 2
    return Confidence.fitted(np.concatenate(seen), np.concatenate(right)) if both and len(right) >= LEAST else None


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


def reached(view: View, asked: Sequence[Probe], fusion: Fusion) -> dict[str, Quality]:
    """What learned, lexical and fused search find."""
    ranks = ranks_by_fusion(view, asked, (LEARNED_ALONE, WORDS_ALONE, fusion))
    return {mode: Quality.of(some) for mode, some in zip(("learned", "lexical", "fused"), ranks, strict=True)}


def quality(view: View, records: Iterable[Record], asked: Sequence[Probe]) -> dict[str, Quality]:
    """What learned, lexical, fused and dense search find of the probes; empty without any.

    Those of documents that are gone from the view are left out.
    """
    there = [probe for probe in asked if probe.row in view]
    if not there:
        return {}
    dense = Quality.of(dense_ranks(records, there))
    return {**reached(view, there, view.settings.fusion), "dense": dense}
