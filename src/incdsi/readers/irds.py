"""Collections of ir_datasets, named `irds:beir/scifact/train`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from incdsi.documents import Document, Query
from incdsi.errors import InvalidFile, MissingExtra
from incdsi.readers.rows import OnError, report

PREFIX = "irds:"


def is_irds(source: str | Path) -> bool:
    """Whether it names a collection, not a file."""
    return str(source).startswith(PREFIX)


def documents(source: str | Path) -> Iterator[tuple[str, Document | InvalidFile]]:
    """Each document with its place; plain fields beside title and text are metadata."""
    for number, found in enumerate(_part(source, "docs").docs_iter(), start=1):
        place = f"{source}:{number}"
        try:
            yield place, _document(found)
        except ValueError as error:
            yield place, InvalidFile(str(error), path=source, line=number)


def training_queries(source: str | Path, on_error: OnError | None) -> dict[str, list[str]]:
    """Query texts by document id if it is a collection's part `train`; other parts are for measuring."""
    queries: dict[str, list[str]] = {}
    if str(source).endswith("/train"):
        for query in judged_queries(source, None, on_error):
            queries.setdefault(query.document_id, []).append(query.text)
    return queries


def judged_queries(source: str | Path, split: str | None, on_error: OnError | None) -> Iterator[Query]:
    """Each pair of query and document with a relevance above 0, of the collection or of its part `split`."""
    return (query for _, query in judged_with_ids(source, split, on_error))


def judged_with_ids(source: str | Path, split: str | None, on_error: OnError | None) -> Iterator[tuple[str, Query]]:
    """The same, each with the query's id."""
    name = str(source) if split is None else f"{source}/{split}"
    texts = {query.query_id: query.default_text() for query in _part(name, "queries").queries_iter()}
    for number, found in enumerate(_part(name, "qrels").qrels_iter(), start=1):
        if found.relevance <= 0:
            continue
        if found.query_id in texts:
            yield found.query_id, Query(text=texts[found.query_id], document_id=found.doc_id)
        else:
            report(InvalidFile(f"unknown query {found.query_id!r}", path=f"{name} qrels", line=number), on_error)


def _document(found: Any) -> Document:
    fields = found._asdict()
    own, title = fields.pop("text", None), fields.pop("title", None)
    text = own if isinstance(own, str) else found.default_text()
    # Without a field `text` the default text is made of others, and holds the title too.
    metadata = {
        name: value
        for name, value in fields.items()
        if name != "doc_id" and isinstance(value, str | int | float) and (text == own or str(value) not in text)
    }
    return Document(id=found.doc_id, title=title or "" if text == own else "", text=text, metadata=metadata)


def is_known(source: str | Path) -> bool:
    """Whether ir_datasets has a collection, or a part of one, of that name."""
    try:
        _loaded(source)
    except InvalidFile:
        return False
    return True


def _part(source: str | Path, part: str) -> Any:
    dataset = _loaded(source)
    if not getattr(dataset, f"has_{part}")():
        raise InvalidFile(f"this dataset of ir-datasets has no {part}; name a part of it, such as /train", path=source)
    return dataset


def _loaded(source: str | Path) -> Any:
    name = str(source).removeprefix(PREFIX)
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtra(f"{source} needs ir-datasets; install it with: pip install 'incdsi[eval]'") from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise InvalidFile(f"ir-datasets has no dataset {name!r}; see `ir_datasets list`", path=source) from error
