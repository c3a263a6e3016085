"""The embeddings of each document's own texts, and how near the nearest of them comes to a query.

Questions are nearer to a question than texts are, whomever they were asked for. So what people asked is measured by
how it stands out among all that was asked, in the unit of texts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.groups import Groups, Sizes, largest_of
from incdsi.rows.local import Exact, LocalRows, Moment, Screened
from incdsi.rows.moments import Moments
from incdsi.rows.pool import OWN, Where
from incdsi.rows.products import Doubles, Floats, exact
from incdsi.rows.scores import Mask, Scores, Slots, Spread
from incdsi.rows.table import Growing, Table

ROUNDING = 1e-12  # of a score: what halving the room between two bounds may lose, many times over
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
        self._errors, self._lengths = Growing(np.float64), Growing(np.float64)  # the largest of each slot's rows

    def append_many(self, some: Sequence[Floats], instead_of: Sequence[int | None]) -> None:
        gone = self.groups.places(np.array([slot for slot in instead_of if slot is not None], dtype=np.intp))[0]
        rows, sizes = np.concatenate(some), [len(one) for one in some]
        self.rows.append_many(rows, [], gone.tolist())
        self._sized(np.array(sizes, dtype=np.int64))

    def remove_many(self, slots: Sequence[int]) -> None:
        self.rows.remove_many(self.groups.places(np.array(slots, dtype=np.intp))[0].tolist())

    def bounds(self, one: Screened, slots: int) -> tuple[Doubles, Doubles]:
        """Between which the best score of each of the first so many slots is; -inf for one without rows."""
        best = self.groups.best(one.products, slots).astype(np.float64)
        doubt = one.doubt(self._errors.values[:slots], self._lengths.values[:slots])
        return best - doubt, best + doubt

    def exact(self, one: Screened, slots: Slots) -> Doubles:
        """The best score of each of these slots; -inf for one without rows. Who cannot be the best is not looked at."""
        places, sizes = self.groups.places(slots)
        screened, ends = one.products[places], np.cumsum(sizes)
        doubt = one.doubt(self.rows.errors[places], self.rows.lengths[places])
        likely = screened + doubt >= np.repeat(largest_of(screened - doubt, ends), sizes)
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
        self._sized(np.asarray(arrays["sizes"], dtype=np.int64))

    def _sized(self, sizes: Sizes) -> None:
        """Rows were appended, so many for each of the next slots: the doubt about a slot is that of its worst row."""
        first, ends = len(self.rows.alive) - int(sizes.sum()), np.cumsum(sizes)
        for worst, of_rows in ((self._errors, self.rows.errors), (self._lengths, self.rows.lengths)):
            worst.append(np.maximum(largest_of(of_rows[first:], ends), 0.0))
        self.groups.append(sizes)


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

    def scores(self, measures: Sequence[Measure], alive: Mask, moment: Both) -> Iterator[Scores]:
        """By each of these measures, the score of each slot's nearest row."""
        if not measures:
            return
        queries = np.stack([measure.query for measure in measures])
        both = self._texts.rows.screened(queries, moment.texts), self._asked.rows.screened(queries, moment.asked)
        for measure, text, asked in zip(measures, *both, strict=True):
            low, high = self._bounds(text, asked, measure, len(alive))
            middle = (low + high) / 2
            yield Scores(
                alive=alive,
                screened=middle,
                doubt=(high - low) / 2 + ROUNDING * np.abs(middle),
                exact=Exact(functools.partial(self._nearest, measure, text, asked), len(alive)),
                each=functools.partial(self._each, measure),
            )

    def _bounds(self, text: Screened, asked: Screened, measure: Measure, slots: int) -> tuple[Doubles, Doubles]:
        """Between which the score of each slot's nearest row is."""
        both = zip(self._texts.bounds(text, slots), self._asked.bounds(asked, slots), strict=True)
        low, high = (np.maximum(of_texts, measure.in_unit(of_asked)) for of_texts, of_asked in both)
        return low, high

    def saved(self, slots: Slots) -> dict[str, Any]:
        """Everything in these slots, all that are in use and rising, as arrays by name; slots[i] becomes i."""
        asked = self._asked.saved(slots).items()
        return {**self._texts.saved(slots), **{ASKED + name: array for name, array in asked}}

    def fill_saved(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was `saved`, into an empty one; KeyError where texts and questions were saved together."""
        asked = {name.removeprefix(ASKED): array for name, array in arrays.items() if name.startswith(ASKED)}
        self._asked.fill_saved(asked)
        self._texts.fill_saved(arrays)

    def _nearest(self, measure: Measure, text: Screened, asked: Screened, slots: Slots) -> Doubles:
        return np.maximum(self._texts.exact(text, slots), measure.in_unit(self._asked.exact(asked, slots)))

    def _each(self, measure: Measure, slot: int) -> Doubles:
        return measure.each(self._texts.of(slot), self._asked.of(slot))
