"""mcp: the index as tools for an agent."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer

from incdsi.cli.application import app
from incdsi.cli.opening import open_index
from incdsi.cli.options import AsJson, IndexPlace, Quiet
from incdsi.cli.output import emit, note
from incdsi.errors import MissingExtra

HOST = "127.0.0.1"  # over HTTP the tools have no key of their own


@app.command()
def mcp(
    index: IndexPlace,
    write: Annotated[bool, typer.Option("--write", help="Also let it add, teach and delete.")] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Over HTTP on this port instead of stdin and stdout."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Offer the index to an agent as tools (Model Context Protocol).

    Search and get; with --write also add, teach and delete. Over stdin and stdout, as agents start it, or with --port
    over HTTP on 127.0.0.1. Needs the extra `mcp`.

    \b
    Examples:
      incdsi mcp --index shop
      incdsi mcp --index shop --write
      incdsi mcp --index http://127.0.0.1:7799 --port 7800
    """
    make_server = _make_server()
    logging.disable(logging.INFO)  # stderr is where agents show what went wrong
    with open_index(index) as opened:
        server = make_server(opened, write=write)
        if port is None:
            server.run("stdio")
            return
        address = f"http://{HOST}:{port}/mcp"
        emit({"address": address, "index": index, "write": write}) if as_json else note(
            f"Offering {index} at {address} (Ctrl-C stops)", quiet=quiet
        )
        server.run("streamable-http", host=HOST, port=port)


def _make_server() -> Any:
    try:
        from incdsi.mcp.server import make_server
    except ImportError as error:
        raise MissingExtra(f"this needs {error.name}; run: pip install 'incdsi[mcp]'") from error
    return make_server
