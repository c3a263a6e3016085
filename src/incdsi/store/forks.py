"""What a forked child does with the connections of its parent: SQLite's stay with the process that opened them.

SQLite believes that the child holds the parent's file locks, which no child inherits: whatever the child opens beside
them would be unprotected. So they are closed in the child, without touching a file, before anything else happens there.
When a thread was inside SQLite at the fork, even that could hang or undo its work: they are then kept for ever, unused,
and the store cannot be opened in that child.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from pathlib import Path
from typing import Protocol

import apsw

from incdsi.errors import InvalidInput


class Holder(Protocol):
    """Whatever holds connections; `busy` while a thread may be using one."""

    path: Path

    def busy(self) -> bool: ...

    def disown(self) -> list[apsw.Connection]: ...


_holders: weakref.WeakSet[Holder] = weakref.WeakSet()
_unusable: set[Path] = set()
_registered = False


def part_at_fork(holder: Holder) -> None:
    """From now on a forked child is rid of what the holder holds."""
    global _registered
    _holders.add(holder)
    if not _registered:
        os.register_at_fork(after_in_child=_part)
        _registered = True


def require_usable(path: Path) -> None:
    """Refuses a folder that was in use when this process was forked."""
    if path.resolve() in _unusable:
        raise InvalidInput(
            f"{path} was in use by another thread when this process was forked; fork before opening it, "
            f"or start processes with the method spawn"
        )


def _part() -> None:
    holders = list(_holders)
    left = _keep if any(holder.busy() for holder in holders) else _close
    for holder in holders:
        for connection in holder.disown():
            left(connection, holder.path)


def _close(connection: apsw.Connection, _: Path) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def _keep(connection: apsw.Connection, path: Path) -> None:
    _unusable.add(path.resolve())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # the end of the interpreter would close it too
