"""Drafts placed, recorded and shown: durable first, then visible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from incdsi.documents import Addition, Document
from incdsi.engine.protocol import Batch, Bench, Engine
from incdsi.errors import InvalidInput
from incdsi.filters import Where, matches_everything, parse
from incdsi.index.ahead import Ahead
from incdsi.index.draft import Draft, Drafter, taught_among, untaught, was_taught
from incdsi.index.placement import BATCH, Placed, place_alone, place_many, place_taught, portions
from incdsi.index.remembered import generator_of, splitter_of
from incdsi.index.session import Session
from incdsi.progress import Progress, Stopwatch
from incdsi.records import Answer, Record
from incdsi.text.generators import Generator
from incdsi.text.passages import Splitter

LARGE = 1 << 18  # characters of texts that are enough for a portion
TAKEN = "{!r} was taught this query before and has given it up"
OUTVOTED = (
    "other documents still come first for {!r} because they share more of its words; teach it in more distinctive ones"
)
KEPT = "text and queries are as they were, so it stays where it is"
# What to remember, by key, of a change that is about to be committed: its additions or the number of documents that
# go, and the version it makes.
Receipt = Callable[[Any, int], Iterable[tuple[str, Answer]]]


class Writer:
    """Changes documents, in the store and then in what is live; to be called inside `session.changing` alone."""

    def __init__(self, session: Session, generator: Generator | None = None, splitter: Splitter | None = None) -> None:
        self._session = session
        self._given = generator, splitter
        self._generator: Generator | None = None  # once a change needed it
        self._splitter: Splitter | None = None
        self._receipt: Receipt | None = None
        self.ahead = Ahead()

    def draft_ahead(self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> None:
        """Generate and encode for documents that are about to be added; needs no lock, and changes nothing."""
        self._drafter().drafts_ahead(documents, queries)

    @contextmanager
    def keeping(self, receipt: Receipt) -> Iterator[None]:
        """Store a receipt with the first transaction of a change that is made inside."""
        with self._engine.mutex:
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
        for portion in [documents] if whole and documents else (some for part in parts for some in _by_size(part)):
            additions += self._add(portion, queries, progress if whole else None)
            if progress is not None:
                progress(len(additions), len(documents))
        return additions

    def take_over(self, records: Sequence[Record]) -> None:
        """Store documents that were placed elsewhere, in one transaction."""
        first = self._engine.next_row
        stored = [replace(record, row=row) for row, record in enumerate(records, start=first)]
        with self._engine.write() as batch:
            for record in stored:
                batch.insert(record)
        self._session.hold_out(_held_out(stored))

    def update(self, document: Document, queries: Sequence[str]) -> Addition:
        """Replace a document; UnknownDocument when it is not there. Text that is the same is not embedded again."""
        watch = Stopwatch()
        changed = _changed(self._drafter(), self._engine.get(document.id), document, queries, watch)
        return self._replace(changed, watch) if isinstance(changed, Draft) else self._keep(changed, watch)

    def upsert(
        self,
        documents: Sequence[Document],
        queries: Mapping[str, Sequence[str]],
        *,
        whole: bool,
        progress: Progress | None,
    ) -> list[Addition]:
        """Update those that are there one after another, then add the others; what happened to each, in their order."""
        old = [document for document in documents if document.id in self._engine]
        new = [document for document in documents if document.id not in self._engine]
        if not old:
            return self.add(new, queries, whole=whole, progress=progress)
        if whole:
            additions = self._upsert(documents, queries, progress)
            if progress is not None:
                progress(len(additions), len(documents))
            return additions
        done: dict[str, Addition] = {}
        for document in old:
            done[document.id] = self.update(document, queries.get(document.id, ()))
            if progress is not None:
                progress(len(done), len(documents))

        def added(count: int, _: int) -> None:
            if progress is not None:
                progress(len(old) + count, len(documents))

        done |= {one.document_id: one for one in self.add(new, queries, whole=False, progress=added)}
        return [done[document.id] for document in documents]

    def teach(self, query: str, id: str) -> Addition:
        """Place a document so that it wins one more query; whoever was taught the same before gives it up."""
        watch = Stopwatch()
        draft = self._drafter().taught(self._engine.get(id), query, watch)
        others = self._engine.ids(self._session.current().view.others(query, draft.row))
        before = [untaught(one, query) for one in map(self._engine.get, others) if was_taught(one, query)]
        return self._replace(draft, watch, before=before)

    def attach(self, queries: Mapping[str, Sequence[str]], progress: Progress | None) -> list[Addition]:
        """Place documents by more queries, in portions; UnknownDocument, before the first, when one is not there."""
        additions: list[Addition] = []
        ids = [id for id in queries if self._engine.row_of(id)]
        bench = self._session.current().view.bench() if len(ids) > 1 else None
        for start in range(0, len(ids), BATCH):
            additions += self._attach(ids[start : start + BATCH], queries, bench, acknowledge=start == 0)
            if progress is not None:
                progress(min(start + BATCH, len(ids)), len(ids))
        self._session.count_held_out()
        return additions

    def delete(self, ids: Iterable[str], *, resolve: bool, progress: Progress | None) -> int:
        """Remove documents in one transaction, how many; `resolve` places anew those that they constrained."""
        ids = list(dict.fromkeys(ids))
        try:
            rows = self._removed(ids)
            if resolve:
                shaped = {row for gone in rows for row in self._engine.constrained_by(gone)}
                self._place_anew(sorted(shaped), progress, acknowledge=False)
        except KeyboardInterrupt as stop:
            deleted = 0 if any(one in self._engine for one in ids) else len(ids)
            raise KeyboardInterrupt(f"stopped; {deleted:,} deleted, {self._waiting()}") from stop
        return len(ids)

    def matching(self, where: Where) -> list[str]:
        """The ids to delete by a filter; refuses one without a condition."""
        tree = parse(where)
        if matches_everything(tree):
            raise InvalidInput("this filter matches every document, so nothing was deleted; narrow it, or delete by id")
        return self._engine.ids(self._engine.matching(tree).tolist())

    def resolve(self, progress: Progress | None) -> int:
        """Place anew what was placed beside a document that is gone; how many, each kept as it is placed."""
        rows = self._engine.unresolved()
        try:
            self._place_anew(rows, progress, acknowledge=True)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"stopped; {self._waiting()}") from stop
        return len(rows)

    # Inside

    def _add(
        self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]], progress: Progress | None
    ) -> list[Addition]:
        watch, now = Stopwatch(), self._session.current()
        drafts = self._drafter().drafts(documents, queries, self._engine.next_row, watch, progress)
        placed = place_many(now.view, drafts, now.settings, watch=watch)
        with self._engine.write(watch) as batch:
            for one in placed:
                batch.insert(one.record)
            self._acknowledge(batch, lambda: self._additions(placed, watch))
        self._session.hold_out(_held_out([one.record for one in placed]))
        return self._additions(placed, watch)

    def _upsert(
        self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]], progress: Progress | None
    ) -> list[Addition]:
        """One transaction; they are placed on a bench, where each sees those before it before anybody else does."""
        watch, now, kept, placed = Stopwatch(), self._session.current(), list[Record](), list[Placed]()
        bench, new = now.view.bench(), list[Document]()
        drafter = replace(self._drafter(), elsewhere=bench.elsewhere)
        for document in documents:
            if document.id not in self._engine:
                new.append(document)
                continue
            own = queries.get(document.id, ())
            changed = _changed(drafter, self._engine.get(document.id), document, own, watch)
            if isinstance(changed, Draft):
                placed.append(place_alone(bench, changed, now.settings, watch=watch))
                bench.put([placed[-1].record])
            else:
                kept.append(changed)
            if progress is not None:
                progress(len(placed) + len(kept), len(documents))

        def embedded(count: int, _: int) -> None:
            if progress is not None:
                progress(len(placed) + len(kept) + count, len(documents))

        drafts = drafter.drafts(new, queries, self._engine.next_row, watch, embedded) if new else []
        added = place_many(bench, drafts, now.settings, watch=watch) if new else []

        def additions() -> list[Addition]:
            found = (*(_kept(record, watch) for record in kept), *self._additions([*placed, *added], watch))
            by_id = {one.document_id: one for one in found}
            return [by_id[document.id] for document in documents]

        with self._engine.write(watch) as batch:
            for record in (*kept, *(one.record for one in placed)):
                batch.replace(record)
            for one in added:
                batch.insert(one.record)
            self._acknowledge(batch, additions)
        self._session.count_held_out()
        return additions()

    def _attach(
        self, ids: Sequence[str], queries: Mapping[str, Sequence[str]], bench: Bench | None, *, acknowledge: bool
    ) -> list[Addition]:
        """One transaction; several are placed on a bench, where each sees those before it before anybody else does."""
        watch, now, placed = Stopwatch(), self._session.current(), list[Placed]()
        for draft in self._drafter().attached([self._engine.get(id) for id in ids], queries, watch):
            placed.append(place_alone(now.view if bench is None else bench, draft, now.settings, watch=watch))
            if bench is not None:
                bench.put([placed[-1].record])
        self._record_again(placed, watch, acknowledge)
        return self._additions(placed, watch)

    def _removed(self, ids: Sequence[str]) -> list[int]:
        """Remove documents; the rows they had."""
        with self._engine.write() as batch:
            rows = [batch.delete(id) for id in ids]
            self._acknowledge(batch, lambda: len(ids))
        return rows

    def _place_anew(self, rows: Sequence[int], progress: Progress | None, *, acknowledge: bool) -> None:
        """Solve again for the documents in these rows, one after another."""
        for done, id in enumerate(self._engine.ids(rows), start=1):
            self._replace(Draft.of(self._engine.get(id)), Stopwatch(), acknowledge=acknowledge and done == 1)
            if progress is not None:
                progress(done, len(rows))

    def _waiting(self) -> str:
        left = len(self._engine.unresolved())
        return f"{left:,} left to place anew" + (": `resolve` goes on" if left else "")

    def _replace(
        self, draft: Draft, watch: Stopwatch, *, before: Sequence[Draft] = (), acknowledge: bool = True
    ) -> Addition:
        now = self._session.current()
        *others, placed = place_taught(now.view, draft, before, now.settings, watch=watch)
        self._record_again([placed], watch, acknowledge, others)
        return self._additions([placed], watch)[0]

    def _keep(self, record: Record, watch: Stopwatch) -> Addition:
        """Store a document anew where it is: nothing that places it has changed."""
        with self._engine.write(watch) as batch:
            batch.replace(record)
            self._acknowledge(batch, lambda: [_kept(record, watch)])
        return _kept(record, watch)

    def _record_again(
        self, placed: Sequence[Placed], watch: Stopwatch, acknowledge: bool, others: Sequence[Placed] = ()
    ) -> None:
        """Store documents anew, in one transaction; the answer tells of those `placed`, not of `others`."""
        with self._engine.write(watch) as batch:
            for one in (*others, *placed):
                batch.replace(one.record)
            if acknowledge:
                self._acknowledge(batch, lambda: self._additions(placed, watch))

    def _acknowledge(self, batch: Batch, result: Callable[[], object]) -> None:
        """Store the receipt with the change it is for: who asks again later is told, whatever happens in between."""
        if self._receipt is not None:
            for key, answer in self._receipt(result(), batch.version):
                batch.keep_answer(key, answer)

    def _additions(self, placed: Sequence[Placed], watch: Stopwatch) -> list[Addition]:
        seconds = {step: spent / max(1, len(placed)) for step, spent in watch.seconds.items()}
        ids = {one.record.row: one.record.document.id for one in placed}
        others = sorted({row for one in placed for row in one.threatened | one.outdone} - ids.keys())
        ids |= zip(others, self._engine.ids(others), strict=True)
        return [
            Addition(
                document_id=one.record.document.id,
                status=one.status.name.lower(),
                explanation=_explained(one, ids),
                margin=one.margin,
                conflicts=tuple(ids[row] for row in sorted(one.threatened | one.outdone)),
                seconds=dict(seconds),
            )
            for one in placed
        ]

    @property
    def _engine(self) -> Engine:
        return self._session.engine

    def _drafter(self) -> Drafter:
        now = self._session.current()
        return Drafter(
            encoder=now.encoder,
            one_pass=now.settings.one_pass,
            generator=self._written_by,
            splitter=self.split_by,
            hold_out=now.settings.tuning,
            elsewhere=now.view.elsewhere,
            ahead=self.ahead,
        )

    def _written_by(self) -> Generator:
        """What writes queries for new texts; refuses when it cannot be had."""
        if self._generator is None:
            self._generator = generator_of(self._engine, self._given[0])
        return self._generator

    def split_by(self) -> Splitter:
        """What splits long texts; refuses when it cannot be had."""
        if self._splitter is None:
            self._splitter = splitter_of(self._engine, self._given[1])
        return self._splitter


def _by_size(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """The same in order, so many at a time that long ones are committed, and reported, soon."""
    portion: list[Document] = []
    for document in documents:
        portion.append(document)
        if sum(len(one.text) for one in portion) >= LARGE:
            yield portion
            portion = []
    if portion:
        yield portion


def _changed(
    drafter: Drafter, record: Record, document: Document, queries: Sequence[str], watch: Stopwatch
) -> Draft | Record:
    """What a document becomes: a draft to be placed, or its record if nothing that places it has changed."""
    if (record.document.title, record.document.text) != (document.title, document.text):
        return drafter.redraft(record, document, queries, watch)
    record = replace(record, document=document)
    for draft in drafter.attached([record], {document.id: queries}, watch):
        return draft
    return record


def _explained(one: Placed, ids: Mapping[int, str]) -> str:
    taken = (TAKEN.format(ids[row]) for row in sorted(one.outdone))
    return "; ".join([one.status.value, *taken, *map(OUTVOTED.format, one.outvoted)])


def _kept(record: Record, watch: Stopwatch) -> Addition:
    return Addition(
        document_id=record.document.id,
        status="kept",
        explanation=KEPT,
        margin=math.inf,
        conflicts=(),
        seconds=dict(watch.seconds),
    )


def _held_out(records: Sequence[Record]) -> int:
    return sum(query.held_out for record in records for query in record.queries)
