"""Names of the files in an index folder, and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
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
STAGING = ".incdsi-making"  # in a folder that was empty, while an index is made there
MOVED = "moved.json"  # what was moved out of it before the store
IGNORED = {"lost+found"}  # all that a new file system holds


def require_vacant(path: Path) -> None:
    """Refuses a path where something is already; an empty folder is vacant, and so is a new file system."""
    if (path / STORE).exists():
        raise InvalidInput(f"{path} already holds an index; open it, or choose another folder")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and _names(path) <= IGNORED)):
        raise InvalidInput(f"{path} is not an empty folder; choose a new or an empty one")


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
    parents = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    folder = path.parent / f"{_prefix(path)}{secrets.token_hex(6)}"
    folder.mkdir(mode=0o700)  # what it holds is its owner's to show
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
        fsync_tree(folder)
        _publish(folder, path)
        folder = path
        for parent in (path.parent, *(made.parent for made in parents)):
            fsync(parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


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
    names = sorted(_names(folder) - {STORE})
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


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


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
