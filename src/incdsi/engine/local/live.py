"""What an open index holds in memory: vectors, preserve rows and words, derived from its records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.local.owners import QueryOwners
from incdsi.engine.local.view import Lexical, LocalView, NearestTexts, Products
from incdsi.engine.settings import Settings
from incdsi.engine.words import OwnWords
from incdsi.errors import CorruptStore, UnsupportedFormat
from incdsi.filters import Filter
from incdsi.mapped import reuse_memory
from incdsi.preserve import PreserveRows
from incdsi.records import Record
from incdsi.rows import LocalRows
from incdsi.rows.growing import Growing
from incdsi.rows.texts import OwnTexts
from incdsi.store import Base, Changes, Store
from incdsi.text.queries import represent

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
PORTION = 512  # records taken from the store at a time


class Live:
    """Documents by row, in memory: a bench, and what an engine shows of its store up to `sequence`.

    Losing it costs time, never data. One thread changes it; any number search it meanwhile, each in a `view`. A reader
    (`writer=False`) keeps no preserve rows and does not know whose the queries are. Inside, a state of a document is
    known by its slot, which is never used again.
    """

    def __init__(self, settings: Settings, *, writer: bool = True) -> None:
        self.settings = settings
        self.writer = writer
        self.texts = OwnTexts(settings.dimension)
        self.vectors = LocalRows(settings.dimension, beside=self.texts.tables)
        self.words = OwnWords(settings.language)
        self.moment = self.vectors.moment, self.texts.moment
        self.sequence = 0
        self.outdated_base = False  # there is one, and it could not be used
        self._queries = QueryOwners()
        self._rows = Growing(np.int64)
        self._slots: dict[int, int] = {}
        self._lifted: set[int] = set()  # rows whose vectors are out for a moment

    @classmethod
    def load(cls, store: Store, *, writer: bool, sound: bool = True) -> Self:
        """Everything in the store: the base if it is sound, then what is newer."""
        reuse_memory()
        base = store.base() if sound else None
        outdated = not sound
        if base is not None:
            changes = store.changes(base.sequence)
            live = cls(Settings.from_json(changes.settings), writer=writer)
            try:
                live._take_base(base)
                return live.caught_up(changes)
            except (CorruptStore, UnsupportedFormat, KeyError, ValueError):  # a cache: read everything instead
                changes.upserts.close()
                outdated = True
        changes = store.changes(0)
        live = cls(Settings.from_json(changes.settings), writer=writer).caught_up(changes)
        live.outdated_base = outdated
        return live

    # Reading

    def __len__(self) -> int:
        return len(self._slots) - len(self._lifted)

    def __contains__(self, row: object) -> bool:
        return row in self._slots and row not in self._lifted

    def view(self) -> LocalView:
        """The documents of this moment."""
        return LocalView(self, self.settings)

    def learned(self, query: Floats, where: Filter | None = None) -> Products:
        return self.view().learned(query, where)

    def nearest(self, query: Floats, where: Filter | None = None) -> NearestTexts:
        return self.view().nearest(query, where)

    def learned_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Products]:
        return self.view().learned_many(queries, where)

    def nearest_many(self, queries: Floats, where: Filter | None = None) -> Iterator[NearestTexts]:
        return self.view().nearest_many(queries, where)

    def within(self, query: Floats, row: int) -> Doubles:
        return self.view().within(query, row)

    def lexical(self, text: str, where: Filter | None = None) -> Lexical:
        return self.view().lexical(text, where)

    def marker(self, query: str) -> Callable[[str], list[tuple[int, int]]]:
        return self.words.marker(query)

    def rivals(self, queries: Floats, without: int | None = None) -> tuple[Doubles, Rows]:
        return self.view().rivals(queries, without)

    def preserve(self, margin: float, without: int | None = None) -> PreserveRows:
        return self.view().preserve(margin, without)

    def elsewhere(self, query: str, row: int) -> bool:
        """Whether another document than that in the row has this query."""
        return self._queries.elsewhere(query, row)

    def others(self, query: str, row: int) -> list[int]:
        return self._queries.others(query, row)

    def asked_for(self, rows: Rows) -> NDArray[np.bool_]:
        return self.view().asked_for(rows)

    def bench(self) -> Self:
        """The same documents without empty slots; searches in this one go on undisturbed."""
        bench = type(self)(self.settings, writer=self.writer)
        bench._fill(self.to_arrays())
        bench.sequence, bench.outdated_base = self.sequence, self.outdated_base
        return bench

    @property
    def damaged(self) -> bool:
        """Whether the base this was read from turned out to be damaged."""
        return self.vectors.damaged

    def slot(self, row: int) -> int | None:
        """Where the present state of that document is."""
        return self._slots.get(row)

    def slots(self, rows: Rows) -> NDArray[np.intp]:
        """Where the present states of these documents are; -1 for one that is not there."""
        return np.fromiter(map(self._slots.get, rows.tolist(), itertools.repeat(-1)), dtype=np.intp, count=len(rows))

    @property
    def rows(self) -> Rows:
        """The rows of all slots so far."""
        rows: Rows = self._rows.values
        return rows

    def all_vectors(self) -> tuple[Rows, Floats]:
        """All rows and their document vectors, (n, h)."""
        slots = np.flatnonzero(self.vectors.alive)
        return self.rows[slots], self.vectors.vectors(slots)

    # Changing

    def caught_up(self, changes: Changes) -> Self:
        """This, with everything newer than it; another one when what was removed is not known any more."""
        settings = Settings.from_json(changes.settings)
        live = type(self)(settings, writer=self.writer) if changes.reload else self
        live.remove([row for row in changes.removed if row in live])
        portion: list[Record] = []
        for record in changes.upserts:
            portion.append(record)
            if len(portion) == PORTION:
                live.put(portion)
                portion = []
        live.put(portion)
        live.settings, live.sequence = settings, changes.sequence
        return live

    def put(self, records: Sequence[Record]) -> None:
        """Show these documents, new ones or new states of old ones."""
        self._put_back([record for record in records if record.row in self._lifted])
        self._put([record for record in records if record.row not in self._lifted])
        self._lifted -= {record.row for record in records}

    def lift(self, rows: Sequence[int]) -> None:
        """Hide these documents until they are `put` back, with the same texts and at other vectors.

        Their words and texts stay where they are, and count on; for a bench, which nobody else reads.
        """
        self.vectors.lift([self._slots[row] for row in rows])
        self._lifted |= set(rows)
        self.moment = self.vectors.moment, self.texts.moment

    def _put_back(self, records: Sequence[Record]) -> None:
        if records:
            slots = [self._slots[record.row] for record in records]
            rows = [self._preserved(record) for record in records]
            where = self.texts.find(slots, rows)
            self.vectors.put_back(slots, [record.vector for record in records], rows, where)
            self.moment = self.vectors.moment, self.texts.moment

    def _put(self, records: Sequence[Record]) -> None:
        if not records:
            return
        first = len(self._rows.values)
        slots = range(first, first + len(records))
        self.words.add([record.words for record in records])
        self._rows.append(np.array([record.row for record in records], dtype=np.int64))
        old = [self._slots.get(record.row) for record in records]
        vectors = [record.vector for record in records]
        own = [record.texts for record in records]
        self.texts.append_many([one.texts for one in own], [one.asked for one in own], instead_of=old)
        preserved = [self._preserved(record) for record in records]
        where = self.texts.find(slots, preserved) if self.writer else None
        self.vectors.append_many(vectors, preserved, instead_of=old, where=where)
        self.moment = self.vectors.moment, self.texts.moment
        self._slots.update(zip((record.row for record in records), slots, strict=True))
        if self.writer:
            for record in records:
                self._queries.put(record.row, [query.text for query in record.queries])
        self.words.remove([slot for slot in old if slot is not None])

    def remove(self, rows: Sequence[int]) -> None:
        """Hide these documents."""
        slots = [self._slots.pop(row) for row in rows]
        for row in rows:
            self._queries.remove(row)
        if slots:
            self.vectors.remove_many(slots)
            self.texts.remove_many(slots)
            self.moment = self.vectors.moment, self.texts.moment
            self.words.remove(slots)

    @property
    def wasteful(self) -> bool:
        """Whether more slots are empty than it is worth keeping."""
        return len(self._rows.values) > 2 * len(self) + 1024

    # The base

    def to_arrays(self) -> dict[str, Any]:
        """Everything as plain arrays, for the base; the largest give their slices alone."""
        slots = np.array(sorted(self._slots.values()), dtype=np.intp)
        rows = self.rows[slots]
        return {
            "store_rows": rows,
            **self.vectors.saved(slots, self.texts.indices(slots)),
            **{f"texts.{name}": array for name, array in self.texts.saved(slots).items()},
            **{f"lexical.{name}": array for name, array in self.words.to_arrays(slots).items()},
            **{f"queries.{name}": array for name, array in self._queries.to_arrays(rows.tolist()).items()},
        }

    def _take_base(self, base: Base) -> None:
        self._fill(base.arrays)
        self.sequence = base.sequence

    def _fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        rows = np.array(arrays["store_rows"], dtype=np.int64)
        self.words = OwnWords.from_arrays(_under("lexical.", arrays), self.settings.language, len(rows))
        self.texts.fill_saved(_under("texts.", arrays))
        self.vectors.fill_saved(arrays, preserve=self.writer)
        self.moment = self.vectors.moment, self.texts.moment
        if self.writer:
            self._queries.fill(rows.tolist(), _under("queries.", arrays))
        self._rows.append(rows)
        self._slots = dict(zip(rows.tolist(), range(len(rows)), strict=True))

    def _preserved(self, record: Record) -> Floats:
        """The preserve rows of a document: in the general form each query it wins, in the paper's their mean."""
        if not self.writer:
            return _stacked([], self.settings.dimension)
        if self.settings.method == "general":
            return _stacked([query.embedding for query in record.queries if query.preserved], self.settings.dimension)
        used = [query.embedding for query in record.queries if query.used]
        return represent(_stacked(used or [record.anchor], self.settings.dimension))[None]


def _stacked(vectors: Sequence[Floats], dimension: int) -> Floats:
    return np.stack(vectors) if vectors else np.empty((0, dimension), dtype=np.float32)


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
