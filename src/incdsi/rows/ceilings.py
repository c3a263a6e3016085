"""Preserve rows under ceilings: who comes near to stealing them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import Nearest
from incdsi.rows.growing import Growing
from incdsi.rows.pool import OWN, Pool
from incdsi.rows.products import Asked, Doubles, Floats
from incdsi.rows.table import Table

COLUMNS = 256  # vectors multiplied at once: bounds what a pass holds beside the rows
SAMPLE = 1024  # rows, evenly chosen, that tell where the nearest ones begin
FEW_LEFT = 1 / 4  # of all rows: looking at so many again costs less than at all of them
SHORTEST = 1e-19  # a row that is not longer is none
ROUNDING = 2.0**-20  # of a vector's length and of a slack: more than float32 loses on the way to one


class Slopes:
    """What slacks of a table's rows need that no ceiling changes: by how much each falls as its product grows."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._values = Growing(np.float32)
        self.most_unsure = 0.0  # of any row: the screen's error as a part of its length

    @property
    def values(self) -> Floats:
        """-1 / length of each row, (n,)."""
        return self._values.values

    def append(self, count: int, preserved: NDArray[np.intp]) -> None:
        """There are so many rows now, and these are preserved from now on."""
        lengths, errors = self._table.lengths, self._table.errors
        new = np.maximum(lengths[len(self._values.values) : count], SHORTEST)
        self._values.append((-1.0 / new).astype(np.float32))
        self.most_unsure = max(self.most_unsure, float((errors[preserved] / lengths[preserved]).max(initial=0.0)))


class _Part:
    """What lies in one table: its rows' numbers and ceilings, infinite where a row is not preserved."""

    def __init__(self, table: Table, numbers: NDArray[np.int32], ceilings: Doubles, slopes: Slopes) -> None:
        self.table = table
        self.numbers = numbers
        self.ceilings = ceilings
        self.slopes = slopes.values[: len(ceilings)]
        self.most_unsure = slopes.most_unsure

    def preserved(self, here: Any) -> NDArray[np.bool_]:
        return np.asarray(self._preserved[here])

    def lengths(self, here: Any) -> Doubles:
        """Those of preserved rows; others may have none."""
        return np.asarray(np.maximum(self.table.lengths[: len(self.ceilings)][here], SHORTEST))

    def unsure(self, here: Any) -> Doubles:
        """The screen's errors of these rows as a part of their lengths."""
        return np.asarray(self.table.errors[: len(self.ceilings)][here] / self.lengths(here))

    def slack(self, here: Any, products: Floats) -> Floats:
        """How far vectors must move to violate these rows, from products (r,) or (r, b), which it overwrites."""
        wide = slice(None) if products.ndim == 1 else (slice(None), None)
        products *= self.slopes[here][wide]
        products += self._at_zero[here][wide]
        return products

    @cached_property
    def _preserved(self) -> NDArray[np.bool_]:
        return np.isfinite(self.ceilings)

    @cached_property
    def _at_zero(self) -> Floats:
        """The slacks where products are 0."""
        with np.errstate(over="ignore"):
            return (-self.ceilings * self.slopes).astype(np.float32)


class _Seen(NamedTuple):
    """What a pass found for one vector: the screened slack of each part's rows, at most `unsure` too much.

    No slack that was at most `threshold` was missed, when so many were asked for.
    """

    vector: NDArray[np.float64]
    slacks: list[Floats]
    unsure: float
    threshold: float
    limit: int


