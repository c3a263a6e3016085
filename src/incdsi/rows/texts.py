"""The embeddings of each document's own texts, and how near the nearest of them comes to a query.

Questions are nearer to a question than texts are, whomever they were asked for. So what people asked is measured by
how it stands out among all that was asked, in the unit of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.groups import Groups, largest_of
from incdsi.rows.local import LocalRows, Moment, Screened, is_small, portions
from incdsi.rows.moments import Moments
from incdsi.rows.pool import OWN, Where
from incdsi.rows.products import Doubles, Floats, exact
from incdsi.rows.scores import Mask, Scores, Slots, Spread
from incdsi.rows.table import Table

DISCOUNT = 0.9  # of how far a question stands out that counts as for a text (decision 0030)
Bits = dict[bytes, list[int]]
ASKED = "asked."  # begins the names of saved arrays of what was asked


class Both(NamedTuple):
    """What readers see of texts, and of what was asked."""

    texts: Moment
    asked: Moment


class Measure(NamedTuple):
    """What makes a query's (h,) scores with what was asked comparable to those with texts: their spreads."""

    query: Floats
    unit: Spread
    asked: Spread

    @classmethod
    def of(cls, query: Floats, texts: Moments, asked: Moments) -> Measure:
        """By the sums over all texts, and over all that was asked."""
        unit = texts.spread(query)
        return cls(query, unit, asked.spread(query).leaning_on(unit))

    def in_unit(self, asked: Doubles) -> Doubles:
        """These scores with what was asked as scores with texts that stand out nearly as much; -inf stays."""
        return self.asked.into(self.unit, asked, DISCOUNT)

    def each(self, texts: Floats, asked: Floats) -> Doubles:
        """The scores of a document's texts (m, h) and of what was asked for it (k, h)."""
        return np.concatenate([exact(texts, self.query), self.in_unit(exact(asked, self.query))])


class _Grouped:
    """Any number of rows (h,) for each slot, in the order of slots; those of a slot lie together."""

    def __init__(self, dimension: int) -> None:
        self.rows = LocalRows(dimension)
        self.groups = Groups()

    def append_many(self, some: Sequence[Floats], instead_of: Sequence[int | None]) -> None:
        gone = self.groups.places(np.array([slot for slot in instead_of if slot is not None], dtype=np.intp))[0]
        rows, sizes = np.concatenate(some), [len(one) for one in some]
        self.rows.append_many(rows, [], gone.tolist())
        self.groups.append(np.array(sizes, dtype=np.int64))

    def remove_many(self, slots: Sequence[int]) -> None:
        self.rows.remove_many(self.groups.places(np.array(slots, dtype=np.intp))[0].tolist())

    def reaching(self, one: Screened, count: int) -> tuple[Slots, float]:
        """Slots with one of the so many best rows, each once, and what no row of another reaches."""
        rows, beyond = one.reaching(count)
        slots = self.groups.owners(rows)
        return slots[np.diff(slots, prepend=-1) > 0], beyond

    def at_most(self, one: Screened, slots: Slots) -> Doubles:
        """What the best row of each of these slots scores at most; -inf for one without rows."""
        places, sizes = self.groups.places(slots)
        return largest_of(one.bounds(places)[1], np.cumsum(sizes))

    def exact(self, one: Screened, slots: Slots) -> Doubles:
        """The best score of each of these slots; -inf for one without rows. Who cannot be the best is not looked at."""
        places, sizes = self.groups.places(slots)
        (low, high), ends = one.bounds(places), np.cumsum(sizes)
        likely = high >= np.repeat(largest_of(low, ends), sizes)
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(likely)])
        return largest_of(exact(self.rows.vectors(places[likely]), one.query), before[ends])

    def of(self, slot: int) -> Floats:
        """The rows of a slot, (m, h)."""
        return self.rows.vectors(self.groups.places(np.array([slot]))[0])

    def by_bits(self, slots: Slots) -> list[Bits]:
        """Of each of these slots, at which indices of the table its rows lie, the last one first, by their bits."""
        places, sizes = self.groups.places(slots)
        rows, found, first = self.rows.vectors(places), [], 0
        for size in sizes.tolist():
            bits: Bits = {}
            for number in reversed(range(first, first + size)):
                bits.setdefault(rows[number].tobytes(), []).append(int(places[number]))
            found.append(bits)
            first += size
        return found

    def saved(self, slots: Slots) -> dict[str, Any]:
        places, sizes = self.groups.places(slots)
        rows = self.rows.saved(places).items()
        return {"sizes": sizes, **{name: array for name, array in rows if name.startswith(("vectors", "moments"))}}

    def fill_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.rows.fill_saved(arrays, preserve=False)
        self.groups.append(np.asarray(arrays["sizes"], dtype=np.int64))


