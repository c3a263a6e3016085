"""search, get, info, export, version."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incdsi.cli.app import app, stopping
from incdsi.cli.opening import open_index, size_of
from incdsi.cli.options import (
    AsJson,
    Depth,
    Filter,
    IndexPlace,
    LeastConfidence,
    Mode,
    Quiet,
    SearchMode,
    parse_filter,
)
from incdsi.cli.output import as_line, document_json, emit, hit_json, hits_table, show, table, write_line
from incdsi.cli.progress import progress
from incdsi.cli.reading import stdin_lines
from incdsi.documents import Taught
from incdsi.errors import InvalidFile
from incdsi.progress import Progress
from incdsi.trec import one_word, run_line, write_lines

if TYPE_CHECKING:
    from incdsi.info import Info
    from incdsi.search_index import SearchIndex

PACKAGES = ("numpy", "onnxruntime", "tokenizers", "PyStemmer", "apsw", "torch", "sentence-transformers")


TOGETHER = 64  # queries of a file that are answered together


class Format(StrEnum):
    """What `export` writes."""

    jsonl = "jsonl"
    trec_run = "trec-run"


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for, or - for one query a line on stdin.")],
    index: IndexPlace,
    k: Depth = 10,
    where: Filter = None,
    mode: SearchMode = Mode.fused,
    least: LeastConfidence = None,
    passages: Annotated[
        int, typer.Option("--passages", min=1, metavar="N", help="Show N passages of each long document.")
    ] = 1,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave texts out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents.

    Each is found once, a long one by the passage that matches best. --json has a long document's
    passages in place of its text; `incdsi get` shows it whole.

    \b
    Examples:
      incdsi search "waterproof hiking boots" --index shop
      incdsi search "boots" --index shop -k 3 --where '{"lang": "en", "price": {"lt": 100}}'
      incdsi search "how do I care for leather" --index shop --passages 3
      incdsi search "boots" --index shop --json --no-text
      incdsi search - --index shop --mode lexical --json < queries.txt
    """
    chosen = parse_filter(where)
    with open_index(index) as opened:
        for texts in _queries(query):
            begin = time.perf_counter()
            found = opened.search_many(texts, k, chosen, mode, least=least, passages=passages)
            spent = 1000 * (time.perf_counter() - begin) / len(texts)
            for text, hits in zip(texts, found, strict=True):
                if as_json:
                    hit_list = [hit_json(hit, texts=not no_text) for hit in hits]
                    emit({"query": text, "mode": mode, "milliseconds": spent, "hits": hit_list})
                else:
                    nothing = "" if hits else _nothing(opened, mode, least, filtered=chosen is not None)
                    show(*([f"\n{text}"] if query == "-" else []))
                    show(nothing or hits_table(hits, texts=not no_text))


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
        ("documents", f"{found.documents:,} documents"),
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


def _nothing(index: SearchIndex, mode: Mode, least: float | None, *, filtered: bool) -> str:
    """Why there is no hit."""
    if not len(index):
        return "no documents"
    if least is not None:
        return f"no hit is right with a probability of {least:g} or more"
    if filtered:
        shares = " and shares a word with the query" if mode is Mode.lexical else ""
        return f"no document passes the filter{shares}"
    return "no document shares a word with the query"


def _queries(given: str) -> Iterator[list[str]]:
    """The query, or those on stdin: many at once from a file, and from whoever may wait for an answer one by one."""
    if given != "-":
        yield [given]
        return
    lines, size = stdin_lines(), 1
    with contextlib.suppress(OSError):  # no file at all
        size = TOGETHER if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode) else 1
    while texts := list(islice(lines, size)):
        yield texts


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
