"""The BEIR layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv with query-id, corpus-id, score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from incdsi.documents import Query
from incdsi.errors import InvalidFile
from incdsi.readers.fields import require_text
from incdsi.readers.rows import OnError, read_rows, report

COLUMNS = ("query-id", "corpus-id", "score")


def is_beir(folder: Path) -> bool:
    """Whether the folder has a corpus."""
    return _present(folder, "corpus.jsonl") is not None


def corpus(folder: Path) -> Path:
    """The file with the documents."""
    return _required(folder, "corpus.jsonl")


def training_queries(folder: Path, on_error: OnError | None) -> dict[str, list[str]]:
    """Query texts by document id from qrels/train.tsv; none without that file.

    Other splits are for measuring and never given to the index.
    """
    queries: dict[str, list[str]] = {}
    if _present(folder / "qrels", "train.tsv") is not None:
        for query in judged_queries(folder, "train", on_error):
            queries.setdefault(query.document_id, []).append(query.text)
    return queries


def judged_queries(folder: Path, split: str | None, on_error: OnError | None) -> Iterator[Query]:
    """Each pair of query and document with a score above 0, of one split or of all."""
    texts = _texts(_required(folder, "queries.jsonl"), on_error)
    names = [f"{split}.tsv"] if split is not None else sorted(path.name for path in (folder / "qrels").glob("*.tsv"))
    for name in names:
        path = _required(folder / "qrels", name)
        for line, row in read_rows(path):
            try:
                query = _judged(row, texts)
            except ValueError as error:
                report(_placed(error, path, line), on_error)
                continue
            if query is not None:
                yield query


def _judged(row: dict[str, str] | InvalidFile, texts: dict[str, str]) -> Query | None:
    if isinstance(row, InvalidFile):
        raise row
    if missing := [name for name in COLUMNS if name not in row]:
        raise ValueError(f"missing column {', '.join(missing)}; the columns are {', '.join(COLUMNS)}")
    if row["query-id"] not in texts:
        raise ValueError(f"query id {row['query-id']!r} is not in queries.jsonl")
    try:
        relevant = float(row["score"]) > 0
    except ValueError as error:
        raise ValueError(f"expected score to be a number, found {row['score']!r}") from error
    document_id = require_text(row["corpus-id"], "corpus-id")
    return Query(text=texts[row["query-id"]], document_id=document_id) if relevant else None


def _texts(path: Path, on_error: OnError | None) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line, row in read_rows(path):
        try:
            query_id, text = _identified(row)
        except ValueError as error:
            report(_placed(error, path, line), on_error)
        else:
            texts[query_id] = text
    return texts


def _identified(row: dict[str, Any] | InvalidFile) -> tuple[str, str]:
    if isinstance(row, InvalidFile):
        raise row
    if not isinstance(row.get("_id"), str) or not isinstance(row.get("text"), str):
        raise ValueError("_id and text must be strings")
    return row["_id"], require_text(row["text"], "text")


def _placed(error: ValueError, path: Path, line: int) -> InvalidFile:
    return error if isinstance(error, InvalidFile) else InvalidFile(str(error), path=path, line=line)


def _present(folder: Path, name: str) -> Path | None:
    """The file or its gzipped form."""
    return next((folder / file for file in (name, f"{name}.gz") if (folder / file).is_file()), None)


def _required(folder: Path, name: str) -> Path:
    path = _present(folder, name)
    if path is None:
        raise InvalidFile("no such file; the BEIR layout needs it", path=folder / name)
    return path
