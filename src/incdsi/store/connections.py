"""Opening SQLite the way incdsi needs it, and saying its errors in our words."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from incdsi.errors import CorruptStore, DiskFailed, DiskFull, IncDSIError, IndexLocked, InvalidInput, ReadOnlyIndex
from incdsi.store.files import WAL

BUSY_MILLISECONDS = 10_000
PAGE_BYTES = 8192
WRITER_CACHE_KIBIBYTES = 32 * 1024
LOG_BYTES = 64 * 1024 * 1024
_FULL_BYTES = 256 * 1024


@contextlib.contextmanager
def clear_errors(file: Path) -> Iterator[None]:
    """Turns SQLite's and the disk's errors about `file` into one sentence each."""
    try:
        yield
    except IncDSIError:
        raise
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError) as error:
        raise corrupt(file, str(error)) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexLocked(
            f"{file} was in use by another process for more than {BUSY_MILLISECONDS // 1000} s; try again"
        ) from error
    except apsw.ReadOnlyError as error:
        raise ReadOnlyIndex(f"{file} is read-only; open the index for reading, or move it elsewhere") from error
    except apsw.TooBigError as error:
        raise InvalidInput("the document is larger than a gigabyte; split it") from error
    except apsw.FullError as error:
        raise disk_full(file) from error
    except (apsw.IOError, apsw.CantOpenError) as error:
        raise (disk_full if _is_full(file) else disk_failed)(file) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        raise (disk_full if error.errno == errno.ENOSPC else disk_failed)(file) from error


@contextlib.contextmanager
def whole_or_nothing(connection: apsw.Connection) -> Iterator[None]:
    """Undoes whatever transaction is still open when the block raises; not in a child forked in the block."""
    process = os.getpid()
    try:
        yield
    except BaseException:
        if os.getpid() == process and connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def corrupt(file: Path, reason: str) -> CorruptStore:
    """The error that names the damaged file and the way back."""
    return CorruptStore(f"{file} is damaged: {reason}; restore a backup with `incdsi restore`")


def open_writer(file: Path, *, create: bool = False) -> apsw.Connection:
    """A connection that commits to the disk, not to the cache of the operating system."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(str(file), flags=flags)
    with _closed_if_refused(connection):
        _prepare(connection, file, create)
    return connection


def _prepare(connection: apsw.Connection, file: Path, create: bool) -> None:
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if create:
        connection.pragma("page_size", PAGE_BYTES)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise InvalidInput(f"{file} is on a disk without locks or shared memory; use a local disk")
    connection.pragma("synchronous", "full")
    connection.pragma("fullfsync", True)  # where fsync alone does not reach the disk (macOS)
    connection.pragma("checkpoint_fullfsync", True)
    connection.pragma("secure_delete", True)
    connection.pragma("foreign_keys", True)
    connection.pragma("cell_size_check", True)
    connection.pragma("cache_size", -WRITER_CACHE_KIBIBYTES)
    connection.pragma("journal_size_limit", LOG_BYTES)


