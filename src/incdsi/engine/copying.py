"""Every record of one engine into another, as it is stored: nothing is placed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from incdsi.engine.protocol import Engine, View
from incdsi.engine.settings import Settings
from incdsi.progress import Progress
from incdsi.records import Record
from incdsi.text.encoders import Encoder

PORTION = 256  # records written together


class Source(Protocol):
    """The half of an engine that is read here."""

    def view(self) -> View: ...

    def records(self) -> Iterator[Record]: ...

    def encoder(self, settings: Settings, given: Encoder | str | Path | None = None) -> Encoder: ...


def copy_records(source: Source, target: Engine, progress: Progress | None) -> int:
    """Copy those that the target has not got yet, in the order of rows; how many.

    To be called while the target is `changing`. Rows are counted anew there, so that who shaped whom is told by the new
    ones; whoever is gone stays gone. Each portion is kept as it is copied, and copying again goes on from there.
    """
    total, copied, done = len(source.view()), 0, 0
    rows: dict[int, int] = {}
    stream = source.records()
    while some := list(islice(stream, PORTION)):
        new = [record for record in some if record.document.id not in target]
        first = target.next_row
        rows |= {record.row: target.row_of(record.document.id) for record in some if record.document.id in target}
        rows |= {record.row: first + number for number, record in enumerate(new)}
        with target.write() as batch:
            for record in _renumbered(new, rows):
                batch.insert(record)
        copied, done = copied + len(new), done + len(some)
        if progress is not None:
            progress(done, total)
    return copied


def _renumbered(records: Iterable[Record], rows: dict[int, int]) -> Iterator[Record]:
    for record in records:
        known = tuple(sorted(rows[row] for row in record.constrained_by if row in rows))
        yield replace(record, row=rows[record.row], constrained_by=known)
