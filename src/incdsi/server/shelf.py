"""The indexes in one folder, by name: each open, or with the reason why it is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import structlog

from incdsi.engine.local.models import open_kept, settings_in
from incdsi.errors import IncDSIError, InvalidInput, ServerError
from incdsi.index import Index
from incdsi.server.logs import frames
from incdsi.server.settings import ServerSettings
from incdsi.store.files import STORE
from incdsi.text.encoders import Encoder

log = structlog.get_logger("incdsi.server")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
RESERVED = {"docs", "favicon.ico", "healthz", "metrics", "openapi.json", "page", "readyz", "v1"}


class Encoders:
    """Opens indexes; those that were made with the same encoder share one, and so its memory."""

    def __init__(self) -> None:
        self._known: dict[str, Encoder] = {}

    def open(self, folder: Path) -> Index:
        """The index in that folder, under an encoder of one thread: requests are what runs in parallel."""
        settings = settings_in(folder)
        if settings.model is None:
            return Index.open(folder)
        if settings.fingerprint not in self._known:
            self._known[settings.fingerprint] = open_kept(folder / settings.model, threads=1)
        return Index.open(folder, self._known[settings.fingerprint])


class Shelf:
    """Opens every index in the settings' folder; closes them when the block ends.

    One that cannot be opened is in `broken`, with the error, and keeps none of the others from being served.
    """

    def __init__(self, settings: ServerSettings, open_index: Callable[[Path], Index] | None = None) -> None:
        self.settings = settings
        self.open: dict[str, Index] = {}
        self.broken: dict[str, IncDSIError] = {}
        self._open_index = open_index or Encoders().open
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        names = named_indexes(self.settings)
        for folder in filter(None, (self.settings.log_queries, self.settings.log_clicks)):
            make_log_folder(folder)
        with self._stack:
            for name in names:
                self._take(name)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _take(self, name: str) -> None:
        try:
            self.open[name] = self._stack.enter_context(self._open_index(self.settings.folder / name))
        except Exception as error:  # whatever it is, the others are served
            log.error("index not opened", index=name, kind=type(error).__name__, where=frames(error))
            why = (
                str(error) if isinstance(error, IncDSIError) else f"{type(error).__name__}; the server's log says where"
            )
            self.broken[name] = ServerError(f"index {name!r} cannot be opened: {why}")


def make_log_folder(folder: Path) -> None:
    """Make the folder of the logs, for its owner only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be a folder of logs ({error.strerror}); name another") from error


def named_indexes(settings: ServerSettings) -> list[str]:
    """The names of the indexes in the settings' folder; a sentence if there is none to serve.

    A folder whose name cannot be part of an address is passed over, and named in the log.
    """
    folder = settings.folder
    if (folder / STORE).is_file():
        raise InvalidInput(f"{folder} is itself an index; serve it with --index {folder}")
    if not folder.is_dir():
        raise InvalidInput(f"no folder {folder}; --indexes names the folder that holds the folders of the indexes")
    found = sorted(path.parent.name for path in folder.glob(f"[!.]*/{STORE}"))
    names = [name for name in found if NAME.fullmatch(name) and name not in RESERVED]
    for name in sorted({*found} - {*names}):
        log.warning("index not served", index=name, reason="its name must be letters, digits, . _ -, and none of ours")
    if not names:
        raise InvalidInput(f"no index in {folder}; make one with: incdsi add FILE --index {folder / 'NAME'}")
    if strangers := settings.keys.keys() - {*names}:
        raise InvalidInput(f"there are keys for {min(strangers)!r}, but the indexes in {folder} are {', '.join(names)}")
    return names
