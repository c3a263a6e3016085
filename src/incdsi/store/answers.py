"""What was answered to writes with a key, kept in one transaction with what they wrote."""

from __future__ import annotations

import time
import zlib

import apsw

from incdsi.records import Answer

MOST = 10_000
SECONDS = 86_400.0
# Made with the first answer: an index that is never served has none, and no reader needs it.
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    request BLOB NOT NULL,
    status INTEGER NOT NULL,
    content BLOB NOT NULL,              -- compressed
    version INTEGER NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS answers_by_age ON answers (at);
"""


def keep(connection: apsw.Connection, key: str, answer: Answer) -> None:
    """Store an answer in the transaction that is open and forget those that are too old or too many."""
    connection.execute(_TABLE)
    packed = answer._replace(content=zlib.compress(answer.content))
    connection.execute("REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", (key, *packed, time.time()))
    connection.execute(
        "DELETE FROM answers WHERE at <= max(?, ifnull((SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?), 0))",
        (time.time() - SECONDS, MOST),
    )


def find(connection: apsw.Connection, key: str) -> Answer | None:
    """The answer under that key, if it is not too old."""
    if not _there(connection):
        return None
    asked = "SELECT request, status, content, version FROM answers WHERE key = ? AND at > ?"
    row = connection.execute(asked, (key, time.time() - SECONDS)).fetchone()
    return None if row is None else Answer(row[0], row[1], zlib.decompress(row[2]), row[3])


def forget(connection: apsw.Connection) -> None:
    """Drop every answer: they name documents and taught queries that may be gone by now."""
    connection.execute("DROP TABLE IF EXISTS answers")


def _there(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'answers'").get)
