"""Scores by inner product with rows on the server: its arithmetic chooses candidates, ours decides.

A score that a server computed in float32 is at most `doubt` away from the true one. Whatever it does not list scores no
more than the last that it lists, plus that. Vectors are many times as long as what is told about them, so who is likely
is found without any, and an exact score reads only those rows of a document that may be its best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.milvus.connection import MOST_HITS
from incdsi.engine.milvus.found import Hits, Keys
from incdsi.engine.protocol import Best, Doubles, Floats, Likely, Near, Rows, Spreading
from incdsi.errors import UnknownDocument
from incdsi.preserve import product_error
from incdsi.records import TextVectors
from incdsi.rows.products import exact
from incdsi.rows.scores import Mask, Slots, Spread
from incdsi.rows.texts import Measure

MORE = 16  # rows asked for beyond those wanted: some may be of old versions, or in doubt
NEXT = 4  # times as many in each search that follows
FEW = 2048  # documents that are named in one search


class Source(Protocol):
    """Rows on the server that belong to documents: their vectors, or their texts."""

    @property
    def each(self) -> int:
        """How many rows to ask for where one document is wanted: neighbours may be of the same."""
        ...

    @property
    def names_quickly(self) -> bool:
        """Whether a search among some documents takes less than reading their rows."""
        ...

    @property
    def rows(self) -> Rows:
        """The rows of all slots."""
        ...

    def slots(self, rows: Rows) -> Slots:
        """Where these documents are."""
        ...

    def search(self, queries: Floats, limit: int, among: Slots | None, *, vectors: bool) -> list[Hits]:
        """The best rows for each query (b, h): of all documents, or of those in these slots."""
        ...

    def by_key(self, keys: Keys) -> dict[int, Floats]:
        """Those of these rows (h,) that are there, by key."""
        ...

    def owners(self, keys: Keys) -> Slots:
        """Whose these are; -1 where nobody's."""
        ...

    def keys(self, slots: Slots) -> list[Sequence[int]]:
        """The keys of each of these documents' rows, and of some that are no rows of this source."""
        ...

    def measured(self, keys: Keys, scores: Doubles) -> Doubles:
        """What products with the rows of these keys, all known, count for: the more the larger they are."""
        ...

    def most(self, score: float) -> float:
        """The most that a product of this size counts for, whatever row it is with."""
        ...


class Listed(NamedTuple):
    """Documents and their exact scores; no other scores more than `beyond`."""

    slots: Slots
    scores: Doubles
    beyond: float

    def certain(self, k: int) -> bool:
        """Whether the k best are among them."""
        return self.beyond == -np.inf or int(np.count_nonzero(self.scores > self.beyond)) >= k


class Screen(NamedTuple):
    """Documents, and between what their scores are; no other scores more than `beyond`."""

    slots: Slots
    least: Doubles
    most: Doubles
    beyond: float


