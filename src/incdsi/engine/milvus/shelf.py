"""What a client keeps in memory of an index on Milvus: where each document is, its words, and sums over all vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.local import Live
from incdsi.engine.local.owners import QueryOwners
from incdsi.engine.milvus.layout import Place, asked
from incdsi.engine.protocol import Floats, Rows
from incdsi.engine.settings import Settings
from incdsi.engine.words import OwnWords
from incdsi.records import Record, TextVectors
from incdsi.rows.groups import Groups
from incdsi.rows.growing import Growing
from incdsi.rows.moments import Moments
from incdsi.rows.products import row_lengths
from incdsi.rows.scores import Mask, Slots

Old = tuple[Floats, TextVectors]  # vector (1, h) and texts of a version of a document
HERE = 2**62  # keys of documents that are on no server: those on a bench


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Over document vectors, texts, or what was asked: mean and spread of a query's scores, and the longest of them."""

    moments: Moments
    longest: float = 0.0

    def added(self, vectors: Floats) -> Sums:
        """With these vectors (m, h) as well."""
        if len(vectors) == 0:
            return self
        longest = max(self.longest, float(row_lengths(vectors).max()))
        return Sums(self.moments.added(vectors), longest)

    def removed(self, vectors: Floats) -> Sums:
        """Without these vectors (m, h)."""
        return replace(self, moments=self.moments.removed(vectors)) if len(vectors) else self


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What a view sees: which slots hold a document, and the sums over those."""

    alive: Mask
    learned: Sums
    texts: Sums
    asked: Sums

    @property
    def longest_query(self) -> float:
        """No embedding of a text or a query is longer."""
        return max(self.texts.longest, self.asked.longest)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A version of a document as a client gets to know it."""

    place: Place
    record: Record


