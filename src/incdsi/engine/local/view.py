"""The documents of one moment, scored: slots become rows here, and are not seen above."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Best, Doubles, Floats, Likely, Rows
from incdsi.engine.settings import Settings
from incdsi.errors import UnknownDocument
from incdsi.filters import Filter
from incdsi.preserve import Nearest
from incdsi.records import TextVectors
from incdsi.rows.ceilings import Ceilings
from incdsi.rows.groups import Groups
from incdsi.rows.local import Moment
from incdsi.rows.products import exact
from incdsi.rows.scores import Mask, Scores, Share, Slots, Spread, reached
from incdsi.rows.texts import Measure

if TYPE_CHECKING:
    from incdsi.engine.local.live import Live


class LocalView:
    """What `live` shows when this is made; `matching` gives the rows that pass a filter."""

    def __init__(self, live: Live, settings: Settings, matching: Callable[[Filter], Rows] | None = None) -> None:
        self.settings = settings
        self._live = live
        self._moment, self._texts = live.moment
        self._scored = False
        self._matching = matching
        self._passed: tuple[Filter, Rows] | None = None  # the last filter, and who passed it
        nobody = np.empty(0, dtype=np.int64)
        self._placed: tuple[Rows, Moment, Slots] = nobody, self._moment, nobody.astype(np.intp)  # who was asked last

    def __len__(self) -> int:
        return int(np.count_nonzero(self._moment.alive))

    def __contains__(self, row: object) -> bool:
        return row in self._live

    def learned(self, query: Floats, where: Filter | None = None) -> Products:
        return next(self.learned_many(query[None], where))

    def nearest(self, query: Floats, where: Filter | None = None) -> NearestTexts:
        return next(self.nearest_many(query[None], where))

    def learned_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Products]:
        self._scored = True
        found = self._live.vectors.scores_and_spreads(queries, self._moment, self._allowed(where))
        return (Products(self, scores, spread) for scores, spread in found)

    def nearest_many(self, queries: Floats, where: Filter | None = None) -> Iterator[NearestTexts]:
        texts, asked = (moment.moments for moment in self._texts)
        return self.nearest_by([Measure.of(query, texts, asked) for query in queries], where)

    def nearest_by(self, measures: Sequence[Measure], where: Filter | None = None) -> Iterator[NearestTexts]:
        """As `nearest_many`, by measures that others made: of documents of which these are some."""
        self._scored = True
        found = self._live.texts.scores(measures, self._allowed(where), self._texts)
        return (NearestTexts(self, *one) for one in zip(found, measures, strict=True))

    def within(self, query: Floats, row: int) -> Doubles:
        return exact(self._live.texts.of(int(self.slots(np.array([row]))[0])), query)

    def lexical(self, text: str, where: Filter | None = None) -> Lexical:
        while True:
            moment = self._moment
            scores, limit = self._live.words.scores_and_limit(text, len(moment.alive))
            # The words of a document that is replaced meanwhile are gone from where it was: look again, unless the
            # vectors of that moment count already, which find it all the same.
            if self._scored or self._live.moment[0] is moment:
                return Lexical(self, text, scores, limit, self._allowed(where))
            self._moment, self._texts = self._live.moment

    def marker(self, query: str) -> Callable[[str], list[tuple[int, int]]]:
        return self._live.words.marker(query)

    def rivals(self, queries: Floats, without: int | None = None) -> tuple[Doubles, Rows]:
        scores, slots = self._live.vectors.best(queries, None if without is None else self._live.slot(without))
        return scores, np.where(slots < 0, -1, self._live.rows[slots]) if len(self._live.rows) else slots

    def preserve(self, margin: float, without: int | None = None) -> OwnedRows:
        slot = None if without is None else self._live.slot(without)
        return OwnedRows(self._live.vectors.under(margin, slot), self._live.rows)

    def elsewhere(self, query: str, row: int) -> bool:
        return self._live.elsewhere(query, row)

    def others(self, query: str, row: int) -> list[int]:
        return self._live.others(query, row)

    def asked_for(self, rows: Rows) -> Mask:
        return self._live.texts.asked_for(self.slots(rows))

    def count_asked(self) -> int:
        """How many documents people asked for."""
        return int(np.count_nonzero(self._live.texts.asked_for(np.flatnonzero(self.alive))))

    def bench(self) -> Live:
        return self._live.bench()

    def score_of(self, words: Sequence[str], text: str) -> float:
        """BM25 of a document with these texts, were it there."""
        return self._live.words.score_of(words, text)

    @property
    def units(self) -> Groups:
        """What each slot is found by in words."""
        return self._live.words.units

    @property
    def alive(self) -> Mask:
        """The slots that held a document then."""
        return self._moment.alive

    @property
    def rows(self) -> Rows:
        """The rows of all slots."""
        return self._live.rows

    def slots(self, rows: Rows) -> Slots:
        """Where these documents were then; UnknownDocument when one was not there."""
        asked, moment, slots = self._placed
        if asked is not rows or moment is not self._moment:  # each part of a score asks about the same ones
            moment = self._moment
            slots = self._looked_up(rows)
            self._placed = rows, moment, slots
        return slots

    def _looked_up(self, rows: Rows) -> Slots:
        slots = self._live.slots(rows)
        there = (slots >= 0) & (slots < len(self.alive))
        there[there] = self.alive[slots[there]]
        for place in np.flatnonzero(~there):  # it changed since
            slots[place] = self._slot_then(rows[place])
        return slots

    def _slot_then(self, row: int) -> int:
        found = np.flatnonzero((self.rows[: len(self.alive)] == row) & self.alive)
        if len(found) == 0:
            raise UnknownDocument(f"no document in row {row}; it may have been deleted")
        return int(found[0])

    def _allowed(self, where: Filter | None) -> Mask:
        if where is None:
            return self.alive
        if self._matching is None:
            raise ValueError("only a view of a store can filter")
        if self._passed is None or self._passed[0] is not where:
            self._passed = where, self._matching(where)
        return np.asarray(self.alive & np.isin(self.rows[: len(self.alive)], self._passed[1]))


class Products:
    """Inner products with a query: one pass over all rows, exact where it matters."""

    def __init__(self, view: LocalView, scores: Scores, spread: Spread) -> None:
        self.unit = spread
        self._view = view
        self._scores = scores

    def top(self, k: int) -> Best:
        slots, scores = self._scores.best(k, self._view.rows)
        others = np.count_nonzero(self._scores.allowed) > len(slots)
        return Best(self._view.rows[slots], scores, float(scores[-1]) if others else -np.inf)

    def likely(self, k: int) -> Likely:
        slots, beyond = self._scores.likely(k)
        return Likely(self._view.rows[slots], beyond)

    def at_most(self, rows: Rows) -> Doubles:
        return self._scores.at_most(self._view.slots(rows))

    def score(self, rows: Rows) -> Doubles:
        return self._scores.exact(self._view.slots(rows))

    def within(self, row: int) -> Doubles:
        return self._scores.within(int(self._view.slots(np.array([row]))[0]))


class NearestTexts(Products):
    """Inner products of each document's nearest text with a query."""

    def __init__(self, view: LocalView, scores: Scores, measure: Measure) -> None:
        super().__init__(view, scores, measure.unit)
        self._measure = measure

    def score_of(self, texts: TextVectors) -> float:
        return float(self._measure.each(*texts).max())


