"""How well document vectors rank held-out queries."""

from __future__ import annotations

import torch
from torch import Tensor

from incdsi.info import Quality
from incdsi.training.softmax import block_size

DEPTH = 10


def own_ranks(queries: Tensor, owners: Tensor, rows: Tensor, *, budget: int) -> Tensor:
    """The rank, from 1, of each query's own document; a tie or a NaN counts against it."""
    size = block_size(rows.shape[0], budget)
    ranks = []
    for first in range(0, queries.shape[0], size):
        own = owners[first : first + size, None].to(rows.device)
        scores = queries[first : first + size].to(rows.device) @ rows.T
        ranks.append((~(scores < scores.gather(1, own))).sum(1))
    return torch.cat(ranks).cpu() if ranks else torch.zeros(0, dtype=torch.int64)


def tally(ranks: Tensor) -> Tensor:
    """Hits at 1 and 10, summed reciprocal ranks and the number of queries: (4,) float64, summable."""
    hits = [(ranks <= depth).sum(dtype=torch.float64) for depth in (1, DEPTH)]
    reciprocal = torch.where(ranks <= DEPTH, 1.0 / ranks.double(), torch.zeros((), dtype=torch.float64)).sum()
    return torch.stack([*hits, reciprocal, torch.tensor(len(ranks), dtype=torch.float64)])


def quality(counts: Tensor) -> Quality | None:
    """What a tally says, not rounded: it chooses the epoch. None when there was no query to measure with."""
    *sums, queries = counts.tolist()
    if not queries:
        return None
    hits_at_1, hits_at_10, mrr_at_10 = (100 * one / queries for one in sums)
    return Quality(hits_at_1=hits_at_1, hits_at_10=hits_at_10, mrr_at_10=mrr_at_10, queries=int(queries))
