"""Records to columns and back; nothing half-valid gets past here in either direction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document, MetadataValue, utf8
from incdsi.errors import InvalidInput
from incdsi.filters import Kind, comparables
from incdsi.records import JSON, Piece, Record, StoredPassage, StoredQuery

FLOAT32 = np.dtype("<f4")
FLOAT64 = np.dtype("<f8")


class Columns(NamedTuple):
    """A record as the tables hold it; each group ends with its checksum."""

    document: tuple[str, str, str, str, int]  # id, title, text, metadata, checksum
    inputs: tuple[bytes, str, bytes, bytes, bytes, int]  # anchor, texts, generated, held_out, embeddings, checksum
    solution: tuple[bytes, bytes, bytes, int]  # vector, preserved, own_scores, checksum
    metadata: tuple[tuple[str, Kind, str | int | float], ...]
    links: tuple[int, ...]
    passages: tuple[str, bytes, int] | None  # spans, embeddings, checksum
    dimension: int


ASKED, GENERATED, TAUGHT = 0, 1, 2  # kinds of queries
# What becomes of them, in the column held_out. An older version takes GIVEN_UP for HELD_OUT, as it was then.
USED, HELD_OUT, GIVEN_UP = 0, 1, 2


def encode(record: Record) -> Columns:
    """The columns of a record; refuses what could not be read back equal."""
    name = f"document {record.document.id!r}"
    dimension = _dimension(record, name)
    links = tuple(sorted({int(row) for row in record.constrained_by}))
    metadata = metadata_rows(record.document.metadata)
    return Columns(
        document=_document_columns(record.document),
        inputs=_input_columns(record, dimension, name),
        solution=_solution_columns(record, links, name),
        metadata=metadata,
        links=links,
        passages=_passage_columns(record.passages, name) if record.passages else None,
        dimension=dimension,
    )


def decode(columns: Sequence[Any]) -> Record:
    """The record in a row of `RECORD_COLUMNS`; raises ValueError or TypeError when it is damaged."""
    row, sequence, id_, title, text, metadata, *rest = columns
    anchor, texts, generated, held_out, embeddings, vector, preserved, own_scores, links, spans, pieces = rest
    solved = np.frombuffer(vector, dtype=FLOAT32)
    names = json.loads(texts)
    matrix = np.frombuffer(embeddings, dtype=FLOAT32).reshape(len(names), len(solved))
    scores = np.frombuffer(own_scores, dtype=FLOAT64).tolist()
    fields = zip(names, matrix, generated, held_out, preserved, scores, strict=True)
    return Record(
        document=decode_document(id_, title, text, metadata),
        vector=solved,
        anchor=np.frombuffer(anchor, dtype=FLOAT32),
        queries=tuple(
            StoredQuery(
                text=text,
                embedding=embedding,
                generated=kind == GENERATED,
                taught=kind == TAUGHT,
                held_out=apart == HELD_OUT,
                given_up=apart == GIVEN_UP,
                preserved=bool(kept),
                own_score=score,
            )
            for text, embedding, kind, apart, kept, score in fields
        ),
        passages=decode_passages(spans, pieces),
        constrained_by=tuple(sorted(json.loads(links))),
        row=row,
        sequence=sequence,
    )


def decode_document(id_: str, title: str, text: str, metadata: str) -> Document:
    """The document in four columns."""
    return Document(id=id_, title=title, text=text, metadata=json.loads(metadata))


def decode_passages(spans: str | None, embeddings: bytes | None) -> tuple[StoredPassage, ...]:
    """The passages in two columns; none of a document that has no row there."""
    if spans is None or embeddings is None:
        return ()
    pieces = decode_pieces(spans)
    matrix = np.frombuffer(embeddings, dtype=FLOAT32).reshape(len(pieces), -1)
    return tuple(StoredPassage(piece=piece, embedding=one) for piece, one in zip(pieces, matrix, strict=True))


def decode_pieces(spans: str) -> tuple[Piece, ...]:
    """Where passages are."""
    return tuple(Piece(start, end, tuple(headings)) for start, end, headings in json.loads(spans))


def checksum(*parts: bytes) -> int:
    """CRC-32 over the parts and their lengths; finds rot, not malice."""
    value = 0
    for part in parts:
        value = zlib.crc32(part, zlib.crc32(len(part).to_bytes(8, "little"), value))
    return value


def metadata_rows(metadata: Mapping[str, MetadataValue]) -> tuple[tuple[str, Kind, str | int | float], ...]:
    """A (field, kind, value) for each that a metadata field has: one, or those of a list, equal ones once."""
    return tuple(dict.fromkeys((field, *one) for field, value in metadata.items() for one in comparables(value)))


def dump_json(value: JSON, name: str) -> str:
    """Compact JSON; refuses NaN and whatever JSON cannot hold."""
    try:
        dumped = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: {value!r} cannot be stored as JSON ({error})") from None
    utf8(dumped, name)
    return dumped


def _document_columns(document: Document) -> tuple[str, str, str, str, int]:
    name = f"document {document.id!r}"
    metadata = dump_json(dict(cast("Mapping[str, JSON]", document.metadata)), f"{name}: metadata")
    texts = (document.id, document.title, document.text, metadata)
    return (*texts, checksum(*(utf8(text, name) for text in texts)))


def _solution_columns(record: Record, links: Sequence[int], name: str) -> tuple[bytes, bytes, bytes, int]:
    """What solving decided: vector, preserved, own scores, and a checksum that covers the links too."""
    scores = np.array([query.own_score for query in record.queries], dtype=FLOAT64)
    if not np.isfinite(scores).all():
        raise InvalidInput(f"{name}: own scores must be finite, found {scores.tolist()}")
    preserved = bytes(bool(query.preserved) for query in record.queries)
    parts = (_vector_bytes(record.vector, f"{name}: vector"), preserved, scores.tobytes())
    return (*parts, checksum(*parts, np.asarray(links, dtype="<i8").tobytes()))


def _input_columns(record: Record, dimension: int, name: str) -> tuple[bytes, str, bytes, bytes, bytes, int]:
    queries = record.queries
    texts = dump_json([query.text for query in queries], f"{name}: queries")
    matrix = np.zeros((len(queries), dimension), dtype=FLOAT32)
    for target, query in zip(matrix, queries, strict=True):
        if query.embedding.dtype != np.float32:
            raise InvalidInput(f"{name}: expected float32 query embeddings, found {query.embedding.dtype}")
        target[:] = query.embedding
    parts = (
        _vector_bytes(record.anchor, f"{name}: anchor"),
        texts.encode(),
        bytes(TAUGHT if query.taught else GENERATED if query.generated else ASKED for query in queries),
        bytes(HELD_OUT if query.held_out else GIVEN_UP if query.given_up else USED for query in queries),
        _vector_bytes(matrix.reshape(-1), f"{name}: query embeddings", empty=True),
    )
    return (parts[0], texts, *parts[2:], checksum(*parts))


def _passage_columns(passages: Sequence[StoredPassage], name: str) -> tuple[str, bytes, int]:
    spans = dump_json([one.piece for one in passages], f"{name}: passages")
    embeddings = _vector_bytes(np.concatenate([one.embedding for one in passages]), f"{name}: passage embeddings")
    return spans, embeddings, checksum(spans.encode(), embeddings)


def _dimension(record: Record, name: str) -> int:
    shapes = {
        np.shape(record.vector),
        np.shape(record.anchor),
        *(np.shape(q.embedding) for q in record.queries),
        *(np.shape(one.embedding) for one in record.passages),
    }
    if len(shapes) != 1 or len(shape := shapes.pop()) != 1:
        raise InvalidInput(
            f"{name}: expected vector, anchor and embeddings of one length, found shapes "
            f"{np.shape(record.vector)}, {np.shape(record.anchor)}, "
            f"{sorted(shapes - {np.shape(record.vector), np.shape(record.anchor)})}"
        )
    return int(shape[0])


def _vector_bytes(vector: NDArray[Any], name: str, *, empty: bool = False) -> bytes:
    array = np.asarray(vector)
    if array.ndim != 1 or array.dtype != np.float32 or not (array.size or empty):
        raise InvalidInput(f"{name}: expected a float32 vector, found {array.dtype} of shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name}: expected finite numbers, found NaN or infinity")
    return array.astype(FLOAT32, copy=False).tobytes()
