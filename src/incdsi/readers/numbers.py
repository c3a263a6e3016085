"""Which columns of a table are numbers: a CSV or TSV file does not say.

A metadata column is numbers when every cell of it is one and prints back as it was written: as Python prints
it (7, -0.25), or where there are decimals with equally many in the whole column (19.90, 5.00, 7). One cell that
would not (007, +1, 1e5, nan, a number beyond 64 bits, a word), and the whole column stays text, so that nothing
is lost and a column has one kind: told cell by cell, the codes 1200 and 0012 would be a number and a text. Empty
cells are left out and have no say. True and false stay text. Finding out takes a first reading of the file, which
holds one row at a time and ends as soon as no column can be numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incdsi.documents import INT64_LIMIT
from incdsi.errors import InvalidFile
from incdsi.readers.fields import OWN
from incdsi.readers.rows import read_rows

LONGEST_NUMBER = 32  # characters; hardly a number that prints back has more

Way = int | None
"""How a column writes its fractions: with so many decimals, or with None as Python prints them."""
_ANY: frozenset[Way] = frozenset({None, *range(LONGEST_NUMBER)})


def number_columns(source: str | Path) -> dict[str, Way]:
    """The metadata columns of a table that are numbers, and how they are written."""
    if not Path(source).is_file():
        raise InvalidFile("a table is read twice, so it must be a file; save it first, or send JSONL", path=source)
    ways: dict[str, frozenset[Way]] | None = None
    filled: set[str] = set()
    for _, row in read_rows(source):
        if isinstance(row, InvalidFile):
            continue
        if ways is None:
            ways = dict.fromkeys((name for name in row if name not in OWN), _ANY)
        for name in [name for name in ways if row[name]]:
            filled.add(name)
            ways[name] &= _ways(row[name])
            if not ways[name]:
                del ways[name]
        if not ways:
            break
    return {
        name: None if None in found else next(iter(found)) for name, found in (ways or {}).items() if name in filled
    }


def typed(row: Mapping[str, str], columns: Mapping[str, Way]) -> dict[str, Any]:
    """A table's row without its empty cells and with its numbers; ValueError when a cell is none after all."""
    return {name: _typed(name, cell, columns) for name, cell in row.items() if cell}


def _typed(name: str, cell: str, columns: Mapping[str, Way]) -> str | int | float:
    if name not in columns:
        return cell
    value = _number(cell)
    if value is None or columns[name] not in _ways(cell):
        raise ValueError(f"column {name!r} held numbers a moment ago and now {cell!r:.60}; read the file again")
    return value


def _ways(cell: str) -> frozenset[Way]:
    """The ways of writing in which the number in a cell prints back as the cell."""
    value = _number(cell)
    if isinstance(value, int):
        return _ANY if str(value) == cell else frozenset()
    decimals = len(cell.partition(".")[2])
    ways = {None: str(value), decimals: f"{value:.{decimals}f}"} if value is not None else {}
    return frozenset(way for way, printed in ways.items() if printed == cell)


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