class Products:
    """Inner products with a query (h,) of each document's rows in a source, the best of them."""

    def __init__(
        self, source: Source, query: Floats, spread: Spread, allowed: Mask, whole: bool, longest: float
    ) -> None:
        self.unit = spread
        self._source = source
        self._query = np.ascontiguousarray(query, dtype=np.float32)
        self._allowed = allowed
        self._whole = whole  # everything on the server is allowed
        length = float(np.sqrt(exact(self._query[None], self._query)[0]))
        self._doubt = product_error(np.dtype(np.float32), len(query) + 1) * longest * length
        self._known: dict[int, float] = {}
        self._bounds: dict[int, tuple[float, Sequence[int] | None]] = {}  # by slot: at most, and rows that may be best
        self._lists: dict[int, Best] = {}
        self._screen: Screen | None = None  # the longest list there is without vectors

    def top(self, k: int) -> Best:
        if k not in self._lists:
            self._lists[k] = self._top(k)
        return self._lists[k]

    def likely(self, k: int) -> Likely:
        found = self._screened(k)
        if found is None:
            top = self.top(k)
            return Likely(top.rows, top.beyond)
        best = np.argsort(-found.most, kind="stable")
        beyond = max(found.beyond, float(found.most[best[k]])) if len(best) > k else found.beyond
        return Likely(self._source.rows[found.slots[best[:k]]], beyond)

    def score(self, rows: Rows) -> Doubles:
        slots = self._source.slots(rows)
        self._learn(slots)
        return np.array([self._known[slot] for slot in slots.tolist()], dtype=np.float64)

    def within(self, row: int) -> Doubles:
        slots = self._source.slots(np.array([row]))
        keys, vectors, _ = self._read(slots, self._source.keys(slots))
        return self._source.measured(keys, exact(vectors, self._query))

    def at_most(self, rows: Rows) -> Doubles:
        slots = self._source.slots(rows)
        new = [slot for slot in np.unique(slots).tolist() if slot not in self._known and slot not in self._bounds]
        named = np.array(new, dtype=np.intp)
        count = sum(map(len, self._source.keys(named)))
        if 0 < count <= MOST_HITS and self._source.names_quickly:
            self._bound(self._source.search(self._query[None], count, named, vectors=False)[0], np.inf)
        self._learn(np.array([slot for slot in new if slot not in self._bounds], dtype=np.intp))
        at_most = (self._known[slot] if slot in self._known else self._bounds[slot][0] for slot in slots.tolist())
        return np.fromiter(at_most, dtype=np.float64, count=len(slots))

    def _bound(self, hits: Hits, limit: float) -> Screen:
        """What a list without vectors tells, to be remembered; one that is shorter than its limit is complete."""
        owners = self._owners(hits)
        keys, slots, scores = hits.keys[owners >= 0], owners[owners >= 0], hits.scores[owners >= 0]
        beyond = -np.inf
        if len(hits.keys) >= limit:
            beyond = self._source.most(float(hits.scores[-1]) + self._doubt)
        whose, group = np.unique(slots, return_inverse=True)
        lows = self._source.measured(keys, scores - self._doubt)
        highs = self._source.measured(keys, scores + self._doubt)
        least, most = np.full(len(whose), -np.inf), np.full(len(whose), beyond)
        np.maximum.at(least, group, lows)
        np.maximum.at(most, group, highs)
        likely: list[list[int]] = [[] for _ in whose]
        for place, key in zip(group[highs >= least[group]].tolist(), keys[highs >= least[group]].tolist(), strict=True):
            likely[place].append(key)
        may_be_best = [some if low > beyond else None for some, low in zip(likely, least.tolist(), strict=True)]
        for slot, high, some in zip(whose.tolist(), most.tolist(), may_be_best, strict=True):
            if some is not None or slot not in self._bounds:
                self._bounds[slot] = high, some
        return Screen(whose, least, most, beyond)

    def _owners(self, hits: Hits) -> Slots:
        """Whose these are; -1 where nobody's, and where somebody's who came later."""
        slots = self._source.owners(hits.keys)
        return np.where(slots < len(self._allowed), slots, -1)

    def _screened(self, k: int) -> Screen | None:
        """A list with k documents, or with all there are; None when the server cannot list so many."""
        allowed = np.flatnonzero(self._allowed)
        among = None if self._whole or len(allowed) > FEW else allowed
        limit = (k + MORE) * self._source.each
        while not _suffices(self._screen, k):
            if limit > MOST_HITS or len(allowed) == 0:
                return None
            hits = self._source.search(self._query[None], limit, among, vectors=False)[0]
            self._screen = self._narrowed(self._bound(hits, limit))
            limit *= NEXT
        return self._screen

    def _narrowed(self, found: Screen) -> Screen:
        """Without those that a filter keeps out."""
        kept = np.flatnonzero(self._allowed[found.slots])
        return Screen(found.slots[kept], found.least[kept], found.most[kept], found.beyond)

    def _learn(self, slots: Slots) -> None:
        """Compute the exact scores of these documents: of those of their rows that may be the best."""
        new = np.array([slot for slot in np.unique(slots).tolist() if slot not in self._known], dtype=np.intp)
        if len(new) == 0:
            return
        likely = [self._bounds.get(slot, (np.inf, None))[1] for slot in new.tolist()]
        wanted = [some or every for some, every in zip(likely, self._source.keys(new), strict=True)]
        keys, vectors, sizes = self._read(new, wanted)
        if any(some and len(some) > size for some, size in zip(likely, sizes.tolist(), strict=True)):
            raise UnknownDocument("a document was deleted while it was looked at; search again")
        scores = self._source.measured(keys, exact(vectors, self._query))
        best = np.maximum.reduceat(scores, np.cumsum(sizes) - sizes)
        self._known |= zip(new.tolist(), best.tolist(), strict=True)

    def _read(self, slots: Slots, wanted: Sequence[Sequence[int]]) -> tuple[Keys, Floats, NDArray[np.int64]]:
        """The rows (m, h) with these keys of each document, one after another, and how many each has."""
        found = self._source.by_key(np.array([key for some in wanted for key in some], dtype=np.int64))
        there = [[key for key in some if key in found] for some in wanted]
        for slot, some in zip(slots.tolist(), there, strict=True):
            if not some:  # deleted a while ago, and a view this old is still in use
                raise UnknownDocument(f"no document in row {self._source.rows[slot]}; it may have been deleted")
        keys = np.array([key for some in there for key in some], dtype=np.int64)
        return keys, np.stack([found[key] for key in keys.tolist()]), np.array([len(some) for some in there])

    def _top(self, k: int) -> Best:
        allowed = np.flatnonzero(self._allowed)
        found = self._of_screened(k) or (self._certain(k, None) if self._whole or len(allowed) > FEW else None)
        if found is None:  # in portions that one search can name
            parts = [self._best_among(k, allowed[start : start + FEW]) for start in range(0, len(allowed), FEW)]
            slots = np.concatenate([np.empty(0, dtype=np.intp), *(part.slots for part in parts)])
            found = Listed(slots, np.concatenate([np.empty(0), *(part.scores for part in parts)]), -np.inf)
        rows = self._source.rows[found.slots]
        order = np.lexsort((rows, -found.scores))[:k]
        more = len(allowed) > len(order)
        return Best(rows[order], found.scores[order], float(found.scores[order[-1]]) if more else -np.inf)

    def _of_screened(self, k: int) -> Listed | None:
        """The k best of a list that was made for others, if it tells them."""
        found = self._screen
        if not _suffices(found, k) or found is None:
            return None
        worst = np.partition(found.least, -k)[-k] if len(found.slots) > k else -np.inf
        likely = found.slots[found.most >= worst]
        self._learn(likely)
        listed = Listed(likely, np.array([self._known[slot] for slot in likely.tolist()]), found.beyond)
        return listed if listed.certain(k) else None

    def _best_among(self, k: int, slots: Slots) -> Listed:
        found = self._certain(k, slots)
        if found is None:
            self._learn(slots)
            found = Listed(slots, np.array([self._known[slot] for slot in slots.tolist()]), -np.inf)
        best = np.argsort(-found.scores, kind="stable")
        worst = found.scores[best[:k][-1]] if len(best) else 0.0
        kept = found.scores >= worst
        return Listed(found.slots[kept], found.scores[kept], -np.inf)

    def _certain(self, k: int, among: Slots | None) -> Listed | None:
        """A list with the k best; None when the server cannot list so many."""
        limit = (k + MORE) * self._source.each
        while True:
            limit = min(limit, MOST_HITS)
            found = self._listed(limit, among)
            if found.certain(k):
                return found
            if limit == MOST_HITS:
                return None
            limit *= NEXT

    def _listed(self, limit: int, among: Slots | None) -> Listed:
        hits = self._source.search(self._query[None], limit, among, vectors=True)[0]
        best: dict[int, float] = {}
        owners = self._owners(hits)
        counted = [number for number, slot in enumerate(owners.tolist()) if slot >= 0 and self._allowed[slot]]
        if counted:
            products = exact(np.stack([hits.rows[number]["v"][: len(self._query)] for number in counted]), self._query)
            scores = self._source.measured(hits.keys[counted], products)
            for slot, score in zip(owners[counted].tolist(), scores.tolist(), strict=True):
                best[slot] = max(best.get(slot, -np.inf), score)
        last = -np.inf if len(hits.keys) < limit else float(hits.scores[-1]) + self._doubt
        beyond = -np.inf if last == -np.inf else self._source.most(last)
        self._known |= {slot: score for slot, score in best.items() if score > beyond}
        return Listed(np.array([*best], dtype=np.intp), np.array([*best.values()]), beyond)


