"""What an index is on Milvus: its collections, their fields and keys, and a record as rows of them.

For an index `shop`:

    shop__log             one row a commit: which rows have which keys from then on; answers; signs of life
    shop__documents_1     one row a version of a document: everything but embeddings, and its vector v
    shop__queries_1       one row an embedding: [z ; -own score]; a document's lie together: of its text, its passages
                          if it is long, its queries; and [v ; 0] where v is searched approximately
    shop__lease_7         who may write: made by the seventh writer, gone when it is done

A key is the writer's number and a count of its own, so that no two writers ever make the same. Nothing is changed in
place: another version of a document has another key, and is there when the log says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.engine.milvus.filter import tagged
from incdsi.engine.settings import Method
from incdsi.records import Passaged, Piece, Record, StoredPassage, StoredQuery
from incdsi.rows.products import exact, row_lengths
from incdsi.text.queries import represent

FORMAT = 1
MARK = "incdsi_"  # begins the name of a field of the log, which ends with the format
COUNT_BITS = 40
PIECE = 60_000  # characters of ASCII in one VARCHAR, which takes 65,535 bytes
PIECES = 4096
MANY = 0  # in `links`, where rows begin with 1: more than fit; the body has them
SHORTEST = 1e-19  # an embedding that is not longer constrains nothing

_FLAGS = ("generated", "taught", "held_out", "given_up", "preserved")  # of a query, in this order
Fields = Mapping[str, Mapping[str, Any]]
_TEXT = {
    "datatype": "ARRAY",
    "element_type": "VARCHAR",
    "max_length": 65_535,
    "max_capacity": PIECES,
}
LOG: Fields = {"kind": {"datatype": "INT64"}, f"{MARK}{FORMAT}": {"datatype": "INT64"}, "body": _TEXT}
DOCUMENTS: Fields = {
    "row": {"datatype": "INT64"},
    "links": {"datatype": "ARRAY", "element_type": "INT64", "max_capacity": PIECES},
    "filter": {"datatype": "JSON"},
    "body": _TEXT,
}
QUERIES: Fields = {
    "owner": {"datatype": "INT64"},
    "used": {"datatype": "BOOL"},
    "preserved": {"datatype": "BOOL"},
    "own": {"datatype": "DOUBLE"},
}
COPY = "vector"  # whether a row of queries is a document vector once more: there where `v` is searched approximately
COPIED: Fields = {**QUERIES, COPY: {"datatype": "BOOL"}}
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Names:
    """The collections of an index; documents and queries are those of a generation, made anew by tuning."""

    index: str
    generation: int = 1

    @property
    def log(self) -> str:
        return f"{self.index}__log"

    @property
    def documents(self) -> str:
        return f"{self.index}__documents_{self.generation}"

    @property
    def queries(self) -> str:
        return f"{self.index}__queries_{self.generation}"

    @property
    def leases(self) -> str:
        """What the names of leases begin with."""
        return f"{self.index}__lease_"


def first_key(epoch: int) -> int:
    """The least key of a writer."""
    return epoch << COUNT_BITS


def epoch_of(key: int) -> int:
    return key >> COUNT_BITS


def pieces(plain: Any) -> list[str]:
    """Anything JSON can say, as an array of texts."""
    text = json.dumps(plain, separators=(",", ":"))  # ASCII: a character is a byte
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def joined(found: Sequence[str]) -> Any:
    return json.loads("".join(found))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a version of a document is: its key, its queries' keys, and what is counted of them."""

    row: int
    key: int
    first: int
    count: int
    held_out: int
    preserved: int

    @property
    def query_keys(self) -> range:
        return range(self.first, self.first + self.count)

    def to_json(self) -> list[int]:
        return [self.row, self.key, self.first, self.count, self.held_out, self.preserved]


