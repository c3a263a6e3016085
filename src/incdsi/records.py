"""What an engine keeps: Record, StoredQuery, Answer."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """A document with everything solved for it: vector (h,), anchor (h,), queries.

    `constrained_by` are the rows whose constraints were active when it was solved, stored sorted
    and once each. `row` and `sequence` are given by the store and ignored when writing. Arrays
    that come out of the store are read-only.
    """

    document: Document
    vector: Vector
    anchor: Vector
    queries: tuple[StoredQuery, ...] = ()
    constrained_by: tuple[int, ...] = ()
    row: int = 0
    sequence: int = 0

    @property
    def words(self) -> str:
        """What it is found by in lexical search."""
        return words_of(self.document, self.queries)

    @property
    def texts(self) -> list[Vector]:
        """The embeddings (h,) of its text and of the queries it is placed by: what may be nearest to a query."""
        return [self.anchor, *(query.embedding for query in self.queries if query.used)]


def words_of(document: Document, queries: Iterable[StoredQuery]) -> str:
    """A document's content and what people asked for it or taught it; not what was generated, not what is held out.

    What was taught is said so often that no other document says it better.
    """
    asked = (query for query in queries if not (query.generated or query.held_out))
    said = (text for query in asked for text in [query.text] * (TAUGHT_TIMES if query.taught else 1))
    return "\n".join((document.content, *said))


class Answer(NamedTuple):
    """What was asked, by its digest, and what was said."""

    request: bytes
    status: int
    content: bytes
    version: int
