"""What the columns of a table hold: a CSV or TSV file does not say.

A metadata column has one kind, found by all its cells: numbers, booleans (true, false), dates (2024-05-01), times
(2024-05-01 12:30, with T or a space, in UTC when they have an offset), lists (JSON: ["red", 7]), or else text. A number
must print back as it was written: as Python prints it (7, -0.25), or where there are decimals with equally many in the
whole column (19.90, 5.00, 7). One cell that would not (007, +1, 1e5, nan, a number beyond 64 bits, a word), and the
whole column stays text, so that nothing is lost: told cell by cell, the codes 1200 and 0012 would be a number and a
text. Empty cells are left out and have no say. Finding out takes a first reading of the file, which holds one row at a
time and ends as soon as every column is text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from incdsi.documents import INT64_LIMIT, Document, plain, utf8
from incdsi.errors import InvalidDocument, InvalidFile
from incdsi.readers.rows import Row

LONGEST_NUMBER = 32  # characters; hardly a number that prints back has more

Kind = int | str | None
"""Numbers by how they write fractions, with so many decimals or with None as Python prints them, or another kind."""
_NUMBERS: frozenset[Kind] = frozenset({None, *range(LONGEST_NUMBER)})
_ANY = _NUMBERS | {"boolean", "date", "time", "time with offset", "list"}
_BOOLEANS = {"true": True, "false": False}
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ]((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?) ?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?",
    re.ASCII,
)


def column_kinds(rows: Iterable[Row], own: frozenset[str]) -> dict[str, Kind]:
    """The kinds of the columns that are neither a document's `own` nor text."""
    kinds: dict[str, frozenset[Kind]] | None = None
    filled: set[str] = set()
    for _, row in rows:
        if isinstance(row, InvalidFile):
            continue
        if kinds is None:
            kinds = dict.fromkeys((name for name in row if name not in own), _ANY)
        for name in [name for name in kinds if row[name]]:
            filled.add(name)
            kinds[name] &= _kinds(row[name])
            if not kinds[name]:
                del kinds[name]
        if not kinds:
            break
    return {name: _simplest(found) for name, found in (kinds or {}).items() if name in filled}


def typed(row: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """A table's row without its empty cells, by the kinds of its columns; ValueError when a cell has another."""
    return {
        name: _value(name, cell, kinds[name]) if name in kinds else cell
        for name, cell in row.items()
        if cell not in ("", None)
    }


def cell_value(cell: str) -> Any:
    """A cell by itself: a number, a boolean, a date or a time, None when it is empty or null, or else its text."""
    if cell in ("", "~") or cell.lower() == "null":
        return None
    kinds = _kinds(cell)
    return _value("", cell, _simplest(kinds)) if kinds else cell


def iso_time(cell: str) -> tuple[Kind, str] | None:
    """Whether a text is a date, a time or one with an offset, and the form it is kept in; None for any other."""
    found = _TIME.fullmatch(cell)
    if found is None:
        return None
    day, time, offset = found.groups()
    try:
        if time is None:
            return "date", date.fromisoformat(day).isoformat()
        kept: str = plain(datetime.fromisoformat(f"{day}T{time}{offset or ''}"))
    except (ValueError, InvalidDocument):  # the 31st of June; a day before the first
        return None
    return "time with offset" if offset else "time", kept


def _value(name: str, cell: str, kind: Kind) -> Any:
    if kind not in _kinds(cell):
        raise ValueError(f"column {name!r} held something else a moment ago, now {cell!r:.60}; read the file again")
    if kind == "boolean":
        return _BOOLEANS[cell.lower()]
    if kind == "list":
        return _list(cell)
    if isinstance(kind, str) and (time := iso_time(cell)):
        return time[1]
    return _number(cell)


def _kinds(cell: str) -> frozenset[Kind]:
    """The kinds that a cell may be of."""
    if cell.lower() in _BOOLEANS:
        return frozenset({"boolean"})
    if time := iso_time(cell):
        return frozenset({time[0]})
    if _list(cell) is not None:
        return frozenset({"list"})
    value = _number(cell)
    if isinstance(value, int):
        return _NUMBERS if str(value) == cell else frozenset()
    decimals = len(cell.partition(".")[2])
    ways: dict[Kind, str] = {None: str(value), decimals: f"{value:.{decimals}f}"} if value is not None else {}
    return frozenset(way for way, printed in ways.items() if printed == cell)


def _list(cell: str) -> list[Any] | None:
    """The JSON list of plain values in a cell; None when it is anything else."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        found = json.loads(cell)
        Document(id="cell", text="", metadata={"list": found})
        utf8(json.dumps(found, ensure_ascii=False), "cell")
    except (ValueError, RecursionError):  # no JSON; a list in a list, an infinity, a lone surrogate
        return None
    return list(found)


def _simplest(kinds: frozenset[Kind]) -> Kind:
    return None if None in kinds else next(iter(kinds))


def _number(cell: str) -> int | float | None:
    if len(cell) > LONGEST_NUMBER:
        return None
    try:
        value = int(cell) if cell.removeprefix("-").isdigit() else float(cell)
    except ValueError:
        return None
    if isinstance(value, int):
        return value if -INT64_LIMIT <= value < INT64_LIMIT else None
    return value if math.isfinite(value) else None
