"""docs/FORMAT.md names the tables, columns and steps that there are."""

from __future__ import annotations

import re
from pathlib import Path

import apsw

from incdsi.records import Answer
from incdsi.store import Store, schema

PAGE = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text()


def rows_under(header: str) -> list[list[str]]:
    """The cells of the table with that header."""
    lines = PAGE[PAGE.index(header) :].splitlines()[2:]
    table = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_it_names_every_table_with_its_columns(store: Store) -> None:
    with store.transaction() as tx:
        tx.keep_answer("key", Answer(b"request", 201, b"content", 1))
    store.close()
    connection = apsw.Connection(str(store.path / "store.db"))
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    found = {
        name: {column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        for (name,) in tables.fetchall()
    }
    connection.close()
    told = {name.strip("`"): set(re.findall(r"`(\w+)`", columns)) for name, columns, _ in rows_under("| table |")}
    assert told == found


def test_it_names_every_format_and_the_step_to_it() -> None:
    told = [(int(version), step.split("`")[1]) for version, step in rows_under("| format |")]
    assert told == [(step.version, step.name) for step in schema.MIGRATIONS]
    assert f"the format, today {schema.format_version()}." in PAGE
    assert f"{schema.APPLICATION_ID:#x}" in PAGE.lower()
