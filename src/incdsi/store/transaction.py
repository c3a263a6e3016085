"""All writing: one SQLite transaction, kept whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from incdsi.documents import utf8
from incdsi.errors import DuplicateDocument, InvalidInput, UnknownDocument
from incdsi.records import JSON, Answer, Record
from incdsi.store import answers
from incdsi.store.codec import Columns, dump_json, encode
from incdsi.store.connections import clear_errors
from incdsi.store.reading import find_row


class Transaction:
    """The changes of one `with store.transaction()` block; every one gets the next sequence."""

    def __init__(self, connection: apsw.Connection, file: Path) -> None:
        self._connection = connection
        self._file = file
        self._usable = True
        self._intact = True
        self._sequence, self._dimension = connection.execute("SELECT sequence, dimension FROM state").get
        self._found = (self._sequence, self._dimension)
        self._mixed = False

    @property
    def version(self) -> int:
        """The sequence of the last change, those of this block included."""
        return int(self._sequence)

    def insert(self, record: Record) -> int:
        """Stores a new document and returns its row; DuplicateDocument when its id is there."""
        columns = encode(record)
        with self._change() as execute:
            if find_row(self._connection, record.document.id) is not None:
                raise DuplicateDocument(f"document {record.document.id!r} is already in the store; update it instead")
            row: int = execute(
                "INSERT INTO documents (sequence, id, title, text, metadata, checksum) "
                "VALUES (?, ?, ?, ?, ?, ?) RETURNING row",
                (self._sequence + 1, *columns.document),
            ).get
            self._write_parts(row, columns)
        return row

    def replace(self, id: str, record: Record) -> None:
        """Stores a document anew in its row; UnknownDocument when it is not there."""
        if record.document.id != id:
            raise InvalidInput(f"expected a record of document {id!r}, found one of {record.document.id!r}")
        columns = encode(record)
        with self._change() as execute:
            row = self._known(id)
            execute(
                "UPDATE documents SET sequence = ?, id = ?, title = ?, text = ?, metadata = ?, checksum = ? "
                "WHERE row = ?",
                (self._sequence + 1, *columns.document, row),
            )
            execute("DELETE FROM metadata WHERE row = ?", (row,))
            execute("DELETE FROM links WHERE row = ?", (row,))
            execute("DELETE FROM passages WHERE row = ?", (row,))
            self._write_parts(row, columns)

    def delete(self, id: str) -> int:
        """Removes a document and all that was made of it; leaves its row and a sequence."""
        with self._change() as execute:
            row = self._known(id)
            execute("DELETE FROM documents WHERE row = ?", (row,))  # the other tables follow by cascade
            execute("INSERT INTO tombstones VALUES (?, ?)", (row, self._sequence + 1))
        return row

    def set_setting(self, key: str, value: JSON) -> None:
        """Stores a setting; readers see it with the rest of the transaction."""
        utf8(key, "setting")
        dumped = dump_json(value, f"setting {key!r}")
        with self._change() as execute:
            execute("REPLACE INTO settings VALUES (?, ?)", (key, dumped))

    def keep_answer(self, key: str, answer: Answer) -> None:
        """Stores what is said about the changes of this block, to be said again; no change of its own."""
        with self._attempt():
            answers.keep(self._connection, key, answer)

    def finish(self) -> None:
        """Writes the counters; the last statements before the commit."""
        if not self._intact:
            raise InvalidInput("a change in this transaction failed, so nothing was kept")
        if self._connection.execute("SELECT NOT EXISTS (SELECT 1 FROM documents)").get:
            self._dimension = None
        elif self._mixed:
            self._require_one_dimension()
        if (self._sequence, self._dimension) != self._found:
            self._connection.execute("UPDATE state SET sequence = ?, dimension = ?", (self._sequence, self._dimension))

    def end(self) -> None:
        """Refuses all further changes."""
        self._usable = False

    @contextlib.contextmanager
    def _change(self) -> Iterator[Callable[..., apsw.Cursor]]:
        with self._attempt():
            yield self._connection.execute
        self._sequence += 1

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[None]:
        if not self._usable:
            raise InvalidInput("this transaction has ended; begin another")
        if not self._intact:  # SQLite may have undone it already: what follows would be on its own
            raise InvalidInput("a change in this transaction failed; end the transaction")
        with clear_errors(self._file):
            try:
                yield
            except apsw.Error:
                self._intact = False  # a change may be half done: catching the error must not commit it
                raise

    def _write_parts(self, row: int, columns: Columns) -> None:
        connection = self._connection
        connection.execute("REPLACE INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?)", (row, *columns.inputs))
        connection.execute("REPLACE INTO solutions VALUES (?, ?, ?, ?, ?)", (row, *columns.solution))
        if columns.passages is not None:
            connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", (row, *columns.passages))
        connection.executemany("INSERT INTO links VALUES (?, ?)", [(row, link) for link in columns.links])
        connection.executemany(
            "INSERT INTO metadata VALUES (?, ?, ?, ?)", [(*entry, row) for entry in columns.metadata]
        )
        self._mixed |= self._dimension not in (None, columns.dimension)
        self._dimension = columns.dimension

    def _known(self, id: str) -> int:
        row = find_row(self._connection, id)
        if row is None:
            raise UnknownDocument(f"no document {id!r} in the index; check the id")
        return row

    def _require_one_dimension(self) -> None:
        other = self._connection.execute(
            "SELECT id, length(vector) / 4 FROM solutions JOIN documents USING (row) "
            "WHERE length(vector) != 4 * ? LIMIT 1",
            (self._dimension,),
        ).get
        if other is not None:
            raise InvalidInput(
                f"expected vectors of one length, found {self._dimension} and, in document {other[0]!r}, "
                f"{other[1]}; replace all documents in one transaction to change it"
            )
