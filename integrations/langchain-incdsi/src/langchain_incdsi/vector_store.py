"""IncDSIVectorStore: an index as LangChain's vector store."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NoReturn, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from incdsi import Hit, SearchIndex
from incdsi.adapter import delete_known, opened
from langchain_incdsi.documents import to_incdsi, to_langchain


class IncDSIVectorStore(VectorStore):
    """An index in a folder, created if missing, or behind `incdsi serve`.

    It embeds with its own encoder, so it takes no `Embeddings`. Async methods run in threads, which the index allows.
    `filter` is a filter of incdsi's on metadata, such as {"lang": "en", "year": {"gte": 2000}}.

    >>> store = IncDSIVectorStore("shop")                                              # doctest: +SKIP
    >>> store.add_texts(["Waterproof boots."], [{"lang": "en"}], ids=["boots-17"])     # doctest: +SKIP
    >>> store.similarity_search("dry feet", k=1, filter={"lang": "en"})                # doctest: +SKIP
    """

    def __init__(self, index: SearchIndex | str | Path, *, key: str | None = None) -> None:
        self.index = opened(index, key=key, create=True)

    # Writing

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or replace documents; those without an id get one. `queries` is what people asked for them, by id."""
        given, queries = kwargs.pop("ids", None), kwargs.pop("queries", None)
        kwargs.pop("batch_size", None)  # LangChain's indexing says it; the index takes portions of its own
        _refuse(kwargs)
        if given is not None and len(given) != len(documents):
            raise ValueError(f"there are {len(documents)} documents but {len(given)} ids; give one id a document")
        pairs = zip(documents, given or repeat(None), strict=False)
        ids = [id or document.id or str(uuid.uuid4()) for document, id in pairs]
        self.index.upsert_many(map(to_incdsi, documents, ids), queries)
        return ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete these documents, or those that pass a `filter`; ids that are not there are no error."""
        where = kwargs.pop("filter", None)
        _refuse(kwargs)
        if ids is None or where is not None:
            self.index.delete(ids, where=where)  # says what is wrong with neither or both
        else:
            delete_known(self.index, ids)
        return True

    def teach(self, query: str, id: str) -> str:
        """Make this query find that document from now on; what that took, in a sentence."""
        return self.index.teach(query, id).explanation

    # Reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Those of these documents that are there."""
        return [to_langchain(document) for document in self.index.documents(ids=ids, missing_ok=True)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The k best documents for a text."""
        return [to_langchain(hit.document) for hit in self._hits(query, k, kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """With incdsi's scores: higher is better, and they are to be compared within one search alone."""
        return [(to_langchain(hit.document), hit.score) for hit in self._hits(query, k, kwargs)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """With the probability that each hit is right; ValueError while the index cannot tell it."""
        hits = self._hits(query, k, {"least": 0.0, **kwargs})
        return [(to_langchain(hit.document), hit.confidence or 0.0) for hit in hits]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return await run_in_executor(None, self._similarity_search_with_relevance_scores, query, k, **kwargs)

    def max_marginal_relevance_search(self, *_: Any, **__: Any) -> NoReturn:
        """Not there: what is found is ranked by more than one vector."""
        raise NotImplementedError("incdsi has no maximal marginal relevance; use search_type='similarity'")

    def _hits(self, query: str, k: int, options: Mapping[str, Any]) -> list[Hit]:
        rest = dict(options)
        where, mode, least = rest.pop("filter", None), rest.pop("mode", "fused"), rest.pop("least", None)
        _refuse(rest)
        return self.index.search(query, k, where, mode, least=least)

    # Making

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A store with these texts; `index` says where, `embedding` must be None."""
        if embedding is not None:
            raise ValueError("an incdsi index embeds with its own encoder; pass embedding=None")
        if "index" not in kwargs:
            raise ValueError("say where the index is: index='folder' or index='http://...'")
        store = cls(kwargs.pop("index"), key=kwargs.pop("key", None))
        store.add_texts(texts, metadatas, ids=ids, **kwargs)
        return store


def _refuse(rest: Mapping[str, Any]) -> None:
    """A misspelt option must not be ignored: a filter that filters nothing would show what it should hide."""
    if rest:
        raise TypeError(f"unknown option {min(rest)!r}; there are filter, mode, least, ids and queries")
