"""Folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from incdsi.durable import fsync, fsync_tree
from incdsi.errors import InvalidInput

UNFINISHED = ".unfinished-"


@contextlib.contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to fill; on leaving it is fsynced and renamed, on an error removed.

    After kill -9 only an `.unfinished-*` folder is left. Raises InvalidInput when `folder` is already there.
    """
    require_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{folder.name}-", dir=folder.parent))
    try:
        yield unfinished
        fsync_tree(unfinished)
        os.rename(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    fsync(folder.parent)


def require_free(folder: Path) -> None:
    """Raises InvalidInput unless `folder` is missing or an empty folder."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InvalidInput(f"{folder} already exists and is not empty; choose another folder")


def remove_unfinished(parent: Path) -> None:
    """Clear what a killed process left half-written in `parent`."""
    for path in parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(path, ignore_errors=True)
