"""Records that are a function of their id and revision, so that a torn one cannot look right."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from incdsi.documents import Document
from incdsi.records import Piece, Record, StoredPassage, StoredQuery
from incdsi.store import Store

H = 8


def sample(id: str, revision: int = 0, *, metadata: Mapping[str, Any] | None = None) -> Record:
    """The one record of this id and revision; 0 to 4 queries, a text of up to some pages."""
    rng = np.random.default_rng(zlib.crc32(f"{id}/{revision}".encode()))
    count = int(rng.integers(0, 5))
    queries = tuple(
        StoredQuery(
            text=f"query {number} for {id}/{revision} ✓",
            embedding=rng.standard_normal(H, dtype=np.float32),
            generated=bool(rng.integers(2)),
            held_out=(apart := int(rng.integers(3))) == 1,
            given_up=apart == 2,
            preserved=bool(rng.integers(2)),
            own_score=float(rng.standard_normal()),
        )
        for number in range(count)
    )
    passages = tuple(
        StoredPassage(
            piece=Piece(number, number + 1, (f"{id}/{revision}",)),
            embedding=rng.standard_normal(H, dtype=np.float32),
        )
        for number in range(int(rng.integers(0, 4)))
    )
    return Record(
        document=Document(
            id=id,
            title=f"title {revision}",
            text=f"{id}/{revision} " * int(rng.integers(1, 2000)),
            metadata={"revision": revision} if metadata is None else metadata,
        ),
        vector=rng.standard_normal(H, dtype=np.float32),
        anchor=rng.standard_normal(H, dtype=np.float32),
        queries=queries,
        passages=passages,
        constrained_by=tuple(int(row) for row in rng.integers(1, 30, 3)),
    )


def content(record: Record) -> tuple[Any, ...]:
    """Everything in a record but row and sequence, comparable with ==."""
    document = record.document
    return (
        (document.id, document.title, document.text, dict(document.metadata)),
        record.vector.tobytes(),
        record.anchor.tobytes(),
        tuple(
            (q.text, q.embedding.tobytes(), q.generated, q.held_out, q.given_up, q.preserved, q.own_score)
            for q in record.queries
        ),
        tuple((one.piece, one.embedding.tobytes()) for one in record.passages),
        tuple(sorted(set(record.constrained_by))),
    )


def contents(store: Store) -> dict[str, tuple[Any, ...]]:
    """Every record of a store by id."""
    return {record.document.id: content(record) for record in store.changes(0).upserts}


def files_with(folder: Path, needle: bytes) -> list[str]:
    """The files below a folder that hold these bytes."""
    return [file.name for file in folder.rglob("*") if file.is_file() and needle in file.read_bytes()]
