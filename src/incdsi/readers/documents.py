"""`read_documents`: a file, a folder of text files, a BEIR folder or standard input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, IncDSIError, InvalidFile
from incdsi.readers import beir, folder, numbers
from incdsi.readers.fields import document_from
from incdsi.readers.rows import OnError, is_table, read_rows, report

Read = tuple[Document, list[str]]
Placed = tuple[str, Read | IncDSIError]  # where it stands, and what stands there


def read_documents(source: str | Path, *, on_error: OnError | None = None) -> Iterator[Read]:
    """Documents with their inline queries, in the order of the source, one at a time.

    JSONL (also "-", standard input), CSV and TSV, gzipped or not: `id`, `title`, `text`, `queries`; plain
    values beside them become metadata (in a table by column: see `numbers.py`). A folder of
    .txt and .md files: the id is the relative path, the title the first heading or the name. A BEIR
    folder: the queries are those its qrels/train.tsv gives.

    A bad line is an InvalidFile, an id that comes twice a DuplicateDocument, both with their place;
    with `on_error` they are handed over and left out. No document at all is an InvalidFile.
    """
    first: dict[str, str] = {}
    count = 0
    for place, found in _placed(source, on_error):
        count += 1
        if isinstance(found, IncDSIError):
            report(found, on_error)
        elif found[0].id in first:
            report(_duplicate(found[0].id, first[found[0].id], place), on_error)
        else:
            first[found[0].id] = place
            yield found
    if count == 0:
        raise InvalidFile("no documents found", path=source)


def _placed(source: str | Path, on_error: OnError | None) -> Iterator[Placed]:
    path = Path(source)
    if str(source) != "-" and not path.exists():
        raise InvalidFile("no such file or folder; check the path", path=path)
    if path.is_dir() and not beir.is_beir(path):
        return folder.placed_texts(path)
    if path.suffix.lower() in folder.ENDINGS:
        return iter([folder.placed_text(path, path.name)])
    if path.is_dir():
        return _rows(beir.corpus(path), beir.training_queries(path, on_error))
    return _rows(source, {})


def _rows(source: str | Path, queries: dict[str, list[str]]) -> Iterator[Placed]:
    columns = numbers.number_columns(source) if is_table(source) else None
    for line, row in read_rows(source):
        place = f"{source}:{line}"
        if isinstance(row, InvalidFile):
            yield place, row
            continue
        try:
            document, own = document_from(row if columns is None else numbers.typed(row, columns))
        except ValueError as error:
            yield place, InvalidFile(str(error), path=source, line=line)
        else:
            yield place, (document, own + queries.get(document.id, []))


def _duplicate(document_id: str, first: str, second: str) -> DuplicateDocument:
    return DuplicateDocument(f"{second}: duplicate id {document_id!r}, already used at {first}; remove one")
