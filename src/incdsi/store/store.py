"""Store: one folder, one writing process, any number of readers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw
import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.errors import CorruptStore, IndexNotFound, InvalidInput, UnsupportedFormat
from incdsi.filters import Filter
from incdsi.progress import Progress
from incdsi.records import JSON, Answer, Passaged, Record
from incdsi.store import answers, checks, forks, reading, upkeep
from incdsi.store.base import Array, Base, Identity, TornBaseError, read_base_file, remove_bases, write_base_file
from incdsi.store.codec import HELD_OUT
from incdsi.store.connections import Reader, Readers, clear_errors, corrupt, open_writer, whole_or_nothing
from incdsi.store.files import STORE, why_no_index
from incdsi.store.filter_sql import compile_filter
from incdsi.store.lock import WriterLock
from incdsi.store.reading import Changes
from incdsi.store.schema import check_format, format_version, migrate, readable
from incdsi.store.transaction import Transaction


class Store:
    """Documents, queries and arrays that survive; made by `create` and `open`, usable from any thread.

    What a block of `transaction` wrote is on the disk when the block ends. Reads see whole
    transactions only and never wait for the writer.
    """

    def __init__(self, path: Path, *, writer: bool) -> None:
        forks.require_usable(path)
        self.path = path
        self._file = path / STORE
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._lock = WriterLock(path) if writer else None
        self._readers = Readers(self._file)
        self._connection: apsw.Connection | None = None
        self._polling = threading.Lock()
        self._watch: Reader | None = None
        self._seen: tuple[Any, ...] = ()
        forks.part_at_fork(self)
        try:
            with clear_errors(self._file):
                self._start()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls,
        path: Path | str,
        settings: Mapping[str, JSON],
        *,
        prepare: Callable[[Path], None] | None = None,
    ) -> Self:
        """Makes an empty store and opens it for writing; refuses a folder that holds anything.

        `prepare` may fill the folder (a model, say) before it appears under its name: everything is
        there at once or nothing is.
        """
        upkeep.create_folder(Path(path), settings, prepare)
        return cls.open(path, writer=True)

    @classmethod
    def open(cls, path: Path | str, *, writer: bool) -> Self:
        """Opens a store; raises IndexNotFound, IndexLocked, UnsupportedFormat or CorruptStore."""
        folder = Path(path)
        if not (folder / STORE).is_file():
            raise IndexNotFound(why_no_index(folder))
        return cls(folder, writer=writer)

    @classmethod
    def restore(
        cls,
        backup: Path | str,
        path: Path | str,
        *,
        check: Callable[[Path], list[str]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Makes a new index in `path` from a backup; every byte is verified before anything appears there.

        `check` finds further problems with the folder: whether its model opens, say.
        """
        with upkeep.restoring(Path(backup), Path(path), progress) as folder:
            with cls.open(folder, writer=True) as copy:
                problems = copy.verify()
            if not problems and check is not None:
                problems = check(folder)
            if problems:
                first = problems[0].replace(str(folder), str(backup))
                raise CorruptStore(
                    f"the backup in {backup} is damaged: {len(problems)} problems, "
                    f"the first: {first}; use another backup"
                )

    def close(self) -> None:
        """Lets go of files and lock; harmless when repeated, and in a forked child.

        A writer leaves everything in store.db alone, unless a reader still holds an older snapshot, or the disk is
        full: then store.db-wal keeps the rest until the next writer closes.
        """
        if self._readers.foreign():
            return
        if self._owner == threading.get_ident():
            raise InvalidInput("a transaction is still open; end it before closing the store")
        with self._polling:
            watch, self._watch = self._watch, None
        if watch is not None:
            self._readers.give(watch)
        self._readers.close()
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(apsw.Error):
                    upkeep.checkpointed(connection, "TRUNCATE")
                connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One transaction: on the disk when the block ends, undone whole when it raises."""
        with self._writing() as connection, whole_or_nothing(connection):
            with clear_errors(self._file):
                connection.execute("BEGIN IMMEDIATE")
                changes = Transaction(connection, self._file)
            try:
                yield changes
                self.require_usable()  # a child forked in the block must not commit for its parent
                with clear_errors(self._file):
                    changes.finish()
                    connection.execute("COMMIT")
            finally:
                changes.end()

    def amend_answer(self, key: str, answer: Answer) -> None:
        """Replaces what a transaction said of itself by all that is known after it.

        The next transaction brings it to the disk: a power cut before that leaves what was said first.
        """
        with self._writing() as connection, clear_errors(self._file):
            connection.pragma("synchronous", "normal")
            try:
                with whole_or_nothing(connection):
                    connection.execute("BEGIN IMMEDIATE")
                    answers.keep(connection, key, answer)
                    connection.execute("COMMIT")
            finally:
                connection.pragma("synchronous", "full")

    def write_base(self, arrays: Mapping[str, Array], sequence: int) -> None:
        """Replaces the base by arrays that reflect every change up to `sequence`."""
        with self._writing() as connection, clear_errors(self._file):
            store, generation, current = connection.execute("SELECT store, base_generation, sequence FROM state").get
            if not 0 <= sequence <= current:
                raise InvalidInput(f"expected a base of sequence 0 to {current}, found {sequence}")
            write_base_file(self.path, Identity(store, generation + 1, sequence), arrays)
            connection.execute("UPDATE state SET base_generation = ?, base_sequence = ?", (generation + 1, sequence))
            remove_bases(self.path, keep=generation + 1)

    def compact(self) -> None:
        """Leaves no byte of what was deleted in any file; rewrites the whole store.

        Forgets tombstones (readers that are behind reload) and drops a base older than the last
        deletion, so write a new base first. IndexLocked when a reader holds an old snapshot too long.
        """
        with self._writing() as connection, clear_errors(self._file):
            upkeep.purge(connection, self.path)

    def settled(self) -> bool:
        """Whether no reader, in any process, is still inside a snapshot from before the last commit."""
        with self._writing() as connection, clear_errors(self._file):
            return upkeep.checkpointed(connection, "FULL")

    def backup(self, target: Path | str, *, progress: Progress | None = None) -> None:
        """Copies one moment of the store, and model/, to a new folder while reading and writing go on."""
        upkeep.copy_store(self._readers, self.path, Path(target), progress)

    # Reading

    def __len__(self) -> int:
        return int(self._value("SELECT count(*) FROM documents"))

    def __contains__(self, id: object) -> bool:
        with self._readers.borrow() as connection:
            return isinstance(id, str) and reading.find_row(connection, id) is not None

    @property
    def version(self) -> int:
        """The sequence of the last change; 0 when there was none."""
        return int(self._value("SELECT sequence FROM state"))

    def get(self, id: str) -> Record:
        """The record of a document; UnknownDocument when it is not there."""
        with self._readers.snapshot() as connection:
            row = reading.known_row(connection, id, self.path)
            columns = connection.execute(f"{reading.records_query(connection)} WHERE documents.row = ?", (row,)).get
            return reading.decoded(self._file, columns)

    def row_of(self, id: str) -> int:
        """The row of a document; UnknownDocument when it is not there."""
        with self._readers.borrow() as connection:
            return reading.known_row(connection, id, self.path)

    def ids(self, rows: Iterable[int]) -> list[str]:
        """The ids in these rows, in that order; UnknownDocument when one is not there."""
        with self._readers.borrow() as connection:
            return [id for (id,) in reading.select_rows(connection, "id", rows)]

    def documents(self, rows: Iterable[int], most_bytes: int | None = None) -> list[Document]:
        """The documents in these rows, in that order; UnknownDocument when one is not there.

        TooLarge when they have more than `most_bytes`, which is known before they are read.
        """
        with self._readers.snapshot() as connection:
            return reading.read_documents(connection, rows, most_bytes)

    def passaged(self, rows: Sequence[int], most_bytes: int | None = None) -> list[Passaged]:
        """As `documents`, each with its passages, of the same moment."""
        with self._readers.snapshot() as connection:
            return reading.read_passaged(connection, rows, most_bytes)

    def titles(self, ids: Iterable[str], longest: int) -> dict[str, str]:
        """The beginnings of the titles of those documents that are there."""
        with self._readers.borrow() as connection:
            return reading.read_titles(connection, ids, longest)

    def changes(self, since: int, settings: str = "index") -> Changes:
        """Everything newer than `since`, and the settings of that name, in one snapshot; `since=0` is everything."""
        return reading.read_changes(self._readers, self._file, since, settings)

    def records(self) -> reading.Records:
        """Everything, in the order of rows, in one snapshot."""
        return reading.read_records(self._readers, self._file)

    def poll(self) -> bool:
        """Whether any process committed something since the last poll, or since opening."""
        self._readers.require_usable()
        with self._polling, clear_errors(self._file):
            if self._watch is None:
                return False
            seen, self._seen = self._seen, self._mark(self._watch)
            return seen != self._seen

    def constrained_by(self, row: int) -> tuple[int, ...]:
        """The rows of the documents that were solved under an active constraint of this row."""
        with self._readers.borrow() as connection:
            found = connection.execute("SELECT row FROM links WHERE constrainer = ? ORDER BY row", (row,))
            return tuple(row for (row,) in found)

    def unresolved(self) -> tuple[int, ...]:
        """The rows of the documents that were solved under a constraint of one that is gone."""
        with self._readers.borrow() as connection:
            found = connection.execute(
                "SELECT DISTINCT row FROM links WHERE constrainer NOT IN (SELECT row FROM documents) ORDER BY row"
            )
            return tuple(row for (row,) in found)

    @property
    def next_row(self) -> int:
        """The row that the next document will get; sure while one holds the lock."""
        last = self._value("SELECT seq FROM sqlite_sequence WHERE name = 'documents'")
        return 1 if last is None else int(last) + 1

    def filter_rows(self, tree: Filter) -> NDArray[np.int64]:
        """The rows whose metadata passes the filter, in increasing order."""
        condition, parameters = compile_filter(tree)
        with self._readers.borrow() as connection:
            found = connection.execute(f"SELECT row FROM documents WHERE {condition} ORDER BY row", parameters)
            return np.fromiter((row for (row,) in found), dtype=np.int64)

    def held_out(self) -> int:
        """How many queries are held out; looks at every document."""
        with self._readers.borrow() as connection:
            return sum(flags.count(HELD_OUT) for (flags,) in connection.execute("SELECT held_out FROM inputs"))

    def setting(self, key: str, default: JSON = None) -> JSON:
        """A setting, or `default` when it was never set."""
        with self._readers.borrow() as connection:
            stored = reading.read_setting(connection, key)
        return default if stored is None else stored

    def answer(self, key: str) -> Answer | None:
        """What was answered under that key, while it is remembered."""
        with self._readers.borrow() as connection:
            return answers.find(connection, key)

    def base(self) -> Base | None:
        """The base this store committed; None when there is none, or it is missing or torn."""
        for _ in range(3):  # a writer may replace it between the look-up and the opening
            state = self._value("SELECT store, base_generation, base_sequence FROM state")
            if state[2] is None:
                return None
            with contextlib.suppress(FileNotFoundError, TornBaseError):
                return read_base_file(self.path, Identity(*state))
        return None

    def verify(self) -> list[str]:
        """Reads every byte and returns what is wrong with it, one sentence each; empty when all is well."""
        found: list[str] = []
        try:
            with self._readers.snapshot() as connection:
                found.extend(checks.problems(connection, self.path))
        except (CorruptStore, OSError) as error:  # damage that stops the reading
            found.append(str(error))
        return found

    # Forking

    def require_usable(self) -> None:
        """Refuses a closed store, and one that was opened before a fork."""
        self._readers.require_usable()

    @property
    def foreign(self) -> bool:
        """Whether this process is a forked child of the one that opened the store."""
        return self._readers.foreign()

    def busy(self) -> bool:
        """Whether a thread may be using a connection just now."""
        watching = self._watch is not None
        return self._mutex.locked() or self._polling.locked() or self._readers.busy(apart_from=int(watching))

    def disown(self) -> list[apsw.Connection]:
        """All connections that nobody is using, which are the caller's from now on."""
        watch, self._watch = self._watch, None
        connection, self._connection = self._connection, None
        kept = [None if watch is None else watch.connection, connection]
        return [*self._readers.disown(), *(one for one in kept if one is not None)]

    # Inside

    def _start(self) -> None:
        with self._readers.borrow() as connection:
            found = check_format(connection, self._file)
            if connection.execute("SELECT count(*) FROM state").get != 1:
                raise corrupt(self._file, "its counters are missing")
        if self._lock is not None:
            self._connection = open_writer(self._file)
            migrate(self._connection)
            generation, current = self._connection.execute("SELECT base_generation, base_sequence FROM state").get
            remove_bases(self.path, keep=None if current is None else generation)
        elif not readable(found):
            raise UnsupportedFormat(
                f"{self._file} has format {found}, older than {format_version()}; "
                f"open it once for writing to bring it up to date"
            )
        self._watch = self._readers.take()
        self._seen = self._mark(self._watch)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        self._readers.require_usable()
        if self._lock is None:
            raise InvalidInput(f"{self.path} is open for reading only; open it for writing")
        if self._owner == threading.get_ident():
            raise InvalidInput("a transaction is already open in this thread; end it first")
        with self._mutex:
            if self._connection is None:
                raise InvalidInput(f"{self.path} is closed; open it again")
            self._owner = threading.get_ident()
            try:
                yield self._connection
            finally:
                self._owner = None

    def _mark(self, watch: Reader) -> tuple[Any, ...]:
        seal = self._readers.seal()
        if seal != watch.seal:
            self._readers.give(watch)
            self._watch = watch = self._readers.take()
        return (seal, watch.connection.pragma("data_version"))

    def _value(self, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
        with self._readers.borrow() as connection:
            return connection.execute(statement, parameters).get
