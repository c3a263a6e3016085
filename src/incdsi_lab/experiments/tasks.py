"""The pieces of a study: each is computed once and kept as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.durable import appearing_file
from incdsi.errors import InvalidFile, InvalidInput
from incdsi.progress import Progress

Piece = dict[str, Any]
STUDY = "study.json"
PIECES = "pieces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of a study: its name, how to compute it, and about how many seconds that takes."""

    name: str
    run: Callable[[Progress], Piece]
    seconds: float = 1.0


class Pieces:
    """The finished pieces in a folder, one JSON file each; a piece appears whole or not at all.

    `study` is all that figures depend on: a folder that holds another study is refused.
    """

    def __init__(self, folder: Path | str, study: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self._begin(json.loads(json.dumps(study)))

    def __contains__(self, name: str) -> bool:
        return self.path(name).exists()

    def __getitem__(self, name: str) -> Piece:
        path = self.path(name)
        try:
            piece: Piece = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidFile(f"this piece is not valid JSON ({error}); delete it and run again", path=path) from error
        return piece

    def keep(self, name: str, piece: Piece) -> Piece:
        """Store a piece and hand it back as it will be read."""
        _write(self.path(name), json.dumps(piece, allow_nan=False))
        return self[name]

    def path(self, name: str, kind: str = "json") -> Path:
        """Where a piece is, or an array that belongs to it."""
        return self.folder / PIECES / f"{name.replace('/', '.').replace(' ', '_')}.{kind}"

    def keep_array(self, name: str, array: NDArray[Any]) -> None:
        """Store an array beside its piece."""
        path = self.path(name, "npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array, allow_pickle=False)

    def array(self, name: str) -> NDArray[Any]:
        """The array beside a piece."""
        found: NDArray[Any] = np.load(self.path(name, "npy"), allow_pickle=False)
        return found

    def _begin(self, study: Mapping[str, Any]) -> None:
        file = self.folder / STUDY
        if file.exists():
            require_same(self.folder, study)
            return
        if (self.folder / PIECES).exists():
            raise InvalidFile("missing beside the pieces of a study; choose another folder", path=file)
        _write(file, json.dumps(study, indent=1) + "\n")


def require_same(folder: Path, study: Mapping[str, Any], *, unknown: Collection[str] = ()) -> None:
    """InvalidInput when the folder holds another study; what is `unknown` yet is not compared."""
    file = folder / STUDY
    if not file.exists():
        return
    found, wanted = json.loads(file.read_text(encoding="utf-8")), json.loads(json.dumps(study))
    keys = {*found, *wanted} - set(unknown)
    if differing := sorted(key for key in keys if found.get(key) != wanted.get(key)):
        raise InvalidInput(
            f"{folder} holds a study with another {', '.join(differing)}; choose another --out or delete it"
        )


def run_tasks(tasks: Sequence[Task], pieces: Pieces, progress: Progress | None = None) -> None:
    """Run the unfinished tasks in order; `progress` counts estimated seconds.

    Each piece also gets `took`, the seconds it really took.
    """
    due = [task for task in tasks if task.name not in pieces]
    total = max(1, round(sum(task.seconds for task in due)))
    done = 0.0
    for task in due:
        report = _share(progress, done, task.seconds, total)
        report(0, 1)
        begin = time.perf_counter()
        piece = task.run(report)
        pieces.keep(task.name, {**piece, "took": round(time.perf_counter() - begin, 3)})
        done += task.seconds
    if progress is not None:
        progress(total, total)


def _share(progress: Progress | None, before: float, seconds: float, total: int) -> Progress:
    """A task's own progress as a share of the whole; one in several parts, each from nothing, never goes back."""
    most = 0.0

    def report(done: int, of: int) -> None:
        nonlocal most
        most = max(most, done / max(1, of))
        if progress is not None:
            progress(min(total, int(before + seconds * most)), total)

    return report


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing_file(path) as file:
        file.write(text.encode())
