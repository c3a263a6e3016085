"""What keeps an index on a server well: deleting what nobody needs, checking, copying to a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from incdsi.engine.copying import Source, copy_records
from incdsi.engine.local import LocalEngine
from incdsi.engine.local.live import Live
from incdsi.engine.milvus.connection import MOST_HITS, STRONG, Connection
from incdsi.engine.milvus.layout import Names, Place, first_key
from incdsi.engine.milvus.reading import records_at
from incdsi.engine.milvus.server import Server
from incdsi.engine.milvus.shelf import Shelf
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import ModelNotFound, UnknownDocument
from incdsi.progress import Progress
from incdsi.records import JSON, Record

SWEPT = 4  # writers before, whose unfinished rows are looked for when another begins
PORTION = 256
LAST = 2**63 - 1


def at_hand(records: Iterator[Record], settings: Settings) -> Live:
    """These documents in this process's memory."""
    live = Live(settings)
    while some := list(islice(records, PORTION)):
        live.put(some)
    return live


def delete_places(connection: Connection, names: Names, places: list[Place]) -> None:
    """Delete versions of documents, their queries last: whoever finds a document finds its queries."""
    connection.delete(names.documents, [place.key for place in places])
    connection.delete(names.queries, [key for place in places for key in place.query_keys])


def sweep(server: Server, shelf: Shelf, epoch: int) -> int:
    """Delete what the last writers before this epoch left unfinished; how many rows."""
    swept = 0
    for name, ends in ((server.names.documents, shelf.all("key")), (server.names.queries, _ends(shelf))):
        stray = []
        for before in range(max(0, epoch - SWEPT), epoch):
            known = ends[(ends >= first_key(before)) & (ends < first_key(before + 1))]
            low = int(known.max()) if len(known) else first_key(before) - 1
            stray.append(f"(key > {low} and key < {first_key(before + 1)})")
        keys = [int(row["key"]) for row in server.connection.query(name, " or ".join(stray), [], STRONG)]
        server.connection.delete(name, keys)
        swept += len(keys)
    return swept


def sweep_everything(server: Server, shelf: Shelf) -> int:
    """Delete every row that belongs to no document; how many."""
    slots = shelf.current()
    places = [shelf.place(int(row)) for row in shelf.rows[slots]]
    documents, queries = {place.key for place in places}, {key for place in places for key in place.query_keys}
    names, connection = server.names, server.connection
    swept = _delete_between(connection, names.documents, -1, LAST, documents)
    return swept + _delete_between(connection, names.queries, -1, LAST, queries)


def keys_between(connection: Connection, name: str, low: int, high: int, also: str = "") -> Iterator[int]:
    """All keys above one and up to another that pass more; in halves where one call does not return them all."""
    found = connection.query(name, f"key > {low} and key <= {high}{also}", [], STRONG)
    keys = sorted({int(row["key"]) for row in found})
    if len(found) < MOST_HITS or len(keys) < 2:
        yield from keys
        return
    middle = keys[len(keys) // 2 - 1]
    yield from keys_between(connection, name, low, middle, also)
    yield from keys_between(connection, name, middle, high, also)


def problems_of(server: Server, shelf: Shelf) -> list[str]:
    """Read every row; what is wrong, one sentence each."""
    problems: list[str] = []
    rows = sorted(int(row) for row in shelf.rows[shelf.current()])
    for start in range(0, len(rows), PORTION):
        problems += _problems(server, shelf, rows[start : start + PORTION])
    return problems


def _problems(server: Server, shelf: Shelf, rows: list[int]) -> Iterator[str]:
    try:
        records = records_at(server, [shelf.place(row) for row in rows])
    except UnknownDocument:
        if len(rows) > 1:
            for row in rows:
                yield from _problems(server, shelf, [row])
        else:
            yield f"document {shelf.id_of(rows[0])!r}: its rows are gone from the server; restore a backup"
        return
    except (ValueError, KeyError, TypeError) as error:
        yield f"documents in rows {rows[0]} to {rows[-1]} cannot be read: {error}; restore a backup"
        return
    for record in records:
        place = shelf.place(record.row)
        if record.document.id != shelf.id_of(place.row):
            yield f"document {shelf.id_of(place.row)!r} is stored as {record.document.id!r}; restore a backup"
        if not all(np.isfinite(vector).all() for vector in (record.vector, *record.texts)):
            yield f"document {record.document.id!r} has a vector that is not finite; restore a backup"


def _delete_between(connection: Connection, name: str, low: int, high: int, keep: set[int]) -> int:
    stray = [key for key in keys_between(connection, name, low, high) if key not in keep]
    connection.delete(name, stray)
    return len(stray)


def _ends(shelf: Shelf) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The last key of each document's queries."""
    return np.asarray(shelf.all("first") + shelf.all("count") - 1)


def copied_to_folder(
    source: Source, settings: Mapping[str, JSON], target: Path | str, progress: Progress | None
) -> None:
    """A new index in a folder with the same records, and the encoder if this client has it."""
    own = Settings.from_json(settings[KEY])
    try:
        encoder = source.encoder(own) if own.model is not None else None
    except ModelNotFound:
        encoder = None
    beside = {key: value for key, value in settings.items() if key != KEY}
    LocalEngine.create(target, own if encoder else replace(own, model=None), encoder, beside)
    copy = LocalEngine.open(target)
    try:
        with copy.changing(None):
            copy_records(source, copy, progress)
    finally:
        copy.close()


def merged(first: Sequence[Record], rest: Iterator[Record], stored: Iterator[Record]) -> Iterator[Record]:
    """New records, and for those documents that have none their stored ones; both in the order of rows."""
    new = iter([*first])

    def following() -> Record | None:
        return next(new, None) or next(rest, None)

    coming = following()
    for record in stored:
        if coming is not None and coming.row == record.row:
            yield coming
            coming = following()
        else:
            yield record
