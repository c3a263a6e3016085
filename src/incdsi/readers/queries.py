"""`read_queries`: queries with the id of the document each should find."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from incdsi.documents import Query
from incdsi.errors import InvalidFile, UnknownDocument
from incdsi.readers import beir, irds
from incdsi.readers.fields import query_from
from incdsi.readers.rows import OnError, read_rows, report


def read_queries(source: str | Path, *, split: str | None = None, on_error: OnError | None = None) -> Iterator[Query]:
    """Queries of a JSONL or CSV file (`query` and `id`, or `text` and `document_id`), of a BEIR folder, of a
    collection of ir_datasets (`irds:beir/scifact/test`), or of "-".

    `split` keeps only those whose field `split` says so; other fields are passed over, a query's own id
    among them: an index knows a query by its text and its document, and the same text for two documents is
    two queries. A bad line is an InvalidFile with its place, or is handed to `on_error`; no query at all is
    an InvalidFile.
    """
    if irds.is_irds(source):
        yield from irds.judged_queries(source, split, on_error)
        return
    if str(source) != "-" and Path(source).is_dir():
        yield from beir.judged_queries(Path(source), split, on_error)
        return
    count = 0
    for line, row in read_rows(source):
        count += 1
        try:
            if isinstance(row, InvalidFile):
                raise row
            if split is not None and row.get("split") != split:
                continue
            query = query_from(row)
        except InvalidFile as error:
            report(error, on_error)
        except ValueError as error:
            report(InvalidFile(str(error), path=source, line=line), on_error)
        else:
            yield query
    if count == 0:
        raise InvalidFile("no queries found", path=source)


def group_queries(
    queries: Iterable[Query], documents: Container[str], *, on_error: OnError | None = None
) -> dict[str, list[str]]:
    """Query texts by document id; a query for a document that is not there is an UnknownDocument."""
    grouped: dict[str, list[str]] = {}
    for query in queries:
        if query.document_id in documents:
            grouped.setdefault(query.document_id, []).append(query.text)
        else:
            report(
                UnknownDocument(
                    f"query {query.text!r} is for an unknown document {query.document_id!r}; add the document first"
                ),
                on_error,
            )
    return grouped