def stored(
    record: Record, key: int, first: int, method: Method, copied: bool
) -> tuple[Place, Mapping[str, Any], list[Any]]:
    """A record as its document row and its query rows, the last of which is its vector if that is `copied`."""
    embeddings = _embeddings(record, method)
    links = sorted({int(row) for row in record.constrained_by})
    document = {
        "key": key,
        "row": record.row,
        "links": links if len(links) <= PIECES else [MANY],
        "filter": tagged(record.document.metadata),
        "body": pieces(
            {
                **record.document.to_json(),
                "queries": _plain(record.queries),
                "passages": [one.piece for one in record.passages],
                "links": links,
            }
        ),
        "v": np.asarray(record.vector, dtype=np.float32),
    }
    queries = [
        {
            "key": first + number,
            "owner": key,
            "used": used,
            "preserved": preserved,
            "own": own,
            "v": np.append(embedding, np.float32(-own)),
        }
        for number, (embedding, used, preserved, own) in enumerate(embeddings)
    ]
    if copied:
        queries = [{**row, COPY: False} for row in queries]
        last = {"key": first + len(queries), "owner": key, "used": False, "preserved": False, "own": 0.0, COPY: True}
        queries.append({**last, "v": np.append(record.vector, np.float32(0)).astype(np.float32)})
    held_out = sum(query.held_out for query in record.queries)
    kept = sum(bool(row["preserved"]) for row in queries)
    return Place(record.row, key, first, len(queries), held_out, kept), document, queries


def embedding_count(record: Record, method: Method, copied: bool) -> int:
    """How many query rows `stored` makes of a record."""
    return len(_embeddings(record, method)) + copied


def asked(record: Record, count: int) -> list[bool]:
    """Which of its so many query rows people asked."""
    flags = [False] * (1 + len(record.passages)) + [not query.generated for query in record.queries]
    return [*flags, *[False] * max(0, count - len(flags))][:count]


def _embeddings(record: Record, method: Method) -> list[tuple[Floats, bool, bool, float]]:
    """Embedding, whether it may be nearest to a query, whether others must leave it alone, and its own score.

    First that of the text, then those of passages and queries; in the paper's form the mean of these, which alone is
    preserved. Those that may be nearest are in the order of `Record.texts`.
    """
    general = method == "general"
    long = bool(record.passages)
    kept = [(record.anchor, not long, False), *((one.embedding, True, False) for one in record.passages)]
    kept += [
        (query.embedding, query.used and not (long and query.generated), general and query.preserved)
        for query in record.queries
    ]
    if not general:
        used = [query.embedding for query in record.queries if query.used]
        kept.append((represent(np.stack(used or [record.anchor])), False, True))
    matrix = np.stack([embedding for embedding, _, _ in kept]).astype(np.float32)
    own, lengths = exact(matrix, record.vector), row_lengths(matrix)
    return [
        (matrix[place], used, preserved and bool(lengths[place] > SHORTEST), float(own[place]) if preserved else 0.0)
        for place, (_, used, preserved) in enumerate(kept)
    ]


def read_passaged(row: Mapping[str, Any]) -> Passaged:
    """The document in a row with a body, and its passages."""
    body = joined(row["body"])
    return Passaged(Document.from_json(body), _pieces(body))


def _pieces(body: Mapping[str, Any]) -> list[Piece]:
    return [Piece(start, end, tuple(headings)) for start, end, headings in body.get("passages", ())]


def read_record(row: Mapping[str, Any], embeddings: Sequence[Floats], sequence: int) -> Record:
    """The record in a row with body and vector, and its queries' embeddings with their last component."""
    body = joined(row["body"])
    cut, (anchor, *plain) = _pieces(body), [embedding[:-1] for embedding in embeddings]
    return Record(
        document=Document.from_json(body),
        vector=row["v"],
        anchor=anchor,
        queries=tuple(_query(one, found) for one, found in zip(body["queries"], plain[len(cut) :], strict=False)),
        passages=tuple(StoredPassage(piece=one, embedding=found) for one, found in zip(cut, plain, strict=False)),
        constrained_by=tuple(body["links"]),
        row=int(row["row"]),
        sequence=sequence,
    )


def _plain(queries: Sequence[StoredQuery]) -> list[list[Any]]:
    return [[one.text, one.own_score, *(int(getattr(one, flag)) for flag in _FLAGS)] for one in queries]


def _query(plain: Sequence[Any], embedding: Floats) -> StoredQuery:
    text, own_score, *flags = plain
    known = {flag: bool(on) for flag, on in zip(_FLAGS, flags, strict=True)}
    return StoredQuery(text=text, embedding=embedding, own_score=own_score, **known)
