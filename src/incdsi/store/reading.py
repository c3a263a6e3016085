"""The statements that read, and the iterator that holds a snapshot while records stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from incdsi.documents import Document
from incdsi.errors import TooLarge, UnknownDocument
from incdsi.records import JSON, Passaged, Record
from incdsi.store.codec import decode, decode_document, decode_pieces
from incdsi.store.connections import Reader, Readers, clear_errors, corrupt
from incdsi.store.schema import PASSAGES

# Left joins: a document whose other half is gone must be an error, not an absence.
_RECORDS = """
SELECT documents.row, sequence, id, title, text, metadata,
       anchor, texts, generated, held_out, inputs.embeddings,
       vector, preserved, own_scores,
       (SELECT json_group_array(constrainer) FROM links WHERE links.row = documents.row),
       {passages}
FROM documents LEFT JOIN inputs USING (row) LEFT JOIN solutions USING (row) {join}
"""
SIZE = "octet_length(id) + octet_length(title) + octet_length(text) + octet_length(metadata)"


def records_query(connection: apsw.Connection) -> str:
    """What selects records, in the format that the store has in this snapshot: it may be older, or migrated since."""
    if has_passages(connection):
        return _RECORDS.format(passages="spans, passages.embeddings", join="LEFT JOIN passages USING (row)")
    return _RECORDS.format(passages="NULL, NULL", join="")


def has_passages(connection: apsw.Connection) -> bool:
    """Whether the store's format knows any."""
    return int(connection.pragma("user_version")) >= PASSAGES


def decoded(file: Path, columns: Sequence[Any]) -> Record:
    """The record in a row of `records_query`; CorruptStore when it cannot be one."""
    try:
        return decode(columns)
    except (ValueError, TypeError) as error:
        raise corrupt(file, f"row {columns[0]} is damaged ({error})") from error


def find_row(connection: apsw.Connection, id: str) -> int | None:
    """The row of a document, or None."""
    try:
        row: int | None = connection.execute("SELECT row FROM documents WHERE id = ?", (id,)).get
    except UnicodeEncodeError:  # no such text was ever stored
        return None
    return row


def known_row(connection: apsw.Connection, id: str, folder: Path) -> int:
    """The row of a document; UnknownDocument when it is not there."""
    row = find_row(connection, id)
    if row is None:
        raise UnknownDocument(f"no document {id!r} in {folder}; check the id or add it")
    return row


def select_rows(connection: apsw.Connection, columns: str, rows: Iterable[int]) -> list[tuple[Any, ...]]:
    """The columns of these documents in the order asked; UnknownDocument when a row is not there."""
    wanted = [int(row) for row in rows]
    found = {
        row: rest
        for row, *rest in connection.execute(
            f"SELECT row, {columns} FROM documents WHERE row IN (SELECT value FROM json_each(?))",
            (json.dumps(wanted),),
        )
    }
    missing = [row for row in wanted if row not in found]
    if missing:
        raise UnknownDocument(f"no documents in rows {missing[:5]}; they may have been deleted")
    return [tuple(found[row]) for row in wanted]


def read_documents(connection: apsw.Connection, rows: Iterable[int], most_bytes: int | None) -> list[Document]:
    """The documents in these rows, in that order; TooLarge, before they are read, when they are more."""
    wanted = list(rows)
    if most_bytes is not None and sum(size for (size,) in select_rows(connection, SIZE, wanted)) > most_bytes:
        raise TooLarge(f"the documents have more than {most_bytes:,} bytes; ask for fewer")
    return [decode_document(*columns) for columns in select_rows(connection, "id, title, text, metadata", wanted)]


