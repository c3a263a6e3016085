"""add, update, upsert, delete, resolve, teach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from incdsi.cli.application import app
from incdsi.cli.changing import ADD, UPDATE, UPSERT, Change
from incdsi.cli.opening import known, open_folder, open_index, open_or_create
from incdsi.cli.options import (
    AsJson,
    EncoderName,
    FileFormat,
    Filter,
    GeneratorName,
    IdField,
    IndexPath,
    IndexPlace,
    Language,
    NoTypes,
    QueryFile,
    Quiet,
    SkipBad,
    Source,
    TextFields,
    TitleField,
    Tuning,
    file_layout,
    parse_filter,
)
from incdsi.cli.output import conflicts_table, count, emit, sentences, show
from incdsi.cli.progress import progress
from incdsi.cli.reading import left_out, read_batches, stdin_lines
from incdsi.errors import UnknownDocument

if TYPE_CHECKING:
    from incdsi.search_index import SearchIndex

BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch", min=1, metavar="N", help="Read, check and commit N documents at a time.", show_default=False
    ),
]


@app.command()
def add(
    source: Source,
    index: IndexPlace,
    encoder: EncoderName = None,
    generator: GeneratorName = None,
    language: Language = None,
    queries: QueryFile = None,
    skip_bad: SkipBad = False,
    tuning: Tuning = None,
    batch: BatchSize = None,
    id_field: IdField = None,
    title_field: TitleField = None,
    text_field: TextFields = None,
    format: FileFormat = None,
    no_types: NoTypes = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add documents; the index is created if missing.

    The source is checked first: one bad line, or one id that is there already, and nothing is added,
    unless --skip-bad takes the rest. After Ctrl-C the same command with --skip-bad goes on.

    \b
    Examples:
      incdsi add docs.jsonl --index shop
      incdsi add docs/ --index shop --queries log.jsonl
      incdsi add products.csv --index shop --id-field sku --title-field name --text-field description
      incdsi add docs.jsonl --index shop --generator t5:models/doc2query
      zcat docs.jsonl.gz | incdsi add - --index shop --batch 1000 --json
    """
    layout = file_layout(id_field, title_field, text_field, format, no_types)
    change = Change(verb=ADD, skip_bad=skip_bad, hidden=as_json or quiet)
    change.run(
        read_batches(source, queries, batch, layout),
        lambda: open_or_create(index, encoder, tuning, generator, language=language, hidden=as_json or quiet),
    )
    change.show(as_json=as_json, quiet=quiet, others=left_out(source))


@app.command()
def update(
    source: Source,
    index: IndexPlace,
    queries: QueryFile = None,
    skip_bad: SkipBad = False,
    id_field: IdField = None,
    title_field: TitleField = None,
    text_field: TextFields = None,
    format: FileFormat = None,
    no_types: NoTypes = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Replace documents that are there.

    Text, title and metadata are replaced; what people asked for them is kept.

    \b
    Examples:
      incdsi update docs.jsonl --index shop
      incdsi get boots-17 --index shop --json | sed 's/leather/canvas/' | incdsi update - --index shop
    """
    layout = file_layout(id_field, title_field, text_field, format, no_types)
    change = Change(verb=UPDATE, skip_bad=skip_bad, hidden=as_json or quiet)
    change.run(read_batches(source, queries, layout=layout), lambda: open_index(index))
    change.show(as_json=as_json, quiet=quiet)


@app.command()
def upsert(
    source: Source,
    index: IndexPlace,
    encoder: EncoderName = None,
    language: Language = None,
    queries: QueryFile = None,
    skip_bad: SkipBad = False,
    id_field: IdField = None,
    title_field: TitleField = None,
    text_field: TextFields = None,
    format: FileFormat = None,
    no_types: NoTypes = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Update documents that are there and add those that are not.

    \b
    Examples:
      incdsi upsert docs.jsonl --index shop
      incdsi upsert - --index shop --skip-bad --json < docs.jsonl
    """
    layout = file_layout(id_field, title_field, text_field, format, no_types)
    change = Change(verb=UPSERT, skip_bad=skip_bad, hidden=as_json or quiet)
    change.run(
        read_batches(source, queries, layout=layout),
        lambda: open_or_create(index, encoder, language=language, hidden=as_json or quiet),
    )
    change.show(as_json=as_json, quiet=quiet, others=left_out(source))


@app.command()
def delete(
    index: IndexPlace,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids, or - for one a line on stdin.")] = None,
    where: Filter = None,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Also place anew the documents that were placed with it present.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Remove documents by id or by a filter.

    Their text and queries go too. Unknown ids are refused before anything is removed.
    `incdsi compact` then leaves no byte of them.

    \b
    Examples:
      incdsi delete boots-17 boots-18 --index shop
      incdsi delete --where '{"year": {"lt": 2010}}' --index shop --resolve
      cut -f1 gone.tsv | incdsi delete - --index shop
    """
    chosen = parse_filter(where)
    wanted = _ids(ids or [])
    if bool(wanted) == (chosen is not None):
        raise typer.BadParameter("give either ids or --where", param_hint="'ID...'")
    with open_index(index) as opened, progress("deleting", hidden=as_json or quiet) as report:
        chosen_ids = None if chosen is not None else _known(opened, wanted)
        deleted = opened.delete(chosen_ids, where=chosen, resolve=resolve, progress=report)
    emit({"deleted": deleted}) if as_json else show(f"deleted {count(deleted)}")


@app.command()
def resolve(index: IndexPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Place anew the documents that were placed beside deleted ones.

    What `delete --resolve` does at once, or began to do when it was stopped.

    \b
    Examples:
      incdsi resolve --index shop
    """
    with open_folder(index) as opened, progress("placing anew", hidden=as_json or quiet) as report:
        resolved = opened.resolve(report)
    emit({"resolved": resolved}) if as_json else show(f"placed {count(resolved)} anew")


@app.command()
def teach(
    query: Annotated[str, typer.Argument(help="What people will ask.")],
    document_id: Annotated[str, typer.Argument(metavar="ID", help="The document it should find.")],
    index: IndexPlace,
    as_json: AsJson = False,
) -> None:
    """Let a query find a document, from now on.

    The query is kept for good. A document that was taught it before gives it up; no other document changes.

    \b
    Examples:
      incdsi teach "boots that survive a river" boots-17 --index shop
    """
    with open_index(index) as opened:
        addition = opened.teach(query, document_id)
    if as_json:
        emit(addition.to_json())
    else:
        show(f"taught {document_id} in {1000 * sum(addition.seconds.values()):.1f} ms: {addition.explanation}")
        show(*conflicts_table([addition]))


def _ids(given: list[str]) -> list[str]:
    return list(stdin_lines()) if given == ["-"] else given


def _known(index: SearchIndex, ids: list[str]) -> list[str]:
    there = known(index, ids)
    unknown = [f"no document {id!r} in the index; check the id" for id in ids if id not in there]
    if unknown:
        raise UnknownDocument(f"{sentences(unknown, 'like these')}\nnothing was deleted")
    return ids
