"""JSONL, CSV and TSV to rows: a line number with what was read there, or with the error that was found.

Errors are values here, so that one loop decides whether a bad line ends the reading.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from incdsi.errors import IncDSIError, InvalidFile

LONGEST = 64 * 2**20  # bytes of one line
Row = tuple[int, dict[str, Any] | InvalidFile]
Record = tuple[int, list[str] | csv.Error]  # the cells of a table's row
OnError = Callable[[IncDSIError], None]
"""Called with each bad line, which is then left out; without it the first bad line is raised."""


def read_rows(source: str | Path) -> Iterator[Row]:
    """Rows of a .jsonl, .csv or .tsv file, gzipped or not; "-" is JSONL from standard input."""
    path = Path(source)
    kind = _kind(path) if str(source) != "-" else ".jsonl"
    if kind not in (".jsonl", ".ndjson", ".json", ".csv", ".tsv"):
        raise InvalidFile("unknown file type; use .jsonl, .csv or .tsv, gzipped or not", path=path)
    with open_bytes(source) as stream:
        if kind == ".csv":
            yield from _table_rows(_csv_records(stream, source), source)
        elif kind == ".tsv":
            yield from _table_rows(_tsv_records(stream, source), source)
        else:
            yield from _json_rows(stream, source)


def is_table(source: str | Path) -> bool:
    """Whether the rows are cells of text under a header."""
    return str(source) != "-" and _kind(Path(source)) in (".csv", ".tsv")


@contextlib.contextmanager
def open_bytes(source: str | Path) -> Iterator[IO[bytes]]:
    """A file or standard input ("-") for reading, gunzipped when it is gzip by its first bytes.

    Damage to the gzip that shows while it is read becomes an InvalidFile.
    """
    with contextlib.ExitStack() as stack, _damage_named(source):
        try:
            stream = sys.stdin.buffer if str(source) == "-" else stack.enter_context(Path(source).open("rb"))
        except OSError as error:
            raise InvalidFile(f"cannot be read: {error.strerror}", path=source) from error
        peek = getattr(stream, "peek", None)
        zipped = peek is not None and peek(2)[:2] == b"\x1f\x8b"
        yield stack.enter_context(gzip.GzipFile(fileobj=stream)) if zipped else stream  # type: ignore[arg-type]


def report(error: IncDSIError, on_error: OnError | None) -> None:
    """Hand a bad line to the caller, or raise it."""
    if on_error is None:
        raise error
    on_error(error)


def _kind(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


@contextlib.contextmanager
def _damage_named(source: str | Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidFile(f"damaged gzip file: {error}", path=source) from error


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines without a byte-order mark; None for one that is longer than LONGEST."""
    number = 0
    while line := stream.readline(LONGEST + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) <= LONGEST:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST)
        yield number, None


def _json_rows(stream: IO[bytes], source: str | Path) -> Iterator[Row]:
    for number, line in _lines(stream):
        if line is not None and not line.strip():
            continue
        try:
            yield number, _json_object(line)
        except ValueError as error:
            yield number, InvalidFile(str(error), path=source, line=number)


def _json_object(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise ValueError(_too_long())
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{line[error.start]:02x} at {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply; flatten it") from error
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object on each line, found a {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {name}; write null instead")


def _too_long() -> str:
    return f"line longer than {LONGEST // 2**20} MiB; split the document"


def _table_rows(records: Iterator[Record], source: str | Path) -> Iterator[Row]:
    """Rows by the header's names; a row with another number of columns is an error."""
    _, header = next(records, (1, None))
    if header is None:
        return
    names = [name.strip() for name in header] if isinstance(header, list) else []
    if not names or len(set(names)) < len(names) or "" in names:
        raise InvalidFile(f"column names must be distinct and not empty, found {header}", path=source, line=1)
    for line, record in records:
        if isinstance(record, csv.Error):
            yield line, InvalidFile(f"not valid CSV: {record}", path=source, line=line)
        elif len(record) != len(names):
            message = f"expected {len(names)} columns ({', '.join(names)}), found {len(record)}"
            yield line, InvalidFile(message, path=source, line=line)
        else:
            yield line, dict(zip(names, record, strict=True))


def _tsv_records(stream: IO[bytes], source: str | Path) -> Iterator[Record]:
    """A row a line; a quote is a character like any other."""
    for number, line in enumerate(_table_text(stream, source), start=1):
        if cells := line.rstrip("\r\n"):
            yield number, cells.split("\t")


def _csv_records(stream: IO[bytes], source: str | Path) -> Iterator[Record]:
    """Rows by the line they begin on, as quotes may carry them over several."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    reader = csv.reader(_table_text(stream, source), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, error
            continue
        if record:
            yield line, record


def _table_text(stream: IO[bytes], source: str | Path) -> Iterator[str]:
    """Lines of a table; bytes that are not UTF-8 become lone surrogates, which fields refuse."""
    for number, line in _lines(stream):
        if line is None:
            raise InvalidFile(_too_long(), path=source, line=number)
        yield line.decode("utf-8", errors="surrogateescape")
