"""`read_documents`: a file, a folder of text files, a BEIR folder or standard input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, IncDSIError, InvalidFile
from incdsi.readers import beir, folder, irds
from incdsi.readers.columns import column_kinds, typed
from incdsi.readers.fields import PLAIN, Layout, document_from
from incdsi.readers.rows import OnError, Row, format_of, read_rows, report, rereadable

Read = tuple[Document, list[str]]
Placed = tuple[str, Read | IncDSIError]  # where it stands, and what stands there


def read_documents(source: str | Path, *, layout: Layout = PLAIN, on_error: OnError | None = None) -> Iterator[Read]:
    """Documents with their inline queries, in the order of the source, one at a time.

    JSONL (also "-", standard input), CSV and TSV, gzipped or not, and Parquet: `id`, `title`, `text`, `queries`, or
    what `layout` names; what is beside them becomes metadata (of CSV and TSV by column: see `columns.py`). A folder of
    .txt, .md and .rst files: the id is the relative path, the title the first heading or the name. A BEIR
    folder: the queries are those its qrels/train.tsv gives. `irds:beir/scifact/train`, a collection of ir_datasets:
    the queries are its own if it is named `train`.

    A bad line is an InvalidFile, an id that comes twice a DuplicateDocument, both with their place;
    with `on_error` they are handed over and left out. No document at all is an InvalidFile, and so is a table without
    the columns it must have.
    """
    first: dict[str, str] = {}
    count = 0
    for place, found in _placed(source, layout, on_error):
        count += 1
        if isinstance(found, IncDSIError):
            report(found, on_error)
        elif found[0].id in first:
            report(_duplicate(found[0].id, first[found[0].id], place), on_error)
        else:
            first[found[0].id] = place
            yield found
    if count == 0:
        inside = ": there are no .txt, .md or .rst files in this folder" if Path(source).is_dir() else ""
        raise InvalidFile(f"no documents found{inside}", path=source)


def _placed(source: str | Path, layout: Layout, on_error: OnError | None) -> Iterator[Placed]:
    if irds.is_irds(source):
        return _collection(source, layout, on_error)
    path = Path(source)
    if str(source) != "-" and not path.exists():
        raise InvalidFile("no such file or folder; check the path", path=path)
    if path.is_dir() and beir.is_beir(path):
        return _rows(beir.corpus(path), beir.training_queries(path, on_error), layout)
    texts = path.is_dir() or (layout.format is None and path.suffix.lower() in folder.ENDINGS)
    if texts and layout != PLAIN:
        raise InvalidFile("text files have no fields and no format to name; leave these options out", path=path)
    if path.is_dir():
        return folder.placed_texts(path)
    return iter([folder.placed_text(path, path.name)]) if texts else _rows(source, {}, layout)


def _collection(source: str | Path, layout: Layout, on_error: OnError | None) -> Iterator[Placed]:
    if layout != PLAIN:
        raise InvalidFile("ir-datasets names its fields itself; leave these options out", path=source)
    queries = irds.training_queries(source, on_error)
    for place, found in irds.documents(source):
        yield place, found if isinstance(found, IncDSIError) else (found, queries.get(found.id, []))


def _rows(source: str | Path, queries: dict[str, list[str]], layout: Layout) -> Iterator[Placed]:
    for line, row in _typed(source, layout):
        place = f"{source}:{line}"
        if isinstance(row, InvalidFile):
            yield place, row
            continue
        try:
            document, own = document_from(row, layout)
        except ValueError as error:
            yield place, InvalidFile(str(error), path=source, line=line)
        else:
            yield place, (document, own + queries.get(document.id, []))


def _typed(source: str | Path, layout: Layout) -> Iterator[Row]:
    """The rows of a source, those of a table without empty cells and by the kinds of its columns."""
    kind = layout.format or format_of(source)
    if kind == "jsonl":
        yield from read_rows(source, kind)
        return
    told = layout.types and kind != "parquet"  # which tells its types itself
    with rereadable(source) if told or kind == "parquet" else nullcontext() as copy:
        kinds = column_kinds(read_rows(source, kind, copy=copy), layout.own) if told else {}
        for line, row in _complete(read_rows(source, kind, copy=copy), source, layout):
            try:
                yield line, row if isinstance(row, InvalidFile) else typed(row, kinds)
            except ValueError as error:
                yield line, InvalidFile(str(error), path=source, line=line)


def _complete(rows: Iterator[Row], source: str | Path, layout: Layout) -> Iterator[Row]:
    """The rows of a table, which is refused at the first of them when it lacks a column."""
    known = False
    for line, row in rows:
        if not known and not isinstance(row, InvalidFile):
            try:
                layout.require_columns(row)
            except ValueError as error:
                raise InvalidFile(str(error), path=source) from error
            known = True
        yield line, row


def _duplicate(document_id: str, first: str, second: str) -> DuplicateDocument:
    return DuplicateDocument(f"{second}: duplicate id {document_id!r}, already used at {first}; remove one")
