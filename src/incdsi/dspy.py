"""An index as a retriever of DSPy: call it with a query inside a module's `forward`."""

from __future__ import annotations

from pathlib import Path

from incdsi.adapter import opened
from incdsi.errors import MissingExtra
from incdsi.filters import Where
from incdsi.search_index import SearchIndex

try:
    import dspy
except ImportError as error:
    raise MissingExtra("DSPy is not installed; run: pip install dspy") from error


class IncDSIRetriever:
    """`retriever(query).passages` are the texts of the best documents, `.ids` and `.scores` theirs.

    >>> retriever = IncDSIRetriever("shop", k=3)                        # doctest: +SKIP
    >>> retriever("dry feet").passages                                  # doctest: +SKIP
    """

    def __init__(
        self,
        index: SearchIndex | str | Path,
        k: int = 5,
        *,
        where: Where | None = None,
        mode: str = "fused",
        least: float | None = None,
    ) -> None:
        self.index = opened(index)
        self.k = k
        self.where = where
        self.mode = mode
        self.least = least

    def __call__(self, query: str, k: int | None = None) -> dspy.Prediction:
        """The best documents for a query."""
        hits = self.index.search(query, self.k if k is None else k, self.where, self.mode, least=self.least)
        return dspy.Prediction(
            passages=[hit.document.content for hit in hits],
            ids=[hit.document_id for hit in hits],
            scores=[hit.score for hit in hits],
        )
