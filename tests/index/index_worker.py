"""The processes of the index's crash test.

`python index_worker.py fork`: forks writers by the protocol of the store's `crash_harness.py`.
`python index_worker.py read FOLDER`: searches until its input ends, then prints what it found.
`python index_worker.py hold FOLDER`: becomes the writer, says so, and waits for its input to end.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "store"))

from crash_harness import discard, ended, fork_writers, say
from index_samples import MODES, TOY, answers, asked, doc, text_of

from incdsi.documents import Hit
from incdsi.index import Index

Change = list[Any]  # ["put", id, revision], ["teach", id, query] or ["delete", id]
State = dict[str, list[Any]]  # id -> [revision, [what was asked and taught]]
IDS = [f"doc-{number}" for number in range(24)]
KINDS = {"write": 50, "batch": 12, "teach": 12, "wipe": 3, "compact": 4, "backup": 4, "reopen": 6}


def after(state: State, changes: list[Change]) -> State:
    """The state with these changes made."""
    new = {id: [revision, list(queries)] for id, (revision, queries) in state.items()}
    for verb, id, *value in changes:
        if verb == "delete":
            del new[id]
        elif verb == "teach":
            new[id][1] += [value[0]] if value[0] not in new[id][1] else []  # once is enough for an index too
        elif id in new:
            new[id][0] = value[0]
        else:
            new[id] = [value[0], asked(id)]
    return new


def operations(state: State, choice: random.Random) -> Iterator[tuple[str, list[Change]]]:
    """An endless stream of operations that fit what is there."""
    revision = max((entry[0] for entry in state.values()), default=0)
    while True:
        (kind,) = choice.choices(list(KINDS), list(KINDS.values()))
        changes: list[Change] = []
        revision += 1
        if kind == "write":
            id = choice.choice(IDS)
            changes = [["delete", id] if id in state and choice.random() < 0.4 else ["put", id, revision]]
        elif kind == "batch":
            free = [id for id in IDS if id not in state]
            changes = [["put", id, revision] for id in choice.sample(free, min(len(free), 5))]
        elif kind == "teach" and state:
            changes = [["teach", choice.choice(sorted(state)), f"lesson {revision}"]]
        elif kind == "wipe":
            changes = [["delete", id] for id in sorted(state) if state[id][0] % 3 == 0]
        yield kind, changes
        state = after(state, changes)


def perform(index: Index, kind: str, changes: list[Change], scratch: Path, choice: random.Random) -> Index:
    """Does one operation for real; the index to go on with."""
    if kind == "batch":
        index.add_many([described(id, r) for _, id, r in changes], {id: asked(id) for _, id, _ in changes})
    elif kind == "wipe":
        index.delete(where={"third": True})
    elif kind == "compact":
        index.compact()
    elif kind == "backup":
        index.backup(scratch)
        discard(scratch)
    elif kind == "reopen":
        path = index._store.path
        index.close()
        index = Index.open(path, TOY)
    else:
        for verb, id, *value in changes:
            if verb == "delete":
                index.delete(id, resolve=choice.random() < 0.5)
            elif verb == "teach":
                index.teach(value[0], id)
            else:
                index.upsert(described(id, value[0]), () if id in index else asked(id))
    return index


def described(id: str, revision: int) -> Any:
    return doc(id, revision, edition=revision, third=revision % 3 == 0)


def state_of(index: Index) -> State:
    """What an index holds; every document must be whole."""
    found: State = {}
    for document in index.documents():
        require_whole(document)
        found[document.id] = [document.metadata["edition"], index.queries(document.id)]
    return found


def require_whole(document: Any) -> None:
    if document != described(document.id, document.metadata["edition"]):
        raise AssertionError(f"a torn document: {document}")


def write(folder: Path, seed: int) -> None:
    """Writes until it is killed."""
    index, choice = Index.open(folder, TOY), random.Random(seed)
    scratch = folder.with_name("backup")
    discard(scratch)
    for kind, changes in operations(state_of(index), choice):
        say(f"try {json.dumps(changes)}")
        index = perform(index, kind, changes, scratch, choice)
        say("ack")


def require_sound(hits: list[Hit], k: int) -> None:
    """Hits are whole, each document once, best first."""
    for hit in hits:
        require_whole(hit.document)
    if len({hit.document_id for hit in hits}) != len(hits) or len(hits) > k:
        raise AssertionError(f"a doubled document: {[hit.document_id for hit in hits]}")
    if [hit.score for hit in hits] != sorted((hit.score for hit in hits), reverse=True):
        raise AssertionError("hits out of order")


def digest(index: Index) -> str:
    """A name for every answer an index gives."""
    return hashlib.sha256(repr(answers(index)).encode()).hexdigest()


def read(folder: Path) -> None:
    """Searches in all modes until the input ends; then says what it answers."""
    over, searches = ended(), 0
    with Index.open(folder, TOY) as index:
        say("reading")
        while not over.wait(0.005):
            mode = MODES[searches % 3]
            where = {"third": True} if searches % 2 else None
            require_sound(index.search(text_of(IDS[searches % len(IDS)]), 5, where=where, mode=mode), 5)
            searches += 1
        say(f"{digest(index)} {searches}")


def hold(folder: Path) -> None:
    """Takes the lock by a change and keeps it until the input ends."""
    over = ended()
    with Index.open(folder, TOY) as index:
        index.add(doc("held"))
        say(f"writing {os.getpid()}")
        over.wait()


if __name__ == "__main__":
    sys.modules["torch"] = None  # type: ignore[assignment]  # not needed, and slow to import
    if sys.argv[1] == "fork":
        fork_writers(write)
    else:
        {"read": read, "hold": hold}[sys.argv[1]](Path(sys.argv[2]))
