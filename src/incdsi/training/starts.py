"""Where document vectors start."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from incdsi.text.queries import represent
from incdsi.training.settings import Settings

NOISE = 0.02  # BERT's initialisation, as for the paper's classification layer


def start_rows(
    settings: Settings,
    text_embeddings: NDArray[np.float32],
    query_embeddings: NDArray[np.float32],
    owners: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The start (n, h) that `settings` asks for; a document without queries starts at its text's embedding."""
    text = np.float32(settings.scale) * text_embeddings
    if settings.start == "text":
        return text
    if settings.start == "queries":
        rows = np.float32(settings.scale) * represent_all(query_embeddings, owners, len(text))
    else:
        draws = np.random.default_rng([settings.seed, len(text)]).standard_normal(text.shape, dtype=np.float32)
        rows = np.float32(NOISE) * draws
    return np.where(np.bincount(owners, minlength=len(text))[:, None] > 0, rows, text)


def represent_all(
    query_embeddings: NDArray[np.float32], owners: NDArray[np.int64], documents: int
) -> NDArray[np.float32]:
    """Each document's representative query (n, h); zero if it has no queries."""
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(documents + 1))
    out = np.zeros((documents, query_embeddings.shape[1]), dtype=np.float32)
    for position in np.flatnonzero(np.diff(bounds)):
        out[position] = represent(query_embeddings[order[bounds[position] : bounds[position + 1]]])
    return out


class FixedRows:
    """The rows of documents without queries: training would only push them away, so they stay put."""

    def __init__(self, start: NDArray[np.float32], owners: NDArray[np.int64], device: torch.device) -> None:
        fixed = np.flatnonzero(np.bincount(owners, minlength=len(start)) == 0)
        self.positions = torch.from_numpy(fixed).to(device)
        self.start = torch.from_numpy(start[fixed]).to(device)

    @torch.no_grad()
    def restore(self, rows: Tensor) -> None:
        """Undo what a step did to them."""
        if len(self.positions):
            rows[self.positions] = self.start
