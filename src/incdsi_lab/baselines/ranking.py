"""The best documents for many queries at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from incdsi_lab.baselines.protocol import Floats, Ranked

BLOCK = 1024  # queries whose scores over all documents are alive at a time


def best(queries: Floats, vectors: Floats, k: int) -> Ranked:
    """The k highest inner products of queries (m, h) with vectors (n, h); of equal ones the earlier document first."""
    return best_of(blocks_of_scores(queries, vectors), k)


def blocks_of_scores(queries: Floats, vectors: Floats) -> Iterator[Floats]:
    """Scores (b, n) of one block of queries after another."""
    columns = np.ascontiguousarray(vectors.T)
    for first in range(0, len(queries), BLOCK):
        yield queries[first : first + BLOCK] @ columns


def best_of(blocks: Iterator[Floats], k: int) -> Ranked:
    """The k highest of each row of the blocks, (m, k)."""
    positions, scores = [np.empty((0, k), dtype=np.int64)], [np.empty((0, k), dtype=np.float32)]
    for block in blocks:
        found = torch.topk(torch.from_numpy(block), min(k, block.shape[1]), dim=1)
        place, score = found.indices.numpy(), found.values.numpy()
        order = np.lexsort((place, -score), axis=1)
        positions.append(np.take_along_axis(place, order, axis=1))
        scores.append(np.take_along_axis(score, order, axis=1))
    if len(positions) > 1:
        del positions[0], scores[0]
    return Ranked(positions=np.concatenate(positions), scores=np.concatenate(scores))
