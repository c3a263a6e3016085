"""What stage 1 hands to the index: vectors, queries with their embeddings, and the encoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.text.encoders import Encoder
from incdsi.training.pairs import EmbeddedPairs
from incdsi.training.records import Epoch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedModel:
    """The initial model; positions are those of the documents it was trained on.

    `queries` were trained on, `held_out` were not: they chose the epoch. `text_embeddings` (n, h) are this
    encoder's, unscaled: the anchors.
    """

    document_vectors: NDArray[np.float32]
    text_embeddings: NDArray[np.float32]
    queries: EmbeddedPairs
    held_out: EmbeddedPairs
    encoder: Encoder
    encoder_fingerprint: str
    best_epoch: int
    epochs: tuple[Epoch, ...]
