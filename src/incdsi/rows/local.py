"""Document vectors and preserve rows in this process's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.rows.ceilings import COLUMNS, Ceilings
from incdsi.rows.int8 import Int8
from incdsi.rows.moments import Moments
from incdsi.rows.pool import Where
from incdsi.rows.preserve import OWNERS, PreserveTable
from incdsi.rows.products import Asked, Doubles, Floats, Screen, exact
from incdsi.rows.scores import Mask, Scores, Slots, Spread, reached
from incdsi.rows.table import BLOCK_ROWS, Table

MANY = 128  # queries that share a pass over all rows
ROOM = 1 << 24  # products that they may have: 64 MB
LEAST = float(np.finfo(np.float32).min)  # a row that is struck out has less


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What readers see: the vectors of all slots so far, of which some are alive."""

    alive: NDArray[np.bool_]
    moments: Moments


class _Likely(NamedTuple):
    """The pairs of slot and query a block may decide, how high they may score, and what the block reaches at least."""

    slots: Slots
    columns: Slots
    uppers: Doubles
    at_least: Doubles

    @classmethod
    def none(cls, at_least: Doubles) -> _Likely:
        nobody = np.empty(0, dtype=np.intp)
        return cls(nobody, nobody, np.empty(0), at_least)


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """One query's screened products (n,) with the first rows of a table, and what was asked, for the doubt."""

    query: Floats
    products: Floats
    table: Table
    asked: Asked
    column: int

    def leave(self, wanted: NDArray[np.bool_]) -> None:
        """Strike the other rows out."""
        self.products[~wanted] = -np.inf

    def reaching(self, count: int) -> tuple[Slots, float]:
        """Rows that reach as much as so many do, rising, and what no other reaches; -inf without one."""
        level = reached(self.products, count)
        rows = np.flatnonzero(self.products >= max(level, LEAST))
        return rows, level + float(self.asked.doubt(*self.table.worst, self.column)) if level > -np.inf else level

    def bounds(self, rows: Slots) -> tuple[Doubles, Doubles]:
        """Between which the products of these rows are."""
        doubt = self.asked.doubt(self.table.errors[rows], self.table.lengths[rows], self.column)
        return self.products[rows] - doubt, self.products[rows] + doubt


class VectorScores(Scores):
    """By the document vector of each slot."""

    def __init__(self, one: Screened, allowed: Mask) -> None:
        super().__init__(allowed)
        self._one = one
        if is_small(allowed):
            one.leave(allowed)

    def reaching(self, count: int) -> tuple[Slots, float]:
        return self._one.reaching(count)

    def at_most(self, slots: Slots) -> Doubles:
        return self._one.bounds(slots)[1]

    def computed(self, slots: Slots) -> Doubles:
        return exact(self._one.table.gather(slots), self._one.query)

    def within(self, slot: int) -> Doubles:
        return self.exact(np.array([slot], dtype=np.intp))


def is_small(allowed: Mask) -> bool:
    """Whether so few are allowed that the others had better be struck out before the best are looked for."""
    return bool(2 * np.count_nonzero(allowed) < len(allowed))


