"""`read_clicks` and `read_asked`: the logs of a search box."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from incdsi.clicks import Click
from incdsi.errors import InvalidFile
from incdsi.readers.fields import click_from, question_from
from incdsi.readers.rows import OnError, read_rows, report

T = TypeVar("T")


def read_clicks(source: str | Path, *, on_error: OnError | None = None) -> Iterator[Click]:
    """Clicks of a JSONL, CSV or TSV file, or of "-": `query`, `id` (or `document_id`), and `count` if a row is several.

    Other fields, such as a time, are passed over. A bad line is an InvalidFile with its place, or is handed to
    `on_error`; no click at all is an InvalidFile.
    """
    return _read(source, click_from, "clicks", on_error)


def read_asked(source: str | Path, *, on_error: OnError | None = None) -> Iterator[str]:
    """What people asked, one `query` (or `text`) a row; refused as by `read_clicks`."""
    return _read(source, question_from, "queries", on_error)


def _read(source: str | Path, made: Callable[[Any], T], noun: str, on_error: OnError | None) -> Iterator[T]:
    count = 0
    for line, row in read_rows(source):
        count += 1
        try:
            if isinstance(row, InvalidFile):
                raise row
            found = made(row)
        except InvalidFile as error:
            report(error, on_error)
        except ValueError as error:
            report(InvalidFile(str(error), path=source, line=line), on_error)
        else:
            yield found
    if count == 0:
        raise InvalidFile(f"no {noun} found", path=source)
