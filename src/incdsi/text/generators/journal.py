"""A JSONL file of finished documents, so that a long generation can be interrupted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from incdsi.errors import InvalidFile


class Journal:
    """Queries by key, one line each: {"id", "key", "queries"}; a line torn by a kill does not count."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, list[str]]:
        """Everything recorded so far; removes a torn last line, so that appending is safe."""
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        lines = content[:whole].splitlines()
        return dict(self._entry(number, line) for number, line in enumerate(lines, start=1))

    def append(self, entries: Sequence[tuple[str, str, list[str]]]) -> None:
        """Record (document id, key, queries) durably."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": name, "key": key, "queries": queries}) + "\n" for name, key, queries in entries]
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write("".join(lines))
            stream.flush()
            os.fsync(stream.fileno())

    def _entry(self, number: int, line: bytes) -> tuple[str, list[str]]:
        try:
            record = json.loads(line)
            return record["key"], record["queries"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidFile(
                "not a line of a generation journal; delete it or choose another file",
                path=self.path,
                line=number,
            ) from error
