"""Settings of stage 1: frozen (document vectors only) and finetune (as in the paper), validated on construction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from incdsi.errors import InvalidHyperparameters

Start = Literal["text", "queries", "random"]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What both modes share.

    `start` is where the document vectors start: `scale` times the text's embedding, `scale` times the mean
    of the document's query embeddings, or normal noise of standard deviation 0.02 (then `scale` is unused).
    `epsilon` is AdamW's, for the document vectors. It is far above their gradients on purpose: normalising each
    gradient would move a document that no query asks for as far as one that is losing its queries.
    A step is then about learning_rate / epsilon times the mean gradient, so the rate grows with the batch.
    `decay` makes the learning rates fall linearly to zero over all epochs. Training stops after `patience`
    epochs without a better validation score. `memory` limits, in MiB, the block of scores (queries x documents)
    held at a time; the smallest block is one query's scores. A checkpoint is written every `checkpoint_seconds`
    (0: after every step).
    """

    epochs: int
    batch_size: int
    learning_rate: float
    epsilon: float = 1e-3
    weight_decay: float = 0.0
    decay: bool = True
    start: Start = "text"
    scale: float = 20.0
    patience: int = 2
    seed: int = 0
    memory: int = 256
    checkpoint_seconds: float = 120.0

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("patience", 1), ("seed", 0), ("memory", 1)):
            _require_whole(name, getattr(self, name), least)
        _require_number("learning_rate", self.learning_rate, above=0.0)
        _require_number("epsilon", self.epsilon, above=0.0)
        _require_number("scale", self.scale, above=0.0)
        _require_number("weight_decay", self.weight_decay)
        _require_number("checkpoint_seconds", self.checkpoint_seconds)
        if self.start not in get_args(Start):
            raise InvalidHyperparameters(f"start must be one of {', '.join(get_args(Start))}, not {self.start!r}")

    @property
    def budget(self) -> int:
        """Bytes allowed for the block of scores."""
        return self.memory * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSettings(Settings):
    """Only the document vectors are trained; the defaults suit an encoder with unit-norm output."""

    epochs: int = 8
    batch_size: int = 512
    learning_rate: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneSettings(Settings):
    """Encoder and document vectors are trained together; `batch_size` counts all processes.

    First the document vectors learn alone for at most `frozen_epochs` (0: not at all, as in the paper), so that
    the encoder does not chase untrained vectors. `learning_rate` is the encoder's, `row_learning_rate`
    the document vectors'. Training queries are truncated to `max_length` tokens. `clip` limits the norm of
    the encoder's gradient.
    """

    epochs: int = 3
    frozen_epochs: int = 8
    batch_size: int = 128
    learning_rate: float = 2e-5
    row_learning_rate: float = 0.25
    weight_decay: float = 0.01
    max_length: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
        super(FinetuneSettings, self).__post_init__()
        _require_number("row_learning_rate", self.row_learning_rate, above=0.0)
        _require_number("clip", self.clip, above=0.0)
        _require_whole("max_length", self.max_length, 3)
        _require_whole("frozen_epochs", self.frozen_epochs, 0)


def _require_whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidHyperparameters(f"{name} must be a whole number of at least {least}, not {value!r}")


def _require_number(name: str, value: float, *, above: float | None = None) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or (value < 0 if above is None else value <= above):
        wanted = "at least 0" if above is None else f"above {above:g}"
        raise InvalidHyperparameters(f"{name} must be a finite number {wanted}, not {value!r}")


# The paper's stage 1: one learning rate for everything, random rows, the best of 20 epochs.
PAPER_NQ = FinetuneSettings(
    epochs=20,
    frozen_epochs=0,
    batch_size=128,
    learning_rate=1e-5,
    row_learning_rate=1e-5,
    epsilon=1e-8,
    decay=False,
    start="random",
    patience=20,
    max_length=32,
)
PAPER_MSMARCO = replace(PAPER_NQ, batch_size=1024, learning_rate=5e-5, row_learning_rate=5e-5)
