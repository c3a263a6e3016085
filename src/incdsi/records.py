"""What an engine keeps: Record, StoredQuery, StoredPassage, Answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Vector: TypeAlias = NDArray[np.float32]
Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredQuery:
    """One query of a document: its text, embedding (h,), and what solving made of it.

    `generated`: no person asked it; `taught`: a person said that it should find this document. A document is not placed
    by a query that is `held_out`, to measure by, or `given_up`, because it cannot be won with the others or was taught
    to another document since.
    """

    text: str
    embedding: Vector
    generated: bool = False
    taught: bool = False
    held_out: bool = False
    given_up: bool = False
    preserved: bool = False
    own_score: float = 0.0

    @property
    def used(self) -> bool:
        """Whether the document is placed by it."""
        return not (self.held_out or self.given_up)


class Piece(NamedTuple):
    """A stretch of a text, and the headings it is under, the outermost first."""

    start: int
    end: int
    headings: tuple[str, ...]


class Passaged(NamedTuple):
    """A document with its passages; none when it is short."""

    document: Document
    passages: Sequence[Piece]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPassage:
    """A passage of a long document: where it is in its text, and its embedding (h,)."""

    piece: Piece
    embedding: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """A document with everything solved for it: vector (h,), anchor (h,), queries, and its passages if it is long.

    `constrained_by` are the rows whose constraints were active when it was solved, stored sorted
    and once each. `row` and `sequence` are given by the store and ignored when writing. Arrays
    that come out of the store are read-only.
    """

    document: Document
    vector: Vector
    anchor: Vector
    queries: tuple[StoredQuery, ...] = ()
    passages: tuple[StoredPassage, ...] = ()
    constrained_by: tuple[int, ...] = ()
    row: int = 0
    sequence: int = 0

    @property
    def words(self) -> list[str]:
        """What it is found by in lexical search, by the best of them."""
        return words_of(self.document, self.queries, self.passages)

    @property
    def texts(self) -> TextVectors:
        """The embeddings of what may be nearest to a query."""
        return texts_of(self.anchor, self.queries, self.passages)


class TextVectors(NamedTuple):
    """The embeddings of a document's text (m, h), and of what people asked for it (k, h), which may be nothing."""

    texts: Vectors
    asked: Vectors


def texts_of(anchor: Vector, queries: Sequence[StoredQuery], passages: Sequence[StoredPassage]) -> TextVectors:
    """Those of a document's text with its generated queries, and of the others it is placed by.

    A long one has its passages, in their order, instead of text and generated queries.
    """
    used = [query for query in queries if query.used]
    written = [one.embedding for one in passages] or [anchor, *(one.embedding for one in used if one.generated)]
    asked = [one.embedding for one in used if not one.generated]
    return TextVectors(np.stack(written), np.stack(asked) if asked else np.empty((0, len(anchor)), dtype=np.float32))


def words_of(document: Document, queries: Iterable[StoredQuery], passages: Sequence[StoredPassage]) -> list[str]:
    """A document's content and what people asked for it or taught it; not what was generated, not what is held out.

    Once each: a lesson that is said louder drowns other documents' words, and wins no more by itself. A long one has
    each passage on its own, in their order and first, then what was asked.
    """
    said = [query.text for query in queries if not (query.generated or query.held_out)]
    if not passages:
        return ["\n".join((document.content, *said))]
    return [
        *(passage_text(document, one.piece) for one in passages),
        *(["\n".join((document.title, *said))] if said else []),
    ]


def passage_text(document: Document, piece: Piece) -> str:
    """A passage after its document's title and the headings it is under: what is embedded, and found by words."""
    path = dict.fromkeys(one for one in (document.title, *piece.headings) if one)
    return "\n".join((*([": ".join(path)] if path else ()), document.text[piece.start : piece.end]))


class Answer(NamedTuple):
    """What was asked, by its digest, and what was said."""

    request: bytes
    status: int
    content: bytes
    version: int
