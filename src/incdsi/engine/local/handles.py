"""What the handles of one folder share in one process: the second writes through the first."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path

from incdsi.engine.local.live import Live
from incdsi.store import Store
from incdsi.store.files import STORE


class Writing:
    """The store that holds the folder's lock and what is live of it, for every handle that writes here.

    `users` are weak: a handle that nobody closed and nobody has any more is none.
    """

    def __init__(self, store: Store, live: Live) -> None:
        self.store, self.live = store, live
        self.users: weakref.WeakSet[object] = weakref.WeakSet()


class Handles:
    """Whose turn it is to change a folder, and what is writing to it while something is."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()  # held by whoever changes the index
        self._writing: weakref.ref[Writing] | None = None

    def writing(self) -> Writing | None:
        """What another handle writes through; for whoever holds the mutex."""
        found = self._writing() if self._writing is not None else None
        return found if found is not None and len(found.users) else None

    def write_through(self, writing: Writing) -> None:
        self._writing = weakref.ref(writing)


_folders: weakref.WeakValueDictionary[tuple[Path, int, int], Handles] = weakref.WeakValueDictionary()
_lookup = threading.Lock()


def handles_of(folder: Path) -> Handles:
    """Those of the store that is there now: a folder made anew under the name of an old one is another.

    So is the same folder under another name, which may be a mount that cannot be written.
    """
    file = (folder / STORE).stat()
    with _lookup:
        return _folders.setdefault((folder.resolve(), file.st_dev, file.st_ino), Handles())


def _begin_anew() -> None:
    """A forked child has no handles: those it got are its parent's."""
    global _folders, _lookup
    _folders, _lookup = weakref.WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)
