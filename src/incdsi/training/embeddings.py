"""Embeddings computed once: taken from the caller, from a folder of shards, or from the encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incdsi.durable import appearing_file
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder

SHARD = 2048  # texts that a kill can waste


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedder:
    """Embeds texts with one encoder; `known` maps texts to embeddings already computed by it.

    With a `folder`, finished shards are kept there under a digest of fingerprint and texts, so that a resumed
    run does not encode them again.
    """

    encoder: Encoder
    fingerprint: str
    known: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    folder: Path | None = None

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embeddings (n, h) in the order of the texts; `progress` counts the texts actually encoded."""
        out = np.empty((len(texts), self.encoder.dimension), dtype=np.float32)
        missing = []
        for place, text in enumerate(texts):
            embedding = self.known.get(text)
            if embedding is None:
                missing.append(place)
            else:
                out[place] = self._fitting(text, embedding)
        for first in range(0, len(missing), SHARD):
            places = missing[first : first + SHARD]
            out[places] = self._shard([texts[i] for i in places], shifted(progress, first, len(missing)))
        return out

    def unknown(self, texts: Sequence[str]) -> int:
        """How many of them have to be encoded, or read from the folder."""
        return sum(text not in self.known for text in texts)

    def _fitting(self, text: str, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
        if embedding.shape != (self.encoder.dimension,):
            raise InvalidInput(
                f"expected known embeddings of shape ({self.encoder.dimension},), found {embedding.shape} "
                f"for {text[:40]!r}; were they made by another encoder?"
            )
        return embedding

    def _shard(self, texts: list[str], progress: Progress | None) -> NDArray[np.float32]:
        if self.folder is None:
            return self.encoder.encode(texts, progress)
        path = self.folder / f"{_digest(self.fingerprint, texts)}.npy"
        kept = _read(path, (len(texts), self.encoder.dimension))
        if kept is None:
            kept = self.encoder.encode(texts, progress)
            _write(path, kept)
        elif progress is not None:
            progress(len(texts), len(texts))
        return kept


def shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Reports of a part as reports of the whole."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


def _digest(fingerprint: str, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(fingerprint.encode())
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if array.shape == shape and array.dtype == np.float32 else None


def _write(path: Path, array: NDArray[np.float32]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing_file(path) as file:
        np.save(file, array)
