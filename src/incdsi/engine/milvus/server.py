"""The rows of an index on the server, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from incdsi.engine.milvus.connection import Connection
from incdsi.engine.milvus.found import Keys
from incdsi.engine.milvus.kinds import Kind
from incdsi.engine.milvus.layout import COPY, Names
from incdsi.engine.milvus.shelf import Old, Shelf, joined
from incdsi.engine.protocol import Floats
from incdsi.errors import UnsupportedFormat
from incdsi.records import TextVectors

AT_ONCE = 256  # documents read at a time


class Server:
    """The rows of one generation of an index, as new as a view must see them."""

    def __init__(self, connection: Connection, names: Names, kind: Kind, since: int) -> None:
        self.connection = connection
        self.names = names
        self.kind = kind  # of the index over document vectors
        self.since = since

    def vectors(self, keys: Keys) -> dict[int, Floats]:
        """Document vectors (h,) by key."""
        found = self.connection.get(self.names.documents, keys, ["v"], self.since)
        return {key: row["v"] for key, row in found.items()}

    def embeddings(self, keys: Keys) -> dict[int, Floats]:
        """Rows [z ; -own score] by key."""
        found = self.connection.get(self.names.queries, keys, ["v"], self.since)
        return {key: row["v"] for key, row in found.items()}

    def texts(self, keys: Keys, flag: str = "used") -> dict[int, Floats]:
        """Those of these embeddings (h,) that have a flag, by key: unless told, that may be nearest to a query."""
        found = self.connection.get(self.names.queries, keys, ["v", flag], self.since)
        return {key: row["v"][:-1] for key, row in found.items() if row[flag]}

    def sums(self, shelf: Shelf) -> Iterator[Old]:
        """All document vectors and texts of a shelf, a portion of each at a time."""
        rows = shelf.rows[shelf.current()].tolist()
        for start in range(0, len(rows), AT_ONCE):
            yield joined(list(old_vectors(self, shelf, rows[start : start + AT_ONCE]).values()))


def kind_at(connection: Connection, names: Names) -> Kind:
    """How document vectors are searched there; refuses an approximate index that somebody else made."""
    kind = connection.kind_of(names.documents)
    if kind.approximate and COPY not in connection.fields(names.queries):
        raise UnsupportedFormat(
            f"somebody gave {names.documents} an index {kind.milvus}; make it FLAT again: `incdsi compact` makes others"
        )
    return kind


def old_vectors(server: Server, shelf: Shelf, rows: Sequence[int]) -> dict[int, Old]:
    """Vectors and texts of documents that are about to be replaced; those that are there."""
    places = {row: shelf.place(row) for row in rows}
    vectors = server.vectors(np.array([place.key for place in places.values()], dtype=np.int64))
    keys = [key for place in places.values() for key in place.query_keys]
    texts = server.texts(np.array(keys, dtype=np.int64))
    there = {row: [key for key in place.query_keys if key in texts] for row, place in places.items()}
    return {
        row: (vectors[place.key][None], _by_kind(texts, shelf, there[row]))
        for row, place in places.items()
        if place.key in vectors and there[row]
    }


def _by_kind(texts: Mapping[int, Floats], shelf: Shelf, keys: Sequence[int]) -> TextVectors:
    """The embeddings with these keys, of which there is one."""
    rows, asked = np.stack([texts[key] for key in keys]), shelf.asked(np.array(keys, dtype=np.int64))
    return TextVectors(rows[~asked], rows[asked])
