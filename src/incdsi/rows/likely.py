"""Rows that a new vector probably violates: a quick look that proves nothing, and brings it near where it will be.

Two kinds of rows count for most: those whose own score is low, which many a vector reaches, and those of the
documents that the vector resembles. Together they are a tenth of all rows and nearly all that count in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.pool import Pool
from incdsi.rows.products import Asked, Doubles, Floats, Screen
from incdsi.rows.table import Growing, Table

LOWEST = 1 / 10  # of all rows
CLOSEST = 128  # documents whose rows are looked at
ENOUGH = 8192  # rows: a look at fewer is quick enough
STALE = 1 / 8  # of all rows may have come since the lowest were chosen
Numbers = NDArray[np.intp]


class Lowest(NamedTuple):
    """The rows with the lowest own scores among the first `among`, as the screen multiplies them, side by side."""

    numbers: Numbers
    codes: NDArray[Any]
    scales: Floats
    among: int

    @classmethod
    def of(cls, pool: Pool, own_scores: Doubles) -> Lowest:
        few = max(int(LOWEST * len(own_scores)), 1)
        numbers = np.sort(np.argpartition(own_scores, few - 1)[:few])
        return cls(numbers, *pool.codes(numbers), len(own_scores))

    def products(self, screen: Screen, asked: Asked) -> Floats:
        """The screened products (m,) with one vector."""
        return screen.multiply(self.codes, asked)[:, 0] * self.scales


class Owned:
    """The numbers of each slot's rows, which come one after another."""

    def __init__(self) -> None:
        self._firsts, self._counts = Growing(np.int64), Growing(np.int64)

    def append(self, first: int, owners: NDArray[np.integer[Any]]) -> None:
        """The next rows, from that number on, belong to these slots; what a slot had before is gone."""
        if len(owners) == 0:
            return
        starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        more = max(int(owners.max()) + 1 - len(self._firsts.values), 0)
        self._firsts.append(np.zeros(more, dtype=np.int64))
        self._counts.append(np.zeros(more, dtype=np.int64))
        self._firsts.values[owners[starts]] = first + starts
        self._counts.values[owners[starts]] = np.diff(starts, append=len(owners))

    def of(self, slots: Numbers) -> Numbers:
        """The numbers of these slots' rows, slot by slot."""
        known = slots[slots < len(self._firsts.values)]
        firsts, counts = self._firsts.values[known], self._counts.values[known]
        return np.asarray(np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum()))


class Likely:
    """The rows that a quick look finds violated."""

    def __init__(self, pool: Pool, lowest: Lowest, owned: Owned, documents: Table, ceilings: Sequence[Doubles]) -> None:
        self._pool = pool
        self._lowest = lowest
        self._owned = owned
        self._documents = documents
        self._ceilings = ceilings
        self._low_ceilings = pool.gathered(lowest.numbers, ceilings)
        self._is_low = np.zeros(len(pool), dtype=bool)
        self._is_low[lowest.numbers] = True

    def violated(self, vector: NDArray[np.float64], limit: int) -> Numbers:
        """At most `limit` numbers: of the rows that the vector violates most."""
        scores, asked = self._documents.products(vector.astype(np.float32)[None], len(self._documents))
        close = self._close(scores[0])
        low = self._lowest.products(self._documents.screen, asked) - self._low_ceilings
        near = self._pool.products(close, asked) - self._pool.gathered(close, self._ceilings)
        numbers, excess = np.concatenate([self._lowest.numbers, close]), np.concatenate([low, near])
        over = np.flatnonzero(excess > 0)
        if len(over) > limit:
            over = over[np.argpartition(-excess[over], limit)[:limit]]
        return np.sort(numbers[over])

    def _close(self, scores: Floats) -> Numbers:
        """The rows, without the lowest, of the documents with the best scores."""
        best = np.argpartition(scores, -CLOSEST)[-CLOSEST:] if len(scores) > CLOSEST else np.arange(len(scores))
        numbers = self._owned.of(np.sort(best))  # as they lie in memory
        return numbers[~self._is_low[numbers]]
