"""Documents by filter, by id and by page, in the order of their rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import numpy as np

from incdsi.documents import Document
from incdsi.engine.protocol import Engine, Rows
from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.filters import Where, parse

AT_A_TIME = 256


def chosen_rows(
    engine: Engine,
    where: Where | None,
    ids: Iterable[str] | None,
    limit: int | None,
    after: str | None,
    missing_ok: bool = False,
) -> Rows:
    """The rows to list; UnknownDocument when an id is not there, unless `missing_ok`."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be at least 1, found {limit}")
    if ids is not None:
        rows = np.unique(np.array(_rows(engine, _several(ids), missing_ok), dtype=np.int64))
    if ids is None or where is not None:
        passing = engine.matching(parse({} if where is None else where))
        rows = passing if ids is None else np.intersect1d(rows, passing)
    if after is not None:
        rows = rows[rows > engine.row_of(after)]
    return rows[:limit]


def read(engine: Engine, rows: Rows) -> Iterator[Document]:
    """The documents in these rows, a few at a time; those that were deleted meanwhile are left out."""
    for start in range(0, len(rows), AT_A_TIME):
        yield from _there(engine, rows[start : start + AT_A_TIME])


def get_many(engine: Engine, ids: Iterable[str]) -> list[Document]:
    """The documents with these ids, in that order; UnknownDocument when one is not there."""
    return engine.documents([engine.row_of(id) for id in _several(ids)])


def _there(engine: Engine, rows: Rows) -> list[Document]:
    try:
        return engine.documents(rows.tolist())
    except UnknownDocument:
        if len(rows) == 1:
            return []
        half = len(rows) // 2
        return _there(engine, rows[:half]) + _there(engine, rows[half:])


def _rows(engine: Engine, ids: list[str], missing_ok: bool) -> list[int]:
    rows = []
    for id in ids:
        with contextlib.suppress(*([UnknownDocument] if missing_ok else [])):
            rows.append(engine.row_of(id))
    return rows


def _several(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, str):  # else its letters would be looked up
        raise InvalidInput(f"expected a list of ids, found the text {ids!r:.60}")
    return list(ids)
