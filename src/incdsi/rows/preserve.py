"""Preserve rows: the cached queries that indexed documents keep, and who comes near to stealing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import Nearest
from incdsi.rows.pool import OWN, Pool, Where
from incdsi.rows.products import Asked, Doubles, Floats, Screen
from incdsi.rows.table import Growing, Table

OWNERS = "preserve.owners"  # the name of a saved array
COLUMNS = 256  # vectors multiplied at once: bounds what a pass holds beside the rows
SAMPLE = 1024  # rows, evenly chosen, that tell where the nearest ones begin
FEW_LEFT = 1 / 4  # of all rows: looking at so many again costs less than at all of them
SHORTEST = 1e-19  # a row that is not longer is none
ROUNDING = 2.0**-20  # of a vector's length and of a slack: more than float32 loses on the way to one


class PreserveTable:
    """All preserve rows (n, h) with their own scores and the slots that own them; for the writer alone.

    Rows that one of the tables `beside` holds are looked at there. A row has a number, the next one when it is kept;
    own scores lie as the rows do, infinite where a row is not preserved.
    """

    def __init__(self, dimension: int, screen: Screen, beside: Sequence[Table] = ()) -> None:
        self._dimension = dimension
        self._screen = screen
        self._beside = beside
        self._empty()

    def __len__(self) -> int:
        return len(self._pool)

    def append(
        self, owners: NDArray[np.intp], rows: Floats, own_scores: NDArray[np.float64], where: Where | None = None
    ) -> None:
        """Keep rows (m, h) for their owners; a row of length zero constrains nothing and is left out.

        `where` says which of them lie in another table, bit for bit, and at an index that no other row has.
        """
        where = where or Where.nowhere(len(rows))
        new = np.flatnonzero(where.tables == OWN)
        coded = self._screen.coded(rows[new])
        long = np.flatnonzero(coded.lengths > SHORTEST)
        where.indices[new[long]] = self._own.append(rows[new[long]], coded.of(long)) + np.arange(len(long))
        kept = np.ones(len(rows), dtype=bool)
        kept[new] = coded.lengths > SHORTEST
        for table, here, indices in where.by_table():
            if table != OWN:
                kept[here] = self._pool.tables[table].lengths[indices] > SHORTEST
        self._keep(owners[kept], own_scores[kept], where.of(kept))

    def append_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep the rows that were `saved`, into an empty one; the tables beside are as they were saved with them."""
        where = Where(np.array(arrays["preserve.tables"]), np.array(arrays["preserve.indices"]))
        self._own.append_saved("preserve.rows", arrays)
        counts = np.array([len(table) for table in self._pool.tables])
        if not (where.indices < counts[where.tables]).all():
            raise ValueError("the base has preserve rows beyond its texts; it is read anew from the store")
        self._keep(np.array(arrays[OWNERS]), np.array(arrays["preserve.own_scores"]), where)

    def saved(self, beside: Sequence[NDArray[np.intp]] = ()) -> dict[str, Any]:
        """All rows that were not removed, with their own scores and owners, as arrays by name.

        Of the tables beside, the rows at these rising indices are saved by others.
        """
        alive = np.flatnonzero(self._owners.values >= 0)
        where = self._pool.where.of(alive)
        own = where.indices[where.tables == OWN]
        indices = np.empty(len(alive), dtype=np.int32)
        for table, here, then in where.by_table():
            indices[here] = np.searchsorted((own, *beside)[table], then)
        return {
            OWNERS: self._owners.values[alive],
            "preserve.own_scores": self._own_scores_of(alive),
            "preserve.tables": where.tables,
            "preserve.indices": indices,
            **{f"preserve.rows{part}": array for part, array in self._own.saved(own).items()},
        }

    def remove_many(self, slots: Sequence[int]) -> None:
        """Drop the rows of these slots in one pass; memory is taken back when half of all rows are gone."""
        theirs = np.flatnonzero(np.isin(self._owners.values, slots))
        self._owners.values[theirs] = -1
        for table, _, indices in self._pool.where.of(theirs).by_table():
            self._own_scores[table].values[indices] = np.inf
        self._dead += len(theirs)
        if self._dead > len(self) // 2:
            self._take_memory_back()

    def arrays(self) -> tuple[NDArray[np.intp], Floats, NDArray[np.float64]]:
        """Owners (m,), rows (m, h) and own scores (m,) of all rows that were not removed."""
        alive = np.flatnonzero(self._owners.values >= 0)
        return self._owners.values[alive].astype(np.intp), self._pool.gather(alive), self._own_scores_of(alive)

    def under(self, margin: float, without: int | None = None) -> Ceilings:
        """The rows with ceilings at their own scores less the margin; `without` leaves a slot's own out."""
        owners, pool = self._owners.values, self._pool
        ceilings = [own.values - margin for own in self._own_scores]
        alive = np.flatnonzero(owners >= 0)
        if without is not None:
            for table, _, indices in pool.where.of(np.flatnonzero(owners == without)).by_table():
                ceilings[table][indices] = np.inf
            alive = alive[owners[alive] != without]
        return Ceilings(pool, ceilings, owners, alive)

    def _keep(self, owners: NDArray[np.integer[Any]], own_scores: NDArray[np.float64], where: Where) -> None:
        self._pool.append(where)
        self._owners.append(owners)
        for table, here, indices in where.by_table():
            own = self._own_scores[table]
            own.append(np.full(len(self._pool.numbers(table)) - len(own.values), np.inf))
            own.values[indices] = own_scores[here]

    def _own_scores_of(self, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._pool.gathered(numbers, [own.values for own in self._own_scores])

    def _empty(self) -> None:
        self._own = Table(self._dimension, self._screen)
        self._pool = Pool(self._own, self._beside)
        self._own_scores = tuple(Growing(np.float64) for _ in self._pool.tables)
        self._owners = Growing(np.int32)
        self._dead = 0

    def _take_memory_back(self) -> None:
        old = self.saved([np.arange(len(table)) for table in self._beside])
        self._empty()
        self.append_saved(old)


class _Part:
    """What lies in one table: its rows' numbers and ceilings, infinite where a row is not preserved."""

    def __init__(self, table: Table, numbers: NDArray[np.int32], ceilings: Doubles) -> None:
        self.table = table
        self.numbers = numbers
        self.ceilings = ceilings

    def preserved(self, here: Any) -> NDArray[np.bool_]:
        return np.asarray(self._preserved[here])

    def lengths(self, here: Any) -> Doubles:
        """Those of preserved rows; others may have none."""
        return np.asarray(np.maximum(self.table.lengths[: len(self.ceilings)][here], SHORTEST))

    def unsure(self, here: Any) -> Doubles:
        """The screen's errors of these rows as a part of their lengths."""
        return np.asarray(self.table.errors[: len(self.ceilings)][here] / self.lengths(here))

    def slack(self, here: Any, products: Floats) -> Floats:
        """How far one vector must move to violate these rows, from its products (r,) with them, overwriting these."""
        per_length, reach = self._per_length
        products *= per_length[here]
        products += reach[here]
        return products

    @cached_property
    def most_unsure(self) -> float:
        """The most that any preserved row is."""
        return float(np.where(self._preserved, self.unsure(slice(None)), 0.0).max(initial=0.0))

    @cached_property
    def _preserved(self) -> NDArray[np.bool_]:
        return np.isfinite(self.ceilings)

    @cached_property
    def _per_length(self) -> tuple[Floats, Floats]:
        per_length = 1.0 / self.lengths(slice(None))
        with np.errstate(over="ignore"):
            return -per_length.astype(np.float32), (self.ceilings * per_length).astype(np.float32)


class _Seen(NamedTuple):
    """What a pass found for one vector: the screened slack of each part's rows, at most `unsure` too much.

    No slack that was at most `threshold` was missed.
    """

    vector: NDArray[np.float64]
    slacks: list[Floats]
    unsure: float
    threshold: float


class Ceilings:
    """Preserve rows with their ceilings: answers who is nearest to violation, many vectors at once.

    A row's slack at v, (ceiling - row.v) / ||row||, is how far v must move at least to violate it. The screen leaves
    some doubt about it: rows are chosen by what it is at least.
    """

    def __init__(
        self, pool: Pool, ceilings: Sequence[Doubles], owners: NDArray[np.int32], alive: NDArray[np.intp]
    ) -> None:
        self._pool = pool
        self._parts = [
            _Part(table, pool.numbers(number), some)
            for number, (table, some) in enumerate(zip(pool.tables, ceilings, strict=True))
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
        chosen, threshold = self._within_reach(vector, unsure)
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
            self._seen = _Seen(vector, seen, unsure, threshold)
            chosen = [np.flatnonzero(slack <= np.float32(threshold + unsure)) for slack in seen]
            slacks = [slack[some] for slack, some in zip(seen, chosen, strict=True)]
        found = self._among(chosen, slacks, asked, threshold)
        return self._listed(*found.of(0, limit, threshold, float(np.linalg.norm(vector))))

    def _within_reach(self, vector: NDArray[np.float64], unsure: float) -> tuple[list[NDArray[np.intp]] | None, float]:
        """By part, the rows whose slack may be at most a threshold, and the threshold; None where those are too many.

        A slack changes by no more than the vector moves: by what was seen of the others before, theirs is higher.
        """
        if self._seen is None:
            return None, np.inf
        before, slacks, unsure_before, threshold = self._seen
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
        slack = _slack(self._ceilings(sample), lengths, self._sampled @ vectors.T)
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
        slack, unsure = _slack(part.ceilings[here], part.lengths(here), products), part.unsure(here)
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


def _slack(ceilings: Doubles, lengths: Doubles, products: Floats) -> Floats:
    """How far each vector must move to violate rows of such lengths, from their products (r, b), overwriting these."""
    per_length = 1.0 / lengths
    products *= -per_length[:, None].astype(np.float32)
    with np.errstate(over="ignore"):
        products += (ceilings * per_length)[:, None].astype(np.float32)
    return products


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
