"""IncDSIRetriever: the best nodes of an index for a text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.retrievers.incdsi.filters import where_of
from llama_index.retrievers.incdsi.nodes import to_node

from incdsi import SearchIndex
from incdsi.adapter import opened


class IncDSIRetriever(BaseRetriever):
    """Searches an index that is open, in a folder or at an address, whoever filled it.

    A node's `score` is incdsi's: higher is better, to be compared within one search alone. `least` leaves out what is
    right with less than that probability; while the index cannot tell it, that is refused.
    """

    def __init__(
        self,
        index: SearchIndex | str | Path,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        mode: str = "fused",
        least: float | None = None,
        **kwargs: Any,
    ) -> None:
        self._index = opened(index)
        self._k = similarity_top_k
        self._where = where_of(filters)
        self._mode = mode
        self._least = least
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._index.search(query_bundle.query_str, self._k, self._where, self._mode, least=self._least)
        return [NodeWithScore(node=to_node(hit.document), score=hit.score) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
