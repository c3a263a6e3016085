"""Rows and hits as a client of Milvus brings them, whether it has decoded their vectors or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from incdsi.engine.milvus.found import hits_of, rows_of

VECTORS = np.array([[0.1, 2.0], [3.0, 0.4]], dtype=np.float32)


class Undecoded(list[dict[str, Any]]):
    """What pymilvus gives: rows, and beside them the fields it decodes when somebody asks."""

    start = 0
    ids = (7, 9)
    distances = (0.5, 0.25)

    def __init__(self, rows: list[dict[str, Any]], lazy: list[Any]) -> None:
        super().__init__(rows)
        self._lazy_field_data = self.lazy_field_data = lazy


def lazily() -> list[Any]:
    data = SimpleNamespace(float_vector=SimpleNamespace(data=VECTORS.ravel().tolist()), dim=2)
    return [SimpleNamespace(field_name="v", vectors=data)]


@pytest.mark.parametrize("decoded", [False, True])
def test_vectors_are_the_same_however_the_client_keeps_them(decoded: bool) -> None:
    rows: list[dict[str, Any]] = [{"key": 7}, {"key": 9}]
    if decoded:
        rows = [{**row, "v": vector.tolist()} for row, vector in zip(rows, VECTORS, strict=True)]
    lazy = [] if decoded else lazily()
    hits = hits_of(Undecoded([{"entity": row} for row in rows], lazy), ["key", "v"])
    for found in (rows_of(Undecoded(rows, lazy)), hits.rows):
        assert [row["key"] for row in found] == [7, 9]
        for row, vector in zip(found, VECTORS, strict=True):
            assert row["v"].dtype == np.float32
            assert np.array_equal(row["v"], vector)
