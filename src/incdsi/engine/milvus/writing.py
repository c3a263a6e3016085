"""A batch on its way to the server: query rows beside document rows, then the one row that makes them count."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from incdsi.engine.milvus.layout import Place, embedding_count, stored
from incdsi.engine.milvus.lease import Lease
from incdsi.engine.milvus.server import Server
from incdsi.engine.milvus.shelf import Shelf
from incdsi.engine.settings import KEY, Method, Settings
from incdsi.errors import DuplicateDocument, UnknownDocument
from incdsi.records import JSON, Answer, Record


class MilvusBatch:
    """Changes that are collected until the block ends."""

    def __init__(self, shelf: Shelf, next_row: int, version: int) -> None:
        self._shelf = shelf
        self.version = version
        self.next_row = next_row
        self.puts: dict[int, Record] = {}
        self.gone: list[int] = []
        self.settings: dict[str, JSON] = {}
        self.answers: dict[str, Answer] = {}
        self._rows: dict[str, int | None] = {}  # by id, of what this batch changes

    def insert(self, record: Record) -> None:
        id = record.document.id
        if self._row_of(id) is not None:
            raise DuplicateDocument(f"document {id!r} is in the index already; update it or choose another id")
        if record.row != self.next_row:  # whoever was placed by it would be known by another
            raise RuntimeError(f"document {id!r} was placed as row {record.row} and would be stored as {self.next_row}")
        self.next_row += 1
        self._put(record)

    def replace(self, record: Record) -> None:
        row = self._require(record.document.id)
        if record.row != row:
            raise RuntimeError(f"document {record.document.id!r} is in row {row}, not in {record.row}")
        self._put(record)

    def delete(self, id: str) -> int:
        row = self._require(id)
        self.puts.pop(row, None)
        self.gone.append(row)
        self.version += 1
        self._rows[id] = None
        return row

    def save(self, settings: Settings) -> None:
        self.set_setting(KEY, settings.stemmed_now.to_json())

    def set_setting(self, key: str, value: JSON) -> None:
        self.settings[key] = value
        self.version += 1

    def keep_answer(self, key: str, answer: Answer) -> None:
        self.answers[key] = answer

    @property
    def index_settings(self) -> Settings | None:
        """Other settings, if this batch has some."""
        return Settings.from_json(self.settings[KEY]) if KEY in self.settings else None

    @property
    def replaced(self) -> list[int]:
        """The rows of documents that are there and will not be as they are."""
        return [row for row in (*self.puts, *self.gone) if row in self._shelf]

    def _put(self, record: Record) -> None:
        self.version += 1
        self.puts[record.row] = record
        self._rows[record.document.id] = record.row

    def _row_of(self, id: str) -> int | None:
        return self._rows[id] if id in self._rows else self._shelf.row_of(id)

    def _require(self, id: str) -> int:
        row = self._row_of(id)
        if row is None:
            raise UnknownDocument(f"no document {id!r}; check the id or add it")
        return row


def written(server: Server, lease: Lease, records: Sequence[Record], method: Method) -> tuple[list[Place], int]:
    """Put records on the server, where nobody sees them before a commit; where they are, and since when."""
    places, documents, queries = [], [], []
    copied = server.kind.approximate
    for record in records:
        (key,), first = lease.keys("document"), lease.keys("query", embedding_count(record, method, copied))[0]
        place, document, rows = stored(record, key, first, method, copied)
        places.append(place)
        documents.append(document)
        queries += rows
    if not records:
        return places, 1
    with ThreadPoolExecutor(1) as beside:  # in any order: neither counts before the log says so
        embedded = beside.submit(server.connection.insert, server.names.queries, queries)
        since = server.connection.insert(server.names.documents, documents)
    return places, max(since, embedded.result())
