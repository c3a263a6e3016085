"""Preserve rows: the cached queries that indexed documents keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.ceilings import SHORTEST, Ceilings, Slopes
from incdsi.rows.growing import Growing
from incdsi.rows.pool import OWN, Pool, Where
from incdsi.rows.products import Floats, Screen
from incdsi.rows.table import Table

OWNERS = "preserve.owners"  # the name of a saved array


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

    @property
    def damaged(self) -> bool:
        """Whether a row was not what was saved."""
        return any(table.damaged for table in self._pool.tables)

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
        return Ceilings(pool, ceilings, self._slopes, owners, alive)

    def _keep(self, owners: NDArray[np.integer[Any]], own_scores: NDArray[np.float64], where: Where) -> None:
        self._pool.append(where)
        self._owners.append(owners)
        for table, here, indices in where.by_table():
            own = self._own_scores[table]
            own.append(np.full(len(self._pool.numbers(table)) - len(own.values), np.inf))
            own.values[indices] = own_scores[here]
            self._slopes[table].append(len(own.values), indices)

    def _own_scores_of(self, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._pool.gathered(numbers, [own.values for own in self._own_scores])

    def _empty(self) -> None:
        self._own = Table(self._dimension, self._screen)
        self._pool = Pool(self._own, self._beside)
        self._own_scores = tuple(Growing(np.float64) for _ in self._pool.tables)
        self._slopes = tuple(map(Slopes, self._pool.tables))
        self._owners = Growing(np.int32)
        self._dead = 0

    def _take_memory_back(self) -> None:
        old = self.saved([np.arange(len(table)) for table in self._beside])
        self._empty()
        self.append_saved(old)
