"""Drafts placed, recorded and shown: durable first, then visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from incdsi.documents import Addition, Document
from incdsi.errors import InvalidInput
from incdsi.filters import Where, matches_everything, parse
from incdsi.index.draft import Draft, Drafter, taught_among
from incdsi.index.live import Live
from incdsi.index.placement import BATCH, Placed, place_alone, place_many, portions
from incdsi.index.session import Session
from incdsi.index.settings import generator_of
from incdsi.progress import Progress, Stopwatch
from incdsi.store import Record, Store
from incdsi.store.answers import Answer
from incdsi.store.transaction import Transaction
from incdsi.text.generators import Generator

# What to remember, by key, of a change that is about to be committed: its additions or the number of documents that
# go, and the version it makes.
Receipt = Callable[[Any, int], Iterable[tuple[str, Answer]]]


class Writer:
    """Changes documents, in the store and then in what is live; to be called inside `session.changing` alone."""

    def __init__(self, session: Session, generator: Generator | None = None) -> None:
        self._session = session
        self._given = generator
        self._generator: Generator | None = None  # once a change needed it
        self._receipt: Receipt | None = None

    @contextmanager
    def keeping(self, receipt: Receipt) -> Iterator[None]:
        """Store a receipt with the first transaction of a change that is made inside."""
        with self._session.mutex:
            self._receipt = receipt
            try:
                yield
            finally:
                self._receipt = None

    def add(
        self,
        documents: Sequence[Document],
        queries: Mapping[str, Sequence[str]],
        *,
        whole: bool,
        progress: Progress | None,
    ) -> list[Addition]:
        """Add new documents in portions, one transaction each, or, when they have to be `whole`, in one."""
        additions: list[Addition] = []

        def is_taught(document: Document) -> bool:
            return bool(taught_among(queries.get(document.id, ())))

        parts = portions(documents, self._session.settings, is_taught, BATCH)
        for portion in [documents] if whole and documents else parts:
            additions += self._add(portion, queries)
            if progress is not None:
                progress(len(additions), len(documents))
        return additions

    def take_over(self, records: Sequence[Record]) -> None:
        """Store documents that were placed elsewhere, in one transaction."""
        with self._store.transaction() as tx:
            stored = [replace(record, row=tx.insert(record)) for record in records]
        self._show(stored, Stopwatch())
        self._session.held_out += _held_out(stored)

    def update(self, document: Document, queries: Sequence[str]) -> Addition:
        """Replace a document's text; UnknownDocument when it is not there."""
        watch = Stopwatch()
        return self._replace(self._drafter().redraft(self._store.get(document.id), document, queries, watch), watch)

    def teach(self, query: str, id: str) -> Addition:
        """Place a document so that it wins one more query."""
        watch = Stopwatch()
        return self._replace(self._drafter().taught(self._store.get(id), query, watch), watch)

    def attach(self, queries: Mapping[str, Sequence[str]], progress: Progress | None) -> list[Addition]:
        """Place documents by more queries, in portions; UnknownDocument, before the first, when one is not there."""
        additions: list[Addition] = []
        ids = [id for id in queries if self._store.row_of(id)]
        beside = self._session.live.compacted() if len(ids) > 1 else self._session.live
        for start in range(0, len(ids), BATCH):
            additions += self._attach(ids[start : start + BATCH], queries, beside, acknowledge=start == 0)
            if progress is not None:
                progress(min(start + BATCH, len(ids)), len(ids))
        self._session.held_out = self._store.held_out()
        return additions

    def delete(self, ids: Sequence[str], *, resolve: bool, progress: Progress | None) -> int:
        """Remove documents in one transaction, how many; `resolve` places anew those that they constrained."""
        try:
            rows = self._removed(ids)
            if resolve:
                shaped = {row for gone in rows for row in self._store.constrained_by(gone)}
                self._place_anew(sorted(shaped), progress, acknowledge=False)
        except KeyboardInterrupt as stop:
            deleted = 0 if any(one in self._store for one in ids) else len(ids)
            raise KeyboardInterrupt(f"stopped; {deleted:,} deleted, {self._waiting()}") from stop
        return len(ids)

    def matching(self, where: Where) -> list[str]:
        """The ids to delete by a filter; refuses one without a condition."""
        tree = parse(where)
        if matches_everything(tree):
            raise InvalidInput("this filter matches every document, so nothing was deleted; narrow it, or delete by id")
        return self._store.ids(self._store.filter_rows(tree).tolist())

    def resolve(self, progress: Progress | None) -> int:
        """Place anew what was placed beside a document that is gone; how many, each kept as it is placed."""
        rows = self._store.unresolved()
        try:
            self._place_anew(rows, progress, acknowledge=True)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"stopped; {self._waiting()}") from stop
        return len(rows)

    # Inside

    def _add(self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> list[Addition]:
        watch = Stopwatch()
        drafts = self._drafter().drafts(documents, queries, watch)
        placed = place_many(self._session.live, drafts, self._session.settings, watch=watch)
        with watch.step("commit"), self._store.transaction() as tx:
            records = _inserted(tx, placed)
            self._acknowledge(tx, lambda: self._additions(placed, records, watch))
        self._show(records, watch)
        self._session.held_out += _held_out(records)
        return self._additions(placed, records, watch)

    def _attach(
        self, ids: Sequence[str], queries: Mapping[str, Sequence[str]], beside: Live, *, acknowledge: bool
    ) -> list[Addition]:
        """One transaction; placed in `beside`, where each sees those before it before anybody else does."""
        watch = Stopwatch()
        drafts = self._drafter().attached([self._store.get(id) for id in ids], queries, watch)
        placed = []
        for draft in drafts:
            placed.append(place_alone(beside, draft, self._session.settings, watch=watch))
            if beside is not self._session.live:
                beside.put([placed[-1].knowing(())])
        return self._additions(placed, self._record_again(placed, watch, acknowledge), watch)

    def _removed(self, ids: Sequence[str]) -> list[int]:
        """Remove documents; the rows they had."""
        with self._store.transaction() as tx:
            rows = [tx.delete(id) for id in ids]
            self._acknowledge(tx, lambda: len(ids))
        self._session.live.remove(rows)
        self._session.applied()
        return rows

    def _place_anew(self, rows: Sequence[int], progress: Progress | None, *, acknowledge: bool) -> None:
        """Solve again for the documents in these rows, one after another."""
        for done, id in enumerate(self._store.ids(rows), start=1):
            self._replace(Draft.of(self._store.get(id)), Stopwatch(), acknowledge=acknowledge and done == 1)
            if progress is not None:
                progress(done, len(rows))

    def _waiting(self) -> str:
        left = len(self._store.unresolved())
        return f"{left:,} left to place anew" + (": `resolve` goes on" if left else "")

    def _replace(self, draft: Draft, watch: Stopwatch, *, acknowledge: bool = True) -> Addition:
        placed = place_alone(self._session.live, draft, self._session.settings, watch=watch)
        (addition,) = self._additions([placed], self._record_again([placed], watch, acknowledge), watch)
        return addition

    def _record_again(self, placed: Sequence[Placed], watch: Stopwatch, acknowledge: bool) -> list[Record]:
        records = [one.knowing(()) for one in placed]
        with watch.step("commit"), self._store.transaction() as tx:
            for record in records:
                tx.replace(record.document.id, record)
            if acknowledge:
                self._acknowledge(tx, lambda: self._additions(placed, records, watch))
        self._show(records, watch)
        return records

    def _show(self, records: Sequence[Record], watch: Stopwatch) -> None:
        with watch.step("append"):
            self._session.live.put(records)
            self._session.applied()

    def _acknowledge(self, tx: Transaction, result: Callable[[], object]) -> None:
        """Store the receipt with the change it is for: who asks again later is told, whatever happens in between."""
        if self._receipt is not None:
            for key, answer in self._receipt(result(), tx.version):
                tx.keep_answer(key, answer)

    def _additions(self, placed: Sequence[Placed], records: Sequence[Record], watch: Stopwatch) -> list[Addition]:
        seconds = {step: spent / max(1, len(placed)) for step, spent in watch.seconds.items()}
        return [self._addition(one, records, seconds) for one in placed]

    def _addition(self, placed: Placed, records: Sequence[Record], seconds: Mapping[str, float]) -> Addition:
        others = [records[number].document.id for number in sorted(placed.threatened.places)]
        rows = sorted(placed.threatened.rows)
        return Addition(
            document_id=placed.record.document.id,
            status=placed.status.name.lower(),
            explanation=placed.status.value,
            margin=placed.margin,
            conflicts=(*self._store.ids(rows), *others),
            seconds=dict(seconds),
        )

    @property
    def _store(self) -> Store:
        return self._session.store

    def _drafter(self) -> Drafter:
        session = self._session
        return Drafter(
            encoder=session.encoder,
            generator=self._written_by,
            hold_out=session.settings.tuning,
            owners=session.live.queries,
        )

    def _written_by(self) -> Generator:
        """What writes queries for new texts; refuses when it cannot be had."""
        if self._generator is None:
            self._generator = generator_of(self._store, self._given)
            self._session.applied()
        return self._generator


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
