"""The protocol of every method in a study, and what methods are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.training.pairs import EmbeddedPairs

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Questions(EmbeddedPairs):
    """Query texts, the position (m,) of the document each should find, embeddings (m, h), and which are generated."""

    generated: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Sequence[str], owners: Positions, embeddings: Floats, *, generated: bool) -> Questions:
        """Queries that are all generated, or all natural."""
        marks = np.full(len(texts), generated)
        return cls(texts=tuple(texts), owners=owners, embeddings=embeddings, generated=marks)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, places: NDArray[np.intp]) -> Questions:
        """Those at these places, in their order."""
        return Questions(
            texts=tuple(self.texts[place] for place in places),
            owners=self.owners[places],
            embeddings=self.embeddings[places],
            generated=self.generated[places],
        )

    def moved(self, by: int) -> Questions:
        """The same, with every document `by` positions further."""
        return replace(self, owners=self.owners + by)

    def among(self, moved: Positions) -> Questions:
        """Those whose documents have a new position in `moved` (n,), where -1 means none."""
        owners = moved[self.owners]
        found = self.take(np.flatnonzero(owners >= 0))
        return replace(found, owners=owners[owners >= 0])

    def natural(self) -> Questions:
        """Those that people wrote."""
        return self.take(np.flatnonzero(~self.generated))


def joined(parts: Sequence[Questions]) -> Questions:
    """All of them, one after another."""
    return Questions(
        texts=tuple(text for part in parts for text in part.texts),
        owners=np.concatenate([part.owners for part in parts]),
        embeddings=np.concatenate([part.embeddings for part in parts]),
        generated=np.concatenate([part.generated for part in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Documents with their texts' embeddings (n, h), the queries to learn from and those to choose by.

    Owners are positions among these documents.
    """

    documents: tuple[Document, ...]
    embeddings: Floats
    queries: Questions
    held_out: Questions

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, places: NDArray[np.intp]) -> Part:
        """The documents in these places, in this order, with their queries."""
        moved = moved_to(places, len(self))
        return Part(
            documents=tuple(self.documents[place] for place in places),
            embeddings=self.embeddings[places],
            queries=self.queries.among(moved),
            held_out=self.held_out.among(moved),
        )

    def first(self, count: int) -> Part:
        """The first documents, or all when there are fewer."""
        return self.take(np.arange(min(count, len(self))))

    def followed_by(self, other: Part) -> Part:
        """Both parts as one; the other's documents stand after these."""
        return Part(
            documents=self.documents + other.documents,
            embeddings=np.concatenate([self.embeddings, other.embeddings]),
            queries=joined([self.queries, other.queries.moved(len(self))]),
            held_out=joined([self.held_out, other.held_out.moved(len(self))]),
        )


def moved_to(places: NDArray[np.intp], documents: int) -> Positions:
    """For each document its place among `places`, -1 for those not among them."""
    moved = np.full(documents, -1, dtype=np.int64)
    moved[places] = np.arange(len(places))
    return moved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """For each query the positions (m, k) of the best documents, best first, and their scores (m, k)."""

    positions: Positions
    scores: Floats


class Method(Protocol):
    """A way to search: it is fitted to the initial documents, adds new ones, and ranks all of them.

    Positions count the initial documents first, then the new ones in the order they came. `seconds` are what
    `fit`, `add` and `search` have taken so far, not counting the embeddings they were given.
    """

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """By step."""

    def fit(self, initial: Part) -> None:
        """Begin with these documents."""

    def add(self, new: Part) -> None:
        """Add these documents after the ones already there."""

    def search(self, queries: Questions, k: int) -> Ranked:
        """The k best documents for each query, fewer when there are fewer."""