def _found(rows: Floats, by_bits: Sequence[Bits]) -> Where:
    """Where these rows lie in tables of which each one's rows are known by their bits, and not found again."""
    where = Where.nowhere(len(rows))
    for number, row in enumerate(rows):
        bits = row.tobytes()
        for table, there in enumerate(by_bits, start=OWN + 1):
            if there.get(bits):
                where.tables[number], where.indices[number] = table, there[bits].pop()
                break
    return where


class Nearest(Scores):
    """By the nearest of each slot's rows: those of its text, and those that were asked."""

    def __init__(
        self, texts: _Grouped, text: Screened, asked: _Grouped, question: Screened, measure: Measure, allowed: Mask
    ) -> None:
        super().__init__(allowed)
        self._kinds = (texts, text), (asked, question)
        self._measure = measure
        if is_small(allowed):
            for grouped, one in self._kinds:
                one.leave(grouped.groups.each(allowed))

    def reaching(self, count: int) -> tuple[Slots, float]:
        (slots, beyond), (asked, beyond_asked) = (grouped.reaching(one, count) for grouped, one in self._kinds)
        both, _ = np.unique(np.concatenate([slots, asked]), return_index=True)
        return both, max(beyond, float(self._measure.in_unit(np.array([beyond_asked]))[0]))

    def at_most(self, slots: Slots) -> Doubles:
        return self._best(*(grouped.at_most(one, slots) for grouped, one in self._kinds))

    def computed(self, slots: Slots) -> Doubles:
        return self._best(*(grouped.exact(one, slots) for grouped, one in self._kinds))

    def within(self, slot: int) -> Doubles:
        return self._measure.each(*(grouped.of(slot) for grouped, _ in self._kinds))

    def _best(self, of_texts: Doubles, of_asked: Doubles) -> Doubles:
        return np.maximum(of_texts, self._measure.in_unit(of_asked))


class OwnTexts:
    """For each document's slot one row (h,) or more of its text, and any number of what people asked for it.

    One thread writes; any number read, each what was there at its `moment`.
    """

    def __init__(self, dimension: int) -> None:
        self._texts, self._asked = _Grouped(dimension), _Grouped(dimension)

    @property
    def moment(self) -> Both:
        """What there is now."""
        return Both(self._texts.rows.moment, self._asked.rows.moment)

    def asked_for(self, slots: Slots) -> Mask:
        """Which of these slots have anything that was asked."""
        return np.asarray(self._asked.groups.sizes(slots) > 0)

    def of(self, slot: int) -> Floats:
        """The rows of that slot's text, (m, h)."""
        return self._texts.of(slot)

    def append_many(
        self, texts: Sequence[Floats], asked: Sequence[Floats], instead_of: Sequence[int | None] = ()
    ) -> None:
        """The rows (m, h) of the next slots; those of the slots that they are `instead_of` are gone."""
        self._texts.append_many(texts, instead_of)
        self._asked.append_many(asked, instead_of)

    @property
    def tables(self) -> tuple[Table, Table]:
        """Where all rows lie."""
        return self._texts.rows.table, self._asked.rows.table

    def indices(self, slots: Slots) -> tuple[Slots, Slots]:
        """Where in these tables the rows of those slots lie, slot by slot."""
        return self._texts.groups.places(slots)[0], self._asked.groups.places(slots)[0]

    def find(self, slots: Sequence[int], rows: Sequence[Floats]) -> list[Where]:
        """Where rows (m, h) for each of these slots lie among its own, bit for bit; none of its own is found twice."""
        own = [grouped.by_bits(np.array(slots, dtype=np.intp)) for grouped in (self._texts, self._asked)]
        return [_found(some, by_bits) for some, *by_bits in zip(rows, *own, strict=True)]

    def remove_many(self, slots: Sequence[int]) -> None:
        """Take the rows of these slots out."""
        self._texts.remove_many(slots)
        self._asked.remove_many(slots)

    def scores(self, measures: Sequence[Measure], allowed: Mask, moment: Both) -> Iterator[Scores]:
        """By each of these measures, the score of each slot's nearest row."""
        if not measures:
            return
        texts, asked = self._texts.rows, self._asked.rows
        queries = texts.checked([measure.query for measure in measures])
        waiting = iter(measures)
        for some in portions(queries, len(moment.texts.alive)):
            coded = texts.table.screen.asked(some)
            both = texts.screened(some, coded, moment.texts), asked.screened(some, coded, moment.asked)
            # The measures come last: zip takes none too many of them.
            for text, question, measure in zip(*both, waiting, strict=False):
                yield Nearest(self._texts, text, self._asked, question, measure, allowed)

    def saved(self, slots: Slots) -> dict[str, Any]:
        """Everything in these slots, all that are in use and rising, as arrays by name; slots[i] becomes i."""
        asked = self._asked.saved(slots).items()
        return {**self._texts.saved(slots), **{ASKED + name: array for name, array in asked}}

    def fill_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was `saved`, into an empty one; KeyError where texts and questions were saved together."""
        asked = {name.removeprefix(ASKED): array for name, array in arrays.items() if name.startswith(ASKED)}
        self._asked.fill_saved(asked)
        self._texts.fill_saved(arrays)
