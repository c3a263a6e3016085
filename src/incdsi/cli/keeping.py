"""verify, compact, backup, restore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incdsi.cli.application import PROBLEMS, app, stopping
from incdsi.cli.opening import is_there, kept_encoder, open_folder, size_of
from incdsi.cli.options import AsJson, IndexPath, Quiet
from incdsi.cli.output import emit, show
from incdsi.cli.progress import progress
from incdsi.engine.addresses import milvus_address
from incdsi.errors import IncDSIError, IndexNotFound, InvalidInput


@app.command()
def verify(index: IndexPath, as_json: AsJson = False) -> None:
    """Read every byte and say what is wrong with it.

    The model's bytes too. Exit code 3 when something is wrong.

    \b
    Examples:
      incdsi verify --index shop
      incdsi verify --index shop --json || incdsi restore backups/monday --index shop-again
    """
    problems = _problems(index)
    if as_json:
        emit({"sound": not problems, "problems": problems})
    else:
        show(*(problems or ["sound: every byte was read and nothing is wrong"]))
    if problems:
        raise typer.Exit(PROBLEMS)


@app.command()
def compact(index: IndexPath, as_json: AsJson = False) -> None:
    """Leave no byte of deleted documents in any file.

    The index is also made quick to open.

    \b
    Examples:
      incdsi compact --index shop
    """
    before = size_of(index)
    with (
        stopping(lambda: "stopped; bytes of deleted documents may be left; run it again"),
        open_folder(index) as opened,
    ):
        opened.compact()
    after = size_of(index)
    if as_json:
        emit({"bytes_before": before, "bytes": after})
    elif before is None or after is None:
        show("compacted; the server gives the room back in its own time")
    else:
        show(f"compacted from {before / 1e6:,.1f} to {after / 1e6:,.1f} MB")


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    index: IndexPath,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Copy the index as it is at one moment.

    Searching and adding go on meanwhile.

    \b
    Examples:
      incdsi backup backups/monday --index shop
    """
    with (
        open_folder(index) as opened,
        progress("copying", hidden=as_json or quiet) as report,
        stopping(lambda: f"stopped; {'the backup is whole' if is_there(target) else 'no backup was made'}"),
    ):
        opened.backup(target, report)
    emit({"backup": str(target), "bytes": size_of(target)}) if as_json else show(f"backed up {index} to {target}")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder that `backup` made.")],
    index: IndexPath,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a new index from a backup.

    Every byte is verified first; --index must be a new or empty folder.

    \b
    Examples:
      incdsi restore backups/monday --index shop-again
    """
    from incdsi.store import Store

    if milvus_address(index):
        raise InvalidInput("a backup is restored to a folder; `incdsi migrate` then moves it to Milvus")
    with (
        progress("copying", hidden=as_json or quiet) as report,
        stopping(lambda: f"stopped; {'the index is restored' if is_there(index) else 'nothing was restored'}"),
    ):
        Store.restore(source, index, check=_problems_opening, progress=report)
    with open_folder(index) as opened:
        documents = len(opened)
    emit({"index": str(index), "documents": documents}) if as_json else show(
        f"restored {documents:,} documents to {index}"
    )


def _problems(path: Path) -> list[str]:
    """What is wrong with the store; when it is sound, also with the model."""
    from incdsi.store import Store

    if milvus_address(path):
        with open_folder(path) as opened:
            return opened.verify()
    try:
        with Store.open(path, writer=False) as store:
            found = store.verify()
    except IndexNotFound:
        raise
    except IncDSIError as error:
        return [str(error)]
    return found or _problems_opening(path)


def _problems_opening(path: Path) -> list[str]:
    from incdsi.text.encoders.manifest import holds_onnx, read_manifest, require_sound

    try:
        if (folder := kept_encoder(path)) is not None and holds_onnx(folder):
            require_sound(folder, read_manifest(folder), full=True)
        open_folder(path).close()
    except IncDSIError as error:
        return [str(error)]
    return []
