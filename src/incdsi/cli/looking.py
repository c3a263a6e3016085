"""get, info, export, version."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incdsi.cli.application import app, stopping
from incdsi.cli.opening import open_index, size_of
from incdsi.cli.options import (
    AsJson,
    Depth,
    IndexPlace,
    Mode,
    Quiet,
    SearchMode,
)
from incdsi.cli.output import as_line, document_json, emit, show, table, write_line
from incdsi.cli.progress import progress
from incdsi.cli.searching import TOGETHER
from incdsi.documents import Taught
from incdsi.errors import InvalidFile
from incdsi.progress import Progress
from incdsi.trec import one_word, run_line, write_lines

if TYPE_CHECKING:
    from incdsi.info import Info
    from incdsi.search_index import SearchIndex

PACKAGES = ("numpy", "onnxruntime", "tokenizers", "PyStemmer", "apsw", "torch", "sentence-transformers")


class Format(StrEnum):
    """What `export` writes."""

    jsonl = "jsonl"
    trec_run = "trec-run"


@app.command()
def get(
    document_id: Annotated[str, typer.Argument(metavar="ID", help="The document.")],
    index: IndexPlace,
    as_json: AsJson = False,
) -> None:
    """Show a document and what people asked for it.

    --json is the form that `add` and `update` read.

    \b
    Examples:
      incdsi get boots-17 --index shop
      incdsi get boots-17 --index shop --json
    """
    with open_index(index) as opened:
        document, asked = opened.get(document_id), opened.queries(document_id)
    if as_json:
        emit(document_json(document, asked))
    else:
        fields = [("id", document.id), ("title", document.title), *document.metadata.items()]
        questions = [("taught" if isinstance(text, Taught) else "asked", text) for text in asked]
        show(table(("", ""), [(name, _value(value)) for name, value in [*fields, *questions]]))
        show("", document.text)


def _value(value: object) -> str:
    """Metadata as people write it: a list as its values."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


@app.command()
def info(index: IndexPlace, as_json: AsJson = False) -> None:
    """Show counts, settings and measured quality.

    Quality is how well held-out queries are found, by each way of searching.

    \b
    Examples:
      incdsi info --index shop
      incdsi info --index shop --json
    """
    with open_index(index) as opened:
        found = opened.info()
    size = size_of(index)
    if as_json:
        emit({"path": index, "bytes": size, **{name: getattr(found, name) for name in found.__slots__}})
    else:
        show(table(("", ""), _facts(index, size, found)))
        show("", quality_table(found.quality) if found.quality else "no held-out queries yet: quality is not measured")


@app.command()
def export(
    index: IndexPlace,
    form: Annotated[Format, typer.Option("--format", help="Documents, or a run for trec_eval.")] = Format.jsonl,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="FILE", help="For trec-run: id and text on each line.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", dir_okay=False, help="Write here instead of stdout, whole or not."
        ),
    ] = None,
    k: Depth = 100,
    mode: SearchMode = Mode.fused,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write all documents, or the ranking of many queries.

    Documents are written with their queries, as `add` reads them. With -o,
    --json prints a summary; without it stdout is the export itself.

    \b
    Examples:
      incdsi export --index shop -o shop.jsonl
      incdsi export --index shop | gzip > shop.jsonl.gz
      incdsi export --index shop --format trec-run --queries topics.tsv -k 1000 -o run.trec
    """
    if form is Format.trec_run and queries is None:
        raise typer.BadParameter("trec-run needs a file of queries", param_hint="'--queries'")
    if form is Format.trec_run and as_json and output is None:
        raise typer.BadParameter("a TREC run is not JSON; write it to a file with -o", param_hint="'--json'")
    if form is Format.jsonl and queries is not None:
        raise typer.BadParameter("queries go with --format trec-run only", param_hint="'--queries'")
    with open_index(index) as opened, progress("exporting", hidden=as_json or quiet) as report:
        lines = _documents(opened, report) if queries is None else _run(opened, queries, k, mode, report)
        with stopping(
            lambda: f"stopped; {'the output is not whole' if output is None else f'{output} was not written'}"
        ):
            written = _write(lines, output)
    if output is not None:
        emit({"path": str(output), "lines": written}) if as_json else show(f"wrote {written:,} lines to {output}")


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show the versions of incdsi and what it stands on.

    \b
    Examples:
      incdsi version
      incdsi version --json
    """
    from incdsi.store.schema import format_version

    python = ".".join(str(part) for part in sys.version_info[:3])
    found = {"incdsi": _installed("incdsi"), "python": python, **{name: _installed(name) for name in PACKAGES}}
    if as_json:
        emit({**found, "index_format": format_version()})
    else:
        rows = [*found.items(), ("index format", f"format {format_version()}")]
        show(table(("", ""), [(name, value or "not installed") for name, value in rows]))


