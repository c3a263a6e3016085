"""The documents of one moment, on the server and on a bench: scored, and asked who comes near to violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from incdsi.engine.local.view import Lexical
from incdsi.engine.milvus.constraints import BothCeilings, Ceilings, Rivals
from incdsi.engine.milvus.scored import Joined, JoinedTexts, NearestTexts, Products
from incdsi.engine.milvus.server import Server, old_vectors
from incdsi.engine.milvus.shelf import HERE, Moment, Old, Shelf
from incdsi.engine.milvus.sources import Indexed, Texts, every_vector
from incdsi.engine.protocol import Doubles, Floats, Near, Rows, Spreading
from incdsi.engine.settings import Settings
from incdsi.errors import UnknownDocument
from incdsi.filters import Filter
from incdsi.preserve import PreserveRows
from incdsi.records import Record
from incdsi.rows.groups import Groups
from incdsi.rows.scores import Mask, Slots
from incdsi.rows.texts import Measure


class MilvusView:
    """What a shelf shows when this is made; `matching` gives the rows that pass a filter.

    One that is not `exact` uses the index over document vectors, which may be approximate.
    """

    def __init__(
        self,
        server: Server,
        shelf: Shelf,
        settings: Settings,
        matching: Callable[[Filter], Rows] | None = None,
        *,
        exact: bool = True,
    ) -> None:
        self.settings = settings
        self._server = server
        self._shelf = shelf
        self._moment = shelf.moment
        self._scored = False
        self._matching = matching
        self._exact = exact or not server.kind.approximate
        self._passed: tuple[Filter, Rows] | None = None

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def __contains__(self, row: object) -> bool:
        return row in self._shelf

    def learned(self, query: Floats, where: Filter | None = None) -> Spreading:
        self._scored = True
        every = every_vector(self, self._server, self._shelf)
        source = every if self._exact else Indexed(self, self._server, self._shelf, every)
        sums, allowed = self._moment.learned, self._allowed(where) & self.stored
        spread = sums.moments.spread(query)
        there = Products(source, query, spread, allowed, whole=where is None, longest=sums.longest)
        bench = self._shelf.bench
        return there if bench is None else Joined(there, bench.learned(query, where), self._shelf.is_here)

    def nearest(self, query: Floats, where: Filter | None = None) -> Near:
        self._scored = True
        now = self._moment
        measure = Measure.of(query, now.texts.moments, now.asked.moments)
        source, allowed = Texts(self, self._server, self._shelf, measure), self._allowed(where) & self.stored
        there = NearestTexts(source, measure, allowed, whole=where is None, longest=now.longest_query)
        bench = self._shelf.bench
        return (
            there
            if bench is None
            else JoinedTexts(there, next(bench.view().nearest_by([measure])), self._shelf.is_here)
        )

    def learned_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Spreading]:
        return (self.learned(query, where) for query in queries)

    def nearest_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Near]:
        return (self.nearest(query, where) for query in queries)

    def within(self, query: Floats, row: int) -> Doubles:
        return self.nearest(query).within(row)

    def lexical(self, text: str, where: Filter | None = None) -> Lexical:
        while True:
            moment = self._moment
            scores, limit = self._shelf.words.scores_and_limit(text, len(moment.alive))
            # A document that is replaced meanwhile has its words elsewhere: see engine/local/view.py.
            if self._scored or self._shelf.moment is moment:
                return Lexical(self, text, scores, limit, self._allowed(where))
            self._moment = self._shelf.moment

    def rivals(self, queries: Floats, without: int | None = None) -> tuple[Doubles, Rows]:
        source = every_vector(self, self._server, self._shelf)
        scores, rows = Rivals(self, source).of(queries, self._slot(without))
        if self._shelf.bench is not None:
            here = without if without is not None and self._shelf.is_here(without) else None
            best, whose = self._shelf.bench.rivals(queries, here)
            nearer = (best > scores) | ((best == scores) & (whose >= 0) & ((whose < rows) | (rows < 0)))
            scores, rows = np.where(nearer, best, scores), np.where(nearer, whose, rows)
        return scores, rows

    def preserve(self, margin: float, without: int | None = None) -> PreserveRows:
        there = Ceilings(self, self._server, self._shelf, margin, self._slot(without))
        if self._shelf.bench is None:
            return there
        here = without if without is not None and self._shelf.is_here(without) else None
        return BothCeilings(there, self._shelf.bench.preserve(margin, here))

    def elsewhere(self, query: str, row: int) -> bool:
        return self._shelf.queries.elsewhere(query, row)

    def others(self, query: str, row: int) -> list[int]:
        return self._shelf.queries.others(query, row)

    def asked_for(self, rows: Rows) -> Mask:
        return self._shelf.asked_for(self.slots(rows))

    def bench(self) -> MilvusBench:
        return MilvusBench(self._server, self._shelf.copied(), self.settings)

    def marker(self, query: str) -> Callable[[str], list[tuple[int, int]]]:
        return self._shelf.words.marker(query)

    @property
    def units(self) -> Groups:
        """What each slot is found by in words."""
        return self._shelf.words.units

    def score_of(self, words: Sequence[str], text: str) -> float:
        """BM25 of a document with these texts, were it there."""
        return self._shelf.words.score_of(words, text)

    @property
    def alive(self) -> Mask:
        """The slots that held a document then."""
        return self._moment.alive

    @property
    def stored(self) -> Mask:
        """Those of them that are on the server."""
        return np.asarray(self.alive & (self._shelf.all("key")[: len(self.alive)] < HERE))

    @property
    def rows(self) -> Rows:
        """The rows of all slots."""
        return self._shelf.rows

    @property
    def moment(self) -> Moment:
        return self._moment

    def slots(self, rows: Rows) -> Slots:
        """Where these documents were then; UnknownDocument when one was not there."""
        present = [self._shelf.slot(row) for row in rows.tolist()]
        return np.array(
            [
                slot if slot is not None and slot < len(self.alive) and self.alive[slot] else self._slot_then(row)
                for slot, row in zip(present, rows.tolist(), strict=True)
            ],
            dtype=np.intp,
        )

    def _slot(self, row: int | None) -> int:
        slot = None if row is None else self._shelf.slot(row)
        return -1 if slot is None else slot

    def _slot_then(self, row: int) -> int:
        found = np.flatnonzero((self.rows[: len(self.alive)] == row) & self.alive)
        if len(found) == 0:
            raise UnknownDocument(f"no document in row {row}; it may have been deleted")
        return int(found[0])

    def _allowed(self, where: Filter | None) -> Mask:
        if where is None:
            return self.alive
        if self._matching is None:
            raise ValueError("only a view of what is stored can filter")
        if self._passed is None or self._passed[0] is not where:
            self._passed = where, self._matching(where)
        return np.asarray(self.alive & np.isin(self.rows[: len(self.alive)], self._passed[1]))


class MilvusBench(MilvusView):
    """Documents in the making: what is changed is here alone, everything else stays on the server."""

    def put(self, records: Sequence[Record]) -> None:
        self._shelf.put_here(records, self._old([record.row for record in records]))
        self._moment = self._shelf.moment

    def remove(self, rows: Sequence[int]) -> None:
        self._shelf.remove_here(rows, self._old(rows))
        self._moment = self._shelf.moment

    lift = remove

    def _old(self, rows: Sequence[int]) -> Mapping[int, Old]:
        stored = [row for row in rows if row in self._shelf and not self._shelf.is_here(row)]
        return old_vectors(self._server, self._shelf, stored)
