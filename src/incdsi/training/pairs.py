"""Training pairs (query, document): validated, split and flattened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document, Query
from incdsi.errors import DuplicateDocument, InvalidInput, UnknownDocument

Queries = Mapping[str, Sequence[str]]
ENOUGH_TO_HOLD_OUT = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextPairs:
    """Query texts and the position (m,) of each one's document."""

    texts: tuple[str, ...]
    owners: NDArray[np.int64]

    def only(self, texts: Collection[str]) -> TextPairs:
        """The pairs whose query is one of these."""
        wanted = frozenset(texts)
        kept = [place for place, text in enumerate(self.texts) if text in wanted]
        return TextPairs(texts=tuple(self.texts[place] for place in kept), owners=self.owners[kept])

    def embedded(self, embeddings: NDArray[np.float32]) -> EmbeddedPairs:
        """With these embeddings (m, h) of the queries."""
        return EmbeddedPairs(texts=self.texts, owners=self.owners, embeddings=embeddings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddedPairs(TextPairs):
    """The same with the queries' embeddings (m, h)."""

    embeddings: NDArray[np.float32]

    def __post_init__(self) -> None:
        count = len(self.texts)
        if self.embeddings.ndim != 2 or not len(self.embeddings) == len(self.owners) == count:
            raise InvalidInput(
                f"expected an owner and an embedding for each of {count} queries, found shapes {self.owners.shape} "
                f"and {self.embeddings.shape}"
            )


def document_positions(documents: Sequence[Document]) -> dict[str, int]:
    """The position of each id; raises DuplicateDocument, or InvalidInput if there are no documents."""
    positions: dict[str, int] = {}
    for place, document in enumerate(documents):
        if document.id in positions:
            raise DuplicateDocument(
                f"documents {positions[document.id]} and {place} have the same id, {document.id!r}; "
                "give each document its own"
            )
        positions[document.id] = place
    if not positions:
        raise InvalidInput("there are no documents to train on")
    return positions


def require_queries(queries: Queries, positions: Mapping[str, int]) -> None:
    """Raises UnknownDocument for queries of an unknown document, InvalidInput if they are not a list of texts."""
    for document_id, texts in queries.items():
        if document_id not in positions:
            raise UnknownDocument(
                f"there are queries for {document_id!r}, which is not among the documents; "
                "add that document or drop its queries"
            )
        if isinstance(texts, str):
            raise InvalidInput(f"the queries of document {document_id!r} are a single string; put it in a list")
        for text in texts:
            Query(text=text, document_id=document_id)


def hold_out(queries: Queries, seed: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Training and validation queries: every document with at least four gives up one, drawn by the seed."""
    draw = np.random.default_rng(seed)
    training = {document_id: list(texts) for document_id, texts in queries.items()}
    held_out: dict[str, list[str]] = {}
    for document_id, texts in sorted(training.items()):
        if len(texts) >= ENOUGH_TO_HOLD_OUT:
            held_out[document_id] = [texts.pop(int(draw.integers(len(texts))))]
    return training, held_out


def flatten(queries: Queries, positions: Mapping[str, int]) -> TextPairs:
    """All pairs, in the order of the documents rather than of the mapping."""
    pairs = [(positions[document_id], text) for document_id, texts in queries.items() for text in texts]
    pairs.sort(key=lambda pair: pair[0])
    owners = np.array([owner for owner, _ in pairs], dtype=np.int64)
    return TextPairs(texts=tuple(text for _, text in pairs), owners=owners)
