"""Scores to ranks and runs, ties defined: a tie counts against the right document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ranks = NDArray[np.intp]
BLOCK = 1024  # queries scored at once


def ranks(scores: Floats, owners: NDArray[np.intp]) -> Ranks:
    """The rank of each query's document, counted from 1: scores (b, n), owners (b,) -> (b,).

    Documents that cannot be told apart from the right one count as ahead of it.
    """
    right = scores[np.arange(len(owners)), owners]
    result: Ranks = (scores >= right[:, None]).sum(axis=1)
    return result


def ranks_among(vectors: Floats, queries: Floats, owners: NDArray[np.intp]) -> Ranks:
    """The rank of each query's document among all vectors (n, h): queries (b, h), owners (b,) -> (b,)."""
    blocks = [
        ranks(queries[start : start + BLOCK] @ vectors.T, owners[start : start + BLOCK])
        for start in range(0, len(queries), BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.intp)


def run_of(
    scores: Floats,
    owners: NDArray[np.intp],
    query_ids: Sequence[str],
    document_ids: Sequence[str],
    depth: int = 10,
) -> dict[str, dict[str, float]]:
    """The best `depth` documents of each query, with scores that rank them the same wherever they are judged.

    Judges break ties each in their own way, so a tied score is lowered to the next float32 below; the
    right document comes last among those it is tied with. scores (b, n), owners (b,).
    """
    run = {}
    for row, owner, query_id in zip(np.asarray(scores, dtype=np.float32), owners, query_ids, strict=True):
        is_owner = np.arange(len(row)) == owner
        order = np.lexsort((np.arange(len(row)), is_owner, -row))[:depth]
        run[query_id] = {
            document_ids[place]: value for place, value in zip(order, _told_apart(row[order]), strict=True)
        }
    return run


def _told_apart(descending: Floats) -> list[float]:
    """The scores, each strictly below the one before it in float32."""
    result: list[float] = []
    for value in descending:
        if result and value >= result[-1]:
            value = np.nextafter(np.float32(result[-1]), np.float32(-np.inf))
        result.append(float(value))
    return result