class Slotted(Protocol):
    """What words need of a view: slots of documents, and a score of words that are not there."""

    @property
    def rows(self) -> Rows: ...

    @property
    def units(self) -> Groups:
        """What each slot is found by in words."""
        ...

    def slots(self, rows: Rows) -> Slots: ...

    def score_of(self, words: Sequence[str], text: str) -> float: ...


class Lexical:
    """BM25 of the documents that share a word with a text."""

    def __init__(self, view: Slotted, text: str, scores: Floats, limit: float, allowed: Mask) -> None:
        self.unit = Share(limit)
        self._view = view
        self._text = text
        self._units = scores
        self._known = view.units.best(scores, len(allowed))
        self._listed = self._known if allowed.all() else np.where(allowed, self._known, np.float32(0))

    def top(self, k: int) -> Best:
        level = reached(self._listed, k)
        slots = np.flatnonzero(self._listed >= level if level > 0 else self._listed > 0)
        rows, scores = self._view.rows[slots], self._known[slots].astype(np.float64)
        order = np.lexsort((rows, -scores))[:k]
        return Best(rows[order], scores[order], float(scores[order[-1]]) if level > 0 else 0.0)

    def likely(self, k: int) -> Likely:
        best = self.top(k)
        return Likely(best.rows, best.beyond)

    def score(self, rows: Rows) -> Doubles:
        return np.asarray(self._known[self._view.slots(rows)].astype(np.float64))

    at_most = score

    def within(self, row: int) -> Doubles:
        places, _ = self._view.units.places(self._view.slots(np.array([row])))
        return np.asarray(self._units[places].astype(np.float64))

    def score_of(self, words: Sequence[str]) -> float:
        return self._view.score_of(words, self._text)


class OwnedRows:
    """Preserve rows whose owners are known by row."""

    def __init__(self, ceilings: Ceilings, rows: Rows) -> None:
        self._ceilings = ceilings
        self._rows = rows

    def __len__(self) -> int:
        return len(self._ceilings)

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        return [replace(near, owners=self._rows[near.owners]) for near in self._ceilings.nearest(vectors, limit)]
