"""Files to batches that are ready to be written; what is wrong with a batch is known before any of it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from incdsi.documents import Document
from incdsi.errors import IncDSIError

if TYPE_CHECKING:
    from incdsi.readers import Layout, OnError


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Documents with their queries, and a sentence about each line that could not be read."""

    documents: list[Document]
    queries: dict[str, list[str]]
    problems: list[str]


def read_batches(
    source: str, query_file: str | None = None, size: int | None = None, layout: Layout | None = None
) -> Iterator[Batch]:
    """The whole source as one batch, or batches of `size` as they come.

    Queries whose document never came are problems of the last batch.
    """
    from incdsi.readers import Layout, read_documents

    problems: list[str] = []

    def on_error(error: IncDSIError) -> None:
        problems.append(str(error))

    asked = _asked(query_file, on_error) if query_file is not None else {}
    reader = read_documents(source, layout=layout or Layout(), on_error=on_error)
    while True:
        read = list(islice(reader, size))
        last = size is None or len(read) < size
        queries = {document.id: own + asked.pop(document.id, []) for document, own in read}
        if last:
            problems += [_orphan(query_file, document_id) for document_id in asked]
        yield Batch(documents=[document for document, _ in read], queries=queries, problems=problems[:])
        problems.clear()
        if last:
            return


def left_out(source: str | Path) -> list[str]:
    """A sentence about the files of a folder that are of other kinds than are read; none about a file."""
    from incdsi.readers.beir import is_beir
    from incdsi.readers.folder import ENDINGS, other_endings

    folder = Path(source)
    others = other_endings(folder) if folder.is_dir() and not is_beir(folder) else {}
    if not others:
        return []
    kinds = ", ".join(sorted(ending or "no ending" for ending in others))
    files = "1 file was" if sum(others.values()) == 1 else f"{sum(others.values()):,} files were"
    return [f"{files} left out ({kinds}); of a folder {', '.join(ENDINGS)} are read, add tables one by one"]


def stdin_lines() -> Iterator[str]:
    """What stands on each line of standard input, empty ones left out."""
    for line in sys.stdin.buffer:
        if text := line.decode("utf-8").strip():
            yield text


def _asked(query_file: str, on_error: OnError) -> dict[str, list[str]]:
    from incdsi.readers import read_queries

    asked: dict[str, list[str]] = {}
    for query in read_queries(query_file, on_error=on_error):
        asked.setdefault(query.document_id, []).append(query.text)
    return asked


def _orphan(query_file: str | None, document_id: str) -> str:
    return (
        f"{query_file}: has queries for {document_id!r}, which is not in the same source; "
        "add that document, or teach them if it is in the index"
    )