def portions(queries: Floats, count: int) -> Iterator[Floats]:
    """As many queries (b, h) at a time as share a pass over so many rows, and leave memory for others."""
    size = max(1, min(MANY, ROOM // max(count, 1)))
    return (queries[start : start + size] for start in range(0, len(queries), size))


class LocalRows:
    """V, Z and own scores of one index: exact top-k, violators, append, replace, remove.

    A document has a slot for its vector and any number of preserve rows. One thread writes; any number
    read at the same time, each a state that was current when its call began. Slots are never reused. Preserve rows
    that lie in one of the tables `beside` are not kept twice.
    """

    def __init__(self, dimension: int, screen: Screen | None = None, beside: Sequence[Table] = ()) -> None:
        if dimension < 1:
            raise InvalidInput(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension
        chosen = screen or Int8()
        self._vectors = Table(dimension, chosen)
        self._preserve = PreserveTable(dimension, chosen, beside)
        self.moment = Moment(np.empty(0, dtype=bool), Moments.none(dimension))

    def __len__(self) -> int:
        """How many documents there are."""
        return int(np.count_nonzero(self.moment.alive))

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < len(self.moment.alive) and bool(self.moment.alive[slot])

    # Reading

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which slots hold a document, (slots,)."""
        return self.moment.alive

    @property
    def damaged(self) -> bool:
        """Whether a row of a base, here or in a table beside, turned out to be another than was saved."""
        return self._vectors.damaged or self._preserve.damaged

    @property
    def table(self) -> Table:
        """The vectors by slot."""
        return self._vectors

    def scores(self, query: ArrayLike, allowed: Mask | None = None) -> Scores:
        """The query's score with every document, or with those allowed."""
        return next(self._scored(self._checked("query", query, 1)[None], self.moment, allowed))[0]

    def scores_and_spreads(
        self, queries: ArrayLike, moment: Moment | None = None, allowed: Mask | None = None
    ) -> Iterator[tuple[Scores, Spread]]:
        """For each query (b, h), its scores as of that moment, or of now, and the mean and spread of all scores."""
        then = moment or self.moment
        return ((scores, then.moments.spread(query)) for scores, query in self._scored(queries, then, allowed))

    def _scored(self, queries: ArrayLike, moment: Moment, allowed: Mask | None) -> Iterator[tuple[Scores, Floats]]:
        there = moment.alive if allowed is None else moment.alive & allowed
        for some in portions(self.checked(queries), len(there)):
            for one in self.screened(some, self.table.screen.asked(some), moment):
                yield VectorScores(one, there), one.query

    def checked(self, queries: ArrayLike) -> Floats:
        """Queries (b, h) as they are multiplied; InvalidInput for what is none."""
        return self._checked("queries", queries, 2)

    def screened(self, queries: Floats, asked: Asked, moment: Moment) -> Iterator[Screened]:
        """What one pass over all rows tells of each of these queries (b, h), which the screen asks in that form."""
        products = self._vectors.products(asked, len(moment.alive))
        return (Screened(query, products[at], self._vectors, asked, at) for at, query in enumerate(queries))

    def vectors(self, slots: Slots) -> Floats:
        """The document vectors in these slots, (m, h)."""
        return self._vectors.gather(slots)

    def best(self, queries: ArrayLike, without: int | Slots | None = None) -> tuple[NDArray[np.float64], Slots]:
        """For each query (b, h) the best score and its slot; -inf and -1 where there is no document.

        `without` leaves out the slot of the document that asks: one for all queries, or one each (b,).
        """
        checked = self._checked("queries", queries, 2)
        scores = np.full(len(checked), -np.inf)
        slots = np.full(len(checked), -1, dtype=np.intp)
        askers = np.full(len(checked), -1 if without is None else without, dtype=np.intp)
        dead = ~self.moment.alive
        for start in range(0, len(checked), COLUMNS):
            part = slice(start, start + COLUMNS)
            self._best(checked[part], askers[part], dead, scores[part], slots[part])
        return scores, slots

    def under(self, margin: float, without: int | None = None) -> Ceilings:
        """The preserve rows with ceilings at their own scores less the margin, as the solver asks for them."""
        return self._preserve.under(margin, without)

    # Writing

    def append_many(
        self,
        vectors: Sequence[ArrayLike] | Floats,
        queries: Sequence[ArrayLike],
        instead_of: Sequence[int | None] = (),
        where: Sequence[Where] | None = None,
    ) -> range:
        """Add documents, each with its vector (h,) and preserve rows (m, h), if any has some; their slots in order.

        Those `instead_of` a slot take its place: readers see the old one or the new one, never both and
        never neither. `where` says which preserve rows of each lie in tables beside.
        """
        gone = [slot for slot in instead_of if slot is not None]
        self._require(gone)
        slots = self._write(vectors, queries, where)
        written = self._vectors.gather(np.arange(slots.start, slots.stop))
        self._publish(len(slots), gone, self.moment.moments.added(written))
        return slots

    def fill(self, vectors: Floats) -> None:
        """Take vectors (n, h) into an empty index, without preserve rows."""
        self._vectors.append(vectors)
        self._publish(len(vectors), (), Moments.none(self.dimension).added(vectors))

    def saved(self, slots: Slots, beside: Sequence[Slots] = ()) -> dict[str, Any]:
        """Everything in these slots, all that are in use and rising, as arrays by name; slots[i] becomes i.

        The large ones give their slices alone. Of the tables beside, rows at these rising indices are saved elsewhere.
        """
        preserve = self._preserve.saved(beside)
        return {
            **{f"vectors{part}": array for part, array in self._vectors.saved(slots).items()},
            **{f"moments.{name}": array for name, array in self.moment.moments.to_arrays().items()},
            **preserve,
            OWNERS: np.searchsorted(slots, preserve[OWNERS]).astype(np.int32),
        }

    def fill_saved(self, arrays: Mapping[str, NDArray[Any]], *, preserve: bool) -> None:
        """Take over what was `saved` into an empty index, with the preserve rows or without."""
        self._vectors.append_saved("vectors", arrays)
        moments = {name.removeprefix("moments."): arrays[name] for name in arrays if name.startswith("moments.")}
        count = len(self._vectors)
        saved = Moments.from_arrays(moments, count, self.dimension)
        self._publish(count, (), saved or self._summed_up(np.arange(count)))
        if preserve:
            self._preserve.append_saved(arrays)

    def preserve_arrays(self) -> tuple[Slots, Floats, NDArray[np.float64]]:
        """All preserve rows: their owners' slots (m,), rows (m, h) and own scores (m,)."""
        return self._preserve.arrays()

    def remove_many(self, slots: Sequence[int]) -> None:
        """Take documents out, with their preserve rows, at the price of one look at all rows; all or none."""
        self._require(slots)
        self._publish(0, slots, self.moment.moments)

    def lift(self, slots: Sequence[int]) -> None:
        """Take documents out that are to be `put_back` into their slots."""
        self.remove_many(slots)

    def put_back(
        self,
        slots: Sequence[int],
        vectors: Sequence[ArrayLike],
        queries: Sequence[ArrayLike],
        where: Sequence[Where] | None = None,
    ) -> None:
        """Documents that were lifted, with other vectors (h,) and preserve rows (m, h); nobody else may be reading."""
        stored, rows = self._stacked(vectors, queries)
        order = np.argsort(slots)
        places = np.array(slots, dtype=np.intp)
        self._vectors.overwrite(places[order], stored[order])
        self._keep(places, stored, rows, where)
        alive = self.moment.alive.copy()
        alive[places] = True
        self.moment = Moment(alive, self.moment.moments.added(stored))

    # Inside

    def _write(
        self, vectors: Sequence[ArrayLike] | Floats, queries: Sequence[ArrayLike], where: Sequence[Where] | None
    ) -> range:
        if len(vectors) == 0:
            return range(len(self._vectors), len(self._vectors))
        stored, rows = self._stacked(vectors, queries)
        first = self._vectors.append(stored)
        slots = np.arange(first, first + len(stored))
        self._keep(slots, stored, rows, where)
        return range(first, first + len(stored))

    def _stacked(
        self, vectors: Sequence[ArrayLike] | Floats, queries: Sequence[ArrayLike]
    ) -> tuple[Floats, list[Floats]]:
        if isinstance(vectors, np.ndarray):
            stored = self._checked("vectors", vectors, 2)
        else:
            stored = np.stack([self._checked("vector", vector, 1) for vector in vectors])
        return stored, [self._checked("queries", some, 2) for some in queries]

    def _keep(self, slots: Slots, vectors: Floats, queries: Sequence[Floats], where: Sequence[Where] | None) -> None:
        """The preserve rows (m, h) of each of these slots, with what its vector scores."""
        if not any(map(len, queries)):
            return
        owners = np.repeat(np.arange(len(slots)), [len(some) for some in queries])
        asked = np.concatenate(queries)
        together = None if where is None else Where.joined(where)
        self._preserve.append(slots[owners], asked, exact(asked, vectors[owners]), together)

    def _publish(self, more: int, gone: Sequence[int], moments: Moments) -> None:
        """Show `more` slots at the end, and no longer those that are gone; `moments` still count the latter."""
        alive = np.concatenate([self.moment.alive, np.ones(more, dtype=bool)])
        if gone:
            alive[gone] = False
            moments = moments.removed(self._vectors.gather(np.array(gone, dtype=np.intp)))
            self._preserve.remove_many(gone)
        if moments.worn:
            moments = self._summed_up(np.flatnonzero(alive))
        self.moment = Moment(alive, moments)

    def _summed_up(self, slots: Slots) -> Moments:
        moments = Moments.none(self.dimension)
        for part in np.array_split(slots, len(slots) // BLOCK_ROWS + 1):
            moments = moments.added(self._vectors.gather(part))
        return moments

    def _best(self, queries: Floats, askers: Slots, dead: NDArray[np.bool_], scores: Doubles, slots: Slots) -> None:
        """Fill in the best score and slot of each query, looking exactly at those the screen leaves in doubt."""
        errors, lengths = self._vectors.errors, self._vectors.lengths

        def likely(here: slice, screened: Floats, asked: Asked) -> _Likely:
            start = here.start
            screened[dead[here]] = -np.inf
            asking = np.flatnonzero((askers >= start) & (askers < start + len(screened)))
            screened[askers[asking] - start, asking] = -np.inf
            doubt = asked.doubt(errors[here].max(), lengths[here].max())
            at_least = screened.max(axis=0) - doubt
            if dead[here].all():
                return _Likely.none(at_least)
            with np.errstate(over="ignore"):
                enough = np.nextafter((at_least - doubt).astype(np.float32), np.float32(-np.inf))
            row, column = np.divmod(np.flatnonzero(screened >= enough), screened.shape[1])
            own_doubt = asked.doubt(errors[here][row], lengths[here][row], column)
            return _Likely(row + start, column, screened[row, column] + own_doubt, at_least)

        found = self._vectors.scan(self._vectors.screen.asked(queries), len(dead), likely)
        if not found:
            return
        at_least = np.max([block.at_least for block in found], axis=0)
        slot, column, upper = (np.concatenate(parts) for parts in zip(*(block[:3] for block in found), strict=True))
        still = (upper >= at_least[column]) & (upper > -np.inf)
        slot, column = slot[still], column[still]
        _keep_best(slot, column, exact(self._vectors.gather(slot), queries[column]), scores, slots)

    def _require(self, slots: Sequence[int]) -> None:
        for slot in slots:
            if slot not in self:
                raise UnknownDocument(f"slot {slot} holds no document; it was removed or never used")

    def _checked(self, name: str, value: ArrayLike, ndim: int) -> Floats:
        array = np.ascontiguousarray(value, dtype=np.float32)
        if array.ndim != ndim or array.shape[-1] != self.dimension:
            shape = f"({self.dimension},)" if ndim == 1 else f"(any, {self.dimension})"
            raise InvalidInput(f"expected {name} of shape {shape}, found {array.shape}; use one encoder")
        if not np.isfinite(array).all():
            raise InvalidInput(f"NaN or infinity in {name}; check where the numbers come from")
        return array


def _keep_best(slot: Slots, column: Slots, found: Doubles, scores: Doubles, slots: Slots) -> None:
    order = np.lexsort((slot, -found, column))
    columns, first = np.unique(column[order], return_index=True)
    scores[columns] = found[order][first]
    slots[columns] = slot[order][first]
