"""Questions that wait are answered together, each as if it were alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from incdsi.server.together import MOST, Together


class Asked:
    """Questions for one thread, which answers none of them before it is let go."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int = 1) -> None:
        self.go, self.groups = threading.Event(), list[list[int]]()
        self.together = Together(pool, threads)
        for _ in range(threads):
            pool.submit(self.go.wait)

    def ask(self, question: int, kind: str = "square") -> Future[int]:
        return self.together.ask(question, self.squares, kind)

    def squares(self, some: Sequence[int]) -> list[int]:
        self.groups.append(list(some))
        if any(one < 0 for one in some):
            raise ValueError("below nothing")
        return [one * one for one in some]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_those_that_wait_are_answered_together_the_oldest_first(pool: ThreadPoolExecutor) -> None:
    asked = Asked(pool)
    futures = [asked.ask(number) for number in range(MOST + 2)]
    asked.go.set()
    assert [future.result() for future in futures] == [number**2 for number in range(MOST + 2)]
    assert asked.groups == [[*range(MOST)], [MOST, MOST + 1]]


def test_only_those_of_one_kind(pool: ThreadPoolExecutor) -> None:
    asked = Asked(pool)
    futures = [asked.ask(number, kind) for number, kind in enumerate("abab")]
    asked.go.set()
    assert [future.result() for future in futures] == [0, 1, 4, 9]
    assert asked.groups == [[0, 2], [1, 3]]


def test_where_one_fails_the_others_have_their_answers(pool: ThreadPoolExecutor) -> None:
    asked = Asked(pool)
    futures = [asked.ask(number) for number in (1, -1, 2)]
    asked.go.set()
    assert [futures[0].result(), futures[2].result()] == [1, 4]
    with pytest.raises(ValueError, match="below nothing"):
        futures[1].result()
    assert asked.groups == [[1, -1, 2], [1], [-1], [2]]
    assert asked.ask(3).result() == 9


def test_nobody_answers_those_who_left(pool: ThreadPoolExecutor) -> None:
    asked = Asked(pool)
    futures = [asked.ask(number) for number in range(3)]
    assert futures[1].cancel()
    asked.go.set()
    assert [futures[0].result(), futures[2].result()] == [0, 4]
    assert asked.groups == [[0, 2]]


def test_threads_that_are_free_share_what_waits() -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = Asked(pool, 2)
        futures = [asked.ask(number) for number in range(6)]
        asked.go.set()
        assert [future.result() for future in futures] == [number**2 for number in range(6)]
    assert len(asked.groups[0]) == 3
