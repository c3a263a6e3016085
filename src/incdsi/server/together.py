"""Questions that wait for a thread: one that is free answers those that are alike together, which costs less."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
MOST = 8  # questions answered together: more make each wait longer and cost hardly less


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[Q, A]):
    question: Q
    answer: Callable[[Sequence[Q]], Sequence[A]]
    kind: Hashable
    future: Future[A] = field(default_factory=Future)


class Together:
    """Takes questions from any thread, and has those of one kind answered in a thread of the pool, the oldest first.

    Nobody waits for company: a question that finds a free thread has it. Where those answered together fail, each is
    answered by itself.
    """

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool, self._free = pool, threads
        self._waiting: list[_Waiting[Any, Any]] = []
        self._mutex = threading.Lock()

    def ask(self, question: Q, answer: Callable[[Sequence[Q]], Sequence[A]], kind: Hashable) -> Future[A]:
        """What `answer` makes of the question; one of the same kind would do for any of them."""
        one = _Waiting(question, answer, kind)
        with self._mutex:
            self._waiting.append(one)
        self._pool.submit(self._work)
        return one.future

    def _work(self) -> None:
        some = self._next()
        try:
            self._settle([one for one in some if one.future.set_running_or_notify_cancel()])
        finally:
            with self._mutex:
                self._free += bool(some)

    def _next(self) -> list[_Waiting[Any, Any]]:
        """The oldest and its like, as many as leave the other free threads their share; none if all are taken."""
        with self._mutex:
            if not self._waiting:
                return []
            share = -(-len(self._waiting) // max(1, self._free))
            alike = [one for one in self._waiting if one.kind == self._waiting[0].kind][: min(share, MOST)]
            self._waiting = [one for one in self._waiting if one not in alike]
            self._free -= 1
        return alike

    def _settle(self, some: Sequence[_Waiting[Any, Any]]) -> None:
        if not some:
            return
        try:
            answers = some[0].answer([one.question for one in some])
        except Exception as error:  # whose it is shows when each is answered by itself
            if len(some) == 1:
                some[0].future.set_exception(error)
            else:
                for one in some:
                    self._settle([one])
            return
        for one, answer in zip(some, answers, strict=True):
            one.future.set_result(answer)
