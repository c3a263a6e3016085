"""Rows to nouns: which fields a document and a query have, and what is refused.

All functions raise ValueError with a sentence; the caller adds file and line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from incdsi.documents import Document, MetadataValue, Query, Taught

OWN = ("id", "_id", "title", "text", "queries", "metadata")


def document_from(row: Mapping[str, Any]) -> tuple[Document, list[str]]:
    """A document and its inline queries; what else the row has becomes metadata.

    Those in a list `taught` are `Taught`; another value of that name is metadata.
    """
    document = Document(
        id=_identity(row, ("id", "_id"), "id"),
        title=_text(row, "title"),
        text=_text(row, "text"),
        metadata=_metadata(row),
    )
    taught = [Taught(text) for text in _queries(row["taught"], "taught")] if isinstance(row.get("taught"), list) else []
    queries = [*_queries(row.get("queries"), "queries"), *taught]
    if not document.content and not queries:
        raise ValueError(f"document {document.id!r} has no text, title or queries; give it one of them")
    return document, queries


def query_from(row: Mapping[str, Any]) -> Query:
    """A query with the id of its document, `document_id` or `doc_id`."""
    document_id = _identity(row, ("document_id", "doc_id"), "document_id")
    if row.get("text") is None:
        raise ValueError(f"field 'text' is missing, found {_names(row)}")
    return Query(text=_text(row, "text"), document_id=document_id)


def require_text(value: str, name: str) -> str:
    """The string itself, if it can be written as UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is not valid UTF-8: broken character at {error.start}") from error
    return value


def _identity(row: Mapping[str, Any], names: tuple[str, ...], wanted: str) -> str:
    """The first of the names the row has; a whole number is taken as its digits."""
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise ValueError(f"field {wanted!r} is missing or empty, found {_names(row)}")
    if not isinstance(value, str):
        raise ValueError(f"expected {wanted} to be a string, found {type(value).__name__}")
    return require_text(value, wanted)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"expected {name} to be a string, found {type(value).__name__}")
    return require_text(value, name)


def _metadata(row: Mapping[str, Any]) -> dict[str, MetadataValue]:
    given = row.get("metadata") or {}
    if isinstance(given, str):
        given = _parsed("metadata", given)
    if not isinstance(given, Mapping):
        raise ValueError(f"expected metadata to be an object, found {type(given).__name__}")
    extra = {name: value for name, value in row.items() if not _is_own(row, name)}
    if twice := extra.keys() & given.keys():
        raise ValueError(f"{min(twice)!r} is given both inside metadata and beside it; keep one")
    metadata: dict[str, MetadataValue] = {**extra, **given}
    for name, value in metadata.items():
        require_text(name, "a metadata name")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, float) and not math.isfinite(one):
                raise ValueError(f"expected metadata {name!r} to be a finite number, found {one}; write null instead")
            if isinstance(one, str):
                require_text(one, f"metadata {name!r}")
    return metadata


def _is_own(row: Mapping[str, Any], name: str) -> bool:
    """Whether it is one of the fields that are no metadata."""
    return name in OWN or (name == "taught" and isinstance(row[name], list))


def _queries(value: Any, name: str) -> list[str]:
    if isinstance(value, str):  # a CSV cell
        value = _parsed(name, value) if value.strip() else []
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"expected {name} to be a list of strings, found {_shown(value)}")
    return [require_text(text, name) for text in value if text.strip()]


def _parsed(name: str, cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not valid JSON: {_shown(cell)}") from error


def _names(row: Mapping[str, Any]) -> str:
    return "only " + ", ".join(repr(name) for name in list(row)[:8]) if row else "no fields"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