def read_passaged(connection: apsw.Connection, rows: Sequence[int], most_bytes: int | None) -> list[Passaged]:
    """The documents in these rows, in that order, each with its passages, as `read_documents` reads them."""
    documents = read_documents(connection, rows, most_bytes)
    if not has_passages(connection):
        return [Passaged(document, ()) for document in documents]
    found = {
        row: decode_pieces(spans)
        for row, spans in connection.execute(
            "SELECT row, spans FROM passages WHERE row IN (SELECT value FROM json_each(?))",
            (json.dumps(list(rows)),),
        )
    }
    return [Passaged(document, found.get(row, ())) for row, document in zip(rows, documents, strict=True)]


def read_titles(connection: apsw.Connection, ids: Iterable[str], longest: int) -> dict[str, str]:
    """The beginnings of the titles of those documents that are there."""
    found = connection.execute(
        "SELECT id, substr(title, 1, ?) FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (longest, json.dumps(list(ids))),
    )
    return dict(found)


class Records(Iterator[Record]):
    """Those of `records_query` under a condition, in an order; gives its connection back when done or closed."""

    def __init__(self, readers: Readers, reader: Reader, file: Path, rest: str, *parameters: int) -> None:
        self._file = file
        self._readers = readers
        self._reader: Reader | None = reader
        self._cursor = reader.connection.execute(f"{records_query(reader.connection)} {rest}", parameters)

    def __next__(self) -> Record:
        if self._reader is None:
            raise StopIteration
        try:
            with clear_errors(self._file), self._readers.undisturbed(self._reader):
                columns = next(self._cursor, None)
            if columns is not None:
                return decoded(self._file, columns)
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Ends the snapshot; what was not read yet stays unread."""
        reader, self._reader = self._reader, None
        if reader is not None:
            self._cursor.close()
            _end(self._readers, reader)

    def __del__(self) -> None:
        if getattr(self, "_reader", None) is not None:
            self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything newer than `since`, as of `sequence`, read in one snapshot.

    `reload` means that what was removed is no longer known (compacted away, or the caller knows a
    future this store never had): forget all rows, `upserts` then holds every record. `upserts`
    keeps its snapshot open until it is exhausted or closed. `settings` are the index's, in the same snapshot.
    """

    upserts: Records
    removed: tuple[int, ...]
    sequence: int
    reload: bool
    settings: JSON


def read_setting(connection: apsw.Connection, key: str) -> JSON:
    """A setting; None when it was never set."""
    dumped = connection.execute("SELECT value FROM settings WHERE key = ?", (key,)).get
    return None if dumped is None else json.loads(dumped)


def read_records(readers: Readers, file: Path) -> Records:
    """Everything, in the order of rows, in a snapshot that lives as long as the iterator."""
    reader = readers.take()
    try:
        with clear_errors(file):
            reader.connection.execute("BEGIN")
            return Records(readers, reader, file, "ORDER BY documents.row")
    except BaseException:
        _end(readers, reader)
        raise


def read_changes(readers: Readers, file: Path, since: int, settings: str) -> Changes:
    """What is newer than `since`, in a snapshot that lives as long as the iterator, with the settings of that name."""
    reader = readers.take()
    try:
        with clear_errors(file):
            reader.connection.execute("BEGIN")
            sequence, purged = reader.connection.execute("SELECT sequence, purged_before FROM state").get
            reload = since < purged or since > sequence
            start = 0 if reload else since
            removed = () if reload else _removed(reader.connection, since)
            return Changes(
                upserts=Records(readers, reader, file, "WHERE sequence > ? ORDER BY sequence", start),
                removed=removed,
                sequence=sequence,
                reload=reload,
                settings=read_setting(reader.connection, settings),
            )
    except BaseException:
        _end(readers, reader)
        raise


def _removed(connection: apsw.Connection, since: int) -> tuple[int, ...]:
    rows = connection.execute("SELECT row FROM tombstones WHERE sequence > ? ORDER BY sequence", (since,))
    return tuple(row for (row,) in rows)


def _end(readers: Readers, reader: Reader) -> None:
    if reader.connection.in_transaction:
        reader.connection.execute("ROLLBACK")
    readers.give(reader)
