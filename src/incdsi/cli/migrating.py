"""migrate: an index moved to or from Milvus."""

from __future__ import annotations

from typing import Annotated

import typer

from incdsi.cli.application import app, stopping
from incdsi.cli.options import AsJson, Quiet, is_address
from incdsi.cli.output import emit, show
from incdsi.cli.progress import progress
from incdsi.errors import InvalidInput


@app.command()
def migrate(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Folder of the index, or milvus://HOST:PORT/NAME.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A new folder, or a new name on a Milvus server.")],
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", metavar="NAME", help="The index's own, where it is not kept.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Move an index as it is, to a Milvus server or back.

    Nothing is embedded or placed anew. Counts and searches on both sides are compared at the end, and the source stays
    as it is. When it is stopped, the same command goes on.

    \b
    Examples:
      incdsi migrate shop milvus://127.0.0.1:19530/shop
      incdsi migrate milvus://127.0.0.1:19530/shop shop-again
    """
    from incdsi.index.migration import migrate as move

    if is_address(source) or is_address(target):
        raise InvalidInput("an index behind an incdsi server is migrated where the server runs")
    with (
        progress("copying", hidden=as_json or quiet) as report,
        stopping(lambda: "stopped; what was copied stays, and the same command goes on"),
    ):
        done = move(source, target, encoder=encoder, progress=report)
    if as_json:
        emit({"from": source, "to": target, **{name: getattr(done, name) for name in done.__slots__}})
    else:
        show(
            f"migrated {done.documents:,} documents to {target} ({done.copied:,} of them now); "
            f"{done.searches} searches give the same on both sides"
        )
