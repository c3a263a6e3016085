"""The tables, and how an older store becomes a current one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from incdsi.errors import UnsupportedFormat
from incdsi.store.connections import corrupt, whole_or_nothing

APPLICATION_ID = 0x49445349  # "IDSI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One named step to `version`; its script runs whole or not at all.

    A store without it is read as it is when it is not `needed_to_read`, so that opening changes nothing; the first
    writer takes the step.
    """

    version: int
    name: str
    script: str
    needed_to_read: bool = True


# Three tables a document: what a person gave (small, read for every hit), what the solver was given
# (one blob of all query embeddings: one read instead of k) and what it found (rewritten on re-solving).
# Metadata has one indexed entry a field: a filter costs its matches, not a parse of every document's JSON.
_INITIAL = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;

CREATE TABLE state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    store TEXT NOT NULL,                -- random; a base with another one is not ours
    sequence INTEGER NOT NULL,          -- of the last change; never goes back
    purged_before INTEGER NOT NULL,     -- readers behind this must reload
    dimension INTEGER,                  -- h, unset while there is no document
    base_generation INTEGER NOT NULL,   -- the last one committed; never goes back
    base_sequence INTEGER               -- what that base reflects; unset when there is none
) STRICT;

CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,             -- JSON object
    checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE inputs (
    row INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    anchor BLOB NOT NULL,               -- float32 (h,)
    texts TEXT NOT NULL,                -- JSON array of k strings
    generated BLOB NOT NULL,            -- uint8 (k,): 0 asked, 1 generated, 2 taught
    held_out BLOB NOT NULL,             -- bool (k,)
    embeddings BLOB NOT NULL,           -- float32 (k, h)
    checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE solutions (
    row INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    vector BLOB NOT NULL,               -- float32 (h,)
    preserved BLOB NOT NULL,            -- bool (k,)
    own_scores BLOB NOT NULL,           -- float64 (k,)
    checksum INTEGER NOT NULL           -- covers the row's links too
) STRICT;

CREATE TABLE links (                    -- `row` was solved under an active constraint of `constrainer`
    row INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    constrainer INTEGER NOT NULL,       -- may be deleted since
    PRIMARY KEY (row, constrainer)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_constrainer ON links (constrainer);

CREATE TABLE metadata (
    field TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'number', 'boolean', 'null')),
    value ANY NOT NULL,
    row INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (field, kind, value, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX metadata_by_row ON metadata (row);

CREATE TABLE tombstones (row INTEGER PRIMARY KEY, sequence INTEGER NOT NULL UNIQUE) STRICT;
"""

# A list has an entry of kind 'list' and one for each of its values.
_LISTS = """
CREATE TABLE metadata_with_lists (
    field TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'number', 'boolean', 'null', 'list')),
    value ANY NOT NULL,
    row INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (field, kind, value, row)
) STRICT, WITHOUT ROWID;
INSERT INTO metadata_with_lists SELECT * FROM metadata;
DROP TABLE metadata;
ALTER TABLE metadata_with_lists RENAME TO metadata;
CREATE INDEX metadata_by_row ON metadata (row);
"""

# Words are stemmed in a language; those of an index that had none to choose were English.
_LANGUAGE = """
UPDATE settings SET value = json_set(value, '$.language', 'english') WHERE key = 'index';
"""

# Of documents that are long; the others have no row here.
_PASSAGES = """
CREATE TABLE passages (
    row INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    spans TEXT NOT NULL,                -- JSON array of m [start, end, [heading, ...]]
    embeddings BLOB NOT NULL,           -- float32 (m, h)
    checksum INTEGER NOT NULL
) STRICT;
"""
PASSAGES = 4  # the format from which on there are any

MIGRATIONS: tuple[Migration, ...] = (
    Migration(version=1, name="initial", script=_INITIAL),
    Migration(version=2, name="lists", script=_LISTS, needed_to_read=False),
    Migration(version=3, name="language", script=_LANGUAGE, needed_to_read=False),
    Migration(version=PASSAGES, name="passages", script=_PASSAGES, needed_to_read=False),
)


def format_version(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version that the last migration leads to."""
    return migrations[-1].version


def check_format(connection: apsw.Connection, file: Path, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version found in the file; refuses other programs' databases and newer formats."""
    if connection.pragma("application_id") != APPLICATION_ID:
        raise corrupt(file, "it belongs to another program")
    found = int(connection.pragma("user_version"))
    known = format_version(migrations)
    if found > known:
        raise UnsupportedFormat(f"{file} has format {found}, and this incdsi reads up to {known}; upgrade incdsi")
    return found


def readable(found: int, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Whether a store of that format can be read as it is."""
    return not any(migration.needed_to_read for migration in migrations if migration.version > found)


def migrate(connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """Brings the store to the newest format in one transaction; the names of the steps taken."""
    with whole_or_nothing(connection):
        connection.execute("BEGIN IMMEDIATE")
        found = int(connection.pragma("user_version"))
        missing = [migration for migration in migrations if migration.version > found]
        for migration in missing:
            _apply(connection, migration)
        connection.execute("COMMIT")
    return [migration.name for migration in missing]


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    connection.execute(migration.script)
    connection.execute("INSERT INTO migrations VALUES (?, ?)", (migration.version, migration.name))
    connection.pragma("user_version", migration.version)
