"""Queries before solving: drop the shared ones, represent the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Taught, fold
from incdsi.errors import InvalidInput


def drop_shared(queries: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Queries by document id, without those that belong to more than one document.

    Texts are compared with whitespace and case folded; within one document the first of equal ones is kept.
    Every id is kept, if need be with an empty list.
    """
    unique = {document_id: distinct(texts) for document_id, texts in queries.items()}
    owners: dict[str, int] = {}
    for texts in unique.values():
        for text in texts:
            owners[fold(text)] = owners.get(fold(text), 0) + 1
    return {document_id: [text for text in texts if owners[fold(text)] == 1] for document_id, texts in unique.items()}


def distinct(texts: Iterable[str]) -> list[str]:
    """Texts in order, whitespace folded, without empty ones and repetitions.

    Of repetitions the first is kept, or the first that was taught.
    """
    kept: dict[str, str] = {}
    for text in texts:
        if key := fold(text):
            folded = " ".join(text.split())
            if isinstance(text, Taught) and not isinstance(kept.get(key), Taught):
                kept[key] = Taught(folded)
            kept.setdefault(key, folded)
    return list(kept.values())


def represent(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """The representative query of a document, the mean of its embeddings: (k, h) -> (h,), zeros for k = 0."""
    if embeddings.ndim != 2:
        raise InvalidInput(f"expected embeddings of shape (k, h), found {embeddings.shape}")
    if len(embeddings) == 0:
        return np.zeros(embeddings.shape[1], dtype=np.float32)
    mean: NDArray[np.float32] = embeddings.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean
