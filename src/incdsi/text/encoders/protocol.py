"""What an encoder is: a function for queries, and perhaps another for documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.progress import Progress


class Encoder(Protocol):
    """A frozen function from text to R^h; two encoders with one fingerprint are the same function.

    One that embeds documents differently, by another prompt or another model, has an attribute `documents`: an encoder
    into the same space. Its own `encode` is then for queries, and its fingerprint covers both.
    """

    @property
    def dimension(self) -> int:
        """h, the length of an embedding."""

    @property
    def fingerprint(self) -> str:
        """sha256 over weights, tokenizer, pooling, normalisation and maximum length."""

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed texts in their order: (n, h), and (0, h) for no texts."""


ASSUMED = 510  # tokens of a text that an encoder reads which does not tell
BYTES = 4  # of a token, where nobody counts them


def tokens_read(encoder: Encoder) -> int:
    """How many tokens of a text it reads; what comes after them it does not see.

    An encoder that knows has an attribute `tokens_read`, and `count_tokens` for texts.
    """
    return int(getattr(encoder, "tokens_read", ASSUMED))


def count_tokens(encoder: Encoder, texts: Sequence[str]) -> list[int]:
    """How many tokens each text has, as the encoder counts them; estimated where it does not."""
    count: Callable[[Sequence[str]], list[int]] | None = getattr(encoder, "count_tokens", None)
    if count is not None:
        return count(texts)
    return [-(-len(text.encode("utf-8", "surrogatepass")) // BYTES) for text in texts]


class Prompted(Encoder, Protocol):
    """One whose model wants other words before a document than before a query."""

    @property
    def document_prompt(self) -> str:
        """The words put before every document."""

    def encode_with(self, prompt: str, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed texts with these words before each."""


def for_documents(encoder: Encoder) -> Encoder:
    """The encoder of documents: what searches and queries go through too, unless it has another for them."""
    found: Encoder = getattr(encoder, "documents", encoder)
    return found


def encode_each(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed queries in their order, (n, h), each as it is when it comes alone.

    An encoder that can do so for many at once has a method `encode_each`.
    """
    own = getattr(encoder, "encode_each", None)
    if own is not None:
        embeddings: NDArray[np.float32] = own(texts)
        return embeddings
    return np.array([encoder.encode([text])[0] for text in texts], np.float32).reshape(len(texts), encoder.dimension)


class WithPrompt:
    """An encoder's function for documents, with their own prompt."""

    def __init__(self, encoder: Prompted) -> None:
        self._encoder = encoder
        self.dimension = encoder.dimension
        self.fingerprint = f"{encoder.fingerprint} documents"

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed documents in their order: (n, h)."""
        return self._encoder.encode_with(self._encoder.document_prompt, texts, progress)
