"""The blocked loss and its gradients against torch's own cross-entropy."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.training.softmax import add_gradients, block_size, summed_cross_entropy


def problem(queries: int, documents: int, scale: float = 1.0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(queries * 1000 + documents)
    return (
        torch.randn(queries, 8, generator=generator),
        torch.randint(documents, (queries,), generator=generator),
        scale * torch.randn(documents, 8, generator=generator),
    )


def test_block_size_keeps_scores_within_the_budget_and_never_stalls() -> None:
    assert block_size(300_000, 256 << 20) * 300_000 * 4 <= 256 << 20
    assert block_size(300_000, 1) == 1


@settings(deadline=None, max_examples=40)
@given(queries=st.integers(1, 40), documents=st.integers(1, 50), block=st.integers(1, 50))
def test_gradients_in_blocks_equal_autograd(queries: int, documents: int, block: int) -> None:
    embeddings, owners, rows = problem(queries, documents)
    embeddings.requires_grad_()
    rows.requires_grad_()
    oracle = torch.nn.functional.cross_entropy(embeddings @ rows.T, owners, reduction="sum")
    oracle.backward()
    loss = summed_cross_entropy(
        mine := embeddings.detach().requires_grad_(),
        owners,
        own := rows.detach().requires_grad_(),
        4 * documents * block,
    )
    (3 * loss).backward()
    torch.testing.assert_close(loss, oracle.detach(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(mine.grad, 3 * embeddings.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(own.grad, 3 * rows.grad, rtol=1e-4, atol=1e-4)


def test_one_block_and_many_blocks_agree() -> None:
    embeddings, owners, rows = problem(64, 100)
    gradients = []
    for budget in (1, 1 << 30):
        to_rows, to_queries = torch.zeros_like(rows), torch.zeros_like(embeddings)
        add_gradients(embeddings, owners, rows, budget=budget, to_rows=to_rows, to_queries=to_queries)
        gradients.append((to_rows, to_queries))
    for one, many in zip(*gradients, strict=True):
        torch.testing.assert_close(one, many, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_loss_stays_finite_at_any_scale(scale: float) -> None:
    embeddings, owners, rows = problem(16, 30, scale)
    to_rows = torch.zeros_like(rows)
    loss = add_gradients(embeddings, owners, rows, budget=1 << 20, to_rows=to_rows, to_queries=None)
    assert torch.isfinite(loss)
    assert torch.isfinite(to_rows).all()
    oracle = torch.nn.functional.cross_entropy(embeddings.double() @ rows.double().T, owners, reduction="sum")
    torch.testing.assert_close(loss, oracle, rtol=1e-4, atol=1e-4)
