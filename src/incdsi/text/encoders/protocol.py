"""What an encoder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.progress import Progress

"""Called with (done, total) while long work goes on."""


class Encoder(Protocol):
    """A frozen function from text to R^h; two encoders with one fingerprint are the same function."""

    @property
    def dimension(self) -> int:
        """h, the length of an embedding."""

    @property
    def fingerprint(self) -> str:
        """sha256 over weights, tokenizer, pooling, normalisation and maximum length."""

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed texts in their order: (n, h), and (0, h) for no texts."""
