"""One bounded queue of writes and the one thread that does them, grouping what piles up."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from incdsi.documents import Addition, Document
from incdsi.errors import Overloaded
from incdsi.index import Index
from incdsi.index.index import BATCH

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Done(Generic[T]):
    """What a write gave, the index's version right after it, and the seconds since it was asked for."""

    result: T
    version: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Write(Generic[T]):
    """A change of the index that waits for its turn."""

    act: Callable[[Index], T]
    asked: float = field(default_factory=time.perf_counter)
    future: Future[Done[T]] = field(default_factory=Future)

    def run(self, index: Index) -> None:
        """Do it and answer; whatever goes wrong is the answer."""
        try:
            self.answer(self.act(index), index.version)
        except Exception as error:
            self.future.set_exception(error)

    def answer(self, result: T, version: int) -> None:
        self.future.set_result(Done(result=result, version=version, seconds=time.perf_counter() - self.asked))


@dataclass(frozen=True, kw_only=True, eq=False)
class Add(Write[list[Addition]]):
    """New documents, all or none, which may be added together with those of others."""

    documents: Sequence[Document]
    queries: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> Add:
        return cls(act=lambda index: index.add_many(documents, queries), documents=documents, queries=queries)


class WriteQueue:
    """Takes writes from any thread; refuses with Overloaded when `most` are waiting.

    `grouped` is told the number of documents of every group that was added together.
    """

    def __init__(self, index: Index, most: int, grouped: Callable[[int], None] = lambda documents: None) -> None:
        self._index = index
        self._most = most
        self._grouped = grouped
        self._waiting: deque[Write[object]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._quiet_since = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="incdsi-writer")
        self._thread.start()

    def submit(self, write: Write[T]) -> Future[Done[T]]:
        """Its future; what is accepted here is done, also when the server stops."""
        with self._changed:
            if self._closing:
                raise Overloaded("expected a running server, found it stopping; try again later")
            if len(self._waiting) >= self._most:
                raise Overloaded(f"expected room in the write queue, found {self._most} writes waiting; try again")
            self._waiting.append(write)  # type: ignore[arg-type]
            self._changed.notify()
        return write.future

    def __len__(self) -> int:
        return len(self._waiting)

    def quiet(self) -> float:
        """Seconds since the last write was finished; 0 while one is being done."""
        return 0.0 if self._busy or self._waiting else time.monotonic() - self._quiet_since

    def close(self) -> None:
        """Refuse more, do what was accepted, end the thread."""
        with self._changed:
            self._closing = True
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
        """The oldest write, with the additions right behind it if it is one; nothing when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
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
        """One batch for the solver and one commit; if somebody's documents are refused, each by itself."""
        documents = [document for add in group for document in add.documents]
        queries = {id: texts for add in group for id, texts in add.queries.items()}
        try:
            additions = self._index.add_many(documents, queries)
        except Exception:  # whatever it was, each is told by itself, and the thread lives on
            for add in group:
                add.run(self._index)
            return
        version, found = self._index.version, iter(additions)
        for add in group:
            add.answer([next(found) for _ in add.documents], version)


def _documents(write: Write[object]) -> int:
    """How many documents it adds, 0 when it does something else."""
    return len(write.documents) if isinstance(write, Add) else 0
