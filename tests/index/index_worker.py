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

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "store"))

from crash_harness import discard, ended, fork_writers, say
from index_samples import MODES, TOY, answers, asked, doc, text_of

from incdsi.documents import Hit
from incdsi.index import Index
from incdsi.index.draft import held_out_of
from incdsi.store import Store
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

Change = list[Any]  # ["put", id, revision], ["ask", id, query], ["set", name, value] or ["delete", id]
State = dict[str, list[Any]]  # id -> [revision, [what was asked and taught]]; and of the index "#name" -> [value, []]
IDS = [f"doc-{number}" for number in range(24)]
VERBS = {
    "add": 25,
    "update": 15,
    "teach": 12,
    "attach": 8,
    "delete": 15,
    "tune": 2,
    "adopt": 3,
    "compact": 4,
    "backup": 4,
    "restore": 3,
    "reopen": 5,
}


def after(state: State, changes: list[Change]) -> State:
    """The state with these changes made."""
    new = {id: [revision, list(queries)] for id, (revision, queries) in state.items()}
    for verb, id, *value in changes:
        if verb == "delete":
            del new[id]
        elif verb == "ask":
            new[id][1] += [value[0]] if value[0] not in new[id][1] else []  # once is enough for an index too
        elif verb == "set" or id in new:
            new[id][0] = value[0]
        else:
            new[id] = [value[0], asked(id, 4)]
    return new


def operations(state: State, choice: random.Random, aim: str) -> Iterator[tuple[str, list[Change]]]:
    """An endless stream of operations that fit what is there; every other one is of the verb `aim`, if it fits."""
    revision = max(entry[0] for entry in state.values())
    while True:
        (verb,) = [aim] if aim and choice.random() < 0.5 else choice.choices(list(VERBS), list(VERBS.values()))
        revision += 1
        changes = _changes(verb, state, revision, choice)
        if changes is not None:
            yield verb, changes
            state = after(state, changes)


def _changes(verb: str, state: State, revision: int, choice: random.Random) -> list[Change] | None:
    """What one operation changes; None when there is nothing for it."""
    there, free = [id for id in IDS if id in state], [id for id in IDS if id not in state]
    if verb == "add" and free:
        return [["put", id, revision] for id in choice.sample(free, min(len(free), choice.choice([1, 5])))]
    if verb == "adopt":
        return [["set", "#encoder", 1 - state["#encoder"][0]]]
    if verb == "tune" and any(held_out_of(id, asked(id, 4)) for id in there):
        return [["set", "#tuned", 1]]
    if verb in ("update", "teach", "attach", "delete") and there:
        id = choice.choice(there)
        if verb == "update":
            return [["put", id, revision]]
        if verb == "teach":
            return [["ask", id, f"lesson {revision}"]]
        if verb == "attach":
            some = choice.sample(there, min(len(there), 3))
            return [["ask", id, f"wish {revision} for {id}"] for id in some]
        wiped = [id for id in there if state[id][0] % 3 == 0] if choice.random() < 0.2 else []
        return [["delete", id] for id in wiped or [id]]
    return [] if verb in ("compact", "backup", "restore", "reopen") else None


def perform(index: Index, verb: str, changes: list[Change], folder: Path, choice: random.Random) -> Index:
    """Does one operation for real; the index to go on with."""
    ids = [change[1] for change in changes]
    if verb == "add":
        index.add_many([described(id, r) for _, id, r in changes], {id: asked(id, 4) for id in ids})
    elif verb == "update":
        index.update(described(ids[0], changes[0][2]))
    elif verb == "teach":
        index.teach(changes[0][2], ids[0])
    elif verb == "attach":
        index.attach({id: [query] for _, id, query in changes})
    elif verb == "delete":
        index.delete(ids, resolve=choice.random() < 0.5)
    elif verb == "tune":
        index.tune()
    elif verb == "adopt":
        index.adopt(OnnxEncoder(encoder_folder(folder, changes[0][2]), threads=1))
    elif verb == "compact":
        index.compact()
    elif verb in ("backup", "restore"):
        index.backup(folder.with_name("backup"))
        if verb == "restore":
            Store.restore(folder.with_name("backup"), folder.with_name("restored"))
        discard(folder.with_name("backup"))
        discard(folder.with_name("restored"))
    else:
        index.close()
        index = Index.open(folder)
    return index


def encoder_folder(folder: Path, number: int) -> Path:
    """Where the test put the encoders that an index is moved between."""
    return folder.with_name("encoders") / str(number)


def described(id: str, revision: int) -> Any:
    return doc(id, revision, edition=revision, third=revision % 3 == 0)


def state_of(index: Index, folder: Path) -> State:
    """What an index holds; every document must be whole, and everything by the encoder it names."""
    records = list(index.engine.store.changes(0).upserts)
    found: State = {}
    for record in records:
        require_whole(record.document)
        queries = [query.text for query in record.queries if not query.generated]
        found[record.document.id] = [record.document.metadata["edition"], queries]
    queries = [query for record in records for query in record.queries]
    embeddings = index._session.encoder.encode([query.text for query in queries])
    if any(not np.allclose(one.embedding, other, atol=1e-5) for one, other in zip(queries, embeddings, strict=True)):
        raise AssertionError("torn: embeddings by another encoder than the index names")
    other = OnnxEncoder(encoder_folder(folder, 1), threads=1)
    found["#encoder"] = [int(index._session.encoder.fingerprint == other.fingerprint), []]
    found["#tuned"] = [int(index.last_tuning is not None), []]
    return found


def require_whole(document: Any) -> None:
    if document != described(document.id, document.metadata["edition"]):
        raise AssertionError(f"a torn document: {document}")


def write(folder: Path, seed: int, aim: str) -> None:
    """Writes until it is killed."""
    index, choice = Index.open(folder), random.Random(seed)
    for name in ("backup", "restored"):
        discard(folder.with_name(name))
    for verb, changes in operations(state_of(index, folder), choice, aim):
        say(f"try {verb} {json.dumps(changes)}")
        index = perform(index, verb, changes, folder, choice)
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
    with Index.open(folder) as index:
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
