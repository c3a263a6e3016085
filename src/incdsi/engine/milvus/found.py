"""What a call brought: rows, and hits with their scores.

The client decodes vectors one by one, which takes longer than the server takes to find them; here all of a call are
decoded at once, from where the client keeps what it has not decoded yet. A client that keeps it elsewhere is slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

VECTOR = "v"  # the field that every collection has its vectors in
Keys = NDArray[np.int64]
Matrix = NDArray[np.float32]
Row = Mapping[str, Any]


class Hits(NamedTuple):
    """What one vector of a search found: keys (m,), best first, and their scores by the server's arithmetic (m,)."""

    keys: Keys
    scores: NDArray[np.float64]
    rows: Sequence[Row]


def rows_of(found: Any) -> list[Row]:
    """The rows of a query."""
    matrix = None
    if lazy := getattr(found, "_lazy_field_data", None):
        found._lazy_field_data, matrix = _taken(lazy)
    return _with_vectors([dict(row) for row in found], matrix)


def hits_of(found: Any, fields: Sequence[str]) -> Hits:
    """What a search found for one of its vectors, with these fields."""
    rows: Sequence[Row] = []
    if fields:
        own = None
        if lazy := getattr(found, "lazy_field_data", None):
            found.lazy_field_data, matrix = _taken(lazy)
            own = None if matrix is None else matrix[found.start : found.start + len(found)]
        rows = _with_vectors([dict(hit["entity"]) for hit in found], own)
    return Hits(np.array(found.ids, dtype=np.int64), np.array(found.distances, dtype=np.float64), rows)


def _taken(lazy: Sequence[Any]) -> tuple[list[Any], Matrix | None]:
    """The fields that are left for the client to decode, and the vectors (m, width), if there are any."""
    vectors = [field.vectors for field in lazy if field.field_name == VECTOR]
    if not vectors:
        return list(lazy), None
    matrix = np.array(vectors[0].float_vector.data, dtype=np.float32).reshape(-1, vectors[0].dim)
    return [field for field in lazy if field.field_name != VECTOR], matrix


def _with_vectors(rows: list[dict[str, Any]], matrix: Matrix | None) -> list[Row]:
    if matrix is None:
        return [{**row, VECTOR: np.asarray(row[VECTOR], dtype=np.float32)} if VECTOR in row else row for row in rows]
    return [{**row, VECTOR: vector} for row, vector in zip(rows, matrix, strict=True)]
