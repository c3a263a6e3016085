"""Copying files, and making them survive a power cut."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


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
def appearing_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes the place of `folder`, fsynced, when the block ends well; an error removes it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield beside
        fsync_tree(beside)
        os.chmod(beside, 0o755)
        old = beside.with_name(beside.name + "-old")
        if folder.exists():  # whole until the new one has its name
            os.rename(folder, old)
        os.rename(beside, folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    fsync(folder.parent)


def copy_tree(source: Path, target: Path, copy_file: Callable[[Path, Path], object] = shutil.copyfile) -> None:
    """Copies a folder to a new one; the first error stops it, where shutil would collect them in a list."""
    target.mkdir()
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
