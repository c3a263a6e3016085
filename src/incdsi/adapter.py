"""What adapters for other frameworks share: opening, documents with any JSON metadata, ids that may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from incdsi.documents import Document
from incdsi.errors import InvalidDocument, UnknownDocument
from incdsi.index import Index
from incdsi.search_index import SearchIndex

KEPT = "_kept"  # the metadata field with what is no metadata of incdsi's, as JSON


def opened(index: SearchIndex | str | Path, *, key: str | None = None, create: bool = False) -> SearchIndex:
    """The index itself, or the one in that folder or at that http(s) address; `create` the folder if missing."""
    if isinstance(index, str) and index.startswith(("http://", "https://")):
        return Index.open(index, key=key)
    return Index.open(Path(index), create=create) if isinstance(index, str | Path) else index


def packed(id: str, text: str, metadata: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> Document:
    """A document of any JSON metadata; a text under `title` becomes its title and stays in the metadata.

    What cannot be filtered on (mappings, lists of lists) and what else is `kept` lie in one field as JSON.
    """
    if KEPT in metadata:
        raise InvalidDocument(f"document {id!r}: the metadata name {KEPT!r} is taken; rename it")
    nested = {name: value for name, value in metadata.items() if _is_nested(value)}
    flat = {name: value for name, value in metadata.items() if name not in nested}
    rest = {name: value for name, value in (("metadata", nested), ("kept", dict(kept or {}))) if value}
    title = metadata.get("title")
    return Document(
        id=id,
        text=text,
        title=title if isinstance(title, str) else "",
        metadata=flat | ({KEPT: _dumped(id, rest)} if rest else {}),
    )


def unpacked(document: Document) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata a document was `packed` with, lists as lists, and what was kept beside it."""
    rest = json.loads(str(document.metadata.get(KEPT, "{}")))
    flat = {name: _listed(value) for name, value in document.metadata.items() if name != KEPT}
    if document.title:
        flat.setdefault("title", document.title)
    return flat | rest.get("metadata", {}), rest.get("kept", {})


def delete_known(index: SearchIndex, ids: Iterable[str]) -> int:
    """Delete those of these documents that are there; how many."""
    wanted = list(dict.fromkeys(ids))
    while wanted:
        try:
            return index.delete(wanted)
        except UnknownDocument:  # or one that was deleted since we looked
            wanted = [document.id for document in index.documents(ids=wanted, missing_ok=True)]
    return 0


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(one, Mapping | list | tuple) for one in value)
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _dumped(id: str, rest: Mapping[str, Any]) -> str:
    try:
        return json.dumps(rest, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidDocument(f"document {id!r}: this metadata cannot be kept as JSON: {error}") from error
