"""What a server answered to writes with a key, in a file of its own beside the store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import apsw

from incdsi.store.connections import BUSY_MILLISECONDS, clear_errors
from incdsi.store.files import ANSWERS


class Answer(NamedTuple):
    """What was asked, by its digest, and what was said."""

    request: bytes
    status: int
    content: bytes
    version: int


class AnswerFile:
    """The latest answers by key, at most `most` and for `seconds`; one thread at a time.

    Kept by the operating system once given (a killed process loses none), written to the disk a little later.
    """

    def __init__(self, folder: Path, *, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        with clear_errors(folder / ANSWERS):
            self._connection = _open(folder / ANSWERS)
            self._connection.pragma("journal_mode", "wal")
            self._connection.pragma("synchronous", "normal")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request BLOB, status INTEGER, "
                "content BLOB, version INTEGER, at REAL); CREATE INDEX IF NOT EXISTS by_age ON answers (at)"
            )

    def close(self) -> None:
        self._connection.close()

    def find(self, key: str) -> Answer | None:
        """The answer under that key."""
        asked = "SELECT request, status, content, version FROM answers WHERE key = ? AND at > ?"
        row = self._connection.execute(asked, (key, time.time() - self._seconds)).fetchone()
        return None if row is None else Answer(*row)

    def keep(self, key: str, answer: Answer) -> None:
        """Store an answer and forget those that are too old or too many."""
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", (key, *answer, time.time())
            )
            self._connection.execute(
                "DELETE FROM answers WHERE at <= max(?, ifnull("
                "(SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?), 0))",
                (time.time() - self._seconds, self._most),
            )


def forget_answers(folder: Path) -> None:
    """Leave no byte of any answer: they name documents and taught queries that may be gone by now."""
    if not (folder / ANSWERS).exists():
        return
    connection = _open(folder / ANSWERS)
    try:
        connection.execute("DELETE FROM answers; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _open(file: Path) -> apsw.Connection:
    connection = apsw.Connection(str(file))
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection
