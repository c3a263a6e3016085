"""Scores to ranks and runs, ties defined: a tie counts against the right document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ranks = NDArray[np.intp]
BLOCK = 1024  # queries scored at once


def ranks(scores: Floats, owners: NDArray[np.intp]) -> Ranks:
    """The rank of each query's document, counted from 1: scores (b, n), owners (b,) -> (b,).

    Documents that cannot be told apart from the right one count as ahead of it, and so do scores that are NaN.
    """
    right = scores[np.arange(len(owners)), owners]
    result: Ranks = (~(scores < right[:, None])).sum(axis=1)
    return result


def ranks_among(vectors: Floats, queries: Floats, owners: NDArray[np.intp]) -> Ranks:
    """The rank of each query's document among all vectors (n, h): queries (b, h), owners (b,) -> (b,)."""
    blocks = [
        ranks(queries[start : start + BLOCK] @ vectors.T, owners[start : start + BLOCK])
        for start in range(0, len(queries), BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Where each query's document stands among the old vectors: its rank and score (b,), worked out once.

    Old vectors never change, so after additions only the new ones need scoring.
    """

    queries: Floats
    ranks: Ranks
    own_scores: Floats

    @classmethod
    def of(cls, vectors: Floats, queries: Floats, owners: NDArray[np.intp]) -> Standing:
        """Among vectors (n, h): queries (b, h), owners (b,)."""
        own = np.einsum("ij,ij->i", queries, vectors[owners])
        return cls(queries, ranks_among(vectors, queries, owners), own)

    def after(self, added: Floats) -> Ranks:
        """The rank of each query's document among the old vectors and the added ones (m, h)."""
        result = self.ranks.copy()
        for start in range(0, len(self.queries), BLOCK):
            part = slice(start, start + BLOCK)
            ahead = self.queries[part] @ added.T >= (self.own_scores[part] - self._doubt(part))[:, None]
            result[part] += ahead.sum(axis=1)
        return result

    def _doubt(self, part: slice) -> Floats:
        """What rounding may take from a score that is truly tied."""
        return np.asarray(4 * np.finfo(np.float32).eps * np.abs(self.own_scores[part]), dtype=np.float32)


def run_of(
    positions: NDArray[np.int64],
    scores: Floats,
    owners: NDArray[np.int64],
    query_ids: Sequence[str],
    document_ids: Sequence[str],
    depth: int = 10,
) -> dict[str, dict[str, float]]:
    """The best `depth` documents of each query, with scores that every judge ranks alike.

    Judges break ties each in their own way, so a tied score is lowered to the next float32 below; the
    right document comes last among those it is tied with. `positions` (b, k) among the documents of those that
    were found, their scores (b, k), owners (b,).
    """
    run = {}
    narrow = np.asarray(scores, dtype=np.float32)
    for places, row, owner, query_id in zip(positions, narrow, owners, query_ids, strict=True):
        order = np.lexsort((places, places == owner, -row))[:depth]
        values = _told_apart(row[order])
        run[query_id] = {document_ids[place]: value for place, value in zip(places[order], values, strict=True)}
    return run


def _told_apart(descending: Floats) -> list[float]:
    """The scores, each strictly below the one before it in float32."""
    result: list[float] = []
    for value in descending:
        if result and value >= result[-1]:
            value = np.nextafter(np.float32(result[-1]), np.float32(-np.inf))
        result.append(float(value))
    return result
