"""A bounded queue of writes and the one thread that does them, grouping what piles up.

Documents are generated for and encoded before their turn, by threads of their own, a few at a time: an addition waits
for its own texts, not for those of everybody before it, and whoever deletes or places holds nobody's encoder up.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog

from incdsi.documents import Addition, Document
from incdsi.errors import IncDSIError, Overloaded
from incdsi.index import Index
from incdsi.index.placement import BATCH
from incdsi.records import Answer
from incdsi.server.answers import Reply, Ticket

T = TypeVar("T")
DRAFTERS = 2  # threads; with one the usual addition waits as long, the slowest ones longer
AT_ONCE = 4  # documents of several requests drafted together
log = structlog.get_logger("incdsi.server")


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass(frozen=True, kw_only=True)
class Done(Generic[T]):
    """What a write returned, the index's version right after it, and the seconds since it was requested.

    `before` and `after` are what its `look` saw.
    """

    result: T
    version: int
    seconds: float
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept(Generic[T]):
    """How to answer a write under its key."""

    ticket: Ticket
    reply: Callable[[Done[T]], Reply]

    def answer(self, done: Done[T]) -> tuple[str, Answer]:
        return self.ticket.answer(self.reply(done))


@dataclass(frozen=True, kw_only=True, eq=False)
class Write(Generic[T]):
    """A change of the index, waiting its turn.

    `look` observes the index before and after it. If `kept`, its answer is stored in the transaction that makes the
    change, and amended with all that is known once everything is done.
    """

    act: Callable[[Index], T]
    look: Callable[[Index], int | None] = lambda index: None
    kept: Kept[T] | None = None
    asked: float = field(default_factory=time.perf_counter)
    future: Future[Done[T]] = field(default_factory=Future)
    ready: threading.Event = field(default_factory=_set)

    def run(self, index: Index) -> None:
        """Do it and resolve the future, with the error if it fails."""
        try:
            before = self.look(index)
            with index.receipts.keeping(lambda result, version: self.receipt(result, version, before)):
                result = self.act(index)
            done = self.done(result, index.version, before, self.look(index))
        except Exception as error:
            self.future.set_exception(error)
        else:
            self.answer(index, done)

    def receipt(self, result: T, version: int, before: int | None = None) -> list[tuple[str, Answer]]:
        """The answer as far as it is known just before the commit."""
        return [] if self.kept is None else [self.kept.answer(self.done(result, version, before))]

    def done(self, result: T, version: int, before: int | None = None, after: int | None = None) -> Done[T]:
        seconds = time.perf_counter() - self.asked
        return Done(result=result, version=version, seconds=seconds, before=before, after=after)

    def answer(self, index: Index, done: Done[T]) -> None:
        if self.kept is not None:
            try:
                index.receipts.amend(*self.kept.answer(done))
            except (IncDSIError, OSError) as error:  # the change and its first answer are on disk
                log.error("answer not amended", reason=str(error))
        self.future.set_result(done)


@dataclass(frozen=True, kw_only=True, eq=False)
class Add(Write[list[Addition]]):
    """New documents, all or none, which may be grouped with those of other requests."""

    documents: Sequence[Document]
    queries: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        queries: Mapping[str, Sequence[str]],
        kept: Kept[list[Addition]] | None = None,
    ) -> Add:
        return cls(
            act=lambda index: index.add_many(documents, queries, whole=True),
            kept=kept,
            documents=documents,
            queries=queries,
            ready=threading.Event(),
        )


class WriteQueue:
    """Takes writes from any thread; Overloaded if `most` are waiting.

    Calls `grouped` with the number of documents in each group.
    """

    def __init__(self, index: Index, most: int, grouped: Callable[[int], None] = lambda documents: None) -> None:
        self._index = index
        self._most = most
        self._grouped = grouped
        self._waiting: deque[Write[object]] = deque()
        self._undrafted: deque[Add] = deque()
        self._changed = threading.Condition()
        self.closing = False
        self._busy = False
        self._quiet_since = time.monotonic()
        work = {"incdsi-writer": self._work} | {f"incdsi-draft-{n}": self._draft for n in range(DRAFTERS)}
        self._threads = [threading.Thread(target=target, name=name) for name, target in work.items()]
        for thread in self._threads:
            thread.start()

    def submit(self, write: Write[T]) -> Future[Done[T]]:
        """Accept a write: from here on it is done, even if the server stops."""
        with self._changed:
            if self.closing:
                raise Overloaded("the server is stopping; try again later")
            if len(self._waiting) >= self._most:
                raise Overloaded(f"{self._most} writes are waiting already; try again")
            self._waiting.append(write)  # type: ignore[arg-type]
            if isinstance(write, Add):
                self._undrafted.append(write)
            self._changed.notify_all()
        return write.future

    def __len__(self) -> int:
        return len(self._waiting)

    def quiet(self) -> float:
        """Seconds since the last write finished; 0 while one is under way or waiting."""
        return 0.0 if self._busy or self._waiting else time.monotonic() - self._quiet_since

    def close(self) -> None:
        """Refuse new writes, finish the accepted ones, end the thread."""
        with self._changed:
            self.closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _draft(self) -> None:
        while some := self._next_to_draft():
            documents, queries = _together(some)
            try:
                self._index.drafting.begin(documents, queries)
            except Exception as error:  # whoever adds them meets it again, and tells
                log.debug("not drafted ahead", reason=str(error))
            with self._changed:
                for add in some:
                    add.ready.set()
                self._changed.notify_all()

    def _next_to_draft(self) -> list[Add]:
        """The oldest addition that nobody has drafted, or a few small ones; empty when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._undrafted or self.closing)
            some = [self._undrafted.popleft()] if self._undrafted else []
            while some and self._undrafted and _few([*some, self._undrafted[0]]):
                some.append(self._undrafted.popleft())
        return some

    def _work(self) -> None:
        while group := self._next_group():
            if len(group) == 1:
                group[0].run(self._index)
            else:
                self._add_together(_additions(group))
            self._index.drafting.end(document.id for add in _additions(group) for document in add.documents)
            with self._changed:
                self._busy, self._quiet_since = False, time.monotonic()

    def _next_group(self) -> list[Write[object]]:
        """The oldest write, with the drafted additions right behind it if it is one; empty when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting[0].ready.is_set() if self._waiting else self.closing)
            if not self._waiting:
                return []
            group = [self._waiting.popleft()]
            self._busy = True
            size = _documents(group[0])
            while size and self._waiting and self._joins(self._waiting[0], size):
                size += _documents(self._waiting[0])
                group.append(self._waiting.popleft())
        if size:
            self._grouped(size)
        return group

    @staticmethod
    def _joins(write: Write[object], size: int) -> bool:
        return 0 < _documents(write) <= BATCH - size and write.ready.is_set()

    def _add_together(self, group: Sequence[Add]) -> None:
        """One batch for the solver and one commit; if it fails, each request by itself."""
        documents, queries = _together(group)
        before = self._version()
        try:
            with self._index.receipts.keeping(lambda additions, version: _receipts(group, additions, version)):
                additions = self._index.add_many(documents, queries, whole=True)
        except Exception as error:  # each request gets its own answer, and the thread lives on
            committed = self._version() != before
            for add in group:
                if committed:  # a second try would find duplicates
                    add.future.set_exception(error)
                else:
                    add.run(self._index)
            return
        version = self._index.version
        for add, own in _shared_out(group, additions):
            add.answer(self._index, add.done(own, version))

    def _version(self) -> int:
        """-1 if the store cannot be read; the next write reports why."""
        try:
            return self._index.version
        except Exception:
            return -1


def _receipts(group: Sequence[Add], additions: Sequence[Addition], version: int) -> list[tuple[str, Answer]]:
    return [receipt for add, own in _shared_out(group, additions) for receipt in add.receipt(own, version)]


def _shared_out(group: Sequence[Add], additions: Sequence[Addition]) -> list[tuple[Add, list[Addition]]]:
    """Each request's own additions."""
    found = iter(additions)
    return [(add, [next(found) for _ in add.documents]) for add in group]


def _together(group: Sequence[Add]) -> tuple[list[Document], dict[str, Sequence[str]]]:
    """The documents of all, and their queries by id."""
    documents = [document for add in group for document in add.documents]
    return documents, {id: texts for add in group for id, texts in add.queries.items()}


def _few(group: Sequence[Add]) -> bool:
    """Whether these can be drafted together: few documents, and no id twice."""
    ids = [document.id for add in group for document in add.documents]
    return len(set(ids)) == len(ids) <= AT_ONCE


def _additions(group: Sequence[Write[object]]) -> list[Add]:
    return [write for write in group if isinstance(write, Add)]


def _documents(write: Write[Any]) -> int:
    """How many documents it adds; 0 if it does something else."""
    return len(write.documents) if isinstance(write, Add) else 0
