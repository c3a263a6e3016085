"""serve: the index over HTTP, with its page."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incdsi.cli import output
from incdsi.cli.application import app
from incdsi.cli.opening import is_there, kept_encoder, open_or_create
from incdsi.cli.options import AsJson, EncoderName, Language, Quiet, folder_of
from incdsi.cli.progress import progress
from incdsi.errors import MissingExtra

if TYPE_CHECKING:
    from incdsi.index import Index
    from incdsi.server.settings import ServerSettings

DEMO_DOCUMENTS = 600

ServedIndex = Annotated[
    Path | None,
    typer.Option(
        "--index",
        "-i",
        help="Folder of the index or milvus://HOST:PORT/NAME, created if missing.",
        show_default=False,
        callback=folder_of,
    ),
]
ServedIndexes = Annotated[
    Path | None,
    typer.Option(
        "--indexes", metavar="DIR", help="Folder of several indexes, each served under its name.", show_default=False
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML with settings.", show_default=False)
]
LogQueries = Annotated[
    Path | None,
    typer.Option(
        "--log-queries",
        metavar="FILE",
        help="Keep what people search for; with --indexes a folder.",
        show_default=False,
    ),
]
LogClicks = Annotated[
    Path | None,
    typer.Option(
        "--log-clicks", metavar="FILE", help="Keep what people click; with --indexes a folder.", show_default=False
    ),
]


@app.command()
def serve(
    context: typer.Context,
    index: ServedIndex = None,
    indexes: ServedIndexes = None,
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="Port; 7799, 0 for a free one.", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a small index of Python's own documentation.")] = False,
    log_queries: LogQueries = None,
    log_clicks: LogClicks = None,
    encoder: EncoderName = None,
    language: Language = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Answer HTTP requests, with a page to search, add and teach.

    Flags go before INCDSI_* in the environment, and those before the TOML file. Keys are set by INCDSI_KEY and
    INCDSI_READ_KEY or in the file. Ctrl-C finishes what was accepted and stops.

    \b
    Examples:
      incdsi serve --index shop
      incdsi serve --index milvus://127.0.0.1:19530/shop
      incdsi serve --demo
      incdsi serve --indexes indexes
      incdsi serve --index shop --log-queries queries.jsonl --log-clicks clicks.jsonl
      INCDSI_KEY=... incdsi serve --index shop --host 0.0.0.0 --port 80
    """
    if indexes is not None and (index is not None or demo or encoder is not None or language is not None):
        raise typer.BadParameter("--indexes serves what is there; leave out --index, --demo, --encoder and --language")
    settings_of, serve_them, shelf = _server()
    given: dict[str, Any] = {"index": index, "indexes": indexes, "host": host, "port": port}
    given |= {"log_queries": log_queries, "log_clicks": log_clicks}
    flags = {name: value for name, value in given.items() if value is not None}
    with ExitStack() as stack:
        if demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="incdsi-demo-"))
            flags["index"] = Path(folder) / "index"
        settings: ServerSettings = settings_of(config, flags)
        if index is not None or demo:
            settings = settings.of_one()
        folder_of(context, settings.folder)  # which may come from the environment
        if settings.indexes is not None:
            served = stack.enter_context(shelf(settings))
        else:
            served = stack.enter_context(_opened(settings.index, encoder, language))
        if demo:
            _fill(served, quiet)
        serve_them(served, settings, lambda address: _say(address, settings, as_json, quiet))


def _server() -> tuple[Any, Any, Any]:
    try:
        from incdsi.server.run import serve
        from incdsi.server.settings import ServerSettings
        from incdsi.server.shelf import Shelf
    except ImportError as error:
        raise MissingExtra(f"the server needs {error.name}; run: pip install 'incdsi[server]'") from error
    return ServerSettings.load, serve, Shelf


def _opened(path: Path, encoder: str | None, language: str | None) -> Index:
    """The index, created if missing, under an encoder of one thread: requests are what runs in parallel."""
    from incdsi.engine.local.models import open_kept
    from incdsi.index import Index

    if encoder is not None or language is not None or not is_there(path):
        open_or_create(path, encoder, language=language).close()
    kept = kept_encoder(path)
    return Index.open(path, None if kept is None else open_kept(kept, threads=1))


def _fill(index: Index, quiet: bool) -> None:
    from incdsi.demo.corpus import python_documentation

    documents = python_documentation()
    few = documents[:: max(1, len(documents) // DEMO_DOCUMENTS)]
    with progress("Filling the demo", hidden=quiet) as report:
        index.add_many(few, progress=report)


def _say(address: str, settings: ServerSettings, as_json: bool, quiet: bool) -> None:
    if as_json:
        output.emit({"address": address, "index": str(settings.folder), "keys": settings.key is not None})
    else:
        output.note(f"Serving {settings.folder} on {address} (Ctrl-C stops)", quiet=quiet)
