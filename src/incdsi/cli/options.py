"""Options that several commands share, and the small parsers behind them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from incdsi.readers import Layout


def is_address(place: str | Path) -> bool:
    """Whether an index is behind a server; a path has lost one of the slashes."""
    return str(place).startswith(("http:/", "https:/"))


def folder_of(ctx: typer.Context, path: Path | None) -> Path | None:
    """The path as it is; wrong usage when it is an address, which would become a folder of that name."""
    if path is not None and is_address(path):
        raise typer.BadParameter(
            f"{ctx.info_name} needs the folder of the index, not a server's address; run it where the server runs"
        )
    return path


IndexPlace = Annotated[
    str,
    typer.Option(
        "--index",
        "-i",
        envvar="INCDSI_INDEX",
        metavar="PLACE",
        help="Folder of the index, a server's address (key: INCDSI_KEY), or milvus://HOST:PORT/NAME.",
        show_default=False,
    ),
]
IndexPath = Annotated[
    Path,
    typer.Option(
        "--index",
        "-i",
        envvar="INCDSI_INDEX",
        help="Folder of the index, or milvus://HOST:PORT/NAME.",
        show_default=False,
        callback=folder_of,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
Source = Annotated[
    str, typer.Argument(metavar="FILE", help="JSONL, CSV or TSV (also .gz), Parquet, a folder, or - for stdin.")
]
IdField = Annotated[
    str | None, typer.Option("--id-field", metavar="NAME", help="The field with the id.", show_default="id")
]
TitleField = Annotated[
    str | None, typer.Option("--title-field", metavar="NAME", help="The field with the title.", show_default="title")
]
TextFields = Annotated[
    list[str] | None,
    typer.Option("--text-field", metavar="NAME", help="A field with text; may be given again.", show_default="text"),
]
NoTypes = Annotated[bool, typer.Option("--no-types", help="Every cell of CSV and TSV is text.")]
QueryFile = Annotated[
    str | None,
    typer.Option("--queries", metavar="FILE", help="What people asked: query and id on each line."),
]
EncoderName = Annotated[
    str | None,
    typer.Option("--encoder", metavar="NAME", help="Model folder or name, when the index is made.", show_default=False),
]
GeneratorName = Annotated[
    str | None,
    typer.Option(
        "--generator",
        metavar="NAME",
        help="Who writes queries for new documents, from now on: spans:N or t5:MODEL.",
        show_default=False,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="NAME",
        help="What stems the words of a new index: english, german, ... or none.",
        show_default="english",
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out what is refused and take the rest.")]
Tuning = Annotated[
    bool | None,
    typer.Option(
        "--tuning/--no-tuning",
        help="Whether the index tunes itself by held-out queries, from now on. New ones do.",
        show_default=False,
    ),
]
Filter = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help="""Filter on metadata, like '{"lang": "en"}'.""", show_default=False),
]
Depth = Annotated[int, typer.Option("-k", min=1, help="How many documents.")]


class Format(StrEnum):
    """How a file of documents is written."""

    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


FileFormat = Annotated[
    Format | None,
    typer.Option("--format", help="What the ending does not tell; - is JSONL otherwise.", show_default=False),
]


class Mode(StrEnum):
    """By what documents are ranked."""

    fused = "fused"
    learned = "learned"
    lexical = "lexical"


SearchMode = Annotated[Mode, typer.Option("--mode", help="By all scores, by the learned one, or by words.")]
LeastConfidence = Annotated[
    float | None, typer.Option("--least", help="Only hits that are right with at least this probability, 0 to 1.")
]


def file_layout(
    id_field: str | None, title_field: str | None, text_field: list[str] | None, format: Format | None, no_types: bool
) -> Layout:
    """How the documents are laid out."""
    from incdsi.readers import Layout

    return Layout(
        id=id_field,
        title=title_field,
        text=tuple(text_field or ()),
        format=format.value if format is not None else None,
        types=not no_types,
    )


def parse_filter(text: str | None) -> dict[str, Any] | None:
    """The filter of `--where`; wrong usage when it is no JSON object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f"""expected a JSON object like '{{"lang": "en"}}', found {text!r:.80}""", param_hint="'--where'"
        )
    return found
