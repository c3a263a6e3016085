"""What methods with one vector per document share, and the simplest of them, dense search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from incdsi.errors import InvalidInput
from incdsi.progress import Stopwatch
from incdsi_lab.baselines.protocol import Floats, Part, Questions, Ranked
from incdsi_lab.baselines.ranking import best


class VectorMethod:
    """Search by inner product over `document_vectors` (n, h); subclasses decide what the vectors are."""

    def __init__(self) -> None:
        self._vectors: Floats | None = None
        self._watch = Stopwatch()

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._watch.seconds

    @property
    def document_vectors(self) -> Floats:
        """V (n, h); raises InvalidInput before `fit`."""
        if self._vectors is None:
            raise InvalidInput("there is nothing to search yet; call fit first")
        return self._vectors

    def search(self, queries: Questions, k: int) -> Ranked:
        with self._watch.step("search"):
            return best(self.embedded(queries), self.document_vectors, k)

    def embedded(self, queries: Questions) -> Floats:
        """The queries as this method's encoder sees them, (m, h): as they came when the encoder is frozen."""
        return queries.embeddings


class Dense(VectorMethod):
    """The frozen encoder on the documents' text; nothing learned."""

    name = "dense"

    def fit(self, initial: Part) -> None:
        self._vectors = initial.embeddings

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._vectors = np.concatenate([self.document_vectors, new.embeddings])
