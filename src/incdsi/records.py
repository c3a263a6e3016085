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
TAUGHT_TIMES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredQuery:
    """One query of a document: its text, embedding (h,), and what solving made of it.

    `generated`: no person asked it; `taught`: a person said that it should find this document. A document is not placed
    by a query that is `held_out`, to measure by, or `given_up`, because it cannot be won with the others.
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
    def texts(self) -> list[Vector]:
        """The embeddings (h,) of what may be nearest to a query."""
        return texts_of(self.anchor, self.queries, self.passages)


def texts_of(anchor: Vector, queries: Sequence[StoredQuery], passages: Sequence[StoredPassage]) -> list[Vector]:
    """The embeddings of a document's text and of the queries it is placed by.

    A long one has its passages instead of text and generated queries, in their order and first.
    """
    used = [query for query in queries if query.used and not (passages and query.generated)]
    return [*([one.embedding for one in passages] or [anchor]), *(query.embedding for query in used)]


def words_of(document: Document, queries: Iterable[StoredQuery], passages: Sequence[StoredPassage]) -> list[str]:
    """A document's content and what people asked for it or taught it; not what was generated, not what is held out.

    What was taught is said so often that no other document says it better. A long one has each passage on its own, in
    their order and first, then what was asked.
    """
    asked = (query for query in queries if not (query.generated or query.held_out))
    said = [text for query in asked for text in [query.text] * (TAUGHT_TIMES if query.taught else 1)]
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
