"""Names of the files in an index folder, and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from incdsi.durable import fsync, fsync_tree
from incdsi.errors import InvalidInput

STORE = "store.db"
WAL = "store.db-wal"
MODEL = "model"
LOCK = "writer.lock"


def require_vacant(path: Path) -> None:
    """Refuses a path where something is already; an empty folder is vacant."""
    if (path / STORE).exists():
        raise InvalidInput(f"expected no index in {path}, found one; open it, or choose another folder")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise InvalidInput(f"expected {path} to be new or an empty folder, found something there; choose another")


@contextlib.contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A hidden sibling folder that becomes `path`, whole and fsynced, when the block ends well.

    An exception removes it; what a killed process left beside `path` is removed by the next call.
    """
    require_vacant(path)
    parents = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    folder = path.parent / f"{_prefix(path)}{secrets.token_hex(6)}"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
        fsync_tree(folder)
        _publish(folder, path)
        for parent in (path.parent, *(made.parent for made in parents)):
            fsync(parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


def _publish(folder: Path, path: Path) -> None:
    try:
        os.rename(folder, path)  # replaces an empty folder, fails on any other
    except OSError:
        require_vacant(path)
        raise


def _prefix(path: Path) -> str:
    return f".{path.name}.incdsi-"


def _sweep(path: Path) -> None:
    for litter in path.parent.glob(f"{_prefix(path)}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(litter, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held while its maker lives
                shutil.rmtree(litter)
            finally:
                os.close(descriptor)