def _suffices(found: Screen | None, k: int) -> bool:
    return found is not None and (len(found.slots) >= k or found.beyond == -np.inf)


class NearestTexts(Products):
    """Inner products of each document's nearest text with a query."""

    def __init__(self, source: Source, measure: Measure, allowed: Mask, whole: bool, longest: float) -> None:
        super().__init__(source, measure.query, measure.unit, allowed, whole, longest)
        self._measure = measure

    def score_of(self, texts: TextVectors) -> float:
        return float(self._measure.each(*texts).max())


class Joined:
    """Documents on the server and documents on a bench, by the same query."""

    def __init__(self, there: Products, here: Spreading, is_here: Callable[[int], bool]) -> None:
        self.unit = there.unit
        self._parts = there, here
        self._is_here = is_here

    def top(self, k: int) -> Best:
        return _merged([part.top(k) for part in self._parts], k)

    def likely(self, k: int) -> Likely:
        lists = [part.likely(k) for part in self._parts]
        return Likely(np.concatenate([found.rows for found in lists]), max(found.beyond for found in lists))

    def score(self, rows: Rows) -> Doubles:
        return self._of(rows, [part.score for part in self._parts])

    def at_most(self, rows: Rows) -> Doubles:
        return self._of(rows, [part.at_most for part in self._parts])

    def within(self, row: int) -> Doubles:
        return self._parts[self._is_here(row)].within(row)

    def _of(self, rows: Rows, how: Sequence[Callable[[Rows], Doubles]]) -> Doubles:
        here = np.array([self._is_here(row) for row in rows.tolist()], dtype=bool)
        result = np.empty(len(rows))
        result[~here], result[here] = how[0](rows[~here]), how[1](rows[here])
        return result


class JoinedTexts(Joined):
    """Their nearest texts."""

    def __init__(self, there: NearestTexts, here: Near, is_here: Callable[[int], bool]) -> None:
        super().__init__(there, here, is_here)
        self.score_of = there.score_of


def _merged(lists: Sequence[Best], k: int) -> Best:
    rows = np.concatenate([found.rows for found in lists])
    scores = np.concatenate([found.scores for found in lists])
    order = np.lexsort((rows, -scores))
    beyond = max(found.beyond for found in lists)
    if len(order) > k:
        beyond = max(beyond, float(scores[order[k - 1]]))
    return Best(rows[order[:k]], scores[order[:k]], beyond)
