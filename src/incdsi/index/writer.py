"""Drafts placed, recorded and shown: durable first, then visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from incdsi.documents import Addition, Document
from incdsi.index.draft import Draft, Drafter
from incdsi.index.live import Live
from incdsi.index.placement import Placed, place_alone, place_many
from incdsi.index.settings import Settings
from incdsi.progress import Progress, Stopwatch
from incdsi.store import Record, Store
from incdsi.store.answers import Answer
from incdsi.store.transaction import Transaction

# What to remember, by key, of a change that is about to be committed: its additions or the number of documents that
# go, and the version it makes.
Receipt = Callable[[Any, int], Iterable[tuple[str, Answer]]]


@dataclass(slots=True, kw_only=True, eq=False)
class Writer:
    """Changes documents in a store and in what is live, under one state of the settings; for the holder of the lock.

    `held_out` counts the queries it kept for measuring. The `receipt` is stored with the first transaction.
    """

    store: Store
    live: Live
    settings: Settings
    drafter: Drafter
    held_out: int = 0
    receipt: Receipt | None = None

    def add(self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> list[Addition]:
        """Add a portion in one transaction."""
        watch = Stopwatch()
        drafts = self.drafter.drafts(documents, queries, watch)
        placed = place_many(self.live, drafts, self.settings, watch=watch)
        with watch.step("commit"), self.store.transaction() as tx:
            records = _inserted(tx, placed)
            self._acknowledge(tx, lambda: self._additions(placed, records, watch))
        self._show(records, watch)
        self.held_out += _held_out(records)
        return self._additions(placed, records, watch)

    def take_over(self, records: Sequence[Record]) -> None:
        """Store documents that were placed elsewhere, in one transaction."""
        with self.store.transaction() as tx:
            stored = [replace(record, row=tx.insert(record)) for record in records]
        self._show(stored, Stopwatch())
        self.held_out += _held_out(stored)

    def update(self, document: Document, queries: Sequence[str]) -> Addition:
        """Replace a document's text; UnknownDocument when it is not there."""
        watch = Stopwatch()
        return self._replace(self.drafter.redraft(self.store.get(document.id), document, queries, watch), watch)

    def teach(self, query: str, id: str) -> Addition:
        """Place a document so that it wins one more query."""
        watch = Stopwatch()
        return self._replace(self.drafter.taught(self.store.get(id), query, watch), watch)

    def attach(self, ids: Sequence[str], queries: Mapping[str, Sequence[str]], beside: Live) -> list[Addition]:
        """One transaction; placed in `beside`, where each sees those before it before anybody else does."""
        watch = Stopwatch()
        drafts = self.drafter.attached([self.store.get(id) for id in ids], queries, watch)
        placed = []
        for draft in drafts:
            placed.append(place_alone(beside, draft, self.settings, watch=watch))
            if beside is not self.live:
                beside.put([placed[-1].knowing(())])
        return self._additions(placed, self._record_again(placed, watch), watch)

    def delete(self, ids: Sequence[str]) -> list[int]:
        """Remove documents in one transaction; the rows they had."""
        with self.store.transaction() as tx:
            rows = [tx.delete(id) for id in ids]
            self._acknowledge(tx, lambda: len(ids))
        self.live.remove(rows)
        self.live.sequence = self.store.version
        return rows

    def place_anew(self, rows: Sequence[int], progress: Progress | None) -> None:
        """Solve again for the documents in these rows, one after another."""
        for done, id in enumerate(self.store.ids(rows), start=1):
            self._replace(Draft.of(self.store.get(id)), Stopwatch())
            if progress is not None:
                progress(done, len(rows))

    def _replace(self, draft: Draft, watch: Stopwatch) -> Addition:
        placed = place_alone(self.live, draft, self.settings, watch=watch)
        (addition,) = self._additions([placed], self._record_again([placed], watch), watch)
        return addition

    def _record_again(self, placed: Sequence[Placed], watch: Stopwatch) -> list[Record]:
        records = [one.knowing(()) for one in placed]
        with watch.step("commit"), self.store.transaction() as tx:
            for record in records:
                tx.replace(record.document.id, record)
            self._acknowledge(tx, lambda: self._additions(placed, records, watch))
        self._show(records, watch)
        return records

    def _show(self, records: Sequence[Record], watch: Stopwatch) -> None:
        with watch.step("append"):
            self.live.put(records)
            self.live.sequence = self.store.version

    def _acknowledge(self, tx: Transaction, result: Callable[[], object]) -> None:
        """Store the receipt with the change it is for: who asks again later is told, whatever happens in between."""
        receipt, self.receipt = self.receipt, None
        if receipt is not None:
            for key, answer in receipt(result(), tx.version):
                tx.keep_answer(key, answer)

    def _additions(self, placed: Sequence[Placed], records: Sequence[Record], watch: Stopwatch) -> list[Addition]:
        seconds = {step: spent / max(1, len(placed)) for step, spent in watch.seconds.items()}
        return [self._addition(one, records, seconds) for one in placed]

    def _addition(self, placed: Placed, records: Sequence[Record], seconds: Mapping[str, float]) -> Addition:
        others = [records[number].document.id for number in sorted(placed.threatened.places)]
        rows = sorted(placed.threatened.rows)
        return Addition(
            document_id=placed.record.document.id,
            status=placed.status,
            margin=placed.margin,
            conflicts=(*self.store.ids(rows), *others),
            seconds=dict(seconds),
        )


def _held_out(records: Sequence[Record]) -> int:
    return sum(query.held_out for record in records for query in record.queries)


def _inserted(tx: Transaction, placed: Sequence[Placed]) -> list[Record]:
    """Insert in order, each knowing the rows of those before it."""
    rows: list[int] = []
    records = []
    for result in placed:
        record = result.knowing(rows)
        rows.append(tx.insert(record))
        records.append(replace(record, row=rows[-1]))
    return records
