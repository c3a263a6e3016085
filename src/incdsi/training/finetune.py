"""Finetuning, the paper's stage 1: encoder and document vectors together, on one device or several.

The same call works alone, under `accelerate launch` and under torchrun. Every process holds all of V and the
encoder and takes its share of each batch; gradients are averaged. So the number of processes only changes
rounding (and what dropout draws).
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs
from numpy.typing import NDArray
from torch import Tensor, nn

from incdsi.info import Quality
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.training.checkpoints import Checkpoints, optimizer_tensors, restore_optimizer, under
from incdsi.training.loop import Outcome, run
from incdsi.training.pairs import TextPairs
from incdsi.training.records import Observe
from incdsi.training.settings import FinetuneSettings
from incdsi.training.softmax import summed_cross_entropy
from incdsi.training.starts import FixedRows
from incdsi.training.validation import own_ranks, quality, tally

ROWS = "rows"
ENCODER = "encoder."
OPTIMIZER = "optimizer."
ALIKE = 32  # texts padded to the same length


def train_finetune(
    encoder: TorchEncoder,
    start: NDArray[np.float32],
    pairs: TextPairs,
    held_out: TextPairs,
    settings: FinetuneSettings,
    *,
    checkpoints: Checkpoints | None = None,
    observe: Observe | None = None,
) -> tuple[TorchEncoder, NDArray[np.float32], Outcome]:
    """The adapted encoder (a copy), document vectors (n, h) and the curve; the best held-out epoch is kept.

    start (n, h). On the CPU, the same seed, threads and processes give the same bits.
    """
    learner = FinetuneLearner(encoder, start, pairs, held_out, settings)
    outcome = run(learner, len(pairs.texts), settings, checkpoints=checkpoints, observe=observe)
    trained = learner.finish(outcome.parameters)
    return TorchEncoder(trained), outcome.parameters[ROWS].cpu().numpy(), outcome


class QueryClassifier(nn.Module):
    """Encoder and document vectors as one module: tokens and owners to the summed loss."""

    def __init__(self, encoder: Any, start: NDArray[np.float32], budget: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.rows = nn.Parameter(torch.tensor(start, dtype=torch.float32))
        self.budget = budget

    def forward(self, parts: Sequence[dict[str, Tensor]], owners: Tensor) -> Tensor:
        """-log softmax(V q)[owner], summed; the scores stay float32 under mixed precision."""
        embeddings = torch.cat([self.encoder(features)["sentence_embedding"] for features in parts])
        with torch.autocast(embeddings.device.type, enabled=False):
            return summed_cross_entropy(embeddings.float(), owners, self.rows, self.budget)


class FinetuneLearner:
    """The classifier and its optimizer in this process, one of `accelerator.num_processes`."""

    def __init__(
        self,
        encoder: TorchEncoder,
        start: NDArray[np.float32],
        pairs: TextPairs,
        held_out: TextPairs,
        settings: FinetuneSettings,
    ) -> None:
        self.accelerator = _accelerator()
        self.prompt, self.max_length = encoder.prompts.query, encoder.max_length
        self.pairs, self.held_out, self.settings = pairs, held_out, settings
        self.plain = QueryClassifier(copy.deepcopy(encoder.model), start, settings.budget)
        self.fixed = FixedRows(start, pairs.owners, self.accelerator.device)
        self.plain.encoder.max_seq_length = min(settings.max_length, self.max_length)
        self.model, self.optimizer = self.accelerator.prepare(self.plain, _optimizer(self.plain, settings))
        self.rates = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def writes(self) -> bool:
        """The first process writes."""
        return bool(self.accelerator.is_main_process)

    def step(self, batch: NDArray[np.int64], number: int, rate: float) -> float:
        """An AdamW step on the mean loss of the whole batch, of which this process computes its share."""
        share, counts = self._share(batch)
        share = np.array(sorted(share, key=lambda i: len(self.pairs.texts[i])))
        parts = [self._features([self.pairs.texts[i] for i in part]) for part in _alike(share)]
        owners = torch.from_numpy(self.pairs.owners[share]).to(self.accelerator.device)
        self.model.train()
        with self._drawing_from(number):
            summed = self.model(parts, owners) * counts
        # Gradients are averaged over processes; the mean over the batch needs their sum.
        self.accelerator.backward(summed * (self.accelerator.num_processes / len(batch)))
        self._update(rate)
        return float(self.accelerator.reduce(summed.detach().double(), "sum")) / len(batch)

    @torch.no_grad()
    def measure(self) -> Quality | None:
        """Quality on the held-out queries, computed by all processes together and the same in each."""
        mine = range(self.accelerator.process_index, len(self.held_out.texts), self.accelerator.num_processes)
        embeddings = self._embed([self.held_out.texts[i] for i in mine])
        owners = torch.from_numpy(self.held_out.owners[list(mine)])
        ranks = own_ranks(embeddings, owners, self.plain.rows, budget=self.settings.budget)
        return quality(self.accelerator.reduce(tally(ranks).to(self.accelerator.device), "sum"))

    def result(self) -> dict[str, Tensor]:
        """V and the encoder's parameters, tied ones once."""
        encoder = {ENCODER + name: value for name, value in self.plain.encoder.named_parameters()}
        return {ROWS: self.plain.rows} | encoder

    def state(self) -> dict[str, Tensor]:
        """All parameters and AdamW's moments."""
        moments = optimizer_tensors(self.optimizer.optimizer)
        return self.result() | {OPTIMIZER + name: tensor for name, tensor in moments.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        self._load(tensors)
        restore_optimizer(self.optimizer.optimizer, under(OPTIMIZER, tensors))

    def anywhere(self, flag: bool) -> bool:
        """Whether any process has the flag; a barrier."""
        flags = torch.tensor(float(flag), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flags, "sum") > 0)

    def finish(self, parameters: Mapping[str, Tensor]) -> Any:
        """The encoder (a SentenceTransformer) with these parameters, ready to embed."""
        self._load(parameters)
        encoder = self.plain.encoder.eval()
        encoder.max_seq_length = self.max_length
        return encoder

    @torch.no_grad()
    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self.result().items():
            parameter.copy_(tensors[name])

    def _share(self, batch: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
        """This process's part of the batch; one left without any computes something of weight 0."""
        share = batch[self.accelerator.process_index :: self.accelerator.num_processes]
        return (share, 1.0) if len(share) else (batch[:1], 0.0)

    def _update(self, rate: float) -> None:
        self.accelerator.clip_grad_norm_(self.plain.encoder.parameters(), self.settings.clip)
        for group, full in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = full * rate
        self.optimizer.step()
        self.fixed.restore(self.plain.rows)
        self.optimizer.zero_grad()

    def _features(self, texts: Sequence[str]) -> dict[str, Any]:
        # sentence-transformers 6 calls it preprocess, 5 tokenize
        tokenize = getattr(self.plain.encoder, "preprocess", None) or self.plain.encoder.tokenize
        features = tokenize([self.prompt + text for text in texts])
        device = self.accelerator.device
        return {key: value.to(device) if isinstance(value, Tensor) else value for key, value in features.items()}

    def _embed(self, texts: Sequence[str]) -> Tensor:
        """Embeddings (m, h) in main memory; texts of similar length share a batch."""
        self.plain.encoder.eval()
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        embeddings = torch.empty(len(texts), self.plain.rows.shape[1])
        for first in range(0, len(order), self.settings.batch_size):
            chosen = order[first : first + self.settings.batch_size]
            with self.accelerator.autocast():
                block = self.plain.encoder(self._features([texts[i] for i in chosen]))["sentence_embedding"]
            embeddings[chosen] = block.float().cpu()
        return embeddings

    @contextlib.contextmanager
    def _drawing_from(self, number: int) -> Iterator[None]:
        """Dropout draws from (seed, step, process), so that resuming needs no random state."""
        device = self.accelerator.device
        words = np.random.SeedSequence([self.settings.seed, number, self.accelerator.process_index])
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(words.generate_state(1, np.uint32)[0]))
            yield


