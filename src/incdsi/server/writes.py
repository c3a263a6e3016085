"""A bounded queue of writes and the one thread that does them, grouping what piles up."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from incdsi.documents import Addition, Document
from incdsi.errors import IncDSIError, Overloaded
from incdsi.index import Index
from incdsi.index.placement import BATCH
from incdsi.records import Answer
from incdsi.server.answers import Reply, Ticket

T = TypeVar("T")
log = structlog.get_logger("incdsi.server")


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
        self._changed = threading.Condition()
        self.closing = False
        self._busy = False
        self._quiet_since = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="incdsi-writer")
        self._thread.start()

    def submit(self, write: Write[T]) -> Future[Done[T]]:
        """Accept a write: from here on it is done, even if the server stops."""
        with self._changed:
            if self.closing:
                raise Overloaded("the server is stopping; try again later")
            if len(self._waiting) >= self._most:
                raise Overloaded(f"{self._most} writes are waiting already; try again")
            self._waiting.append(write)  # type: ignore[arg-type]
            self._changed.notify()
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
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while group := self._next_group():
            if len(group) == 1:
                group[0].run(self._index)
            else:
                self._add_together([write for write in group if isinstance(write, Add)])
            with self._changed:
                self._busy, self._quiet_since = False, time.monotonic()

    def _next_group(self) -> list[Write[object]]:
        """The oldest write, together with the additions right behind it if it is one; empty when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closing)
            if not self._waiting:
                return []
            group = [self._waiting.popleft()]
            self._busy = True
            size = _documents(group[0])
            while size and self._waiting and 0 < _documents(self._waiting[0]) <= BATCH - size:
                size += _documents(self._waiting[0])
                group.append(self._waiting.popleft())
        if size:
            self._grouped(size)
        return group

    def _add_together(self, group: Sequence[Add]) -> None:
        """One batch for the solver and one commit; if it fails, each request by itself."""
        documents = [document for add in group for document in add.documents]
        queries = {id: texts for add in group for id, texts in add.queries.items()}
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


def _documents(write: Write[object]) -> int:
    """How many documents it adds; 0 if it does something else."""
    return len(write.documents) if isinstance(write, Add) else 0
