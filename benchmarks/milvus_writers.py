"""Who writes and searches while `benchmarks.milvus_faults` hurts a Milvus server, and what they said.

A writer is a process of its own. It says each change before it begins and after it is acknowledged, so that at the end
everything that was acknowledged can be looked for.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

LIVES_FOR = 3.0  # seconds: a shorter lease, so that less is waited for
BATCH = 32
VERBS = ("add", "add", "update", "update", "delete", "batch")
Change = Mapping[str, int | None]  # ids, and the revision that each has then; None for one that is gone


def write_for_ever(address: str, name: str, seed: int) -> None:
    """A writer: says each change before and after, and after an error tries another one."""
    from incdsi.engine.milvus import lease
    from incdsi.errors import IncDSIError
    from incdsi.index import Index
    from tests.index.index_samples import TOY

    lease.LIVES_FOR = LIVES_FOR
    rng, there, number = random.Random(seed), list[str](), 0
    index = None
    while True:
        number += 1
        verb, change = _chosen(rng, name, number, there)
        _say("begin", verb, change)
        try:
            index = index or Index.open(address, TOY)
            _make(index, verb, change)
        except IncDSIError as error:
            _say("error", verb, {type(error).__name__: str(error)[:200]})
            there = [id for id in there if id not in change]  # nobody knows: leave it alone from now on
            time.sleep(0.3)
            continue
        _say("done", verb, change)
        there = [id for id in there if id not in change] + [id for id, now in change.items() if now is not None]


def _chosen(rng: random.Random, name: str, number: int, there: list[str]) -> tuple[str, Change]:
    verb = rng.choice(VERBS) if there else "add"
    if verb == "batch":
        return verb, {f"{name}-{number}-{one}": number for one in range(BATCH)}
    if verb == "add":
        return verb, {f"{name}-{number}": number}
    return verb, {rng.choice(there): None if verb == "delete" else number}


def _make(index: Any, verb: str, change: Change) -> None:
    from tests.index.index_samples import doc

    documents = [doc(id, revision) for id, revision in change.items() if revision is not None]
    if verb == "delete":
        index.delete([*change])
    elif verb == "update":
        index.update(documents[0])
    elif verb == "add":
        index.add(documents[0], [f"asked of {documents[0].id}"])
    else:
        index.add_many(documents)


def _say(*what: object) -> None:
    print(json.dumps(what), flush=True)


def found_revision(text: str) -> int:
    """The revision that a document's text speaks of."""
    return int(text.split("edition ")[1].split(".")[0])


@dataclass
class Tally:
    """What writers said: for each document its last acknowledged revision, and what else it may be by now."""

    known: dict[str, int | None] = field(default_factory=dict)
    maybe: dict[str, set[int | None]] = field(default_factory=dict)
    open_batches: list[list[str]] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    sentences: dict[str, set[str]] = field(default_factory=dict)
    begun: str = ""  # the verb of the last change that was begun and not ended
    heard: threading.Condition = field(default_factory=threading.Condition)

    @property
    def count(self) -> int:
        """How many changes were acknowledged."""
        return self.acknowledged.total()

    def hear(self, line: str) -> None:
        what, verb, change = json.loads(line)
        with self.heard:
            self.begun = verb if what == "begin" else ""
            if what == "begin":
                self._begin(verb, change)
            elif what == "done":
                self._end(verb, change)
            else:
                self.errors.update(change.keys())
                for kind, sentence in change.items():
                    self.sentences.setdefault(kind, set()).add(sentence)
            self.heard.notify_all()

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Whether that came true in time."""
        with self.heard:
            return self.heard.wait_for(until, seconds)

    def _begin(self, verb: str, change: Change) -> None:
        for id, revision in change.items():
            self.maybe.setdefault(id, set()).add(revision)
        if verb == "batch":
            self.open_batches.append([*change])

    def _end(self, verb: str, change: Change) -> None:
        self.known |= change
        for id in change:
            self.maybe.pop(id, None)
        self.acknowledged[verb] += 1
        if verb == "batch":
            self.open_batches.remove([*change])


class Writer:
    """One writer process, and a thread that hears it."""

    def __init__(self, address: str, name: str, seed: int, tally: Tally) -> None:
        command = [sys.executable, "-m", "benchmarks.milvus_faults", "--writer", address, name, str(seed)]
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._said, text=True)
        self._hearing = threading.Thread(target=self._hear, args=(tally,), daemon=True)
        self._hearing.start()

    def _hear(self, tally: Tally) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(json.JSONDecodeError):  # the last one may be cut
                tally.hear(line)

    def signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def require_alive(self) -> None:
        """A writer never ends by itself: whatever breaks, it gets an error of ours and goes on."""
        if self.process.poll() is not None:
            self._said.seek(0)
            raise RuntimeError(f"a writer ended by itself: {self._said.read()[-2000:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._hearing.join()
        self._said.close()


@contextmanager
def writer(address: str, name: str, seed: int, tally: Tally) -> Iterator[Writer]:
    one = Writer(address, name, seed, tally)
    try:
        yield one
        one.require_alive()
    finally:
        one.kill()


class Searcher:
    """Looks at a document that is always there, and at what it finds: never neither version, never half."""

    def __init__(self, address: str) -> None:
        self.looks, self.missing, self.torn = 0, 0, 0
        self.refusals: Counter[str] = Counter()
        self.broken: list[str] = []  # whatever is no error of ours
        self._address = address
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_for_ever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _look_for_ever(self) -> None:
        from incdsi.errors import IncDSIError
        from incdsi.index import Index
        from tests.index.index_samples import TOY

        index = None
        while not self._done.wait(0.05):
            try:
                index = index or Index.open(self._address, TOY)
                self._look(index)
            except IncDSIError as error:
                self.refusals[type(error).__name__] += 1
            except Exception as error:
                self.broken.append(repr(error))

    def _look(self, index: Any) -> None:
        from tests.index.index_samples import text_of

        found = index.search("steady number edition", 5)
        self.looks += 1
        self.missing += not any(hit.document_id == "steady" for hit in index.search("steady", 1000))
        for hit in found:
            text = hit.document.text
            self.torn += text != text_of(hit.document_id, found_revision(text))
