"""Preserve rows: the cached queries that indexed documents keep, and who comes near to stealing them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import Nearest
from incdsi.rows.products import Floats, Screen, row_lengths
from incdsi.rows.table import Growing, Table

COLUMNS = 256  # vectors multiplied at once: bounds what a pass holds beside the rows
SAMPLE = 1024  # rows, evenly chosen, that tell where the nearest ones begin


class PreserveTable:
    """All preserve rows (n, h) with their own scores and the slots that own them; for the writer alone."""

    def __init__(self, dimension: int, screen: Screen) -> None:
        self._dimension = dimension
        self._screen = screen
        self._empty()

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, owners: NDArray[np.intp], rows: Floats, own_scores: NDArray[np.float64]) -> None:
        """Keep rows (m, h) for their owners; a row of length zero constrains nothing and is left out."""
        long = row_lengths(rows)
        kept = long > np.finfo(np.float32).tiny
        if not kept.all():
            owners, rows, own_scores, long = owners[kept], rows[kept], own_scores[kept], long[kept]
        self._rows.append(rows)
        self._lengths.append(long)
        self._own_scores.append(own_scores)
        self._owners.append(owners)

    def remove_many(self, slots: Sequence[int]) -> None:
        """Drop the rows of these slots in one pass; memory is taken back when half of all rows are gone."""
        theirs = np.flatnonzero(np.isin(self._owners.values, slots))
        self._owners.values[theirs] = -1
        self._own_scores.values[theirs] = np.inf
        self._dead += len(theirs)
        if self._dead > len(self) // 2:
            self._take_memory_back()

    def owners(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        """The slots whose rows these are."""
        result: NDArray[np.intp] = self._owners.values[indices]
        return result

    def arrays(self) -> tuple[NDArray[np.intp], Floats, NDArray[np.float64]]:
        """Owners (m,), rows (m, h) and own scores (m,) of all rows that were not removed."""
        alive = np.flatnonzero(self._owners.values >= 0)
        return self._owners.values[alive], self._rows.gather(alive), self._own_scores.values[alive]

    def under(self, margin: float, without: int | None = None) -> Ceilings:
        """The rows with ceilings at their own scores less the margin; `without` leaves a slot's own out."""
        own = self._own_scores.values
        if without is not None:
            own = np.where(self._owners.values == without, np.inf, own)
        return Ceilings(self._rows, self._lengths.values, own - margin)

    def _empty(self) -> None:
        self._rows = Table(self._dimension, self._screen)
        self._lengths = Growing(np.float32)
        self._own_scores = Growing(np.float64)
        self._owners = Growing(np.intp)
        self._dead = 0

    def _take_memory_back(self) -> None:
        rows, own, owners = self._rows, self._own_scores.values, self._owners.values
        alive = np.flatnonzero(owners >= 0)
        self._empty()
        for part in np.array_split(alive, len(alive) // 4096 + 1):
            gathered = rows.gather(part)
            self._rows.append(gathered)
            self._lengths.append(row_lengths(gathered))
        self._own_scores.append(own[alive])
        self._owners.append(owners[alive])


class Ceilings:
    """Preserve rows with their ceilings: answers who is nearest to violation, many vectors at once."""

    def __init__(self, rows: Table, lengths: Floats, ceilings: NDArray[np.float64]) -> None:
        self._rows = rows
        self._ceilings = ceilings
        with np.errstate(over="ignore"):
            self._per_length = (1.0 / lengths).astype(np.float32)[:, None]
            self._reach = (ceilings[:, None] * self._per_length).astype(np.float32)
        self._alive = np.flatnonzero(np.isfinite(ceilings))  # others have no ceiling: nobody can violate them

    def __len__(self) -> int:
        return len(self._ceilings)

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        """For each vector (b, h) at most `limit` rows, those nearest to violation."""
        if len(self._alive) <= limit:
            return [self._listed(self._alive, np.inf)] * len(vectors)
        result: list[Nearest] = []
        for start in range(0, len(vectors), COLUMNS):
            result += self._nearest(vectors[start : start + COLUMNS], limit)
        return result

    def _nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        narrow = vectors.astype(np.float32)
        thresholds = self._thresholds(narrow, limit / len(self._alive))
        parts = self._rows.scan(narrow, len(self), lambda start, products: self._near(start, products, thresholds))
        finite = np.where(np.isfinite(thresholds), thresholds, 0.0)  # rows nobody reaches leave no doubt
        doubts = self._rows.screen.error * (np.linalg.norm(vectors, axis=1) + np.abs(finite))
        found = _Found(*(np.concatenate(some) for some in zip(*parts, strict=True)))
        return [
            self._listed(*found.of(column, limit, thresholds[column], doubts[column])) for column in range(len(vectors))
        ]

    def _thresholds(self, vectors: Floats, fraction: float) -> Floats:
        """By vector, a slack that about this fraction of the rows is below, judged by a sample of them."""
        sample = self._sample
        slack = self._reach[sample] - self._per_length[sample] * (self._sampled @ vectors.T)
        place = min(int(fraction * len(sample)) + 1, len(sample) - 1)
        return np.asarray(np.partition(slack, place, axis=0)[place])

    @cached_property
    def _sample(self) -> NDArray[np.intp]:
        return self._alive[:: -(-len(self._alive) // SAMPLE)]

    @cached_property
    def _sampled(self) -> Floats:
        return self._rows.gather(self._sample)

    def _near(
        self, start: int, products: Floats, thresholds: Floats
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Rows, vectors and slacks, where the vector need move no further than its threshold to violate the row."""
        here = slice(start, start + len(products))
        slack = products  # in place: it is this scan's own
        slack *= -self._per_length[here]
        slack += self._reach[here]
        row, column = np.divmod(np.flatnonzero(slack <= thresholds), slack.shape[1])  # much faster than nonzero
        return row + start, column, slack[row, column]

    def _listed(self, indices: NDArray[np.intp], radius: float) -> Nearest:
        return Nearest(
            indices=indices,
            rows=self._rows.gather(indices),
            ceilings=self._ceilings[indices],
            radius=radius,
        )


class _Found:
    """What a pass found for all its vectors, sorted by vector."""

    def __init__(self, rows: NDArray[np.intp], columns: NDArray[np.intp], slacks: Floats) -> None:
        order = np.argsort(columns, kind="stable")
        self._rows, self._columns, self._slacks = rows[order], columns[order], slacks[order]

    def of(self, column: int, limit: int, threshold: float, doubt: float) -> tuple[NDArray[np.intp], float]:
        """A vector's rows, at most `limit`, and the radius in which no other can be violated."""
        begin, end = np.searchsorted(self._columns, [column, column + 1])
        rows, slacks = self._rows[begin:end], self._slacks[begin:end]
        if len(rows) <= limit:
            return rows, float(threshold - doubt)
        order = np.argpartition(slacks, limit)
        return np.sort(rows[order[:limit]]), float(slacks[order[limit]] - doubt)
