"""Files and folders that appear whole or not at all, and survive a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO

from incdsi.errors import InvalidInput

UNFINISHED = ".incdsi-"  # in the hidden name of a folder that is being filled


def fsync(path: Path) -> None:
    """Returns when a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_tree(folder: Path) -> None:
    """Returns when everything below a folder is on the disk."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            fsync(Path(parent, name))
        fsync(Path(parent))


@contextlib.contextmanager
def appearing_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path`, fsynced, when the block ends well; an error removes it.

    It is new and its name is random, so that nobody who can write in the folder chooses where the bytes go. It may
    be read by those who may read the file it replaces, and otherwise by whom the umask lets.
    """
    beside = path.with_name(f".incdsi-{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        error.filename = str(path)  # the name the caller knows
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            if path.is_file() and not path.is_symlink():
                os.fchmod(descriptor, path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    fsync(path.parent)


@contextlib.contextmanager
def appearing_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that becomes `path`, fsynced, when the block ends well; an error removes it.

    Raises InvalidInput unless `path` is missing or an empty folder, or `replace` says that it may go. What a killed
    process left behind is removed by the next call. Only its owner may enter it; parents are created if missing.
    """
    if not replace:
        require_vacant(path)
    created = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path.parent, path.name)
    folder = path.with_name(f".{path.name}{UNFINISHED}{secrets.token_hex(6)}")
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
        fsync_tree(folder)
        if replace and path.exists():
            os.rename(path, _aside(folder))
        os.rename(folder, path)  # replaces an empty folder, fails on any other
        shutil.rmtree(_aside(folder), ignore_errors=True)
        folder = path
        for parent in (path.parent, *(one.parent for one in created)):
            fsync(parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


def require_vacant(path: Path, *, besides: Collection[str] = ()) -> None:
    """Raises InvalidInput unless `path` is missing or a folder that holds nothing `besides` these names."""
    if path.is_symlink() or (path.exists() and not (path.is_dir() and _names(path) <= {*besides})):
        found = "a file" if path.is_file() else "not an empty folder"
        raise InvalidInput(f"{path} is {found}; choose a new or an empty folder")


def remove_unfinished(parent: Path, name: str | None = None) -> None:
    """Remove the folders in `parent` that killed processes left half-written, those meant to be `name` or all."""
    wanted = "*" if name is None else glob.escape(name)
    for litter in parent.glob(f".{wanted}{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(litter, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held while its maker lives
                shutil.rmtree(litter)
            finally:
                os.close(descriptor)


def _aside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-old")


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def copy_tree(source: Path, target: Path, copy_file: Callable[[Path, Path], object] = shutil.copyfile) -> None:
    """Copies a folder, its target created if missing; the first error stops it, where shutil would collect them."""
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            copy_tree(entry, target / entry.name, copy_file)
        else:
            copy_file(entry, target / entry.name)


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file's bytes; a copy on another disk, or where links are not allowed."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
