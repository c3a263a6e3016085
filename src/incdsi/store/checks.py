"""`verify`: everything that must hold in a sound store, checked byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from incdsi.errors import CorruptStore
from incdsi.records import Record
from incdsi.store.base import Identity, TornBaseError, read_base_file
from incdsi.store.codec import FLOAT32, FLOAT64, checksum, metadata_rows
from incdsi.store.files import STORE
from incdsi.store.reading import decoded, has_passages, records_query
from incdsi.store.schema import MIGRATIONS

PARTS = ("text", "queries", "solution", "passages")


def problems(connection: apsw.Connection, folder: Path) -> Iterator[str]:
    """Sentences about what is wrong, in one snapshot that the caller holds; none when all is well."""
    yield from _structure(connection)
    store, sequence, purged, dimension, generation, base_sequence = connection.execute(
        "SELECT store, sequence, purged_before, dimension, base_generation, base_sequence FROM state"
    ).get
    yield from _records(connection, folder / STORE, dimension)
    yield from _sequences(connection, sequence, purged)
    yield from _metadata(connection)
    if base_sequence is not None:
        yield from _base(folder, Identity(store, generation, base_sequence), sequence)


def _structure(connection: apsw.Connection) -> Iterator[str]:
    for (found,) in connection.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"integrity: {found}"
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of table {table} refers to a row that is not in {parent}"
    recorded = connection.execute("SELECT version, name FROM migrations ORDER BY version").fetchall()
    found = connection.pragma("user_version")
    if list(recorded) != [(step.version, step.name) for step in MIGRATIONS if step.version <= found]:
        yield f"expected the migrations of this format, found {recorded}"


def _records(connection: apsw.Connection, file: Path, dimension: int | None) -> Iterator[str]:
    last = "passages.checksum" if has_passages(connection) else "NULL"
    sums = f"documents.checksum, inputs.checksum, solutions.checksum, {last}"
    for *columns, text, inputs, solution, passages in connection.execute(
        records_query(connection).replace("\nFROM", f", {sums}\nFROM")
    ):
        try:
            record = decoded(file, columns)
        except CorruptStore as error:
            yield str(error)
            continue
        name = f"document {record.document.id!r} in row {record.row}"
        yield from (f"{name}: {problem}" for problem in _arrays(columns, dimension or 0))
        expected = _checksums(columns, record)
        for part, wanted, found in zip(PARTS, expected, (text, inputs, solution, passages), strict=True):
            if wanted != found:
                yield f"{name}: the {part} does not match its checksum"


def _arrays(columns: Sequence[Any], dimension: int) -> Iterator[str]:
    _, _, _, _, _, _, anchor, _, _, _, embeddings, vector, _, scores, _, spans, pieces = columns
    if not len(vector) == len(anchor) == 4 * dimension:
        yield f"expected vectors of length {dimension}, found {len(vector) / 4:g} and {len(anchor) / 4:g}"
    if spans is not None and len(pieces) != 4 * dimension * len(json.loads(spans)):
        yield f"expected passages of length {dimension}, found {len(pieces)} bytes for {len(json.loads(spans))}"
    for blob in (anchor, embeddings, vector, pieces or b""):
        if not np.isfinite(np.frombuffer(blob, dtype=FLOAT32)).all():
            yield "a vector holds NaN or infinity"
    if not np.isfinite(np.frombuffer(scores, dtype=FLOAT64)).all():
        yield "an own score is NaN or infinity"


def _checksums(columns: Sequence[Any], record: Record) -> tuple[int, int, int, int | None]:
    _, _, id_, title, text, metadata, anchor, texts, generated, held_out, embeddings, *solved = columns
    vector, preserved, scores, _, spans, pieces = solved
    links = np.asarray(record.constrained_by, dtype="<i8").tobytes()
    return (
        checksum(id_.encode(), title.encode(), text.encode(), metadata.encode()),
        checksum(anchor, texts.encode(), generated, held_out, embeddings),
        checksum(vector, preserved, scores, links),
        None if spans is None else checksum(spans.encode(), pieces),
    )


def _sequences(connection: apsw.Connection, sequence: int, purged: int) -> Iterator[str]:
    yield from (
        f"row {row}: expected a sequence from 1 to {sequence}, found {found}"
        for row, found in connection.execute(
            "SELECT row, sequence FROM documents WHERE sequence NOT BETWEEN 1 AND ? UNION ALL "
            "SELECT row, sequence FROM tombstones WHERE sequence NOT BETWEEN ? AND ?",
            (sequence, purged + 1, sequence),
        )
    )
    for (row,) in connection.execute("SELECT row FROM tombstones JOIN documents USING (row)"):
        yield f"row {row}: it has both a document and a tombstone"
    for (found,) in connection.execute("SELECT sequence FROM tombstones JOIN documents USING (sequence)"):
        yield f"sequence {found}: two changes have it"
    highest = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'documents'").get
    for (row,) in connection.execute(
        "SELECT row FROM documents WHERE row > ?1 UNION ALL SELECT row FROM tombstones WHERE row > ?1",
        (highest,),
    ):
        yield f"row {row}: beyond row {highest}, the last one given out"


def _metadata(connection: apsw.Connection) -> Iterator[str]:
    from_json = set()
    for row, metadata in connection.execute("SELECT row, metadata FROM documents"):
        try:
            from_json |= {(row, *entry) for entry in _entries(metadata)}
        except (ValueError, TypeError, AttributeError) as error:
            yield f"row {row}: metadata is not a JSON object ({error})"
    indexed = set(connection.execute("SELECT row, field, kind, value FROM metadata"))
    for row, field, *_ in sorted(from_json ^ indexed, key=repr):
        yield f"row {row}: metadata {field!r} is not indexed as it is stored"


def _entries(metadata: str) -> tuple[tuple[Any, ...], ...]:
    return metadata_rows(json.loads(metadata))


def _base(folder: Path, identity: Identity, sequence: int) -> Iterator[str]:
    if identity.sequence > sequence:
        yield f"the base is of sequence {identity.sequence}, newer than the store's {sequence}"
    try:
        read_base_file(folder, identity, full=True)
    except FileNotFoundError:
        return  # a cache may be missing
    except TornBaseError as error:
        yield f"base: {error}; no document is lost, and `incdsi compact` rebuilds it"
