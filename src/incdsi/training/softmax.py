"""Cross-entropy over all documents, and its gradient, in bounded memory.

For queries q_i with owners o_i and document vectors V, with p_i = softmax(V q_i):

    loss          = sum_i  log sum_j exp(v_j . q_i)  -  v_{o_i} . q_i
    d loss / dV   = sum_i (p_i - e_{o_i}) q_i^T
    d loss / dq_i = V^T (p_i - e_{o_i})

Queries are processed in blocks, so that only one (block, n) matrix of scores exists at a time; it becomes p - e
in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

FLOAT_BYTES = 4


def block_size(documents: int, budget: int) -> int:
    """For how many queries the scores over all documents fit into `budget` bytes; at least one."""
    return max(1, budget // (FLOAT_BYTES * max(1, documents)))


def add_gradients(
    queries: Tensor, owners: Tensor, rows: Tensor, *, budget: int, to_rows: Tensor, to_queries: Tensor | None
) -> Tensor:
    """The summed loss (float64 scalar); its gradients are added to `to_rows` and `to_queries`.

    queries (b, h), owners (b,) int64, rows (n, h); to_rows (n, h), to_queries (b, h). Cost: two products of
    b x h x n, three with `to_queries`.
    """
    total = torch.zeros((), dtype=torch.float64, device=rows.device)
    size = block_size(rows.shape[0], budget)
    for first in range(0, queries.shape[0], size):
        block = slice(first, first + size)
        scores, losses = _surplus(queries[block] @ rows.T, owners[block])
        total += losses.sum(dtype=torch.float64)
        to_rows.addmm_(scores.T, queries[block])
        if to_queries is not None:
            to_queries[block].addmm_(scores, rows)
    return total


def _surplus(scores: Tensor, owners: Tensor) -> tuple[Tensor, Tensor]:
    """Turns scores (b, n) into p - e in place; also each query's loss (b,)."""
    own = owners[:, None]
    top = scores.amax(dim=1, keepdim=True)
    own_scores = scores.gather(1, own)
    mass = scores.sub_(top).exp_().sum(dim=1, keepdim=True)
    scores.div_(mass).scatter_add_(1, own, torch.full_like(own_scores, -1.0))
    return scores, (mass.log() + top - own_scores)[:, 0]


class SummedCrossEntropy(torch.autograd.Function):
    """The summed loss for autograd; both gradients are computed in the forward pass, so nothing (b, n) is kept."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, owners: Tensor, rows: Tensor, budget: int) -> Tensor:
        to_rows, to_queries = torch.zeros_like(rows), torch.zeros_like(queries)
        loss = add_gradients(queries, owners, rows, budget=budget, to_rows=to_rows, to_queries=to_queries)
        ctx.save_for_backward(to_queries, to_rows)
        return loss.to(queries.dtype)

    @staticmethod
    def backward(ctx: Any, *outputs: Any) -> tuple[Tensor, None, Tensor, None]:
        to_queries, to_rows = ctx.saved_tensors
        return to_queries * outputs[0], None, to_rows * outputs[0], None


def summed_cross_entropy(queries: Tensor, owners: Tensor, rows: Tensor, budget: int) -> Tensor:
    """-log softmax(rows @ query)[owner], summed over queries, differentiable in queries and rows."""
    loss: Tensor = SummedCrossEntropy.apply(queries, owners, rows, budget)  # type: ignore[no-untyped-call]
    return loss
