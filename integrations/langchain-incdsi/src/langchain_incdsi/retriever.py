"""IncDSIRetriever: an index as LangChain's retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import field_validator

from incdsi.adapter import opened
from langchain_incdsi.documents import to_langchain


class IncDSIRetriever(BaseRetriever):
    """The k best documents of an index that is open, in a folder or at an address.

    `filter` is a filter of incdsi's on metadata. Hits that are right with less than the `least` probability are left
    out; while the index cannot tell it, that is refused. Each can be said again when the retriever is invoked.
    """

    index: Any
    k: int = 4
    filter: dict[str, Any] | None = None
    mode: str = "fused"
    least: float | None = None

    @field_validator("index", mode="before")
    @classmethod
    def _opened(cls, index: Any) -> Any:
        return opened(index)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: dict[str, Any] | None = None,
        mode: str | None = None,
        least: float | None = None,
    ) -> list[Document]:
        hits = self.index.search(
            query,
            self.k if k is None else k,
            self.filter if filter is None else filter,
            mode or self.mode,
            least=self.least if least is None else least,
        )
        return [to_langchain(hit.document) for hit in hits]
