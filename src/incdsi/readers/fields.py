"""Rows to nouns: which fields a document and a query have, and what is refused.

All functions raise ValueError with a sentence; the caller adds file and line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from incdsi.clicks import Click
from incdsi.documents import Document, MetadataValue, Query, Taught
from incdsi.readers.rows import Format


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a file is laid out: its format, unless the ending tells; which fields are a document's id, title and text,
    unless they are called so; whether a table's columns are told apart by what they hold, or all text."""

    id: str | None = None
    title: str | None = None
    text: tuple[str, ...] = ()
    format: Format | None = None
    types: bool = True

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The fields an id may be in."""
        return (self.id,) if self.id is not None else ("id", "_id")

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The field of the title, if there is one: what is named as text is not the title too."""
        return (self.title,) if self.title is not None else () if "title" in self.text else ("title",)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The fields whose lines are the text."""
        return self.text or ("text",)

    @cached_property
    def own(self) -> frozenset[str]:
        """The fields that are no metadata."""
        return frozenset({*self.ids, *self.titles, *self.texts, "queries", "metadata"})

    def require_columns(self, columns: Iterable[str]) -> None:
        """Refuse a table that lacks a column it must have, once for all its rows."""
        there = list(columns)
        missing = [name for name in (self.id, self.title, *self.text) if name is not None and name not in there]
        flags = []
        if self.id is None and not {*self.ids} & {*there}:
            missing.append("id")
            flags.append("--id-field")
        if not self.text and not {*self.titles, "text", "queries"} & {*there}:
            missing.append("text")
            flags.append("--text-field")
        if missing:
            advice = f"; say which to use with {' and '.join(flags)}" if flags else ""
            raise ValueError(f"no column {' or '.join(map(repr, missing))}; the columns are {', '.join(there)}{advice}")


PLAIN = Layout()


def document_from(row: Mapping[str, Any], layout: Layout = PLAIN) -> tuple[Document, list[str]]:
    """A document and its inline queries; what else the row has becomes metadata.

    Those in a list `taught` are `Taught`; another value of that name is metadata.
    """
    document = Document(
        id=_identity(row, layout.ids, layout.ids[0], "; name another with --id-field"),
        title=_lines(row, layout.titles),
        text=_lines(row, layout.texts),
        metadata=_metadata(row, layout),
    )
    taught = [Taught(text) for text in _queries(row["taught"], "taught")] if isinstance(row.get("taught"), list) else []
    queries = [*_queries(row.get("queries"), "queries"), *taught]
    if not document.content and not queries:
        raise ValueError(f"no text, title or queries, found {_names(row)}; name the fields to search with --text-field")
    return document, queries


def query_from(row: Mapping[str, Any]) -> Query:
    """`query` with the `id` of its document; or `text` with `document_id` or `doc_id`, and an `id` of its own."""
    name = "query" if row.get("query") is not None else "text"
    if row.get(name) is None:
        raise ValueError(f"field 'query' is missing, found {_names(row)}")
    ids = ("document_id", "doc_id", *(["id"] if name == "query" else []))
    return Query(text=_text(row, name), document_id=_identity(row, ids, "id" if name == "query" else "document_id"))


def click_from(row: Mapping[str, Any]) -> Click:
    """A query, the id of the document that was clicked, and how often if `count` says so."""
    document_id = _identity(row, ("document_id", "doc_id", "id"), "id")
    count = row.get("count")
    if isinstance(count, str) and count.strip().isdecimal():  # a CSV cell
        count = int(count)
    if row.get("query") is None:  # a text may be a document's
        raise ValueError(f"field 'query' is missing, found {_names(row)}")
    return Click(question_from(row), document_id, 1 if count is None or count == "" else count)


def question_from(row: Mapping[str, Any]) -> str:
    """What was asked: `query` or `text`."""
    name = "query" if row.get("query") is not None else "text"
    if not _text(row, name).strip():
        raise ValueError(f"field 'query' is missing or empty, found {_names(row)}")
    return _text(row, name)


def require_text(value: str, name: str) -> str:
    """The string itself, if it can be written as UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is not valid UTF-8: broken character at {error.start}") from error
    return value


def _identity(row: Mapping[str, Any], names: tuple[str, ...], wanted: str, advice: str = "") -> str:
    """The first of the names the row has; a whole number is taken as its digits."""
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise ValueError(f"field {wanted!r} is missing or empty, found {_names(row)}{advice}")
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


def _lines(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return "\n".join(filter(None, (_text(row, name) for name in names)))


def _metadata(row: Mapping[str, Any], layout: Layout) -> dict[str, MetadataValue]:
    given = row.get("metadata") or {}
    if isinstance(given, str):
        given = _parsed("metadata", given)
    if not isinstance(given, Mapping):
        raise ValueError(f"expected metadata to be an object, found {type(given).__name__}")
    extra = {name: value for name, value in row.items() if not _is_own(row, name, layout)}
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


def _is_own(row: Mapping[str, Any], name: str, layout: Layout) -> bool:
    """Whether it is one of the fields that are no metadata."""
    return name in layout.own or (name == "taught" and isinstance(row[name], list))


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
