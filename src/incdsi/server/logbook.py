"""Logbook: what people asked or clicked, a line each, in a file that does not grow for ever."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from incdsi.errors import NotFound

log = structlog.get_logger("incdsi.server")


class Logbook:
    """Lines of JSON in `path`, for its owner only; none is kept if there is no path.

    At `most_bytes` the file becomes <name>.1, in the place of the one before, so no more than twice that is kept. A
    line that cannot be written is lost, and said so in the server's log: no search fails for it.
    """

    def __init__(self, path: Path | None, most_bytes: int) -> None:
        self._path, self._most = path, most_bytes
        self._lock = threading.Lock()

    @property
    def kept(self) -> bool:
        """Whether anything is."""
        return self._path is not None

    def note(self, **fields: object) -> None:
        """Add a line, with the time."""
        if self._path is None:
            return
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = json.dumps({"at": at, **fields}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock:
            try:
                self._append(self._path, line)
            except OSError as error:
                log.error("not logged", reason=str(error))

    def lines(self, flag: str) -> Iterator[dict[str, Any]]:
        """All of them, oldest first; NotFound if none are kept, naming the flag that keeps them.

        A line that is not ours, or was cut by a crash, is passed over.
        """
        if self._path is None:
            raise NotFound(f"this server keeps no such log; start it with {flag} FILE")
        for path in (_older(self._path), self._path):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                for line in file:
                    with contextlib.suppress(ValueError):
                        found = json.loads(line)
                        if isinstance(found, dict):
                            yield found

    def _append(self, path: Path, line: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size + len(line) > self._most:
                path.replace(_older(path))
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def _older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")
