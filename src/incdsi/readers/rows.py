"""JSONL, CSV, TSV and Parquet to rows: a line number with what was read there, or with the error that was found.

Errors are values here, so that one loop decides whether a bad line ends the reading.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from incdsi.errors import IncDSIError, InvalidFile

LONGEST = 64 * 2**20  # bytes of one line
Format = Literal["jsonl", "csv", "tsv", "parquet"]
ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
Row = tuple[int, dict[str, Any] | InvalidFile]
Record = tuple[int, list[str] | csv.Error]  # the cells of a table's row
OnError = Callable[[IncDSIError], None]
"""Called with each bad line, which is then left out; without it the first bad line is raised."""


def read_rows(source: str | Path, format: Format | None = None, *, copy: Path | None = None) -> Iterator[Row]:
    """Rows of a file, gzipped or not, or of standard input ("-"); its format goes by its ending unless it is given.

    What is read is the `copy`, when there is one; errors name the source.
    """
    kind = format or format_of(source)
    if kind == "parquet":
        from incdsi.readers.parquet import parquet_rows

        yield from parquet_rows(copy or Path(source), source)
        return
    with open_bytes(copy or source) as stream:
        if kind == "csv":
            yield from _table_rows(_csv_records(stream, source), source)
        elif kind == "tsv":
            yield from _table_rows(_tsv_records(stream, source), source)
        elif (array := _json_array(stream, source)) is not None:
            yield from array
        else:
            yield from _json_rows(stream, source)


def format_of(source: str | Path) -> Format:
    """By the ending, before .gz; standard input is JSONL."""
    if str(source) == "-":
        return "jsonl"
    found = ENDINGS.get(_ending(Path(source)))
    if found is None:
        raise InvalidFile(
            "unknown file type; use .jsonl, .csv, .tsv, .parquet, .txt, .md or .rst (convert others first), "
            "or name the format with --format",
            path=source,
        )
    return found


@contextlib.contextmanager
def rereadable(source: str | Path) -> Iterator[Path]:
    """The file itself; of standard input or another pipe, which can be read once, a copy that goes with the block."""
    if str(source) != "-" and Path(source).is_file():
        yield Path(source)
        return
    with tempfile.NamedTemporaryFile(prefix="incdsi-") as copy:
        with _opened(source) as stream:
            shutil.copyfileobj(stream, copy)
        copy.flush()
        yield Path(copy.name)


@contextlib.contextmanager
def open_bytes(source: str | Path) -> Iterator[IO[bytes]]:
    """A file or standard input ("-") for reading, gunzipped when it is gzip by its first bytes.

    Damage to the gzip that shows while it is read becomes an InvalidFile.
    """
    with contextlib.ExitStack() as stack, _damage_named(source):
        stream = stack.enter_context(_opened(source))
        peek = getattr(stream, "peek", None)
        first = peek(2)[:2] if peek is not None else b""
        if first in UTF16:
            raise InvalidFile("the file is UTF-16; save it as UTF-8", path=source)
        zipped = first == b"\x1f\x8b"
        yield stack.enter_context(gzip.GzipFile(fileobj=stream)) if zipped else stream  # type: ignore[arg-type]


def report(error: IncDSIError, on_error: OnError | None) -> None:
    """Hand a bad line to the caller, or raise it."""
    if on_error is None:
        raise error
    on_error(error)


def not_utf8(byte: int) -> str:
    """What is wrong with a text that has this byte in a wrong place; the same sentence wherever it is."""
    return f'not UTF-8: byte 0x{byte:02x}; save the file as UTF-8 (Excel: "CSV UTF-8"; iconv -f cp1252 -t utf-8)'


def _ending(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def _opened(source: str | Path) -> contextlib.AbstractContextManager[IO[bytes]]:
    try:
        return contextlib.nullcontext(sys.stdin.buffer) if str(source) == "-" else Path(source).open("rb")
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror}", path=source) from error


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


def _json_array(stream: IO[bytes], source: str | Path) -> list[Row] | None:
    """The objects of what is one array, numbered from 1; None, with nothing read, when it is lines."""
    peek = getattr(stream, "peek", None)
    begin = peek(1024).removeprefix(b"\xef\xbb\xbf").lstrip() if peek is not None else b""
    if not begin.startswith(b"["):
        return None
    content = stream.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InvalidFile(
            f"an array of more than {LONGEST // 2**20} MiB; write an object a line: jq -c '.[]'", path=source
        )
    try:
        found = _json(content.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise InvalidFile(str(error), path=source) from error
    return [(number, _row(one, source, number)) for number, one in enumerate(found, start=1)]


def _row(value: Any, source: str | Path, number: int) -> dict[str, Any] | InvalidFile:
    if isinstance(value, dict):
        return value
    return InvalidFile(f"expected JSON objects in the array, found a {type(value).__name__}", path=source, line=number)


def _json_rows(stream: IO[bytes], source: str | Path) -> Iterator[Row]:
    advice = "; standard input is read as JSONL, name another format with --format" if str(source) == "-" else ""
    for number, line in _lines(stream):
        if line is not None and not line.strip():
            continue
        try:
            yield number, _json_object(line)
        except ValueError as error:
            yield number, InvalidFile(f"{error}{advice}", path=source, line=number)


def _json_object(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise ValueError(_too_long())
    value = _json(line)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object on each line, found a {type(value).__name__}")
    return value


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(not_utf8(text[error.start])) from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply; flatten it") from error


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
    if (byte := _foreign_byte(names)) is not None:
        raise InvalidFile(not_utf8(byte), path=source, line=1)
    if not names or len(set(names)) < len(names) or "" in names:
        raise InvalidFile(f"column names must be distinct and not empty, found {header}", path=source, line=1)
    for line, record in records:
        if isinstance(record, csv.Error):
            yield line, InvalidFile(f"not valid CSV: {record}", path=source, line=line)
        elif (byte := _foreign_byte(record)) is not None:
            yield line, InvalidFile(not_utf8(byte), path=source, line=line)
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
    lines = _table_text(stream, source)
    first = next(lines, "")
    reader = csv.reader(itertools.chain([first], lines), strict=True, delimiter=_delimiter(first))
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


def _delimiter(header: str) -> str:
    """What most often parts the names: where a comma is part of numbers, Excel writes semicolons."""
    return max(",;\t", key="".join(header.split('"')[::2]).count)  # outside quotes


def _foreign_byte(cells: list[str]) -> int | None:
    """The first byte that was not UTF-8."""
    try:
        "".join(cells).encode()
    except UnicodeEncodeError as error:
        return ord(error.object[error.start]) & 0xFF
    return None


def _table_text(stream: IO[bytes], source: str | Path) -> Iterator[str]:
    """Lines of a table; bytes that are not UTF-8 become lone surrogates."""
    for number, line in _lines(stream):
        if line is None:
            raise InvalidFile(_too_long(), path=source, line=number)
        yield line.decode("utf-8", errors="surrogateescape")