@contextlib.contextmanager
def _closed_if_refused(connection: apsw.Connection) -> Iterator[None]:
    """A connection that nobody gets must not wait for the garbage collector: its file keeps a disk busy."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


class Reader(NamedTuple):
    """A read-only connection, and the state of the files it is valid for."""

    connection: apsw.Connection
    seal: tuple[int, ...]


class Readers:
    """Read connections, one borrower at a time each, so that any thread may read.

    In a folder that cannot be written SQLite has no place for its shared memory, so a store at rest
    is opened as immutable, and opened anew as soon as the files show that somebody else wrote.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._wal = file.with_name(WAL)
        self._sealed = not os.access(file.parent, os.W_OK)
        self._idle: list[Reader] = []
        self._out = 0
        self._mutex = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    @contextlib.contextmanager
    def borrow(self) -> Iterator[apsw.Connection]:
        """A connection of one's own for the length of the block."""
        reader = self.take()
        try:
            with clear_errors(self._file), self.undisturbed(reader):
                yield reader.connection
        finally:
            self.give(reader)

    @contextlib.contextmanager
    def undisturbed(self, reader: Reader) -> Iterator[None]:
        """Refuses what was read by an immutable connection while somebody else changed the file."""
        try:
            yield
        except apsw.Error as error:
            self._require_unchanged(reader, error)
            raise
        self._require_unchanged(reader, None)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """As `borrow`; everything read in the block is of one moment."""
        with self.borrow() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def take(self) -> Reader:
        """A connection that the caller must give back."""
        self.require_usable()
        seal = self.seal()
        with self._mutex:
            self._out += 1
            while self._idle:
                reader = self._idle.pop()
                if reader.seal == seal:
                    return reader
                reader.connection.close()
        try:
            return Reader(self._opened(), seal)
        except BaseException:
            with self._mutex:
                self._out -= 1
            raise

    def _opened(self) -> apsw.Connection:
        with clear_errors(self._file):
            try:
                return self._open()
            except apsw.CantOpenError as error:
                if not self._sealed:
                    raise
                raise InvalidInput(
                    f"the changes in {self._wal} can only be read where the folder is writable; "
                    f"copy the folder to a place that can be written"
                ) from error

    def give(self, reader: Reader) -> None:
        """Takes a connection back; it is closed when the store is."""
        if self.foreign():
            return
        with self._mutex:
            self._out -= 1
            if not self._closed:
                self._idle.append(reader)
                return
        reader.connection.close()

    def seal(self) -> tuple[int, ...]:
        """What must not change under an immutable connection; empty where SQLite keeps watch itself."""
        if not self._sealed:
            return ()
        found = self._file.stat()
        return (found.st_ino, found.st_mtime_ns, found.st_size, int(self._has_wal()))

    def close(self) -> None:
        """Closes what is idle now and the rest when it is given back."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.connection.close()

    def busy(self, *, apart_from: int) -> bool:
        """Whether more connections than that are lent, or one is just being lent."""
        return self._mutex.locked() or self._out > apart_from

    def disown(self) -> list[apsw.Connection]:
        """The idle connections, which are the caller's from now on."""
        idle, self._idle = self._idle, []
        return [reader.connection for reader in idle]

    def require_usable(self) -> None:
        """Refuses a closed store, and one that was opened before a fork."""
        if self._closed:
            raise InvalidInput(f"{self._file.parent} is closed; open it again")
        if self.foreign():
            raise InvalidInput(f"{self._file.parent} was opened before a fork; open it again in each process")

    def foreign(self) -> bool:
        """Whether this process is a forked child of the one that opened the store."""
        return os.getpid() != self._pid

    def _open(self) -> apsw.Connection:
        options = "?immutable=1" if self._sealed and not self._has_wal() else "?mode=ro"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(self._file.absolute().as_uri() + options, flags=flags)
        with _closed_if_refused(connection):
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.pragma("cell_size_check", True)
            connection.pragma("schema_version")  # the first read, where what cannot be opened shows
        return connection

    def _require_unchanged(self, reader: Reader, cause: apsw.Error | None) -> None:
        if reader.seal and not reader.seal[-1] and reader.seal[:-1] != self.seal()[:-1]:
            raise IndexLocked(f"{self._file} was changed by another process while it was read; try again") from cause

    def _has_wal(self) -> bool:
        # An immutable connection would not see what is in the log: never take one beside it.
        return self._wal.exists() and self._wal.stat().st_size > 0


def _is_full(file: Path) -> bool:
    """Whether the disk has no room; `file` may be one that is still to come."""
    there = next(folder for folder in file.absolute().parents if folder.exists())
    return shutil.disk_usage(there).free < _FULL_BYTES


def disk_full(file: Path) -> DiskFull:
    """The error that says what was not kept and what to do."""
    return DiskFull(
        f"the disk is full, so {file} could not be written and nothing of this change was kept; "
        f"free some space and try again"
    )


def disk_failed(file: Path) -> DiskFailed:
    """The error that says which file and what to do."""
    return DiskFailed(f"cannot read or write {file}; check the disk and the permissions, then try again")
