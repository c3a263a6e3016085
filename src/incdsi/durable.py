"""Copying files, and making them survive a power cut."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


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


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder to a new one; the first error stops it, where shutil would collect them in a list."""
    target.mkdir()
    for entry in source.iterdir():
        copy = copy_tree if entry.is_dir() else shutil.copyfile
        copy(entry, target / entry.name)