def quality_table(quality: Any) -> Any:
    """H@1, H@10 and MRR@10 of each way of searching."""
    rows = [(name, f"{q.hits_at_1:.1f}", f"{q.hits_at_10:.1f}", f"{q.mrr_at_10:.1f}") for name, q in quality.items()]
    asked = next(iter(quality.values())).queries
    return table((f"{asked:,} held-out quer{'y' if asked == 1 else 'ies'}", "H@1 %", "H@10 %", "MRR@10 %"), rows)


def _facts(place: str, size: int | None, found: Info) -> list[tuple[str, str]]:
    how, disk = found.hyperparameters, "" if size is None else f"{size / 1e6:,.1f} MB on disk, "
    return [
        ("index", f"{place}, {disk}version {found.version:,}"),
        ("documents", f"{found.documents:,}"),
        ("queries", f"{found.queries:,} ({found.generated_queries:,} generated, {found.held_out_queries:,} held out)"),
        ("preserved", f"{found.preserve_rows:,} queries that their documents win"),
        ("unresolved", f"{found.unresolved:,} placed beside documents that are deleted by now"),
        ("encoder", f"{found.encoder[:16]}, {found.dimension} dimensions"),
        ("language", found.language),
        ("method", f"{found.method}, {'tunes itself' if found.tuning else 'does not tune itself'}"),
        ("margins", f"retrieve {how.margins.retrieve:g}, preserve {how.margins.preserve:g}"),
        ("weights", f"retrieve {how.weights.retrieve:g}, anchor {how.weights.anchor:g} at {how.anchor_scale:g}"),
        ("fusion", f"{found.lexical_weight:g} lexical, of the rest {found.nearest_share:g} by the nearest text"),
        ("last tuned", _last_tuned(found)),
        *([] if found.vector_search == "exact" else [("vectors", f"by {found.vector_search}: a search may miss some")]),
    ]


def _last_tuned(found: Info) -> str:
    tuning = found.last_tuning
    if tuning is None:
        return "never"
    gains = (f"{mode} {tuning.before[mode].hits_at_1:.1f} -> {q.hits_at_1:.1f}" for mode, q in tuning.after.items())
    return f"at version {tuning.version:,} on {tuning.queries:,} held-out queries; H@1 {', '.join(gains)}"


def _documents(index: SearchIndex, report: Progress) -> Iterator[str]:
    total = len(index)
    for done, (document, asked) in enumerate(index.with_queries(), start=1):
        yield as_line(document_json(document, asked))
        report(done, total)


def _run(index: SearchIndex, source: str, k: int, mode: Mode, report: Progress) -> Iterator[str]:
    asked = list(_topics(source))
    for start in range(0, len(asked), TOGETHER):
        some = asked[start : start + TOGETHER]
        found = index.search_many([text for _, text in some], k, None, mode)
        for (name, _), hits in zip(some, found, strict=True):
            yield from (run_line(name, hit.document_id, hit.rank, hit.score) for hit in hits)
        report(start + len(some), len(asked))


def _topics(source: str) -> Iterator[tuple[str, str]]:
    """The id (else the line's number) and text of each query."""
    from incdsi.readers.rows import read_rows

    for line, row in read_rows(source):
        if isinstance(row, InvalidFile):
            raise row
        text = row.get("text", row.get("query"))
        if not isinstance(text, str) or not text.strip():
            raise InvalidFile(f"no query text, found only {', '.join(row)}", path=source, line=line)
        name = next((row[key] for key in ("id", "_id", "query_id", "qid") if row.get(key) is not None), line)
        yield one_word(str(name)), text


def _write(lines: Iterable[str], output: Path | None) -> int:
    """How many lines were written to the file; without one they go to stdout."""
    if output is not None:
        return write_lines(output, lines)
    for line in lines:
        write_line(line)
    return 0


def _installed(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
