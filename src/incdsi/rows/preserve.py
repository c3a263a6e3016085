"""Preserve rows: the cached queries that indexed documents keep, and who comes near to stealing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import Nearest
from incdsi.rows.products import Asked, Doubles, Floats, Screen
from incdsi.rows.table import BLOCK_ROWS, Growing, Table

COLUMNS = 256  # vectors multiplied at once: bounds what a pass holds beside the rows
SAMPLE = 1024  # rows, evenly chosen, that tell where the nearest ones begin
SHORTEST = 1e-19  # a row that is not longer is none
ROUNDING = 2.0**-20  # of a vector's length and of a slack: more than float32 loses on the way to one


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
        for start in range(0, len(rows), BLOCK_ROWS):
            here = slice(start, start + BLOCK_ROWS)
            some, coded = rows[here], self._screen.coded(rows[here])
            kept = coded.lengths > SHORTEST
            self._rows.append(*((some, coded) if kept.all() else (some[kept], coded.of(kept))))
            self._own_scores.append(own_scores[here][kept])
            self._owners.append(owners[here][kept])

    def append_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep the rows that were `saved`."""
        self._rows.append_saved("preserve_rows", arrays)
        self._own_scores.append(arrays["own_scores"])
        self._owners.append(arrays["owners"])

    def saved(self) -> dict[str, Any]:
        """All rows that were not removed, with their own scores and owners, as arrays by name."""
        alive = np.flatnonzero(self._owners.values >= 0)
        return {
            "owners": self._owners.values[alive],
            "own_scores": self._own_scores.values[alive],
            **{f"preserve_rows{part}": array for part, array in self._rows.saved(alive).items()},
        }

    def remove_many(self, slots: Sequence[int]) -> None:
        """Drop the rows of these slots in one pass; memory is taken back when half of all rows are gone."""
        theirs = np.flatnonzero(np.isin(self._owners.values, slots))
        self._owners.values[theirs] = -1
        self._own_scores.values[theirs] = np.inf
        self._dead += len(theirs)
        if self._dead > len(self) // 2:
            self._take_memory_back()

    def arrays(self) -> tuple[NDArray[np.intp], Floats, NDArray[np.float64]]:
        """Owners (m,), rows (m, h) and own scores (m,) of all rows that were not removed."""
        alive = np.flatnonzero(self._owners.values >= 0)
        return self._owners.values[alive], self._rows.gather(alive), self._own_scores.values[alive]

    def under(self, margin: float, without: int | None = None) -> Ceilings:
        """The rows with ceilings at their own scores less the margin; `without` leaves a slot's own out."""
        own = self._own_scores.values
        if without is not None:
            own = np.where(self._owners.values == without, np.inf, own)
        return Ceilings(self._rows, own - margin, self._owners.values)

    def _empty(self) -> None:
        self._rows = Table(self._dimension, self._screen)
        self._own_scores = Growing(np.float64)
        self._owners = Growing(np.intp)
        self._dead = 0

    def _take_memory_back(self) -> None:
        rows, own, owners = self._rows, self._own_scores.values, self._owners.values
        alive = np.flatnonzero(owners >= 0)
        self._empty()
        for part in np.array_split(alive, len(alive) // 4096 + 1):
            self._rows.append(rows.gather(part))
        self._own_scores.append(own[alive])
        self._owners.append(owners[alive])


class Ceilings:
    """Preserve rows with their ceilings: answers who is nearest to violation, many vectors at once.

    A row's slack at v, (ceiling - row.v) / ||row||, is how far v must move at least to violate it. The screen leaves
    some doubt about it: rows are chosen by what it is at least.
    """

    def __init__(self, rows: Table, ceilings: NDArray[np.float64], owners: NDArray[np.intp]) -> None:
        self._rows = rows
        self._ceilings = ceilings
        self._owners = owners
        self._lengths, self._errors = rows.lengths, rows.errors
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
        near = self._rows.scan(narrow, len(self), partial(self._near, thresholds))
        found = _Found(*(np.concatenate(some) for some in zip(*near, strict=True)))
        lengths = np.linalg.norm(vectors, axis=1)
        return [
            self._listed(*found.of(column, limit, thresholds[column], lengths[column]))
            for column in range(len(vectors))
        ]

    def _thresholds(self, vectors: Floats, fraction: float) -> Doubles:
        """By vector, what the slack of about this fraction of the rows may be below, judged by a sample of them."""
        sample, asked = self._sample, self._rows.screen.asked(vectors)
        slack = self._slack(sample, self._sampled @ vectors.T)
        slack -= asked.doubt(self._unsure(sample)[:, None], 1.0)
        place = min(int(fraction * len(sample)) + 1, len(sample) - 1)
        return np.asarray(np.partition(slack, place, axis=0)[place], dtype=np.float64)

    @cached_property
    def _sample(self) -> NDArray[np.intp]:
        return self._alive[:: -(-len(self._alive) // SAMPLE)]

    @cached_property
    def _sampled(self) -> Floats:
        return self._rows.approximate(self._sample)

    def _near(
        self, thresholds: Doubles, start: int, products: Floats, asked: Asked
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Doubles]:
        """Rows, vectors and least slacks, where the vector may violate the row within its threshold."""
        here = slice(start, start + len(products))
        slack, unsure = self._slack(here, products), self._unsure(here)
        with np.errstate(over="ignore"):
            most = (thresholds + asked.doubt(unsure.max(), 1.0)).astype(np.float32)
        row, column = np.divmod(np.flatnonzero(slack <= most), slack.shape[1])  # much faster than nonzero
        least = slack[row, column] - asked.doubt(unsure[row], 1.0, column)
        near = np.flatnonzero(least <= thresholds[column])
        return row[near] + start, column[near], least[near]

    def _slack(self, which: Any, products: Floats) -> Floats:
        """How far each vector must move to violate these rows, from their products (r, b), which it overwrites."""
        per_length = 1.0 / self._lengths[which]
        products *= -per_length[:, None].astype(np.float32)
        with np.errstate(over="ignore"):
            products += (self._ceilings[which] * per_length)[:, None].astype(np.float32)
        return products

    def _unsure(self, which: Any) -> Doubles:
        """The screen's errors of these rows as a part of their lengths."""
        result: Doubles = self._errors[which] / self._lengths[which]
        return result

    def _listed(self, indices: NDArray[np.intp], radius: float) -> Nearest:
        return Nearest(
            indices=indices,
            owners=self._owners[indices],
            rows=self._rows.gather(indices),
            ceilings=self._ceilings[indices],
            radius=radius,
        )


class _Found:
    """What a pass found for all its vectors, sorted by vector."""

    def __init__(self, rows: NDArray[np.intp], columns: NDArray[np.intp], slacks: Doubles) -> None:
        order = np.argsort(columns, kind="stable")
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
