"""Rows and their fields for every reader: what is missing or wrong is refused with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from incdsi.errors import InvalidFile
from incdsi.readers.fields import require_text
from incdsi.readers.rows import read_rows


def required_file(folder: Path, *names: str) -> Path:
    """The first of these files that exists, gzipped or not."""
    for name in names:
        for file in (folder / name, folder / f"{name}.gz"):
            if file.is_file():
                return file
    raise InvalidFile(f"no {' or '.join(names)} in this folder, gzipped or not", path=folder)


def whole_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every row with its line; a line that cannot be read ends the reading."""
    for line, row in read_rows(path):
        if isinstance(row, InvalidFile):
            raise row
        yield line, row


@contextmanager
def refusing(path: Path | str, line: int | None = None) -> Iterator[None]:
    """What is found wrong inside becomes an InvalidFile with this place."""
    try:
        yield
    except InvalidFile:
        raise
    except ValueError as error:
        raise InvalidFile(str(error), path=path, line=line) from error
    except RecursionError as error:
        raise InvalidFile("the JSON is nested too deeply", path=path, line=line) from error


def string(row: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is present, a number as its digits; ValueError without any."""
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"the field {' or '.join(map(repr, names))} must be a text, not {value!r:.60}")
    return require_text(value, names[0])


def numbered(query_id: str, seen: dict[str, int]) -> str:
    """The id for the first document of a query, "q+2" for the second; `seen` counts them."""
    seen[query_id] = seen.get(query_id, 0) + 1
    return query_id if seen[query_id] == 1 else f"{query_id}+{seen[query_id]}"
