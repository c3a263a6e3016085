"""Document vectors and preserve rows in this process's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.rows.preserve import COLUMNS, Ceilings, PreserveTable
from incdsi.rows.products import Floats, Screen, fastest_screen, row_lengths
from incdsi.rows.table import Growing, Table

Slots = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """What readers see: the vectors of all slots so far, of which some are alive."""

    alive: NDArray[np.bool_]
    lengths: Floats


class LocalRows:
    """V, Z and own scores of one index: exact top-k, violators, append, replace, remove.

    A document has a slot for its vector and any number of preserve rows. One thread writes; any number
    read at the same time, each a state that was current when its call began. Slots are never reused.
    """

    def __init__(self, dimension: int, screen: Screen | None = None) -> None:
        if dimension < 1:
            raise InvalidInput(f"expected a dimension of at least 1, found {dimension}")
        self.dimension = dimension
        chosen = screen or fastest_screen(dimension)
        self._vectors = Table(dimension, chosen)
        self._lengths = Growing(np.float32)
        self._preserve = PreserveTable(dimension, chosen)
        self._view = _View(np.empty(0, dtype=bool), np.empty(0, dtype=np.float32))

    def __len__(self) -> int:
        """How many documents there are."""
        return int(np.count_nonzero(self._view.alive))

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < len(self._view.alive) and bool(self._view.alive[slot])

    # Reading

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which slots hold a document, (slots,)."""
        return self._view.alive

    def scores(self, query: ArrayLike) -> Floats:
        """The query's score with every slot, (slots,); -inf where a document was removed."""
        view = self._view
        vector = self._checked("query", query, 1)
        parts = [part[:, 0] for _, part in self._vectors.products(vector[None], len(view.alive))]
        result = np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)
        result[~view.alive] = -np.inf
        return result

    def vectors(self, slots: Slots) -> Floats:
        """The document vectors in these slots, (m, h)."""
        return self._vectors.gather(slots)

    def top(
        self, queries: ArrayLike, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[tuple[Slots, NDArray[np.float64]]]:
        """For each query (b, h) the slots and scores of its k best documents, exactly, best first.

        `allowed` (slots,) masks documents before the choice, never after it; ties go to the lower slot.
        """
        view = self._view
        alive = view.alive if allowed is None else view.alive & allowed
        return [self._top(query, k, alive, view.lengths) for query in self._checked("queries", queries, 2)]

    def best(self, queries: ArrayLike, without: int | None = None) -> tuple[NDArray[np.float64], Slots]:
        """For each query (b, h) the best score and its slot; -inf and -1 where there is no document.

        `without` leaves one slot out: that of the document that asks.
        """
        checked = self._checked("queries", queries, 2)
        scores = np.full(len(checked), -np.inf)
        slots = np.full(len(checked), -1, dtype=np.intp)
        for start in range(0, len(checked), COLUMNS):
            part = slice(start, start + COLUMNS)
            self._best(checked[part], without, scores[part], slots[part])
        return scores, slots

    def under(self, margin: float, without: int | None = None) -> Ceilings:
        """The preserve rows with ceilings at their own scores less the margin, as the solver asks for them."""
        return self._preserve.under(margin, without)

    def owners(self, indices: NDArray[np.intp]) -> Slots:
        """The slots whose preserve rows these are."""
        return self._preserve.owners(indices)

    # Writing

    def append(self, vector: ArrayLike, queries: ArrayLike) -> int:
        """Add a document with its vector (h,) and preserve rows (m, h); its slot."""
        return self.append_many([vector], [queries])[0]

    def append_many(
        self,
        vectors: Sequence[ArrayLike],
        queries: Sequence[ArrayLike],
        instead_of: Sequence[int | None] = (),
    ) -> range:
        """Add documents, each with its vector (h,) and preserve rows (m, h); their slots in order.

        Those `instead_of` a slot take its place: readers see the old one or the new one, never both and
        never neither.
        """
        gone = [slot for slot in instead_of if slot is not None]
        self._require(gone)
        slots = self._write(vectors, queries)
        self._take_out(np.concatenate([self._view.alive, np.ones(len(slots), dtype=bool)]), gone)
        return slots

    def replace(self, slot: int, vector: ArrayLike, queries: ArrayLike) -> int:
        """Put a new vector and preserve rows in place of a document's old ones; its new slot."""
        return self.append_many([vector], [queries], instead_of=[slot])[0]

    def fill(self, vectors: Floats) -> None:
        """Take over the vectors (n, h) of a saved index, without their preserve rows."""
        self._vectors.append(vectors)
        self._lengths.append(row_lengths(vectors))
        self._publish(np.concatenate([self._view.alive, np.ones(len(vectors), dtype=bool)]))

    def fill_preserve(self, owners: Slots, rows: Floats, own_scores: NDArray[np.float64]) -> None:
        """Take over the preserve rows (m, h) of a saved index with their owners' slots and own scores."""
        self._preserve.append(owners, rows, own_scores)

    def preserve_arrays(self) -> tuple[Slots, Floats, NDArray[np.float64]]:
        """All preserve rows, to be saved: their owners' slots (m,), rows (m, h) and own scores (m,)."""
        return self._preserve.arrays()

    def remove(self, slot: int) -> None:
        """Take a document out, with its preserve rows."""
        self.remove_many([slot])

    def remove_many(self, slots: Sequence[int]) -> None:
        """Take documents out, with their preserve rows, at the price of one look at all rows; all or none."""
        self._require(slots)
        self._take_out(self._view.alive.copy(), slots)

    # Inside

    def _write(self, vectors: Sequence[ArrayLike], queries: Sequence[ArrayLike]) -> range:
        stored = [self._checked("vector", vector, 1) for vector in vectors]
        rows = [self._checked("queries", some, 2) for some in queries]
        if not stored:
            return range(len(self._vectors), len(self._vectors))
        stacked = np.stack(stored)
        first = self._vectors.append(stacked)
        self._lengths.append(row_lengths(stacked))
        for slot, (vector, some) in enumerate(zip(stored, rows, strict=True), start=first):
            owners = np.full(len(some), slot, dtype=np.intp)
            self._preserve.append(owners, some, some.astype(np.float64) @ vector.astype(np.float64))
        return range(first, first + len(stored))

    def _take_out(self, alive: NDArray[np.bool_], gone: Sequence[int]) -> None:
        if gone:
            alive[gone] = False
            self._preserve.remove_many(gone)
        self._publish(alive)

    def _publish(self, alive: NDArray[np.bool_]) -> None:
        self._view = _View(alive, self._lengths.values)

    def _top(
        self, query: Floats, k: int, alive: NDArray[np.bool_], lengths: Floats
    ) -> tuple[Slots, NDArray[np.float64]]:
        parts = [part[:, 0] for _, part in self._vectors.products(query[None], len(alive))]
        screened = np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)
        screened[~alive] = -np.inf
        wanted = min(k, int(np.count_nonzero(alive)))
        if wanted <= 0:
            return np.empty(0, dtype=np.intp), np.empty(0)
        doubt = self._doubt(lengths, query)
        at_least = np.partition(screened - doubt, -wanted)[-wanted]
        slots = np.flatnonzero((screened + doubt >= at_least) & alive)
        scores = self._exact(slots, query)
        order = np.lexsort((slots, -scores))[:wanted]
        return slots[order], scores[order]

    def _best(self, queries: Floats, without: int | None, scores: NDArray[np.float64], slots: Slots) -> None:
        """Fill in the best score and slot of each query, looking exactly at those the screen leaves in doubt."""
        view = self._view
        dead = ~view.alive
        if without is not None:
            dead[without] = True
        if dead.all():
            return
        lengths = np.linalg.norm(queries, axis=1)
        at_least = np.full(len(queries), -np.inf)
        doubtful_slots, doubtful_queries, uppers = [], [], []
        for start, screened in self._vectors.products(queries, len(dead)):
            stop = start + len(screened)
            screened[dead[start:stop]] = -np.inf
            doubt = self._vectors.screen.error * float(view.lengths[start:stop].max()) * lengths
            np.maximum(at_least, screened.max(axis=0) - doubt, out=at_least)
            likely = np.flatnonzero(screened >= (at_least - doubt).astype(np.float32))
            row, column = np.divmod(likely, screened.shape[1])
            doubtful_slots.append(row + start)
            doubtful_queries.append(column)
            uppers.append(screened[row, column] + doubt[column])
        slot, column = np.concatenate(doubtful_slots), np.concatenate(doubtful_queries)
        still = np.concatenate(uppers) >= at_least[column]
        _keep_best(slot[still], column[still], self._exact_pairs(slot[still], queries[column[still]]), scores, slots)

    def _doubt(self, lengths: Floats, query: Floats) -> Floats:
        return np.asarray(self._vectors.screen.error * float(np.linalg.norm(query)) * lengths)

    def _exact(self, slots: Slots, query: Floats) -> NDArray[np.float64]:
        return np.asarray(self._vectors.gather(slots).astype(np.float64) @ query.astype(np.float64))

    def _exact_pairs(self, slots: Slots, queries: Floats) -> NDArray[np.float64]:
        vectors = self._vectors.gather(slots).astype(np.float64)
        return np.asarray(np.einsum("ij,ij->i", vectors, queries.astype(np.float64)))

    def _require(self, slots: Sequence[int]) -> None:
        for slot in slots:
            if slot not in self:
                raise UnknownDocument(f"expected a slot in use, found {slot}; it was removed or never given out")

    def _checked(self, name: str, value: ArrayLike, ndim: int) -> Floats:
        array = np.ascontiguousarray(value, dtype=np.float32)
        if array.ndim != ndim or array.shape[-1] != self.dimension:
            shape = f"({self.dimension},)" if ndim == 1 else f"(any, {self.dimension})"
            raise InvalidInput(f"expected {name} of shape {shape}, found {array.shape}; use one encoder")
        if not np.isfinite(array).all():
            raise InvalidInput(f"expected {name} to be finite, found NaN or infinity; check what made it")
        return array


def _keep_best(
    slot: Slots, column: Slots, exact: NDArray[np.float64], scores: NDArray[np.float64], slots: Slots
) -> None:
    order = np.lexsort((slot, -exact, column))
    columns, first = np.unique(column[order], return_index=True)
    scores[columns] = exact[order][first]
    slots[columns] = slot[order][first]
