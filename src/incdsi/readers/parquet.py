"""Parquet files to rows, a batch at a time; needs pyarrow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from incdsi.errors import InvalidFile, MissingExtra

ROWS_AT_A_TIME = 1024


def parquet_rows(file: Path, name: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered rows with Python's own values; `name` is what errors call the file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(
            "reading Parquet needs pyarrow; install it with: pip install 'incdsi[parquet]', or save the table as CSV"
        ) from error
    try:
        with pyarrow.parquet.ParquetFile(file) as table:
            names = table.schema_arrow.names
            if len(set(names)) < len(names):
                raise InvalidFile(f"column names must be distinct, found {', '.join(names)}", path=name)
            number = 0
            for batch in table.iter_batches(ROWS_AT_A_TIME):
                for row in _microseconds(pyarrow, batch).to_pylist():
                    number += 1
                    yield number, {column: _plain(value) for column, value in row.items()}
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"cannot be read as Parquet: {_first_line(error)}", path=name) from error


def _microseconds(pyarrow: Any, batch: Any) -> Any:
    """The batch with its times as Python can hold them."""
    for place, field in enumerate(batch.schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.unit == "ns":
            kind = pyarrow.timestamp("us", tz=field.type.tz)
            batch = batch.set_column(place, field.name, batch.column(place).cast(kind, safe=False))
    return batch


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
