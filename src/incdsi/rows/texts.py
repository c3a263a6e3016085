"""The embeddings of each document's own texts, and how near the nearest of them comes to a query."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.groups import Groups, Sizes
from incdsi.rows.local import Exact, LocalRows, Moment
from incdsi.rows.products import Doubles, Floats, exact
from incdsi.rows.scores import Mask, Scores, Slots, Spread
from incdsi.rows.table import Growing


class OwnTexts:
    """One row (h,) or more for each document's slot, in the order of slots; those of a slot lie together.

    One thread writes; any number read, each what was there at its `moment`.
    """

    def __init__(self, dimension: int) -> None:
        self._rows = LocalRows(dimension)
        self._groups = Groups()  # the rows of each slot
        self._errors, self._lengths = Growing(np.float64), Growing(np.float64)  # the largest of each slot's rows

    @property
    def moment(self) -> Moment:
        """What there is now."""
        return self._rows.moment

    def append_many(self, texts: Sequence[Floats], instead_of: Sequence[int | None] = ()) -> None:
        """The rows (m, h) of the next slots; those of the slots that they are `instead_of` are gone."""
        gone = self._groups.places(np.array([slot for slot in instead_of if slot is not None], dtype=np.intp))[0]
        rows, sizes = np.concatenate(texts), [len(some) for some in texts]
        nothing = np.empty((0, rows.shape[1]), dtype=np.float32)
        self._rows.append_many(list(rows), [nothing] * len(rows), gone.tolist())
        self._sized(np.array(sizes, dtype=np.int64))

    def remove_many(self, slots: Sequence[int]) -> None:
        """Take the rows of these slots out."""
        self._rows.remove_many(self._groups.places(np.array(slots, dtype=np.intp))[0].tolist())

    def scores_and_spreads(self, queries: Floats, alive: Mask, moment: Moment) -> Iterator[tuple[Scores, Spread]]:
        """For each query (b, h), the score of each slot's nearest row; mean and spread are those of all rows."""
        count = len(alive)
        for one in self._rows.screened(queries, moment):
            nearest = Scores(
                alive=alive,
                screened=self._groups.best(one.products, count).astype(np.float64),
                doubt=one.doubt(self._errors.values[:count], self._lengths.values[:count]),
                exact=Exact(functools.partial(self._nearest, one.query), count),
                each=functools.partial(self._each, one.query),
            )
            yield nearest, moment.moments.spread(one.query)

    def saved(self, slots: Slots) -> dict[str, Any]:
        """Everything in these slots, all that are in use and rising, as arrays by name; slots[i] becomes i."""
        places, sizes = self._groups.places(slots)
        rows = self._rows.saved(places).items()
        return {"sizes": sizes, **{name: array for name, array in rows if name.startswith(("vectors", "moments"))}}

    def fill_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was `saved`, into an empty one."""
        self._rows.fill_saved(arrays, preserve=False)
        self._sized(np.asarray(arrays["sizes"], dtype=np.int64))

    def _nearest(self, query: Floats, slots: Slots) -> Doubles:
        places, sizes = self._groups.places(slots)
        return np.maximum.reduceat(exact(self._rows.vectors(places), query), np.cumsum(sizes) - sizes)

    def _each(self, query: Floats, slot: int) -> Doubles:
        return exact(self._rows.vectors(self._groups.places(np.array([slot]))[0]), query)

    def _sized(self, sizes: Sizes) -> None:
        """Rows were appended, so many for each of the next slots: the doubt about a slot is that of its worst row."""
        first = len(self._rows.alive) - int(sizes.sum())
        starts = np.cumsum(sizes) - sizes
        self._errors.append(np.maximum.reduceat(self._rows.errors[first:], starts) if len(sizes) else np.empty(0))
        self._lengths.append(np.maximum.reduceat(self._rows.lengths[first:], starts) if len(sizes) else np.empty(0))
        self._groups.append(sizes)
