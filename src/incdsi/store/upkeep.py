"""Making folders, compacting, backing up and restoring: the slow verbs."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import apsw

from incdsi.documents import utf8
from incdsi.durable import copy_tree, fsync
from incdsi.errors import IndexLocked, IndexNotFound
from incdsi.progress import Progress
from incdsi.records import JSON
from incdsi.store import answers
from incdsi.store.base import remove_bases
from incdsi.store.codec import dump_json
from incdsi.store.connections import BUSY_MILLISECONDS, Readers, clear_errors, disk_full, open_writer, whole_or_nothing
from incdsi.store.files import MODEL, STORE, WAL, staged
from incdsi.store.schema import APPLICATION_ID, check_format, migrate

_PAGES_A_STEP = 2048


def create_folder(path: Path, settings: Mapping[str, JSON], prepare: Callable[[Path], None] | None) -> None:
    """Makes an empty store in `path`, whole or not at all."""
    dumped = {key: dump_json(value, f"setting {key!r}") for key, value in settings.items()}
    with clear_errors(path / STORE), staged(path) as folder:
        connection = open_writer(folder / STORE, create=True)
        try:
            connection.pragma("application_id", APPLICATION_ID)
            migrate(connection)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO state VALUES (1, ?, 0, 0, NULL, 0, NULL)", (secrets.token_hex(16),))
            for key, value in dumped.items():
                utf8(key, "setting")
                connection.execute("INSERT INTO settings VALUES (?, ?)", (key, value))
            connection.execute("COMMIT")
        finally:
            connection.close()
        if prepare is not None:
            prepare(folder)


def purge(connection: apsw.Connection, folder: Path) -> None:
    """Forgets tombstones, rebuilds the file without the space of what was deleted, empties the log.

    A base that still holds a deleted row goes too. Readers that had not seen a purged deletion are
    told to reload.
    """
    newest = connection.execute("SELECT max(sequence) FROM tombstones").get
    if newest is not None:
        _forget(connection, newest)
    generation, current = connection.execute("SELECT base_generation, base_sequence FROM state").get
    remove_bases(folder, keep=None if current is None else generation)
    answers.forget(connection)
    connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
    if busy:
        raise IndexLocked(
            f"a reader of {folder} did not finish in time, so what was deleted may still be in {STORE}-wal; "
            f"compact again later"
        )
    # Else a power cut would bring back a full log and an old base, with what was deleted.
    fsync(folder / WAL)
    fsync(folder)


def checkpointed(connection: apsw.Connection, how: Literal["FULL", "TRUNCATE"]) -> bool:
    """Brings the log into the store without waiting; whether that was all of it, TRUNCATE also emptying it.

    It is not while a reader is inside an older snapshot, or, to be emptied, inside any.
    """
    connection.set_busy_timeout(0)
    try:
        busy, *_ = connection.execute(f"PRAGMA wal_checkpoint({how})").get
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
    return not busy


def _forget(connection: apsw.Connection, newest: int) -> None:
    with whole_or_nothing(connection):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM tombstones")
        connection.execute(
            "UPDATE state SET purged_before = ?1, base_sequence = CASE WHEN base_sequence >= ?1 THEN base_sequence END",
            (newest,),
        )
        connection.execute("COMMIT")


def copy_store(readers: Readers, folder: Path, target: Path, progress: Progress | None) -> None:
    """Copies one moment of a store, and its model, to a new folder while writing goes on."""
    with clear_errors(target / STORE), staged(target) as made:
        _copy(readers, folder, made, progress)


@contextlib.contextmanager
def restoring(backup: Path, path: Path, progress: Progress | None) -> Iterator[Path]:
    """A copy of a backup that becomes `path` when the block ends well; no base of old fits it."""
    if not (backup / STORE).is_file():
        raise IndexNotFound(f"no backup in {backup}: it has no {STORE}; name the folder that `backup` made")
    with clear_errors(path / STORE), staged(path) as folder:
        readers = Readers(backup / STORE)
        try:
            with readers.borrow() as connection:
                check_format(connection, backup / STORE)
            _copy(readers, backup, folder, progress)
        finally:
            readers.close()
        _renew(folder / STORE)
        yield folder


def _copy(readers: Readers, folder: Path, made: Path, progress: Progress | None) -> None:
    with readers.snapshot() as source:
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # takes the snapshot that all steps share
        # Inside the snapshot: a model that it names is not removed while somebody reads it.
        if (folder / MODEL).is_dir():
            copy_tree(folder / MODEL, made / MODEL)
        _copy_pages(source, made / STORE, progress)


def _copy_pages(source: apsw.Connection, file: Path, progress: Progress | None) -> None:
    target = apsw.Connection(str(file))
    try:
        target.pragma("synchronous", "off")  # the whole folder is fsynced before it gets its name
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES_A_STEP)
                if progress is not None:
                    progress(backup.page_count - backup.remaining, backup.page_count)
    except apsw.FullError as error:
        raise disk_full(file) from error
    finally:
        target.close()


def _renew(file: Path) -> None:
    connection = open_writer(file)
    try:
        connection.execute("UPDATE state SET store = ?, base_sequence = NULL", (secrets.token_hex(16),))
    finally:
        connection.close()
