"""One writing process per index, by an OS lock that dies with its process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from incdsi.errors import IndexLocked, ReadOnlyIndex
from incdsi.store.files import LOCK

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()
_registered = False


class WriterLock:
    """Held from construction to `release`; the file holds the pid of the holder."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = _open(folder)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            self.drop()
            raise IndexLocked(
                f"process {holder} is writing to {folder}; wait for it, stop it, or open the index for reading; "
                f"if it is `incdsi serve`, use its address instead of the folder"
            ) from None
        # A full or failing disk may refuse even this; the lock itself needs no bytes.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        _drop_in_children(self)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:  # an index that nobody closed and nobody has any more
            self.drop()

    def release(self) -> None:
        """Lets the next writer in; harmless when repeated."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # at once, whatever a child forked just now holds
            self.drop()

    def drop(self) -> None:
        """Closes this process's hold only: what a forked child may do without freeing its parent's lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(folder: Path) -> int:
    try:
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        reason = "no permission to write"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    raise ReadOnlyIndex(f"{folder} cannot be written ({reason}); open the index for reading, or move it elsewhere")


def _drop_in_children(lock: WriterLock) -> None:
    # A forked child shares the lock: unless it lets go, the lock would outlive the writer.
    global _registered
    _held.add(lock)
    if not _registered:
        os.register_at_fork(after_in_child=_drop_all)
        _registered = True


def _drop_all() -> None:
    for lock in list(_held):
        lock.drop()
