"""Our own layout: docs.jsonl with id, title, text, and queries.jsonl with id, text, doc_id, split; gzipped or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from incdsi.durable import appearing_folder
from incdsi.readers.fields import document_from
from incdsi_lab.collection import Collection, Gathering, Judged, Part
from incdsi_lab.data.fields import refusing, required_file, string, whole_rows


def read_jsonl(folder: Path | str, name: str | None = None) -> Collection:
    """The collection in a folder, called `name`, or else like the folder.

    Each query has one of the splits train, val and test; without val, `splits.split` takes it from train.
    """
    source = Path(folder)
    gathering = Gathering(name or source.resolve().name)
    documents = required_file(source, "docs.jsonl")
    for line, row in whole_rows(documents):
        with refusing(documents, line):
            document, _ = document_from(row)
        gathering.add_document(document, documents, line)
    queries = required_file(source, "queries.jsonl")
    for line, row in whole_rows(queries):
        with refusing(queries, line):
            query = _judged(row)
        gathering.add_query(query, queries, line)
    return gathering.collection(queries)


def write_jsonl(collection: Collection, folder: Path) -> None:
    """The collection as `read_jsonl` reads it; the folder appears when it is complete."""
    rows = {
        "docs": [{"id": one.id, "title": one.title, "text": one.text} for one in collection.documents],
        "queries": [
            {"id": one.id, "text": one.text, "doc_id": one.document_id, "split": one.split}
            for one in collection.queries
        ],
    }
    with appearing_folder(folder) as unfinished:
        for name, some in rows.items():
            with gzip.open(unfinished / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in some)


def _judged(row: Mapping[str, Any]) -> Judged:
    return Judged(
        id=string(row, "id", "_id"),
        text=string(row, "text"),
        document_id=string(row, "doc_id", "document_id"),
        split=cast(Part, string(row, "split")),
    )
