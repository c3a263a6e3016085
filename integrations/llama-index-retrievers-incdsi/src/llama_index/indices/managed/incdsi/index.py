"""IncDSIIndex: an index of LlamaIndex whose nodes live in incdsi, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.indices.managed.base import BaseManagedIndex
from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, Document, TransformComponent
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.retrievers.incdsi import IncDSIRetriever
from llama_index.retrievers.incdsi.nodes import to_document, to_node

from incdsi import Addition, SearchIndex
from incdsi import Document as IncDSIDocument
from incdsi.adapter import delete_known, opened


class IncDSIIndex(BaseManagedIndex):
    """An index in a folder, created if missing, or behind `incdsi serve`.

    It embeds with its own encoder, so no `embed_model` is needed. Documents are split by `transformations`, or by
    LlamaIndex's Settings, and nothing is kept in a docstore: opened again, the index knows what it has.

    >>> index = IncDSIIndex("shop")                                     # doctest: +SKIP
    >>> index.insert(Document(text="Waterproof boots.", id_="boots"))   # doctest: +SKIP
    >>> index.as_retriever(similarity_top_k=3).retrieve("dry feet")     # doctest: +SKIP
    """

    index_struct_cls = IndexDict

    def __init__(
        self,
        index: SearchIndex | str | Path,
        nodes: Sequence[BaseNode] | None = None,
        *,
        key: str | None = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> None:
        self.index = opened(index, key=key, create=True)
        super().__init__(index_struct=IndexDict(), transformations=transformations, **kwargs)
        if nodes:
            self.insert_nodes(nodes)

    @classmethod
    def from_documents(cls, documents: Sequence[Document], *args: Any, **kwargs: Any) -> Self:
        """An index with these documents; `index` says where."""
        made = cls(*args, **kwargs)
        made.insert_nodes(made._nodes(documents))
        return made

    # Writing

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """Add or replace nodes."""
        self._insert(nodes, **insert_kwargs)

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        await asyncio.to_thread(self.insert_nodes, nodes, **insert_kwargs)

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        self.index.upsert_many(map(to_document, nodes), insert_kwargs.get("queries"))

    def _delete_node(self, node_id: str, **delete_kwargs: Any) -> None:
        delete_known(self.index, [node_id])

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete a document's nodes; nothing if there are none."""
        self.index.delete(where={"ref_doc_id": ref_doc_id})

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        await asyncio.to_thread(self.delete_ref_doc, ref_doc_id)

    def update_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """Replace a document's nodes; the new ones are there before the old ones go.

        What was taught to the n-th of its old nodes is taught to the n-th of the new ones, or to the last.
        """
        old, new = self._parts(document.id_), self._nodes([document])
        asked: dict[str, list[str]] = {}
        for before, after in zip_longest(old, new, fillvalue=None):
            heir = after or (new[-1] if new else None)
            if before is not None and heir is not None:
                asked.setdefault(heir.node_id, []).extend(self.index.queries(before.id))
        self.index.upsert_many(map(to_document, new), asked)
        delete_known(self.index, {one.id for one in old} - {one.node_id for one in new})

    async def aupdate_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        await asyncio.to_thread(self.update_ref_doc, document)

    def refresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """Insert what is new and update what changed; which of them that were."""
        changed = [not self._is_there(document) for document in documents]
        for document, now in zip(documents, changed, strict=True):
            if now:
                self.update_ref_doc(document)
        return changed

    async def arefresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        return await asyncio.to_thread(self.refresh_ref_docs, documents)

    def teach(self, query: str, node_id: str) -> Addition:
        """Make this query find that node from now on."""
        return self.index.teach(query, node_id)

    # Reading

    def as_retriever(self, **kwargs: Any) -> IncDSIRetriever:
        """A retriever; takes what IncDSIRetriever takes."""
        return IncDSIRetriever(self.index, **kwargs)

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The nodes and the metadata of each document."""
        info: dict[str, RefDocInfo] = {}
        for stored in self.index.documents({"ref_doc_id": {"exists": True}}):
            node = to_node(stored)
            if node.ref_doc_id is not None:
                one = info.setdefault(node.ref_doc_id, RefDocInfo(metadata=node.metadata))
                one.node_ids.append(node.node_id)
        return info

    def _nodes(self, documents: Sequence[Document]) -> Sequence[BaseNode]:
        return run_transformations(documents, self._transformations, show_progress=self._show_progress)

    def _parts(self, ref_doc_id: str) -> list[IncDSIDocument]:
        return list(self.index.documents({"ref_doc_id": ref_doc_id}))

    def _is_there(self, document: Document) -> bool:
        """Whether its nodes are of this very text and metadata."""
        sources = [to_node(one).source_node for one in self.index.documents({"ref_doc_id": document.id_}, limit=1)]
        return any(source is not None and source.hash == document.hash for source in sources)
