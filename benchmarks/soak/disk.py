"""A small disk of one's own, that can be filled."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEGABYTES = 512
BLOCK = 64 * 1024
FILLER = "filler"


class Disk:
    """A folder, and whether it may be filled without harm to anybody else."""

    def __init__(self, folder: Path, *, small: bool) -> None:
        self.folder, self.small = folder, small

    def fill(self) -> None:
        """Leaves no room at all."""
        with (self.folder / FILLER).open("wb", buffering=0) as filler:
            for size in (BLOCK, 4096, 1):
                with contextlib.suppress(_DiskFullError):
                    while True:
                        _write(filler.fileno(), size)

    def free(self) -> None:
        (self.folder / FILLER).unlink(missing_ok=True)


class _DiskFullError(Exception):
    pass


def _write(descriptor: int, size: int) -> None:
    try:
        os.write(descriptor, bytes(size))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise _DiskFullError from error


@contextlib.contextmanager
def small_disk() -> Iterator[Disk]:
    """A tmpfs of half a gigabyte, gone when the block ends; an ordinary folder where one may not mount."""
    folder = Path(tempfile.mkdtemp(prefix="incdsi-soak-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=700", "incdsi-soak", str(folder)]
    mounted = shutil.which("mount") is not None and not subprocess.run(command, capture_output=True).returncode
    try:
        yield Disk(folder, small=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(folder)
