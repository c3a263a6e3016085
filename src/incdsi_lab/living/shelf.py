"""An index in memory alone: the product's own drafting and placement, without store, and nothing tunes itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from incdsi.documents import Document
from incdsi.engine.local import Live
from incdsi.engine.settings import Settings
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import Drafter, untaught, was_taught
from incdsi.index.fusing import best_fusion
from incdsi.index.placement import BATCH, place_alone, place_many, place_taught
from incdsi.index.quality import Probe, learned_ranks, probes
from incdsi.index.replacement import Solved, sweep
from incdsi.index.tuning import FEW, LADDER
from incdsi.index.unasked import inquiry
from incdsi.info import Quality
from incdsi.progress import Stopwatch
from incdsi.records import Record, StoredQuery
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator


class Shelf:
    """Documents by id with everything solved for them, and what an open index holds of them."""

    def __init__(self, encoder: Encoder, generator: Generator, settings: Settings) -> None:
        self.live = Live(settings)
        self.records: dict[str, Record] = {}
        self._encoder, self._generator = encoder, generator
        self._next = 1

    @property
    def settings(self) -> Settings:
        return self.live.settings

    def add(self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> None:
        """New documents, in portions as an index takes them."""
        for start in range(0, len(documents), BATCH):
            drafts = self._drafter.drafts(documents[start : start + BATCH], queries, self._next, Stopwatch())
            self._next += len(drafts)
            self._show([one.record for one in place_many(self.live, drafts, self.settings)])

    def delete(self, id: str) -> None:
        self.live.remove([self.records.pop(id).row])

    def update(self, document: Document, queries: Sequence[str]) -> None:
        """Another text, and more of what people asked."""
        draft = self._drafter.redraft(self.records[document.id], document, queries, Stopwatch())
        self._show([place_alone(self.live, draft, self.settings).record])

    def teach(self, query: str, id: str) -> None:
        draft = self._drafter.taught(self.records[id], query, Stopwatch())
        others = [record for record in self.records.values() if record.row != draft.row and was_taught(record, query)]
        before = [untaught(record, query) for record in others]
        self._show([one.record for one in place_taught(self.live, draft, before, self.settings)])

    def placed_again(self) -> Shelf:
        """Another one with the same documents, each solved for once more among all others."""
        other = Shelf(self._encoder, self._generator, self.settings)
        other.live, other._next = self.live.bench(), self._next
        solved: dict[int, Solved] = {}
        ordered = sorted(self.records.values(), key=lambda record: record.row)
        sweep(other.live, ordered, self.settings, solved)
        other.records = {record.document.id: solved[record.row].applied(record) for record in ordered}
        return other

    def held_out(self) -> list[Probe]:
        """The questions it holds out."""
        return list(probes(self.records.values(), self.count_held_out()))

    def count_held_out(self) -> int:
        return sum(query.held_out for query in self._queries())

    def choose_fusion(self) -> None:
        """By the questions it holds out, where they are enough, as an index does."""
        asked = self.held_out()
        if len(asked) >= FEW:
            records = sorted(self.records.values(), key=lambda record: record.row)
            fusion = best_fusion(inquiry(self.live, lambda: records, asked, self.settings).again)
            self.live.settings = replace(
                self.settings, lexical_weight=fusion.lexical_weight, nearest_share=fusion.nearest_share
            )

    def _queries(self) -> Iterable[StoredQuery]:
        return (query for record in self.records.values() for query in record.queries)

    @property
    def _drafter(self) -> Drafter:
        return Drafter(
            encoder=self._encoder,
            generator=lambda: self._generator,
            splitter=lambda: "none",
            hold_out=True,
            elsewhere=self.live.elsewhere,
        )

    def _show(self, records: Sequence[Record]) -> None:
        self.live.put(records)
        self.records.update((record.document.id, record) for record in records)


def best_rung(shelf: Shelf) -> Hyperparameters:
    """The rung of the product's ladder that finds most of what the shelf holds out; of equals the more careful."""
    asked = shelf.held_out()
    ordered = sorted(shelf.records.values(), key=lambda record: record.row)

    def quality(how: Hyperparameters) -> float:
        tried = replace(shelf.settings, hyperparameters=how)
        bench = Live(tried)
        sweep(bench, ordered, tried, {})
        return Quality.of(learned_ranks(bench, asked)).mrr_at_10

    return max(LADDER, key=quality) if asked else shelf.settings.hyperparameters


def used(records: Sequence[Record]) -> tuple[list[StoredQuery], np.ndarray, list[StoredQuery], np.ndarray]:
    """The queries that documents are placed by and those held out, each with the places of their documents."""
    both: tuple[list[tuple[StoredQuery, int]], list[tuple[StoredQuery, int]]] = ([], [])
    for place, record in enumerate(records):
        for query in record.queries:
            both[query.held_out].append((query, place))
    placed, apart = both
    return (
        [query for query, _ in placed],
        np.array([place for _, place in placed], dtype=np.int64),
        [query for query, _ in apart],
        np.array([place for _, place in apart], dtype=np.int64),
    )
