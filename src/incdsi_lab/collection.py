"""A collection: documents, and queries with the one document each should find."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidFile, InvalidInput, UnknownDocument

Part = Literal["train", "val", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
NEEDED: tuple[Part, ...] = ("train", "test")  # without val, a split takes it from train


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A query, the document it should find, and the part it belongs to."""

    id: str
    text: str
    document_id: str
    split: Part

    def __post_init__(self) -> None:
        if not self.id or not self.text.strip():
            raise InvalidInput(
                f"a query needs an id and a text; this one has id {self.id!r} and text {self.text!r:.60}"
            )
        if self.split not in PARTS:
            raise InvalidInput(
                f"query {self.id!r}: the split must be {', '.join(PARTS[:-1])} or {PARTS[-1]}, not {self.split!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Documents in their order, and queries in theirs; a document or query twice, a query without its
    document, or no train or test query at all is refused."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Judged]

    def __post_init__(self) -> None:
        gathering = Gathering(self.name)
        for document in self.documents:
            gathering.add_document(document)
        for query in self.queries:
            gathering.add_query(query)
        gathering.require_parts(NEEDED)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each document id."""
        return {document.id: place for place, document in enumerate(self.documents)}

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        """For each query the place of its document, (queries,)."""
        return np.array([self.places[query.document_id] for query in self.queries], dtype=np.intp)

    @cached_property
    def digest(self) -> str:
        """sha256 over all ids, texts and parts: two collections with one digest are the same."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(_line(document.id, document.title, document.text))
        for query in self.queries:
            digest.update(_line(query.id, query.text, query.document_id, query.split))
        return digest.hexdigest()

    def of(self, split: Part) -> list[Judged]:
        """The queries of one part."""
        return [query for query in self.queries if query.split == split]


class Gathering:
    """What a reader has found so far; what cannot belong to a collection is refused with its file and line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._documents: dict[str, Document] = {}
        self._queries: dict[str, Judged] = {}

    def add_document(self, document: Document, path: Path | str | None = None, line: int | None = None) -> None:
        if document.id in self._documents:
            message = f"document {document.id!r} again; ids must be unique"
            raise _placed(message, path, line, DuplicateDocument)
        self._documents[document.id] = document

    def add_query(self, query: Judged, path: Path | str | None = None, line: int | None = None) -> None:
        if query.id in self._queries:
            message = f"query {query.id!r} again; ids must be unique"
            raise _placed(message, path, line, InvalidInput)
        if query.document_id not in self._documents:
            message = (
                f"query {query.id!r} names the unknown document {query.document_id!r}; "
                "add the document or remove the query"
            )
            raise _placed(message, path, line, UnknownDocument)
        self._queries[query.id] = query

    def require_parts(self, parts: Iterable[Part], path: Path | str | None = None) -> None:
        """Refuse when one of the parts has no query."""
        present = {query.split for query in self._queries.values()}
        for part in parts:
            if part not in present:
                message = f"{self._name} has no query in split {part!r}; it needs at least one"
                raise _placed(message, path, None, InvalidInput)

    def has_document(self, document_id: str) -> bool:
        return document_id in self._documents

    def collection(self, path: Path | str | None = None) -> Collection:
        """The collection, when it has train and test queries; otherwise the refusal names `path`."""
        self.require_parts(NEEDED, path)
        return Collection(
            name=self._name, documents=list(self._documents.values()), queries=list(self._queries.values())
        )


def _placed(message: str, path: Path | str | None, line: int | None, otherwise: type[Exception]) -> Exception:
    return otherwise(message) if path is None else InvalidFile(message, path=path, line=line)


def _line(*values: str) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", errors="surrogatepass")
