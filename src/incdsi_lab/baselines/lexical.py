"""BM25 through bm25s: words only, nothing learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from incdsi.errors import InvalidInput, MissingExtra
from incdsi.progress import Stopwatch
from incdsi_lab.baselines.protocol import Floats, Part, Questions, Ranked
from incdsi_lab.baselines.ranking import BLOCK, best_of

try:
    import bm25s
except ImportError as error:
    raise MissingExtra("the BM25 baseline needs bm25s; install it with: pip install 'incdsi[eval]'") from error


class BM25:
    """BM25 (Lucene's formula, k1 0.9, b 0.75); bm25s cannot grow, so each addition indexes everything again."""

    name = "BM25"

    def __init__(self, *, k1: float = 0.9, b: float = 0.75) -> None:
        self._k1, self._b = k1, b
        self._texts: list[str] = []
        self._index: bm25s.BM25 | None = None
        self._watch = Stopwatch()

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._watch.seconds

    def fit(self, initial: Part) -> None:
        with self._watch.step("fit"):
            self._texts = [document.content for document in initial.documents]
            self._build()

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._texts += [document.content for document in new.documents]
            self._build()

    def search(self, queries: Questions, k: int) -> Ranked:
        with self._watch.step("search"):
            return best_of(self.blocks(queries.texts), k)

    def blocks(self, texts: Sequence[str]) -> Iterator[Floats]:
        """The scores (b, n) of one block of queries after another."""
        if self._index is None:
            raise InvalidInput("there is nothing to search yet; call fit first")
        words = bm25s.tokenize(list(texts), return_ids=False, show_progress=False)
        known = self._index.vocab_dict
        for first in range(0, len(words), BLOCK):
            rows = [self._scores([word for word in some if word in known]) for some in words[first : first + BLOCK]]
            yield np.stack(rows)

    def _scores(self, words: list[str]) -> Floats:
        assert self._index is not None
        if not words:
            return np.zeros(len(self._texts), dtype=np.float32)
        return np.asarray(self._index.get_scores(words), dtype=np.float32)

    def _build(self) -> None:
        self._index = bm25s.BM25(k1=self._k1, b=self._b)
        self._index.index(bm25s.tokenize(self._texts, show_progress=False), show_progress=False)
