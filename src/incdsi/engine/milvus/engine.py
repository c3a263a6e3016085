"""MilvusEngine: documents on a server, and who may change them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

from incdsi.engine.addresses import parse
from incdsi.engine.local import Live
from incdsi.engine.local.models import folder_name
from incdsi.engine.milvus import encoders, upkeep
from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.kinds import FLAT, Kind, wanted
from incdsi.engine.milvus.known import replayed, required, server_of
from incdsi.engine.milvus.layout import COPIED, DOCUMENTS, QUERIES, Names, Place, epoch_of
from incdsi.engine.milvus.lease import Lease
from incdsi.engine.milvus.log import Commit, Log
from incdsi.engine.milvus.reader import PORTION, MilvusReader
from incdsi.engine.milvus.server import Server, old_vectors
from incdsi.engine.milvus.shelf import Old, Shelf, Shown
from incdsi.engine.milvus.writing import MilvusBatch, written
from incdsi.engine.protocol import Bench
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import IndexLocked, InvalidInput, ServerError, VersionConflict
from incdsi.progress import Stopwatch
from incdsi.records import JSON, Answer, Record
from incdsi.text.encoders import Encoder

KEEP = 30.0  # seconds a replaced version stays for those who still look at it; never less than 0.5
FEW = 1024  # records that are replaced where they are; more get new collections


class MilvusEngine(MilvusReader):
    """It follows what others write, and writes itself from its first change on, if nobody else does.

    Changes are made one at a time, inside `changing`; whatever interrupts one, the next view shows what was committed.
    """

    def __init__(self, connection: Connection) -> None:
        self.mutex = threading.RLock()  # held by whoever changes the index
        self._lease: Lease | None = None
        self._own_epoch = 0  # of a lease that this engine gave up
        self._changer: int | None = None  # the thread that is inside `changing`
        self._old: list[tuple[float, Names]] = []  # generations that nobody needs any more
        super().__init__(connection)

    @classmethod
    def create(cls, address: str, settings: Settings, encoder: Encoder | None, beside: Mapping[str, JSON]) -> None:
        """An empty index on the server; the encoder, if there is one, is kept by this client."""
        if encoder is not None:
            encoders.keep(encoder)
        connection = Connection(parse(address))
        try:
            log, names = Log(connection, connection.address.name), Names(connection.address.name)
            log.create()
            _require_new(connection, log)
            lease = Lease.taken(connection, log, names, last_epoch=0, own=0, upkeep=lambda: None)
            try:
                _require_new(connection, log)
                _make(connection, names, settings.dimension, wanted(0))
                stored: dict[str, JSON] = {KEY: settings.stemmed_now.to_json(), **beside}
                (key,) = lease.keys("log")
                first = Commit(key=key, version=0, next_row=1, generation=1, whole=True, settings=stored)
                log.append(first, ())
            finally:
                lease.release()
        finally:
            connection.close()

    @classmethod
    def is_there(cls, address: str) -> bool:
        """Whether there is an index of that name on the server; refuses a server that does not answer."""
        connection = Connection(parse(address))
        try:
            return Log(connection, connection.address.name).is_there
        finally:
            connection.close()

    @classmethod
    def settings_at(cls, address: str) -> Settings:
        """What the index there remembers about itself, without reading its documents."""
        connection = Connection(parse(address))
        try:
            log = Log(connection, connection.address.name)
            log.open()
            return replayed(required(log, connection.address))[0].index_settings
        finally:
            connection.close()

    @classmethod
    def open(cls, address: str) -> Self:
        connection = Connection(parse(address))
        try:
            return cls(connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Let the next writer in."""
        with self.mutex:
            if self._closed:
                return
            self._closed = True
            lease, self._lease = self._lease, None
            try:
                if lease is not None:
                    with contextlib.suppress(ServerError):  # nobody answers: it ends by itself
                        lease.release()
                        self._connection.settle()
            finally:
                self._connection.close()

    @contextlib.contextmanager
    def changing(self, if_version: int | None) -> Iterator[None]:
        """Be the one that writes, up to date, and refuse when the index is not the one the caller saw."""
        self._require_open()
        with self.mutex:
            self._become_writer()
            if if_version is not None and if_version != self.version:
                raise VersionConflict(
                    f"expected the index at version {if_version}, found {self.version}; read it again and retry"
                )
            before, self._changer = self._changer, threading.get_ident()
            try:
                yield
            except BaseException:
                self.recover()
                raise
            finally:
                self._changer = before

    def recover(self) -> None:
        """Read everything anew when a change ended nobody knows how; later, when nobody answers now."""
        if self._stale:
            with contextlib.suppress(ServerError):
                self._follow(STRONG)

    @property
    def next_row(self) -> int:
        return self._table.next_row

    @contextlib.contextmanager
    def write(self, watch: Stopwatch | None = None) -> Iterator[MilvusBatch]:
        """One commit: on the server, then in what is known, when the block ends."""
        watch, lease = watch or Stopwatch(), self._require_lease()
        batch = MilvusBatch(self._shelf, self._table.next_row, self._table.version)
        yield batch
        with watch.step("commit"):
            settings, records = batch.index_settings or self._shelf.settings, list(batch.puts.values())
            old = old_vectors(self._server, self._shelf, batch.replaced)
            with self._all_or_nothing(lease):
                places, since = written(self._server, lease, records, settings.method)
                commit = self._commit(
                    lease,
                    version=batch.version,
                    next_row=batch.next_row,
                    since=since,
                    puts=tuple(places),
                    gone=tuple(batch.gone),
                    settings=batch.settings,
                    answers=self._kept(lease, batch.answers),
                )
        with watch.step("append"):
            self._show(commit, records, old)

    def amend_answer(self, key: str, answer: Answer) -> None:
        with self.mutex:
            self._become_writer()
            lease = self._require_lease()
            with self._all_or_nothing(lease):
                commit = self._commit(lease, answers=self._kept(lease, {key: answer}))
            self._show(commit, [], {})

    def keep_encoder(self, encoder: Encoder) -> str | None:
        encoders.keep(encoder)
        return folder_name(encoder)

    def drop_old_encoders(self) -> None:
        """Each client keeps its own: other indexes may be by the same."""

    def bench(self, settings: Settings) -> Live:
        """In this process's memory, as tuning places every document many times."""
        return Live(settings)

    def whole(self) -> Live:
        return upkeep.at_hand(self.records(), self._shelf.settings)

    def swap(self, bench: Bench, records: Iterable[Record], settings: Settings, beside: Mapping[str, JSON]) -> None:
        """A few where they are; everything in collections of its own, which one row in the log puts in place."""
        stream, stored = iter(records), {KEY: settings.stemmed_now.to_json(), **beside}
        first = list(islice(stream, FEW))
        if len(first) < FEW and settings.dimension == self._shelf.settings.dimension:
            with self.write() as batch:
                for record in first:
                    batch.replace(record)
                for key, value in stored.items():
                    batch.set_setting(key, value)
            return
        self._renew(upkeep.merged(first, stream, self.records()), settings, stored)

    def compact(self) -> None:
        """Delete every row that belongs to no document, and all answers; the log begins anew with what is there.

        Where the index over document vectors should be another by now, everything gets new collections.
        """
        lease = self._require_lease()
        if wanted(len(self._shelf)) is not self._server.kind:
            self._renew(self.records(), self._shelf.settings, {})
        places = tuple(self._shelf.place(int(row)) for row in self._shelf.rows[self._shelf.current()])
        with self._all_or_nothing(lease):
            commit = self._commit(lease, puts=places, whole=True, settings=self._table.settings)
        with self._following:
            self._table.answers, self._table.refuse = {}, []
            self._table.take([commit], lambda _: None)
        self._log.forget_before(commit.key)
        upkeep.sweep_everything(self._server, self._shelf)
        self._connection.compact(self._server.names.documents)
        self._connection.compact(self._server.names.queries)
        self._drop_generations()

    # Inside

    def _renew(self, records: Iterator[Record], settings: Settings, stored: Mapping[str, JSON]) -> None:
        """Everything in new collections, with the index over document vectors that so many should have."""
        lease, old = self._require_lease(), self._server.names
        with self._all_or_nothing(lease):
            names, kind = Names(old.index, self._next_generation()), wanted(len(self._shelf))
            _make(self._connection, names, settings.dimension, kind)
            server, shelf = Server(self._connection, names, kind, 1), Shelf(settings)
            places, since = self._moved(lease, server, shelf, records)
            self._connection.settle()
            if kind.approximate:
                self._connection.build(names.documents)
            commit = self._commit(
                lease,
                version=self._table.version + len(places) + len(stored),
                generation=names.generation,
                since=since,
                puts=tuple(places),
                whole=True,
                settings={**self._table.settings, **stored},
                answers={name: key for name, (key, _) in self._table.answers.items()},
            )
        shelf.settle()
        with self._following:
            self._table.refuse = []
            self._table.take([commit], lambda _: None)
            self._shelf, self._server = shelf, server_of(self._connection, self._table, server)
        self._old.append((time.monotonic(), old))

    @property
    def _placing(self) -> bool:
        return self._changer == threading.get_ident()

    @property
    def _leads(self) -> bool:
        return self._lease is not None and not self._lease.lost

    def _become_writer(self) -> None:
        if self._leads:
            self._follow()
            return
        if self._lease is not None:
            self._give_up(self._lease)
        self._follow(STRONG)
        names = Names(self._connection.address.name)
        last = max(epoch_of(self._table.last), self._own_epoch)
        lease = Lease.taken(self._connection, self._log, names, last, self._own_epoch, self._purge)
        try:
            with self._following:
                self._catch_up(STRONG)
                commit = self._commit(lease, base=self._table.last)
                self._table.take([commit], self._place_of)
            upkeep.sweep(self._server, self._shelf, lease.epoch)
            self._drop_generations()
        except BaseException:
            self._give_up(lease)
            raise
        self._lease = lease
        lease.begin()

    def _require_lease(self) -> Lease:
        if self._lease is None:
            raise InvalidInput("changes are made inside `changing`")
        return self._lease

    def _commit(self, lease: Lease, **changes: object) -> Commit:
        """Write a row in the log, and make sure that it counts."""
        table = self._table
        purged = min((key for key, _, _ in table.refuse), default=table.last + 1) - 1
        own: dict[str, object] = {
            "version": table.version,
            "next_row": table.next_row,
            "generation": table.generation,
            "since": table.since,
            "purged": purged,
        }
        commit = Commit(key=lease.keys("log")[0], **{**own, **changes})  # type: ignore[arg-type]
        self._log.append(commit, lease.log_keys())
        if not lease.is_held:
            raise IndexLocked(
                f"another process took over writing to {self} while this change was on its way; it was not kept unless "
                "the other saw it: look before you repeat it"
            )
        return commit

    @contextlib.contextmanager
    def _all_or_nothing(self, lease: Lease) -> Iterator[None]:
        """Whatever goes wrong on the way, nobody will take up what was written of it: a new writer number begins."""
        try:
            yield
        except BaseException:
            self._give_up(lease)
            raise

    def _give_up(self, lease: Lease) -> None:
        lease.abandon()
        self._own_epoch, self._lease, self._stale = lease.epoch, None, True

    def _kept(self, lease: Lease, answers: Mapping[str, Answer]) -> dict[str, int]:
        keys = {name: lease.keys("log")[0] for name in answers}
        for name, answer in answers.items():
            self._log.keep_answer(keys[name], answer)
        return keys

    def _show(self, commit: Commit, records: Sequence[Record], old: Mapping[int, Old]) -> None:
        with self._following:
            new = self._table.take([commit], self._place_of)
            self._server = server_of(self._connection, self._table, self._server)
            self._shelf.remove([row for row, place in new.items() if place is None], old)
            by_row = {record.row: record for record in records}
            self._shelf.put([Shown(place, by_row[place.row]) for place in commit.puts], old)
            self._tidy()

    def _moved(self, lease: Lease, server: Server, shelf: Shelf, records: Iterator[Record]) -> tuple[list[Place], int]:
        places, latest = list[Place](), 1
        while some := list(islice(records, PORTION)):
            more, since = written(server, lease, some, shelf.settings.method)
            shelf.put([Shown(place, record) for place, record in zip(more, some, strict=True)], {})
            places += more
            latest = max(latest, since)
        return places, latest

    def _purge(self) -> None:
        """Delete versions that were replaced long enough ago; called now and then by the lease."""
        names, long_ago = self._server.names, time.monotonic() - KEEP
        with self._following:
            due = [one for one in self._table.refuse if one[1] < long_ago]
        if due:
            upkeep.delete_places(self._connection, names, [place for _, _, place in due])
            with self._following:
                self._table.refuse = [one for one in self._table.refuse if one not in due]
        for since, old in [one for one in self._old if one[0] < long_ago]:
            self._connection.drop(old.documents)
            self._connection.drop(old.queries)
            self._old.remove((since, old))

    def _generations(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in self._connection.collections(f"{self._server.names.index}__"):
            kind, _, number = name.rpartition("_")
            if kind.endswith(("__documents", "__queries")) and number.isdigit():
                found.setdefault(int(number), []).append(name)
        return found

    def _next_generation(self) -> int:
        return 1 + max(self._generations(), default=self._table.generation)

    def _drop_generations(self) -> None:
        """Drop what tuning left unfinished or behind."""
        kept = {self._table.generation, *(names.generation for _, names in self._old)}
        for number, names in self._generations().items():
            if number not in kept:
                for name in names:
                    self._connection.drop(name)


def _require_new(connection: Connection, log: Log) -> None:
    if log.after(0, STRONG):
        raise InvalidInput(f"{connection.address} already holds an index; open it, or take another name")


def _make(connection: Connection, names: Names, dimension: int, kind: Kind) -> None:
    """The empty collections of a generation, searchable; embeddings are always searched exactly."""
    queries = COPIED if kind.approximate else QUERIES
    for name, fields, width, how in (
        (names.documents, DOCUMENTS, dimension, kind),
        (names.queries, queries, dimension + 1, FLAT),
    ):
        connection.drop(name)
        connection.create(name, fields, width)
        connection.index(name, how)
    connection.load(names.documents, names.queries)