class Shelf:
    """Documents by row; a state of one is known by its slot, which is never used again.

    Keys rise with slots, so that both directions are a binary search. One thread changes it; any number look at it,
    each at a `moment`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.words = OwnWords(settings.language)
        self.queries = QueryOwners()
        nothing = Sums(Moments.none(settings.dimension))
        self.moment = Moment(np.empty(0, dtype=bool), nothing, nothing, nothing)
        self.bench: Live | None = None  # documents that are on no server
        self._places = {name: Growing(np.int64) for name in ("row", "key", "first", "count", "held_out", "preserved")}
        self._asked, self._flags = Growing(np.bool_), Groups()  # which of each slot's query rows were asked
        self._asked_for = Growing(np.bool_)  # which slots are placed by any of them
        self._ids: list[str] = []
        self._slots: dict[int, int] = {}
        self._rows: dict[str, int] = {}
        self._here: dict[int, Record] = {}

    # Looking

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, row: object) -> bool:
        return row in self._slots

    def all(self, what: str) -> Rows:
        """Of every slot so far: its document's row or key, its first query's key, or how many it has."""
        values: Rows = self._places[what].values
        return values

    @property
    def rows(self) -> Rows:
        return self.all("row")

    def slot(self, row: int) -> int | None:
        """Where the present state of that document is."""
        return self._slots.get(row)

    def row_of(self, id: object) -> int | None:
        return self._rows.get(id) if isinstance(id, str) else None

    def id_of(self, row: int) -> str | None:
        slot = self._slots.get(row)
        return None if slot is None else self._ids[slot]

    def place(self, row: int) -> Place:
        """Where the present state of that document is on the server."""
        slot = self._slots[row]
        return Place(*(int(self.all(name)[slot]) for name in self._places))

    def current(self) -> Slots:
        """The slots of all documents there are, rising."""
        return np.array(sorted(self._slots.values()), dtype=np.intp)

    def slots_of_keys(self, keys: NDArray[np.int64]) -> Slots:
        """The slots that have these keys; -1 for a key nobody knows."""
        return _find(self.all("key"), keys)

    def slots_of_queries(self, keys: NDArray[np.int64]) -> Slots:
        """The slots whose queries have these keys; -1 for a key nobody knows."""
        firsts, counts = self.all("first"), self.all("count")
        if len(firsts) == 0:
            return np.full(len(keys), -1, dtype=np.intp)
        slots = np.searchsorted(firsts, keys, "right") - 1
        inside = (slots >= 0) & (keys < firsts[slots] + counts[slots])
        return np.where(inside, slots, -1).astype(np.intp)

    def asked(self, keys: NDArray[np.int64]) -> Mask:
        """Which of these keys of queries, all known, are of what people asked."""
        slots = self.slots_of_queries(keys)
        flags: Mask = self._asked.values[self._flags.starts(slots) + keys - self.all("first")[slots]]
        return flags

    def asked_for(self, slots: Slots) -> Mask:
        """Which of these slots are placed by something that people asked."""
        flags: Mask = self._asked_for.values[slots]
        return flags

    # Changing

    def put(self, shown: Sequence[Shown], old: Mapping[int, Old]) -> None:
        """Show documents, new ones or new states of old ones; `old` has vector and texts of what they replace."""
        if not shown:
            return
        first = len(self.rows)
        slots = range(first, first + len(shown))
        records = [one.record for one in shown]
        self.words.add([record.words for record in records])
        for name, values in self._places.items():
            values.append(np.array([getattr(one.place, name) for one in shown], dtype=np.int64))
        self._asked.append(np.array([flag for one in shown for flag in asked(one.record, one.place.count)], dtype=bool))
        self._flags.append(np.array([one.place.count for one in shown], dtype=np.int64))
        self._ids += [record.document.id for record in records]
        gone = [slot for record in records if (slot := self._slots.get(record.row)) is not None]
        alive = np.concatenate([self.moment.alive, np.ones(len(shown), dtype=bool)])
        alive[gone] = False
        learned = self.moment.learned.added(np.stack([record.vector for record in records]))
        own = [record.texts for record in records]
        self._asked_for.append(np.array([len(one.asked) > 0 for one in own], dtype=bool))
        texts = self.moment.texts.added(np.concatenate([one.texts for one in own]))
        questions = self.moment.asked.added(np.concatenate([one.asked for one in own]))
        self.moment = _without(Moment(alive, learned, texts, questions), [old[r.row] for r in records if r.row in old])
        for slot, record in zip(slots, records, strict=True):
            self._slots[record.row] = slot
            self._rows[record.document.id] = record.row
            self.queries.put(record.row, [query.text for query in record.queries])
        self.words.remove(gone)

    def remove(self, rows: Sequence[int], old: Mapping[int, Old]) -> None:
        """Hide documents, whose vectors and texts are in `old`."""
        slots = [self._slots.pop(row) for row in rows]
        if not slots:
            return
        for row, slot in zip(rows, slots, strict=True):
            del self._rows[self._ids[slot]]
            self.queries.remove(row)
        alive = self.moment.alive.copy()
        alive[slots] = False
        self.moment = _without(replace(self.moment, alive=alive), [old[row] for row in rows])
        self.words.remove(slots)

    @property
    def wasteful(self) -> bool:
        """Whether more slots are empty than it is worth keeping."""
        return len(self.rows) > 2 * len(self) + 1024

    @property
    def worn(self) -> bool:
        """Whether more has gone from the sums than is left in them."""
        now = self.moment
        return any(sums.moments.worn for sums in (now.learned, now.texts, now.asked))

    def sum_up(self, vectors: Iterable[Old]) -> None:
        """Make the sums anew from all document vectors and texts, a portion of each at a time."""
        nothing = Sums(Moments.none(self.settings.dimension))
        learned, texts, questions = nothing, nothing, nothing
        for some, own in vectors:
            learned, texts, questions = learned.added(some), texts.added(own.texts), questions.added(own.asked)
        self.moment = replace(self.moment, learned=learned, texts=texts, asked=questions)

    def copied(self) -> Self:
        """The same documents without empty slots, to be changed alone."""
        slots = self.current()
        other = type(self)(self.settings)
        other.words = OwnWords.from_arrays(self.words.to_arrays(slots), self.settings.language, len(slots))
        for name, values in self._places.items():
            other._places[name].append(values.values[slots])
        places, sizes = self._flags.places(slots)
        other._asked.append(self._asked.values[places])
        other._flags.append(sizes)
        other._asked_for.append(self._asked_for.values[slots])
        other._ids = [self._ids[slot] for slot in slots]
        rows = self.rows[slots].tolist()
        other.queries.fill(rows, self.queries.to_arrays(rows))
        other._slots = {row: slot for slot, row in enumerate(rows)}
        other._rows = dict(self._rows)
        other._here, other.bench = dict(self._here), None if self.bench is None else self.bench.bench()
        other.moment = replace(self.moment, alive=np.ones(len(rows), dtype=bool))
        return other

    def settle(self) -> None:
        """After everything was put: keep whose the queries are in less memory."""
        rows = self.rows[self.current()].tolist()
        arrays = self.queries.to_arrays(rows)
        self.queries = QueryOwners()
        self.queries.fill(rows, arrays)

    # On a bench

    def put_here(self, records: Sequence[Record], old: Mapping[int, Old]) -> None:
        """Show documents that are on no server."""
        known = {r.row: _vectors(self._here[r.row]) for r in records if r.row in self._here}
        shown = [
            Shown(Place(record.row, HERE + len(self.rows) + number, HERE, 0, 0, 0), record)
            for number, record in enumerate(records)
        ]
        self.put(shown, {**old, **known})
        self.bench = self.bench or Live(self.settings)
        self.bench.put(records)
        self._here |= {record.row: record for record in records}

    def remove_here(self, rows: Sequence[int], old: Mapping[int, Old]) -> None:
        """Hide documents, wherever they are."""
        here = [row for row in rows if row in self._here]
        self.remove(rows, {**old, **{row: _vectors(self._here.pop(row)) for row in here}})
        if self.bench is not None:
            self.bench.remove(here)

    def is_here(self, row: int) -> bool:
        """Whether a document is on no server."""
        return row in self._here


def _vectors(record: Record) -> Old:
    return record.vector[None], record.texts


def _without(moment: Moment, old: Sequence[Old]) -> Moment:
    if not old:
        return moment
    vectors, own = joined(old)
    return replace(
        moment,
        learned=moment.learned.removed(vectors),
        texts=moment.texts.removed(own.texts),
        asked=moment.asked.removed(own.asked),
    )


def joined(old: Sequence[Old]) -> Old:
    """Those of several documents, which must not be none."""
    vectors, texts = np.concatenate([one for one, _ in old]), np.concatenate([own.texts for _, own in old])
    return vectors, TextVectors(texts, np.concatenate([own.asked for _, own in old]))


def _find(rising: NDArray[np.int64], wanted: NDArray[np.int64]) -> Slots:
    if len(rising) == 0:
        return np.full(len(wanted), -1, dtype=np.intp)
    places = np.minimum(np.searchsorted(rising, wanted), len(rising) - 1)
    return np.where(rising[places] == wanted, places, -1).astype(np.intp)
