"""Names of the files in an index folder, and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from incdsi import durable
from incdsi.durable import appearing_folder, fsync, fsync_tree
from incdsi.errors import InvalidInput

STORE = "store.db"
WAL = "store.db-wal"
MODEL = "model"
LOCK = "writer.lock"
STAGING = ".incdsi-making"  # in a folder that was empty, while an index is made there
MOVED = "moved.json"  # what was moved out of it before the store
IGNORED = {"lost+found"}  # all that a new file system holds


def why_no_index(folder: Path) -> str:
    """What is wrong with a path that has no store, and what to do."""
    if folder.is_file():
        return f"{folder} is a file; an index is a folder"
    if re.fullmatch(r"[\w.-]+:\d+/?", str(folder)):  # a server's, without its http://
        return f"no index in {folder}; the address of a server begins with http://"
    return f"no index in {folder}: it has no {STORE}; create one or check the path"


def require_vacant(path: Path) -> None:
    """Refuses a path where something is already; an empty folder is vacant, and so is a new file system."""
    if (path / STORE).exists():
        raise InvalidInput(f"{path} already holds an index; open it, or choose another folder")
    durable.require_vacant(path, besides=IGNORED)


@contextlib.contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A hidden folder whose content appears in `path`, whole and fsynced, when the block ends well.

    An exception removes it; what a killed process left is removed by the next call.
    """
    with _inside(path) if path.is_dir() and not path.is_symlink() else _beside(path) as folder:
        yield folder


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A sibling that becomes `path`."""
    require_vacant(path)
    try:
        with appearing_folder(path) as folder:
            yield folder
    except OSError:
        require_vacant(path)  # somebody else was faster
        raise


@contextlib.contextmanager
def _inside(path: Path) -> Iterator[Path]:
    """For a folder that is there, and may be a mount point: its content is moved in, the store last."""
    folder = path / STAGING
    with _held(path):
        if not (path / STORE).exists():
            _clear(path)
        require_vacant(path)
        folder.mkdir()
        fsync(path)  # never what was moved out of it without it
        try:
            yield folder
            _move_in(folder, path)
        except BaseException:
            (path / STORE).unlink(missing_ok=True)
            _clear(path)
            raise
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(f"another process is making an index in {path}; wait for it") from None
        yield
    finally:
        os.close(descriptor)


def _move_in(folder: Path, path: Path) -> None:
    names = sorted({entry.name for entry in folder.iterdir()} - {STORE})
    (folder / MOVED).write_text(json.dumps(names), encoding="utf-8")
    fsync_tree(folder)
    for name in (*names, STORE):
        os.rename(folder / name, path / name)  # what comes before the store is nothing without it
        fsync(path)


def _clear(path: Path) -> None:
    """Takes back what an unfinished `_inside` left."""
    moved: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # torn or missing: nothing was moved yet
        moved = json.loads((path / STAGING / MOVED).read_text(encoding="utf-8"))
    for name in moved:
        remove = shutil.rmtree if (path / name).is_dir() else os.unlink
        with contextlib.suppress(FileNotFoundError):
            remove(path / name)
    shutil.rmtree(path / STAGING, ignore_errors=True)
