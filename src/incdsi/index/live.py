"""What an open index holds in memory: vectors, preserve rows and words, derived from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import CorruptStore, UnsupportedFormat
from incdsi.index.owners import QueryOwners
from incdsi.lexical import LexicalIndex
from incdsi.rows import LocalRows
from incdsi.rows.table import Growing
from incdsi.store import Base, Changes, Record, Store
from incdsi.text.queries import represent

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Preserve = Callable[[Record], Floats]
PORTION = 512  # records taken from the store at a time


class Live:
    """The documents of a store up to `sequence`, by slot; losing it costs time, never data.

    One thread changes it; any number search it meanwhile. `preserve` makes a record's preserve rows (m, h);
    a reader, which needs none, gives `preserve_nothing` and does not know whose the queries are either.
    """

    def __init__(self, dimension: int, preserve: Preserve) -> None:
        self.dimension = dimension
        self.preserve = preserve
        self.rows = LocalRows(dimension)
        self.lexical = LexicalIndex()
        self.queries = QueryOwners()
        self.sequence = 0
        self._store_rows = Growing(np.int64)
        self._slots: dict[int, int] = {}

    @classmethod
    def load(cls, store: Store, dimension: int, preserve: Preserve) -> Self:
        """Everything in the store: the base if it is sound, then what is newer."""
        live = cls(dimension, preserve)
        base = store.base()
        if base is not None:
            try:
                live._take_base(base)
            except (CorruptStore, UnsupportedFormat, KeyError, ValueError):
                live = cls(dimension, preserve)  # a cache: read everything instead
        return live.caught_up(store.changes(live.sequence))

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, store_row: int) -> bool:
        return store_row in self._slots

    def slot(self, store_row: int) -> int:
        """Where the document of that row is."""
        return self._slots[store_row]

    def among(self, store_rows: Rows, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` slots hold, or held, these documents."""
        return np.isin(self._store_rows.values[:count], store_rows)

    def store_rows(self, slots: NDArray[np.intp]) -> Rows:
        """The store's rows of these slots."""
        result: Rows = self._store_rows.values[slots]
        return result

    def caught_up(self, changes: Changes) -> Self:
        """This, with everything newer than it; another one when what was removed is not known any more."""
        live = type(self)(self.dimension, self.preserve) if changes.reload else self
        live.remove([row for row in changes.removed if row in live])
        portion: list[Record] = []
        for record in changes.upserts:
            portion.append(record)
            if len(portion) == PORTION:
                live.put(portion)
                portion = []
        live.put(portion)
        live.sequence = changes.sequence
        return live

    def put(self, records: Sequence[Record]) -> None:
        """Show these documents, new ones or new states of old ones."""
        if not records:
            return
        first = len(self._store_rows.values)
        slots = range(first, first + len(records))
        self.lexical.add_many(list(slots), [record.document.content for record in records])
        self._store_rows.append(np.array([record.row for record in records], dtype=np.int64))
        old = [self._slots.get(record.row) for record in records]
        vectors = [record.vector for record in records]
        self.rows.append_many(vectors, [self.preserve(record) for record in records], instead_of=old)
        self._slots.update(zip((record.row for record in records), slots, strict=True))
        if self._writes:
            for record in records:
                self.queries.put(record.row, [query.text for query in record.queries])
        self.lexical.remove_many([slot for slot in old if slot is not None])

    def remove(self, store_rows: Sequence[int]) -> None:
        """Hide these documents."""
        slots = [self._slots.pop(row) for row in store_rows]
        for row in store_rows:
            self.queries.remove(row)
        if slots:
            self.rows.remove_many(slots)
            self.lexical.remove_many(slots)

    @property
    def _writes(self) -> bool:
        return self.preserve is not preserve_nothing

    @property
    def wasteful(self) -> bool:
        """Whether more slots are empty than it is worth keeping."""
        return len(self._store_rows.values) > 2 * len(self) + 1024

    def compacted(self) -> Self:
        """The same documents without empty slots; searches in this one go on undisturbed."""
        return self._from_arrays(self.to_arrays(), self.sequence)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, for the base."""
        slots = np.array(sorted(self._slots.values()), dtype=np.intp)
        rows = self.store_rows(slots)
        owners, preserve_rows, own_scores = self.rows.preserve_arrays()
        return {
            "store_rows": rows,
            "vectors": self.rows.vectors(slots),
            **{f"moments.{name}": array for name, array in self.rows.moments_arrays().items()},
            "owners": np.searchsorted(slots, owners),
            "preserve_rows": preserve_rows,
            "own_scores": own_scores,
            **{f"lexical.{name}": array for name, array in self.lexical.to_arrays(slots).items()},
            **{f"queries.{name}": array for name, array in self.queries.to_arrays(rows.tolist()).items()},
        }

    def _take_base(self, base: Base) -> None:
        self._fill(base.arrays)
        self.sequence = base.sequence

    def _from_arrays(self, arrays: Mapping[str, NDArray[Any]], sequence: int) -> Self:
        live = type(self)(self.dimension, self.preserve)
        live._fill(arrays)
        live.sequence = sequence
        return live

    def _fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        store_rows = np.array(arrays["store_rows"], dtype=np.int64)
        self.lexical = LexicalIndex.from_arrays(_under("lexical.", arrays))
        if len(self.lexical) != len(store_rows):
            raise CorruptStore("expected as many documents in words as in vectors, found others; read the store")
        self.rows.fill(arrays["vectors"], _under("moments.", arrays))
        if self._writes:
            self.queries.fill(store_rows.tolist(), _under("queries.", arrays))
            self.rows.fill_preserve(arrays["owners"], arrays["preserve_rows"], arrays["own_scores"])
        self._store_rows.append(store_rows)
        self._slots = dict(zip(store_rows.tolist(), range(len(store_rows)), strict=True))


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}


def preserve_won(record: Record) -> Floats:
    """The general form: every query the document wins."""
    return embeddings([query.embedding for query in record.queries if query.preserved], len(record.vector))


def preserve_mean(record: Record) -> Floats:
    """The paper's form: the mean of the queries."""
    used = [query.embedding for query in record.queries if query.used]
    return represent(embeddings(used or [record.anchor], len(record.vector)))[None]


def preserve_nothing(record: Record) -> Floats:
    """For readers."""
    return embeddings([], len(record.vector))


def embeddings(vectors: Sequence[Floats], dimension: int) -> Floats:
    """Stacked (k, h), also for k = 0."""
    return np.stack(vectors) if vectors else np.empty((0, dimension), dtype=np.float32)
