"""Rows on the server that scores are made of: document vectors, texts, and document vectors by an approximate index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from incdsi.engine.milvus.found import Hits, Keys
from incdsi.engine.milvus.layout import COPY
from incdsi.engine.milvus.scored import Source
from incdsi.engine.milvus.server import Server
from incdsi.engine.milvus.shelf import Shelf
from incdsi.engine.protocol import Doubles, Floats, Rows
from incdsi.rows.scores import Slots
from incdsi.rows.texts import Measure


class Viewed(Protocol):
    """What is asked of a view here."""

    @property
    def rows(self) -> Rows: ...

    def slots(self, rows: Rows) -> Slots: ...


class Rowed:
    """Rows of the documents of a view; a product with one counts for what it is."""

    def __init__(self, view: Viewed, server: Server, shelf: Shelf) -> None:
        self._view = view
        self._server = server
        self._keys = shelf.all("key")

    each = 1

    @property
    def names_quickly(self) -> bool:
        return not self._server.connection.address.lite  # which looks at every row, whatever is named

    @property
    def rows(self) -> Rows:
        return self._view.rows

    def slots(self, rows: Rows) -> Slots:
        return self._view.slots(rows)

    def measured(self, keys: Keys, scores: Doubles) -> Doubles:
        return scores

    def most(self, score: float) -> float:
        return score


class Vectors(Rowed):
    """Document vectors: one row a document."""

    def __init__(self, view: Viewed, server: Server, shelf: Shelf) -> None:
        super().__init__(view, server, shelf)
        self.owners = shelf.slots_of_keys

    def search(self, queries: Floats, limit: int, among: Slots | None, *, vectors: bool) -> list[Hits]:
        where = "" if among is None else f"key in {self._keys[among].tolist()}"
        names, fields, kind = self._server.names, ["v"] if vectors else [], self._server.kind
        connection, since = self._server.connection, self._server.since
        return connection.search(names.documents, queries, limit, since, where=where, fields=fields, kind=kind)

    def by_key(self, keys: Keys) -> dict[int, Floats]:
        return self._server.vectors(keys)

    def keys(self, slots: Slots) -> list[Sequence[int]]:
        return [[key] for key in self._keys[slots].tolist()]


class Embedded(Rowed):
    """The rows of queries that have a flag."""

    flag: str

    def __init__(self, view: Viewed, server: Server, shelf: Shelf) -> None:
        super().__init__(view, server, shelf)
        self._firsts, self._counts = shelf.all("first"), shelf.all("count")
        self.owners = shelf.slots_of_queries

    def search(self, queries: Floats, limit: int, among: Slots | None, *, vectors: bool) -> list[Hits]:
        where = f"{self.flag} == true" + ("" if among is None else f" and owner in {self._keys[among].tolist()}")
        names, fields = self._server.names, ["v"] if vectors else []
        connection, since = self._server.connection, self._server.since
        wider = np.column_stack([queries, np.zeros(len(queries), dtype=np.float32)])  # own scores do not count
        return connection.search(names.queries, wider, limit, since, where=where, fields=fields)

    def by_key(self, keys: Keys) -> dict[int, Floats]:
        return self._server.texts(keys, self.flag)

    def keys(self, slots: Slots) -> list[Sequence[int]]:
        spans = zip(self._firsts[slots].tolist(), self._counts[slots].tolist(), strict=True)
        return [range(first, first + count) for first, count in spans]


class Texts(Embedded):
    """The embeddings of documents' texts and of the queries they are placed by."""

    flag = "used"
    each = 4

    def __init__(self, view: Viewed, server: Server, shelf: Shelf, measure: Measure) -> None:
        super().__init__(view, server, shelf)
        self._measure = measure
        self._asked = shelf.asked

    def measured(self, keys: Keys, scores: Doubles) -> Doubles:
        return np.where(self._asked(keys), self._measure.in_unit(scores), scores) if len(keys) else scores

    def most(self, score: float) -> float:
        return float(max(score, self._measure.in_unit(np.array([score]))[0]))


class Copies(Embedded):
    """Document vectors beside the embeddings, the last of each document's rows: there where `v` has another index."""

    flag = COPY

    def __init__(self, view: Viewed, server: Server, shelf: Shelf) -> None:
        super().__init__(view, server, shelf)
        self._firsts, self._counts = self._firsts + self._counts - 1, np.ones_like(self._counts)


class Indexed(Vectors):
    """Document vectors by an approximate index; where documents are named, every one of them is looked at."""

    def __init__(self, view: Viewed, server: Server, shelf: Shelf, every: Source) -> None:
        super().__init__(view, server, shelf)
        self._every = every

    def search(self, queries: Floats, limit: int, among: Slots | None, *, vectors: bool) -> list[Hits]:
        if among is None:
            return super().search(queries, limit, None, vectors=vectors)
        found = self._every.search(queries, limit, among, vectors=vectors)
        owners = [self._every.owners(hits.keys) for hits in found]
        keys = (np.where(slots >= 0, self._keys[slots], -1) for slots in owners)
        return [hits._replace(keys=some) for hits, some in zip(found, keys, strict=True)]


def every_vector(view: Viewed, server: Server, shelf: Shelf) -> Source:
    """Document vectors, all of them looked at by each search."""
    return Copies(view, server, shelf) if server.kind.approximate else Vectors(view, server, shelf)
