"""Documents and records by where they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incdsi.documents import Document
from incdsi.engine.milvus.layout import Place, read_passaged, read_record
from incdsi.engine.milvus.server import Server
from incdsi.errors import TooLarge, UnknownDocument
from incdsi.records import Passaged, Record


def documents_at(server: Server, places: Sequence[Place], most_bytes: int | None = None) -> list[Document]:
    """The documents at these places; UnknownDocument when one is gone, TooLarge with more than `most_bytes`."""
    return [one.document for one in passaged_at(server, places, most_bytes)]


def passaged_at(server: Server, places: Sequence[Place], most_bytes: int | None = None) -> list[Passaged]:
    """The same, each with its passages."""
    keys = np.array([place.key for place in places], dtype=np.int64)
    rows = server.connection.get(server.names.documents, keys, ["body"], server.since)
    _require([place.key in rows for place in places], places)
    found = [read_passaged(rows[place.key]) for place in places]
    if most_bytes is not None and sum(_size(one.document) for one in found) > most_bytes:
        raise TooLarge(f"the documents have more than {most_bytes:,} bytes; ask for fewer")
    return found


def records_at(server: Server, places: Sequence[Place]) -> list[Record]:
    """Everything stored at these places; UnknownDocument when one is gone."""
    keys = np.array([place.key for place in places], dtype=np.int64)
    rows = server.connection.get(server.names.documents, keys, ["row", "body", "v"], server.since)
    _require([place.key in rows for place in places], places)
    embeddings = server.embeddings(np.array([key for place in places for key in place.query_keys], dtype=np.int64))
    _require([all(key in embeddings for key in place.query_keys) for place in places], places)
    return [read_record(rows[place.key], [embeddings[key] for key in place.query_keys], place.key) for place in places]


def _require(there: Sequence[bool], places: Sequence[Place]) -> None:
    for found, place in zip(there, places, strict=True):
        if not found:
            raise UnknownDocument(f"no document in row {place.row}; it may have been deleted")


def _size(document: Document) -> int:
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in (document.id, document.title, document.text))
