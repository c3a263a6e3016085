"""The processes of the crash test, kept cheap: one interpreter forks every writer.

`python crash_worker.py fork`: forks writers by the protocol of `crash_harness.py`.
`python crash_worker.py read FOLDER`: follows a store until its input ends, then prints what it holds.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from crash_harness import discard, ended, fork_writers, say
from store_samples import content, sample

from incdsi.filters import parse
from incdsi.records import Record
from incdsi.store import Store

Change = list[Any]  # ["put", id, revision] or ["delete", id]
IDS = [f"doc-{number}" for number in range(40)]


def revision_of(record: Record) -> int:
    """The revision a record claims to be."""
    return int(record.document.metadata["revision"])  # type: ignore[arg-type]


def require_whole(record: Record) -> None:
    """Every byte of a record is a function of its id and revision."""
    if content(record) != content(sample(record.document.id, revision_of(record))):
        raise AssertionError(f"a torn document: {record.document.id} {revision_of(record)}")


def operations(known: dict[str, int], choice: random.Random) -> Iterator[tuple[str, list[Change]]]:
    """An endless stream of operations that fit what is there; `known` follows along."""
    revision = max(known.values(), default=0)
    while True:
        kind = choice.choices(
            ["write", "batch", "compact", "backup", "create", "base", "reopen"], weights=[60, 12, 4, 4, 2, 8, 4]
        )[0]
        changes: list[Change] = []
        for id in choice.sample(IDS, {"write": 1, "batch": 6}.get(kind, 0)):
            revision += 1
            if id in known and choice.random() < 0.4:
                changes.append(["delete", id])
                del known[id]
            else:
                changes.append(["put", id, revision])
                known[id] = revision
        yield kind, changes


def perform(store: Store, kind: str, changes: list[Change], scratch: Path) -> Store:
    """Does one operation for real; the store to go on with."""
    if kind in ("write", "batch"):
        with store.transaction() as tx:
            for verb, id, *revision in changes:
                if verb == "delete":
                    tx.delete(id)
                elif id in store:
                    tx.replace(id, sample(id, revision[0]))
                else:
                    tx.insert(sample(id, revision[0]))
    elif kind == "compact":
        store.compact()
    elif kind in ("backup", "create"):
        if kind == "backup":
            store.backup(scratch)
        else:
            Store.create(scratch, {}).close()
        discard(scratch)
    elif kind == "base":
        rows = [record.row for record in store.changes(0).upserts]
        store.write_base({"rows": np.array(rows, dtype=np.int64)}, store.version)
    else:
        store.close()
        store = Store.open(store.path, writer=True)
    return store


def write(folder: Path, seed: int, aim: str) -> None:
    """Writes until it is killed, anything at any time."""
    store = Store.open(folder, writer=True)
    known = {record.document.id: revision_of(record) for record in store.changes(0).upserts}
    scratch = folder.with_name("backup")
    discard(scratch)
    for kind, changes in operations(known, random.Random(seed)):
        say(f"try {kind} {json.dumps(changes)}")
        store = perform(store, kind, changes, scratch)
        say("ack")


class Mirror:
    """A reader's copy of a store, kept up to date by `changes` alone."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sequence = 0
        self.rows: dict[int, Record] = {}

    def pull(self) -> None:
        """Brings the copy up to date; every record must be whole, sequences must only grow."""
        changes = self.store.changes(self.sequence)
        if changes.reload:
            self.rows.clear()
        for row in changes.removed:
            self.rows.pop(row, None)
        for record in changes.upserts:
            require_whole(record)
            self.rows[record.row] = record
        if changes.sequence < self.sequence:
            raise AssertionError(f"the sequence went back from {self.sequence} to {changes.sequence}")
        self.sequence = changes.sequence

    def digest(self) -> str:
        """A name for everything in the copy."""
        held = [(row, content(record)) for row, record in sorted(self.rows.items())]
        return hashlib.sha256(repr(held).encode()).hexdigest()


def read(folder: Path) -> None:
    """Polls, pulls and looks things up until the input ends; then says what it holds."""
    over = ended()
    with Store.open(folder, writer=False) as store:
        mirror = Mirror(store)
        pulls = 0
        while not over.wait(0.01):
            if store.poll():
                mirror.pull()
                pulls += 1
            for id in IDS[zlib.crc32(bytes([pulls % 256])) % 30 :][:3]:
                if id in store:
                    store.filter_rows(parse({"revision": {"gte": 1}}))
            base = store.base()
            if base is not None and base.arrays["rows"].ndim != 1:
                raise AssertionError("a torn base")
        mirror.pull()
        say(f"{mirror.digest()} {pulls}")


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        fork_writers(write)
    else:
        read(Path(sys.argv[2]))
