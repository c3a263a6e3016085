"""The half of MilvusEngine that reads: it follows the log, and finds what the log says is there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from incdsi.documents import Document
from incdsi.engine.milvus import encoders, upkeep
from incdsi.engine.milvus.connection import MOST_HITS, STRONG, Connection
from incdsi.engine.milvus.filter import IS_UNKNOWN, compiled
from incdsi.engine.milvus.found import Keys
from incdsi.engine.milvus.known import Table, follow, loaded, replayed, required, server_of
from incdsi.engine.milvus.layout import MANY, Place
from incdsi.engine.milvus.log import Commit, Log
from incdsi.engine.milvus.reading import documents_at, passaged_at, records_at
from incdsi.engine.milvus.server import Server
from incdsi.engine.milvus.shelf import Shelf
from incdsi.engine.milvus.view import MilvusView
from incdsi.engine.protocol import Floats, Rows
from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.filters import Filter, matches
from incdsi.progress import Progress
from incdsi.records import JSON, Answer, Passaged, Record
from incdsi.text.encoders import Encoder

PORTION = 256  # documents read at a time
SOON = 1  # a time that no read need be newer than: a searcher that polls sees news within a tick of the server
TRIES = 5


class MilvusReader:
    """Documents on a Milvus server, with whatever others write; any number of threads read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._log = Log(connection, connection.address.name)
        self._following = threading.RLock()  # held by whoever changes what is known
        self._closed = False
        self._stale = False  # what is known may be wrong: read everything anew
        self._table: Table
        self._server: Server
        self._shelf: Shelf
        self._log.open()
        self._reload()

    def __str__(self) -> str:
        return str(self._connection.address)

    @property
    def connection(self) -> Connection:
        """The calls this engine makes, counted."""
        return self._connection

    @property
    def version(self) -> int:
        self._follow()
        return self._table.version

    def view(self) -> MilvusView:
        """Everything that was committed by now, by whatever process."""
        self._follow()
        with self._following:
            return MilvusView(self._server, self._shelf, self._shelf.settings, self.matching, exact=self._placing)

    def __contains__(self, id: object) -> bool:
        self._follow()
        return self._shelf.row_of(id) is not None

    def get(self, id: str) -> Record:
        return self._records([self.row_of(id)])[0]

    def row_of(self, id: str) -> int:
        self._follow()
        row = self._shelf.row_of(id)
        if row is None:
            raise UnknownDocument(f"no document {id!r} in {self}; check the id or add it")
        return row

    def ids(self, rows: Iterable[int]) -> list[str]:
        self._require_open()
        found = [(row, self._shelf.id_of(row)) for row in rows]
        for row, id in found:
            if id is None:
                raise UnknownDocument(f"no document in row {row} of {self}; it may have been deleted")
        return [str(id) for _, id in found]

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]:
        rows = [row for id in ids if (row := self._shelf.row_of(id)) is not None]
        return {document.id: document.title[:longest] for document in self.documents(rows)}

    def documents(self, rows: Iterable[int], most_bytes: int | None = None) -> list[Document]:
        self._require_open()
        return documents_at(self._server, self._places(rows), most_bytes)

    def passaged(self, rows: Sequence[int], most_bytes: int | None = None) -> list[Passaged]:
        self._require_open()
        return passaged_at(self._server, self._places(rows), most_bytes)

    def records(self) -> Iterator[Record]:
        """Everything in the order of rows; one that is deleted meanwhile is left out."""
        self._follow()
        rows = sorted(self._shelf.rows[self._shelf.current()].tolist())
        for start in range(0, len(rows), PORTION):
            yield from self._records([row for row in rows[start : start + PORTION] if row in self._shelf])

    def vectors(self) -> tuple[list[str], Floats]:
        self._follow()
        rows = sorted(self._shelf.rows[self._shelf.current()].tolist())
        places = [self._shelf.place(row) for row in rows]
        found = self._server.vectors(np.array([place.key for place in places], dtype=np.int64))
        there = [place for place in places if place.key in found]
        width = self._shelf.settings.dimension
        stacked = np.stack([found[place.key] for place in there]) if there else np.empty((0, width), dtype=np.float32)
        return self.ids(place.row for place in there), stacked

    def matching(self, where: Filter) -> Rows:
        """The rows of the documents that pass a filter: by an expression, judged once more where it is not sure."""
        self._follow()
        text, sure = compiled(where)
        passed = self._passing(f"({text}) and not {IS_UNKNOWN}" if text else "")
        if not sure:
            passed = self._judged(passed, where)
        if text:
            passed = np.union1d(passed, self._judged(self._passing(IS_UNKNOWN), where))
        return np.sort(self._rows_of(passed))

    @property
    def vector_search(self) -> str:
        self._follow()
        return self._server.kind.name

    def constrained_by(self, row: int) -> Sequence[int]:
        self._follow()
        keys = self._passing(f"array_contains(links, {row}) or array_contains(links, {MANY})")
        rows = sorted(self._rows_of(keys).tolist())
        return [one.row for one in self._records(rows) if row in one.constrained_by]

    def unresolved(self) -> Sequence[int]:
        return [one.row for one in self.records() if any(row not in self._shelf for row in one.constrained_by)]

    def held_out(self) -> int:
        self._follow()
        return int(self._shelf.all("held_out")[self._shelf.current()].sum())

    def asked(self) -> int:
        self._follow()
        return int(np.count_nonzero(self._shelf.asked_for(np.flatnonzero(self._shelf.moment.alive))))

    def setting(self, key: str) -> JSON:
        self._follow()
        return self._table.settings.get(key)

    def answer(self, key: str) -> Answer | None:
        self._follow()
        kept = self._table.answers.get(key)
        return None if kept is None else self._log.answer(kept[0])

    def encoder(self, settings: Settings, given: Encoder | str | Path | None = None) -> Encoder:
        return encoders.opened(self, settings, given)

    def verify(self) -> list[str]:
        self._follow(STRONG)
        return upkeep.problems_of(self._server, self._shelf)

    def backup(self, target: Path | str, progress: Progress | None) -> None:
        """Copy the documents to a new index in a folder, as they are stored."""
        self._follow(STRONG)
        upkeep.copied_to_folder(self, self._table.settings, target, progress)

    # Inside

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"{self} is closed; open it again")

    @property
    def _leads(self) -> bool:
        """Whether nobody else writes, so that there is nothing to follow."""
        return False

    @property
    def _placing(self) -> bool:
        """Whether this thread places documents: then it misses none."""
        return False

    def _follow(self, since: int = SOON) -> None:
        """Know what the log says by now."""
        self._require_open()
        if self._leads and not self._stale:
            return
        with self._following:
            if self._stale:
                self._reload()
            elif not self._leads:
                self._catch_up(since)

    def _catch_up(self, since: int) -> None:
        commits = self._log.after(self._table.last, since)
        if not commits:
            return
        if any(self._begins_anew(commit) for commit in commits):
            self._reload()
            return
        new = self._table.take(commits, self._place_of)
        self._server = server_of(self._connection, self._table, self._server)
        try:
            follow(self._shelf, new, self._server)
        except UnknownDocument:
            self._reload()
        except BaseException:
            self._stale = True
            raise
        self._tidy()

    def _begins_anew(self, commit: Commit) -> bool:
        """Whether what is known does not lead to this commit: all is told again, or something known did not count."""
        return commit.whole or (commit.base is not None and commit.base < self._table.last)

    def _reload(self) -> None:
        for _ in range(TRIES):
            table, places = replayed(required(self._log, self))
            server = server_of(self._connection, table)
            self._connection.load(server.names.documents, server.names.queries)
            try:
                shelf = loaded(table.index_settings, places, server)
            except UnknownDocument as error:  # replaced and deleted meanwhile: the log has news
                gone = error
                continue
            self._table, self._server, self._shelf, self._stale = table, server, shelf, False
            return
        raise gone

    def _tidy(self) -> None:
        """After a change: new settings, exact sums, no more empty slots than is worth it."""
        self._shelf.settings = self._table.index_settings
        if self._shelf.worn:
            self._shelf.sum_up(self._server.sums(self._shelf))
        if self._shelf.wasteful:
            self._shelf = self._shelf.copied()

    def _place_of(self, row: int) -> Place | None:
        return self._shelf.place(row) if row in self._shelf else None

    def _places(self, rows: Iterable[int]) -> list[Place]:
        found = [(row, self._place_of(row)) for row in rows]
        for row, place in found:
            if place is None:
                raise UnknownDocument(f"no document in row {row} of {self}; it may have been deleted")
        return [place for _, place in found if place is not None]

    def _records(self, rows: Sequence[int]) -> list[Record]:
        return records_at(self._server, self._places(rows)) if rows else []

    def _rows_of(self, keys: Keys) -> Rows:
        """The rows of those keys that are of present versions."""
        slots = self._shelf.slots_of_keys(keys)
        slots = slots[slots >= 0]
        return self._shelf.rows[slots[self._shelf.moment.alive[slots]]]

    def _passing(self, text: str) -> Keys:
        """The keys that pass an expression, old versions among them; by ranges that one call can return."""
        keys = self._shelf.all("key")[self._shelf.current()]
        if not text:
            return keys
        found: list[int] = []
        for start in range(0, len(keys), MOST_HITS // 2):
            some = keys[start : start + MOST_HITS // 2]
            found += upkeep.keys_between(
                self._connection, self._server.names.documents, int(some[0]) - 1, int(some[-1]), f" and ({text})"
            )
        return np.array(found, dtype=np.int64)

    def _judged(self, keys: Keys, where: Filter) -> Keys:
        """Those whose metadata passes."""
        rows = self._rows_of(keys).tolist()
        passed: list[int] = []
        for start in range(0, len(rows), PORTION):
            places = self._places(rows[start : start + PORTION])
            documents = documents_at(self._server, places)
            passed += [
                place.key
                for place, document in zip(places, documents, strict=True)
                if matches(where, document.metadata)
            ]
        return np.array(passed, dtype=np.int64)
