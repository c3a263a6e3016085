"""IncDSIDocumentStore: an index as Haystack's document store."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.incdsi.documents import to_haystack, to_incdsi
from haystack_integrations.document_stores.incdsi.filters import where_of

from incdsi import SearchIndex
from incdsi.adapter import delete_known, opened
from incdsi.errors import DuplicateDocument
from incdsi.filters import Where

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")
Filters = dict[str, Any]
# An index refuses to delete by a filter without a condition; this one has two, and every document passes.
EVERY: Where = {"or": [{"_": {"exists": True}}, {"_": {"exists": False}}]}


def _in_a_thread(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return run


class IncDSIDocumentStore:
    """An index in a folder, created if missing, or behind `incdsi serve`; the key for it is read from INCDSI_KEY.

    It embeds with its own encoder: no embedder is needed. Embeddings that documents bring are kept and not used.

    >>> store = IncDSIDocumentStore("shop")                                         # doctest: +SKIP
    >>> store.write_documents([Document(content="Waterproof boots.")])              # doctest: +SKIP
    """

    def __init__(self, index: SearchIndex | str | Path) -> None:
        self._location = str(index) if isinstance(index, str | Path) else None
        self.index = opened(index, create=True)

    def to_dict(self) -> dict[str, Any]:
        """For a pipeline's YAML."""
        if self._location is None:
            raise ValueError("a store made of an open index cannot be written down; make it of the folder or address")
        return default_to_dict(self, index=self._location)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        made: Self = default_from_dict(cls, data)
        return made

    # Documents

    def count_documents(self) -> int:
        """How many documents there are."""
        return len(self.index)

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """The documents that pass a filter, in the order they were added."""
        return list(self._matching(filters))

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Add documents; of an id that is there the policy decides, and NONE means FAIL. How many were written."""
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise ValueError("expected a list of haystack Documents")
        if policy == DuplicatePolicy.OVERWRITE:
            last = {document.id: to_incdsi(document) for document in documents}
            self.index.upsert_many(last.values())
            return len(documents)
        if policy == DuplicatePolicy.SKIP:
            first = {document.id: document for document in reversed(documents)}
            there = {document.id for document in self.index.documents(ids=first, missing_ok=True)}
            documents = [document for id, document in reversed(first.items()) if id not in there]
        try:
            self.index.add_many(map(to_incdsi, documents))
        except DuplicateDocument as error:
            raise DuplicateDocumentError(str(error)) from error
        return len(documents)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete those of these documents that are there."""
        delete_known(self.index, document_ids)

    def delete_all_documents(self) -> None:
        """Delete every document; the index stays."""
        self.index.delete(where=EVERY)

    def delete_by_filter(self, filters: Filters) -> int:
        """Delete what passes a filter; how many."""
        return self.index.delete(where=where_of(filters) or {})

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Set these metadata fields of what passes a filter; how many. No document is embedded again."""
        found = self.filter_documents(filters)
        for document in found:
            self.index.update(to_incdsi(replace(document, meta={**document.meta, **meta})))
        return len(found)

    # Metadata

    def count_documents_by_filter(self, filters: Filters) -> int:
        """How many documents pass a filter."""
        return self.index.count(where_of(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: Sequence[str]) -> dict[str, int]:
        """How many values each of these fields has among what passes a filter."""
        metas = [document.meta for document in self._matching(filters)]
        return {field: len(_unique(metas, _plain(field))) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The kind of each metadata field: keyword, int, float or boolean."""
        kinds = {bool: "boolean", int: "int", float: "float"}
        return {
            field: {"type": kinds.get(type(value), "keyword")}
            for document in self._matching(None)
            for field, value in document.meta.items()
            if value is not None
        }

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The least and the greatest value of a field; None where there is none, or they have no order."""
        values = _unique((document.meta for document in self._matching(None)), _plain(metadata_field))
        try:
            return {"min": min(values, default=None), "max": max(values, default=None)}
        except TypeError:
            return {"min": None, "max": None}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of a field's values, sorted as text, and how many there are; those that contain a term, or all."""
        values = _unique((document.meta for document in self._matching(filters)), _plain(metadata_field))
        term = (search_term or "").lower()
        found = sorted((value for value in values if term in str(value).lower()), key=_as_text)
        return found[from_ : from_ + size], len(found)

    # Async

    count_documents_async = _in_a_thread(count_documents)
    filter_documents_async = _in_a_thread(filter_documents)
    write_documents_async = _in_a_thread(write_documents)
    delete_documents_async = _in_a_thread(delete_documents)
    delete_all_documents_async = _in_a_thread(delete_all_documents)
    delete_by_filter_async = _in_a_thread(delete_by_filter)
    update_by_filter_async = _in_a_thread(update_by_filter)
    count_documents_by_filter_async = _in_a_thread(count_documents_by_filter)
    count_unique_metadata_by_filter_async = _in_a_thread(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = _in_a_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = _in_a_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = _in_a_thread(get_metadata_field_unique_values)

    def _matching(self, filters: Filters | None) -> Iterator[Document]:
        return map(to_haystack, self.index.documents(where_of(filters)))


def _plain(metadata_field: str) -> str:
    return metadata_field.removeprefix("meta.")


def _unique(metas: Any, field: str) -> list[Any]:
    """The values of a field, each once; 1, 1.0, True and "1" are different."""
    values = (meta[field] for meta in metas if meta.get(field) is not None)
    return list({_as_text(value): value for value in values}.values())


def _as_text(value: Any) -> tuple[str, str]:
    return str(value), type(value).__name__