class Ceilings:
    """Preserve rows with their ceilings: answers who is nearest to violation, many vectors at once.

    A row's slack at v, (ceiling - row.v) / ||row||, is how far v must move at least to violate it. The screen leaves
    some doubt about it: rows are chosen by what it is at least.
    """

    def __init__(
        self,
        pool: Pool,
        ceilings: Sequence[Doubles],
        slopes: Sequence[Slopes],
        owners: NDArray[np.int32],
        alive: NDArray[np.intp],
    ) -> None:
        self._pool = pool
        self._parts = [
            _Part(table, pool.numbers(number), some, own)
            for number, (table, some, own) in enumerate(zip(pool.tables, ceilings, slopes, strict=True))
        ]
        self._owners = owners
        self._alive = alive  # others have no ceiling: nobody can violate them
        self._seen: _Seen | None = None

    def __len__(self) -> int:
        return len(self._owners)

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        """For each vector (b, h) at most `limit` rows, those nearest to violation."""
        if len(self._alive) <= limit:
            return [self._listed(self._alive, np.inf)] * len(vectors)
        result: list[Nearest] = []
        if len(vectors) == 1:
            return [self._nearest_of_one(vectors[0], limit)]
        for start in range(0, len(vectors), COLUMNS):
            result += self._nearest(vectors[start : start + COLUMNS], limit)
        return result

    @np.errstate(over="ignore")  # a slack beyond float32 is beyond anybody's reach
    def _nearest_of_one(self, vector: NDArray[np.float64], limit: int) -> Nearest:
        """As for many, but what an earlier pass saw out of reach is not looked at again."""
        asked = self._pool.tables[OWN].screen.asked(vector.astype(np.float32)[None])
        unsure = float(asked.doubt(max(part.most_unsure for part in self._parts), 1.0)[0])
        chosen, threshold = self._within_reach(vector, unsure, limit)
        if chosen is not None:
            slacks = [
                part.slack(some, part.table.products_at(some, asked))
                for part, some in zip(self._parts, chosen, strict=True)
            ]
        else:
            seen = [
                part.slack(slice(None), part.table.products_of_one(asked, len(part.ceilings), part.preserved))
                for part in self._parts
            ]
            threshold = self._threshold(seen, unsure, limit)
            self._seen = _Seen(vector, seen, unsure, threshold, limit)
            chosen = [np.flatnonzero(slack <= np.float32(threshold + unsure)) for slack in seen]
            slacks = [slack[some] for slack, some in zip(seen, chosen, strict=True)]
        found = self._among(chosen, slacks, asked, threshold)
        return self._listed(*found.of(0, limit, threshold, float(np.linalg.norm(vector))))

    def _within_reach(
        self, vector: NDArray[np.float64], unsure: float, limit: int
    ) -> tuple[list[NDArray[np.intp]] | None, float]:
        """By part, the rows whose slack may be at most a threshold, and the threshold; None where those are too many.

        A slack changes by no more than the vector moves: by what was seen of the others before, theirs is higher.
        """
        if self._seen is None or (self._seen.threshold <= 0 and limit > self._seen.limit):  # to prove more than then
            return None, np.inf
        before, slacks, unsure_before, threshold, _ = self._seen
        moved = float(np.linalg.norm(vector - before))
        threshold = max(threshold, moved / 2)
        lengths = float(np.linalg.norm(vector) + np.linalg.norm(before))
        reach = threshold + moved + unsure_before + 2 * unsure + ROUNDING * (lengths + abs(threshold) + moved)
        chosen = [np.flatnonzero(slack <= np.float32(reach)) for slack in slacks]
        return chosen if sum(map(len, chosen)) <= FEW_LEFT * len(self._alive) else None, threshold

    def _threshold(self, slacks: Sequence[Floats], unsure: float, limit: int) -> float:
        """What about `limit` of all slacks may be below, judged by a sample of them."""
        sampled = self._pool.gathered(self._sample, slacks) - unsure
        place = min(int(limit / len(self._alive) * len(sampled)) + 1, len(sampled) - 1)
        return float(np.partition(sampled, place)[place])

    def _among(
        self, chosen: Sequence[NDArray[np.intp]], slacks: Sequence[Floats], asked: Asked, threshold: float
    ) -> _Found:
        """The rows of each part that one vector may violate within the threshold, among those with these slacks."""
        numbers, least = [], []
        for part, some, slack in zip(self._parts, chosen, slacks, strict=True):
            at_least = slack - asked.doubt(part.unsure(some), 1.0, 0)
            near = np.flatnonzero(at_least <= threshold)
            numbers.append(part.numbers[some[near]].astype(np.intp))
            least.append(at_least[near])
        rows = np.concatenate(numbers)
        return _Found(rows, np.zeros(len(rows), dtype=np.intp), np.concatenate(least))

    def _nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        narrow = vectors.astype(np.float32)
        asked = self._pool.tables[OWN].screen.asked(narrow)
        thresholds = self._thresholds(narrow, asked, limit / len(self._alive))
        near = [
            some
            for part in self._parts
            if len(part.ceilings)
            for some in part.table.scan(
                asked, len(part.ceilings), partial(self._near, thresholds, part), part.preserved
            )
        ]
        found = _Found(*(np.concatenate(some) for some in zip(*near, strict=True)))
        lengths = np.linalg.norm(vectors, axis=1)
        return [
            self._listed(*found.of(column, limit, thresholds[column], lengths[column]))
            for column in range(len(vectors))
        ]

    def _thresholds(self, vectors: Floats, asked: Asked, fraction: float) -> Doubles:
        """By vector, what the slack of about this fraction of the rows may be below, judged by a sample of them."""
        sample = self._sample
        lengths = self._pool.lengths(sample)
        slack = (self._ceilings(sample)[:, None] - self._sampled @ vectors.T) / lengths[:, None]
        slack -= asked.doubt((self._pool.errors(sample) / lengths)[:, None], 1.0)
        place = min(int(fraction * len(sample)) + 1, len(sample) - 1)
        return np.asarray(np.partition(slack, place, axis=0)[place], dtype=np.float64)

    @cached_property
    def _sample(self) -> NDArray[np.intp]:
        return self._alive[:: -(-len(self._alive) // SAMPLE)]

    @cached_property
    def _sampled(self) -> Floats:
        return self._pool.approximate(self._sample)

    def _near(
        self, thresholds: Doubles, part: _Part, here: Any, products: Floats, asked: Asked
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Doubles]:
        """Rows, vectors and least slacks, where the vector may violate the row within its threshold."""
        slack, unsure = part.slack(here, products), part.unsure(here)
        with np.errstate(over="ignore"):
            most = (thresholds + asked.doubt(unsure.max(initial=0.0), 1.0)).astype(np.float32)
        row, column = np.divmod(np.flatnonzero(slack <= most), slack.shape[1])  # much faster than nonzero
        least = slack[row, column] - asked.doubt(unsure[row], 1.0, column)
        near = np.flatnonzero(least <= thresholds[column])
        return part.numbers[here][row[near]].astype(np.intp), column[near], least[near]

    def _ceilings(self, numbers: NDArray[np.intp]) -> Doubles:
        return self._pool.gathered(numbers, [part.ceilings for part in self._parts])

    def _listed(self, numbers: NDArray[np.intp], radius: float) -> Nearest:
        return Nearest(
            indices=numbers,
            owners=self._owners[numbers].astype(np.intp),
            rows=self._pool.gather(numbers),
            ceilings=self._ceilings(numbers),
            radius=radius,
        )


class _Found:
    """What a pass found for all its vectors, sorted by vector and number."""

    def __init__(self, rows: NDArray[np.intp], columns: NDArray[np.intp], slacks: Doubles) -> None:
        order = np.lexsort((rows, columns))
        self._rows, self._columns, self._slacks = rows[order], columns[order], slacks[order]

    def of(self, column: int, limit: int, threshold: float, length: float) -> tuple[NDArray[np.intp], float]:
        """The rows of a vector of that length, at most `limit`, and the radius in which no other can be violated."""
        begin, end = np.searchsorted(self._columns, [column, column + 1])
        rows, slacks, beyond = self._rows[begin:end], self._slacks[begin:end], float(threshold)
        if len(rows) > limit:
            order = np.argpartition(slacks, limit)
            rows, beyond = np.sort(rows[order[:limit]]), float(slacks[order[limit]])
        # Rows nobody reaches leave no doubt.
        return rows, beyond - ROUNDING * (length + abs(beyond)) if np.isfinite(beyond) else beyond
