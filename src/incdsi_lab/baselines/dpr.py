"""DPR: a dual encoder finetuned on the initial documents with in-batch negatives, then frozen."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from incdsi.errors import InvalidHyperparameters
from incdsi.progress import Progress
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi_lab.baselines.classification import sample
from incdsi_lab.baselines.protocol import Floats, Part, Positions, Questions
from incdsi_lab.baselines.vectors import VectorMethod

Towers = Literal["both", "query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DPRSettings:
    """How the dual encoder learns: `epochs` over at most `queries`, drawn by the seed.

    `towers` "both" trains one shared encoder on queries and documents, as DPR does from the initial one;
    "query" leaves the documents' embeddings where they began, which costs a tenth on a machine without a GPU.
    """

    epochs: int = 1
    queries: int = 10**9
    batch_size: int = 128
    learning_rate: float = 2e-5
    scale: float = 20.0
    towers: Towers = "both"
    query_length: int = 64
    document_length: int = 128
    warm_up: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "queries", "batch_size", "learning_rate", "scale"):
            if not getattr(self, name) > 0:
                raise InvalidHyperparameters(f"{name} must be above 0, not {getattr(self, name)!r}")
        if self.towers not in ("both", "query"):
            raise InvalidHyperparameters(f"towers must be 'both' or 'query', not {self.towers!r}")


class DPR(VectorMethod):
    """In-batch negatives: of all documents asked for in a batch, a query's own should score highest.

    New documents are embedded by the finetuned encoder; nothing learns from their queries. Only natural
    queries teach it when there are any.
    """

    name = "DPR"

    def __init__(
        self, encoder: TorchEncoder, settings: DPRSettings | None = None, *, progress: Progress | None = None
    ) -> None:
        super().__init__()
        self._settings = settings or DPRSettings()
        self._encoder = TorchEncoder(copy.deepcopy(encoder.model))
        self._progress = progress

    def fit(self, initial: Part) -> None:
        with self._watch.step("fit"):
            queries = initial.queries.natural()
            draw = np.random.default_rng([self._settings.seed, len(initial)])
            taught = sample(queries if len(queries) else initial.queries, self._settings.queries, draw)
            _Finetuning(self._encoder, initial, taught, self._settings).run(self._progress)
            self._vectors = self._documents(initial)

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._vectors = np.concatenate([self.document_vectors, self._documents(new)])

    def embedded(self, queries: Questions) -> Floats:
        return self._encoder.encode(queries.texts, self._progress)

    def _documents(self, part: Part) -> Floats:
        if self._settings.towers == "query":
            return part.embeddings
        with _cut(self._encoder, self._settings.document_length):
            return self._encoder.encode([document.content for document in part.documents], self._progress)


class _Finetuning:
    """AdamW with a linear rate over all batches; dropout draws from the seed."""

    def __init__(self, encoder: TorchEncoder, part: Part, queries: Questions, settings: DPRSettings) -> None:
        self.model, self.prompt = encoder.model, encoder.prompts.query
        self.encoder, self.part, self.queries, self.settings = encoder, part, queries, settings
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.learning_rate, weight_decay=0.01)
        self.total = settings.epochs * -(-len(queries) // settings.batch_size)

    def run(self, progress: Progress | None) -> None:
        self.model.train()
        with torch.random.fork_rng([]):
            torch.manual_seed(self.settings.seed)
            for step, batch in enumerate(self._batches()):
                warmed = (step + 1) / max(1.0, self.settings.warm_up * self.total)
                self._step(batch, min(1.0, warmed, 1.0 - step / self.total))
                if progress is not None:
                    progress(step + 1, self.total)
        self.model.eval()

    def _batches(self) -> Iterator[Positions]:
        """Queries in random order, no document twice in a batch: it would be its own negative."""
        draw = np.random.default_rng(self.settings.seed)
        for _ in range(self.settings.epochs):
            order = draw.permutation(len(self.queries))
            for first in range(0, len(order), self.settings.batch_size):
                batch = order[first : first + self.settings.batch_size]
                _, chosen = np.unique(self.queries.owners[batch], return_index=True)
                yield batch[np.sort(chosen)]

    def _step(self, batch: Positions, rate: float) -> None:
        owners = self.queries.owners[batch]
        queries = self._embed([self.queries.texts[place] for place in batch], self.settings.query_length)
        scores = self.settings.scale * queries @ self._documents(owners).T
        cross_entropy(scores, torch.arange(len(batch))).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.settings.learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _documents(self, owners: Positions) -> Tensor:
        if self.settings.towers == "query":
            return torch.from_numpy(self.part.embeddings[owners])
        return self._embed([self.part.documents[owner].content for owner in owners], self.settings.document_length)

    def _embed(self, texts: Sequence[str], length: int) -> Tensor:
        with _cut(self.encoder, length):
            # sentence-transformers 6 calls it preprocess, 5 tokenize
            tokenize = getattr(self.model, "preprocess", None) or self.model.tokenize
            features = tokenize([self.prompt + text for text in texts])
        embeddings: Tensor = self.model(features)["sentence_embedding"]
        return embeddings


@contextlib.contextmanager
def _cut(encoder: TorchEncoder, length: int) -> Iterator[None]:
    """Within the block, texts are cut after `length` tokens."""
    before = encoder.max_length
    encoder.model.max_seq_length = min(length, before)
    try:
        yield
    finally:
        encoder.model.max_seq_length = before