def _alike(share: NDArray[np.int64]) -> Sequence[NDArray[np.int64]]:
    """Texts of similar length together: padding a whole batch to its longest text took 2 to 3 times as long."""
    return np.array_split(share, -(-len(share) // ALIKE))


def _accelerator() -> Any:
    """All devices from the launcher; a pooling layer the model never uses must not stall the processes."""
    handlers = [DistributedDataParallelKwargs(find_unused_parameters=True)]
    return Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=_precision(), kwargs_handlers=handlers)


def _precision() -> str:
    """The launcher's choice; by default bfloat16 on a GPU that supports it, and float32 on every CPU."""
    has_units = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return os.environ.get("ACCELERATE_MIXED_PRECISION") or ("bf16" if has_units else "no")


def _optimizer(model: QueryClassifier, settings: FinetuneSettings) -> torch.optim.Optimizer:
    """AdamW; the document vectors have their own learning rate but shrink no faster per step than the encoder."""
    rows_decay = settings.weight_decay * settings.learning_rate / settings.row_learning_rate
    groups = [
        {"params": list(model.encoder.parameters()), "lr": settings.learning_rate},
        {
            "params": [model.rows],
            "lr": settings.row_learning_rate,
            "eps": settings.epsilon,
            "weight_decay": rows_decay,
        },
    ]
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
