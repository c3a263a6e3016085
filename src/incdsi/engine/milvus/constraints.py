"""What a new document has to reckon with: who is best for its queries, and which preserve rows it comes near to."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.milvus.connection import MOST_HITS
from incdsi.engine.milvus.found import Hits, Keys
from incdsi.engine.milvus.scored import MORE, NEXT, Source
from incdsi.engine.milvus.server import Server
from incdsi.engine.milvus.shelf import Moment, Shelf
from incdsi.engine.protocol import Doubles, Floats, Rows, Spreading
from incdsi.engine.settings import Settings
from incdsi.filters import Filter
from incdsi.preserve import Nearest, PreserveRows, product_error
from incdsi.rows.products import exact
from incdsi.rows.scores import Mask, Slots

RIVALS = 8  # of a query's best that are looked at first
AT_ONCE = 256  # vectors in one search
FEW = 1024  # rows that a search returns with their vectors


class Viewed(Protocol):
    """What is asked of a view here."""

    @property
    def settings(self) -> Settings: ...

    @property
    def stored(self) -> Mask: ...

    @property
    def rows(self) -> Rows: ...

    @property
    def moment(self) -> Moment: ...

    def learned(self, query: Floats, where: Filter | None = None) -> Spreading: ...


class Rivals:
    """Who is best for each of many queries."""

    def __init__(self, view: Viewed, source: Source) -> None:
        self._view = view
        self._source = source
        self._longest = view.moment.learned.longest
        self._stored = view.stored

    def of(self, queries: Floats, without: int) -> tuple[Doubles, Rows]:
        """The best score of each query (b, h) and the row it belongs to; -inf and -1 where there is none."""
        scores, rows = np.full(len(queries), -np.inf), np.full(len(queries), -1, dtype=np.int64)
        if not self._stored.any():
            return scores, rows
        for start in range(0, len(queries), AT_ONCE):
            left, limit = np.arange(start, min(start + AT_ONCE, len(queries))), RIVALS
            while len(left) and limit <= MOST_HITS:
                left, limit = self._look(queries, left, without, limit, scores, rows), limit * NEXT
            for place in left.tolist():  # thousands are as good as the best
                scores[place], rows[place] = self._best_but(without, queries[place])
        return scores, rows

    def _best_but(self, without: int, query: Floats) -> tuple[float, int]:
        best = self._view.learned(query).top(2)
        others = np.flatnonzero(best.rows != (self._view.rows[without] if without >= 0 else -1))
        return (float(best.scores[others[0]]), int(best.rows[others[0]])) if len(others) else (-np.inf, -1)

    def _look(
        self, queries: Floats, places: NDArray[np.intp], without: int, limit: int, scores: Doubles, rows: Rows
    ) -> NDArray[np.intp]:
        """Decide those queries that a list so long can decide; the others."""
        whole = limit * len(places) <= FEW  # a call less; of many queries the best are much the same
        found = self._source.search(queries[places], limit, None, vectors=whole)
        lengths = np.sqrt(exact(queries[places], queries[places]))
        doubts = product_error(np.dtype(np.float32), queries.shape[1]) * self._longest * lengths
        likely: dict[int, tuple[Keys, Slots]] = {}
        for place, hits, doubt in zip(places.tolist(), found, doubts.tolist(), strict=True):
            slots = self._shelf_slots(hits.keys)
            good = (slots >= 0) & (slots != without)
            good[good] = self._stored[slots[good]]
            if good.any():
                near = good & (hits.scores >= hits.scores[good].max() - 2 * doubt)
                sure = len(hits.keys) < limit or hits.scores[-1] < hits.scores[good].max() - 2 * doubt
                if sure:
                    likely[place] = hits.keys[near], slots[near]
            elif len(hits.keys) < limit:
                likely[place] = hits.keys[:0], slots[:0]
        keys = [keys for keys, _ in likely.values()]
        if whole:
            pairs = ((int(key), row["v"]) for hits in found for key, row in zip(hits.keys, hits.rows, strict=True))
            vectors = {key: vector[: queries.shape[1]] for key, vector in pairs}
        else:
            vectors = self._source.by_key(np.concatenate(keys)) if keys else {}
        for place, (some, slots) in likely.items():
            there = [number for number, key in enumerate(some.tolist()) if key in vectors]
            if there:
                known = exact(np.stack([vectors[int(some[number])] for number in there]), queries[place])
                whose = self._view.rows[slots[there]]
                best = np.lexsort((whose, -known))[0]
                scores[place], rows[place] = known[best], whose[best]
        return np.array([place for place in places.tolist() if place not in likely], dtype=np.intp)

    def _shelf_slots(self, keys: Keys) -> Slots:
        slots = self._source.owners(keys)
        return np.where(slots < len(self._stored), slots, -1)


class Ceilings:
    """Preserve rows on the server under ceilings; an index is a row's key, which is above any count of rows.

    The server sorts rows by how much a vector violates them: [z ; -own].[v ; 1]. What it does not list is violated by
    no more than the last that it lists, and a row of length l by nobody nearer than what is missing, over l.
    """

    def __init__(self, view: Viewed, server: Server, shelf: Shelf, margin: float, without: int) -> None:
        self._view = view
        self._server = server
        self._shelf = shelf
        self._margin = margin
        self._alive = view.stored
        if without >= 0:
            self._alive[without] = False
        self._count = int(shelf.all("preserved")[: len(self._alive)][self._alive].sum())
        self._known: dict[int, tuple[Floats, float]] = {}
        longest = view.moment.longest_query
        self._longest = longest
        self._row_length = longest * float(np.sqrt(1 + view.moment.learned.longest**2))

    def __len__(self) -> int:
        return self._count

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        if self._count == 0:
            return [self._listed(np.empty(0, dtype=np.int64), np.inf)] * len(vectors)
        if limit >= self._count or limit + MORE > MOST_HITS:
            return [self._listed(self._everyone(), np.inf)] * len(vectors)
        result: list[Nearest] = []
        room = max(1, min(AT_ONCE, MOST_HITS * 4 // (limit + MORE)))
        for start in range(0, len(vectors), room):
            result += self._nearest(vectors[start : start + room], limit)
        return result

    def _nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        wide = np.column_stack([vectors, np.ones(len(vectors))])
        connection, names = self._server.connection, self._server.names
        wanted = limit + MORE
        where = "preserved == true"
        asked, since = wide.astype(np.float32), self._server.since
        fields = ["v", "own"] if wanted * len(vectors) <= FEW else []
        found = connection.search(names.queries, asked, wanted, since, where=where, fields=fields)
        kept = [self._alive_among(hits)[:limit] for hits in found]
        if fields:
            rows = ((int(key), row) for hits in found for key, row in zip(hits.keys, hits.rows, strict=True))
            self._known |= {key: (row["v"][:-1], float(row["own"])) for key, row in rows}
        self._learn(np.unique(np.concatenate(kept)))
        error = 2 * product_error(np.dtype(np.float32), wide.shape[1]) * self._row_length
        doubts = error * np.linalg.norm(wide, axis=1)
        return [
            self._listed(keys, self._radius(hits, keys, doubt, wanted))
            for hits, keys, doubt in zip(found, kept, doubts.tolist(), strict=True)
        ]

    def _radius(self, hits: Hits, kept: Keys, doubt: float, wanted: int) -> float:
        """How far a vector must move at least to violate a row that is not listed."""
        unlisted = hits.scores[~np.isin(hits.keys, kept) & self._is_alive(hits.keys)]
        most = unlisted.max(initial=-np.inf)
        if len(hits.keys) == wanted:
            most = max(most, float(hits.scores[-1]))
        room = -(most + doubt) - self._margin
        return np.inf if most == -np.inf else room / self._longest if room > 0 else -np.inf

    def _is_alive(self, keys: Keys) -> Mask:
        slots = self._shelf.slots_of_queries(keys)
        known = (slots >= 0) & (slots < len(self._alive))
        known[known] = self._alive[slots[known]]
        return known

    def _alive_among(self, hits: Hits) -> Keys:
        keys: Keys = hits.keys[self._is_alive(hits.keys)]
        _, first = np.unique(keys, return_index=True)
        return keys[np.sort(first)]

    def _everyone(self) -> Keys:
        firsts, counts = self._shelf.all("first"), self._shelf.all("count")
        slots = np.flatnonzero(self._alive)
        keys = np.concatenate([np.arange(firsts[slot], firsts[slot] + counts[slot]) for slot in slots])
        self._learn(keys)
        return np.array(sorted(key for key in keys.tolist() if key in self._known), dtype=np.int64)

    def _learn(self, keys: Keys) -> None:
        new = np.array([key for key in keys.tolist() if key not in self._known], dtype=np.int64)
        if len(new) == 0:
            return
        connection, names = self._server.connection, self._server.names
        found = connection.get(names.queries, new, ["v", "own", "preserved"], self._server.since)
        self._known |= {key: (row["v"][:-1], float(row["own"])) for key, row in found.items() if row["preserved"]}

    def _listed(self, keys: Keys, radius: float) -> Nearest:
        there = np.array([key for key in keys.tolist() if key in self._known], dtype=np.int64)
        known = [self._known[key] for key in there.tolist()]
        width = self._view.settings.dimension
        return Nearest(
            indices=there.astype(np.intp),
            owners=self._view.rows[self._shelf.slots_of_queries(there)],
            rows=np.stack([row for row, _ in known]) if known else np.empty((0, width), dtype=np.float32),
            ceilings=np.array([own for _, own in known]) - self._margin,
            radius=radius,
        )


class BothCeilings:
    """Preserve rows on the server, and those of documents on a bench."""

    def __init__(self, there: PreserveRows, here: PreserveRows) -> None:
        self._parts = there, here

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        found = (part.nearest(vectors, limit) for part in self._parts)
        return [
            replace(
                one,
                indices=np.concatenate([one.indices, other.indices]),
                owners=np.concatenate([one.owners, other.owners]),
                rows=np.concatenate([one.rows, other.rows]),
                ceilings=np.concatenate([one.ceilings, other.ceilings]),
                radius=min(one.radius, other.radius),
            )
            for one, other in zip(*found, strict=True)
        ]
