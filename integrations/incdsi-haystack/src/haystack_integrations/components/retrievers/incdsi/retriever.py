"""IncDSIRetriever: the best documents of a store for a text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy, apply_filter_policy
from haystack_integrations.document_stores.incdsi import IncDSIDocumentStore
from haystack_integrations.document_stores.incdsi.documents import to_haystack
from haystack_integrations.document_stores.incdsi.filters import where_of


@component
class IncDSIRetriever:
    """Searches an IncDSIDocumentStore by a text; no embedder comes before it.

    A document's `score` is incdsi's: higher is better, to be compared within one search alone. `least` leaves out
    what is right with less than that probability; while the index cannot tell it, that is refused.
    """

    def __init__(
        self,
        document_store: IncDSIDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        mode: str = "fused",
        least: float | None = None,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        if not isinstance(document_store, IncDSIDocumentStore):
            raise TypeError(f"expected an IncDSIDocumentStore, found {type(document_store).__name__}")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.mode = mode
        self.least = least
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        """For a pipeline's YAML."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            mode=self.mode,
            least=self.least,
            filter_policy=self.filter_policy.value,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        given = data["init_parameters"]
        parameters = {
            **given,
            "document_store": IncDSIDocumentStore.from_dict(given["document_store"]),
            "filter_policy": FilterPolicy.from_str(given["filter_policy"]),
        }
        made: Self = default_from_dict(cls, {**data, "init_parameters": parameters})
        return made

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The best documents for a text, the best first."""
        where = where_of(apply_filter_policy(self.filter_policy, self.filters, filters))
        k = self.top_k if top_k is None else top_k
        hits = self.document_store.index.search(query, k, where, self.mode, least=self.least)
        return {"documents": [replace(to_haystack(hit.document), score=hit.score) for hit in hits]}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The same, without holding up the event loop."""
        return await asyncio.to_thread(self.run, query, filters, top_k)
