"""Frozen training: cross-entropy over all documents on cached query embeddings; only V changes."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from incdsi.errors import InvalidInput
from incdsi.info import Quality
from incdsi.training.checkpoints import Checkpoints, optimizer_tensors, restore_optimizer, under
from incdsi.training.loop import Outcome, run
from incdsi.training.pairs import EmbeddedPairs
from incdsi.training.records import Observe
from incdsi.training.settings import FrozenSettings
from incdsi.training.softmax import add_gradients
from incdsi.training.starts import FixedRows
from incdsi.training.validation import own_ranks, quality, tally

ROWS = "rows"
OPTIMIZER = "optimizer."


def train_frozen(
    start: NDArray[np.float32],
    pairs: EmbeddedPairs,
    held_out: EmbeddedPairs,
    settings: FrozenSettings,
    *,
    checkpoints: Checkpoints | None = None,
    observe: Observe | None = None,
) -> tuple[NDArray[np.float32], Outcome]:
    """Document vectors (n, h) after the epoch with the best held-out MRR@10, and the curve.

    start (n, h). Peak memory beside the input: five times V (gradient, two moments, best epoch, V itself)
    and one block of scores within `settings.memory`. Deterministic for one seed and number of threads.
    """
    for part in (pairs, held_out):
        _require_fitting(part, start)
    learner = FrozenLearner(start, pairs, held_out, settings)
    outcome = run(learner, len(pairs.owners), settings, checkpoints=checkpoints, observe=observe)
    return outcome.parameters[ROWS].cpu().numpy(), outcome


class FrozenLearner:
    """V and its optimizer, on the first GPU if there is one; the cached queries stay in main memory."""

    def __init__(
        self,
        start: NDArray[np.float32],
        pairs: EmbeddedPairs,
        held_out: EmbeddedPairs,
        settings: FrozenSettings,
    ) -> None:
        self.writes = os.environ.get("RANK", "0") == "0"  # under torchrun every process trains the same model
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.rows = torch.tensor(start, dtype=torch.float32, device=device, requires_grad=True)
        self.rows.grad = torch.zeros_like(self.rows)
        self.queries, self.owners = _tensors(pairs)
        self.held_out, self.settings = held_out, settings
        self.fixed = FixedRows(start, pairs.owners, self.rows.device)
        self.optimizer = torch.optim.AdamW(
            [self.rows],
            lr=settings.learning_rate,
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    @torch.no_grad()
    def step(self, batch: NDArray[np.int64], number: int, rate: float) -> float:
        """An AdamW step on the batch's mean loss."""
        chosen = torch.from_numpy(batch)
        queries, owners = (part[chosen].to(self.rows.device) for part in (self.queries, self.owners))
        gradient = self.rows.grad
        assert gradient is not None
        gradient.zero_()
        loss = add_gradients(queries, owners, self.rows, budget=self.settings.budget, to_rows=gradient, to_queries=None)
        gradient /= len(batch)
        self.optimizer.param_groups[0]["lr"] = self.settings.learning_rate * rate
        self.optimizer.step()
        self.fixed.restore(self.rows)
        return float(loss) / len(batch)

    @torch.no_grad()
    def measure(self) -> Quality | None:
        """Ranks of the held-out queries' own documents."""
        ranks = own_ranks(*_tensors(self.held_out), self.rows, budget=self.settings.budget)
        return quality(tally(ranks))

    def result(self) -> dict[str, Tensor]:
        """V."""
        return {ROWS: self.rows}

    def state(self) -> dict[str, Tensor]:
        """V and AdamW's moments."""
        moments = optimizer_tensors(self.optimizer)
        return {ROWS: self.rows} | {OPTIMIZER + name: tensor for name, tensor in moments.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        self.rows.copy_(tensors[ROWS])
        restore_optimizer(self.optimizer, under(OPTIMIZER, tensors))

    def anywhere(self, flag: bool) -> bool:
        """There is only one process."""
        return flag


def _tensors(pairs: EmbeddedPairs) -> tuple[Tensor, Tensor]:
    """Embeddings and owners as tensors, sharing memory if it is writable and contiguous."""
    embeddings = np.require(pairs.embeddings, np.float32, ["C", "W"])
    return torch.from_numpy(embeddings), torch.from_numpy(np.require(pairs.owners, np.int64, ["C", "W"]))


def _require_fitting(pairs: EmbeddedPairs, start: NDArray[np.float32]) -> None:
    documents, dimension = start.shape
    if pairs.embeddings.shape[1] != dimension:
        raise InvalidInput(
            f"expected query embeddings as long as the documents', {dimension}, found {pairs.embeddings.shape[1]}"
        )
    if len(pairs.owners) and not (pairs.owners.min() >= 0 and pairs.owners.max() < documents):
        raise InvalidInput(
            f"owners must be from 0 to {documents - 1}, not {pairs.owners.min()} to {pairs.owners.max()}"
        )
