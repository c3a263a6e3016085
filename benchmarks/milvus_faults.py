"""A Milvus server and its clients, hurt while documents change: `make milvus-faults`.

Writers add, update and delete documents of their own and say what they begin and what is acknowledged; a searcher looks
all the while. The server is killed and started again, clients are killed, the network goes down for ten seconds, two
writers race, and one is paused until another has taken over. At the end every acknowledged change must be there,
nothing half, and no document that nobody wrote.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, write
from tests.milvus_server import MilvusServer, enter, running, set_link

sys.path.append(str(Path(__file__).parents[1] / "tests" / "index"))

LIVES_FOR = 3.0  # seconds: a shorter lease, so that less is waited for
DOWN = 10.0  # seconds without network
PATIENCE = 300.0  # seconds until something must be acknowledged again


def writing(address: str, name: str, seed: int) -> None:
    """A writer: says each change before and after, and after an error tries the next one."""
    from index_samples import TOY, doc

    from incdsi.engine.milvus import lease
    from incdsi.errors import IncDSIError
    from incdsi.index import Index

    lease.LIVES_FOR = LIVES_FOR
    rng, there, count = random.Random(seed), dict[str, int](), 0
    index = None
    while True:
        count += 1
        verb = rng.choice(["add", "add", "update", "update", "delete"]) if there else "add"
        id = f"{name}-{count}" if verb == "add" else rng.choice([*there])
        revision = count
        print(json.dumps(["begin", verb, id, revision]), flush=True)
        try:
            index = index or Index.open(address, TOY)
            if verb == "delete":
                index.delete(id)
                there.pop(id)
            else:
                batch = doc(id, revision)
                index.add(batch, [f"asked of {id}"]) if verb == "add" else index.update(batch)
                there[id] = revision
            print(json.dumps(["done", verb, id, revision]), flush=True)
        except IncDSIError as error:
            print(json.dumps(["error", verb, id, type(error).__name__, str(error)[:200]]), flush=True)
            there.pop(id, None)  # nobody knows: leave it alone from now on
            time.sleep(0.3)


@dataclass
class Tally:
    """What writers said: for each document its last acknowledged revision, and what else it may be by now."""

    known: dict[str, int | None] = field(default_factory=dict)
    maybe: dict[str, set[int | None]] = field(default_factory=dict)
    acknowledged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    sentences: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, line: str) -> None:
        what, verb, id, *rest = json.loads(line)
        with self.lock:
            if what == "begin":
                self.maybe.setdefault(id, set()).add(None if verb == "delete" else rest[0])
            elif what == "done":
                self.known[id] = None if verb == "delete" else rest[0]
                self.maybe.pop(id, None)
                self.acknowledged[verb] += 1
            else:
                self.errors[rest[0]] += 1
                self.sentences.setdefault(rest[0], rest[1])


class Writer:
    """One writer process, and a thread that hears it."""

    def __init__(self, address: str, name: str, seed: int, tally: Tally) -> None:
        command = [sys.executable, "-m", "benchmarks.milvus_faults", "--writer", address, name, str(seed)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._hearing = threading.Thread(target=self._hear, args=(tally,), daemon=True)
        self._hearing.start()

    def _hear(self, tally: Tally) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(json.JSONDecodeError):  # the last one may be cut
                tally.hear(line)

    def signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._hearing.join()


class Searcher:
    """Looks at a document that is always there, and at what it finds: never neither version, never half."""

    def __init__(self, address: str) -> None:
        self.looks, self.missing, self.torn, self.unavailable = 0, 0, 0, 0
        self._address = address
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        from index_samples import TOY, text_of

        from incdsi.errors import IncDSIError
        from incdsi.index import Index

        index = None
        while not self._done.wait(0.05):
            try:
                index = index or Index.open(self._address, TOY)
                found = index.search("steady number edition", 5)
                self.looks += 1
                self.missing += not any(hit.document_id == "steady" for hit in index.search("steady", 1000))
                for hit in found:
                    id, revision = hit.document_id, int(hit.document.text.split("edition ")[1].split(".")[0])
                    self.torn += hit.document.text != text_of(id, revision)
            except IncDSIError:
                self.unavailable += 1


@contextmanager
def writer(address: str, name: str, seed: int, tally: Tally) -> Iterator[Writer]:
    one = Writer(address, name, seed, tally)
    try:
        yield one
    finally:
        one.kill()


@contextmanager
def supervised(server: MilvusServer) -> Iterator[list[bool]]:
    """Start the server again whenever it ends by itself: cut off from its etcd, which is on the same link, it does."""
    done, revived = threading.Event(), list[bool]()

    def watch() -> None:
        while not done.wait(0.5):
            revived.append(server.revive())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield revived
    finally:
        done.set()
        watching.join()


def run(server: MilvusServer, rounds: int, seed: int) -> dict[str, Any]:
    from index_samples import TOY, doc, text_of

    from incdsi.index import Index

    address, tally, rng = f"milvus://{server.address}/faults", Tally(), random.Random(seed)
    with Index.create(address, TOY) as index:
        index.add(doc("steady"), ["where is the steady one"])
    searcher, seeds, faults = Searcher(address), iter(range(10**6)), Counter[str]()
    back: list[float] = []

    def writes(count: int) -> float:
        """Wait until so many more are acknowledged, and a moment longer; how long that took."""
        begun, wanted = time.monotonic(), sum(tally.acknowledged.values()) + count
        while sum(tally.acknowledged.values()) < wanted:
            if time.monotonic() - begun > PATIENCE:
                raise RuntimeError(f"nothing was acknowledged for {PATIENCE:g} s: {dict(tally.errors)}")
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.3))
        return time.monotonic() - begun

    def progress(said: str) -> None:
        faults[said] += 1
        print(f"{said}: {sum(tally.acknowledged.values())} acknowledged", file=sys.stderr, flush=True)

    for number in range(rounds):
        with writer(address, f"s{number}", next(seeds), tally):
            writes(20)
            server.kill()
            progress("server killed")
            begun = time.monotonic()
            server.start()
            writes(1)
            back.append(time.monotonic() - begun)
            writes(20)
        progress("client killed")
        with writer(address, f"c{number}", next(seeds), tally):
            writes(20)
        progress("client killed")
        with writer(address, f"n{number}", next(seeds), tally):
            writes(20)
            set_link(up=False)
            time.sleep(DOWN)
            set_link(up=True)
            progress("network down")
            writes(20)
        with (
            writer(address, f"r{number}", next(seeds), tally),
            writer(address, f"q{number}", next(seeds), tally),
        ):
            writes(40)
            progress("two writers")
        with writer(address, f"p{number}", next(seeds), tally) as paused:
            writes(20)
            paused.signal(signal.SIGSTOP)
            with writer(address, f"t{number}", next(seeds), tally):
                writes(20)
                paused.signal(signal.SIGCONT)
                writes(20)
            progress("writer paused past its lease")
    searcher.stop()
    with Index.open(address, TOY) as index:
        problems = index.verify()
        there = {one.id: one for one in index.documents()}
    lost, torn = [], []
    for id, revision in tally.known.items():
        allowed = {revision, *tally.maybe.get(id, ())}
        found = int(there[id].text.split("edition ")[1].split(".")[0]) if id in there else None
        if found not in allowed:
            lost.append([id, sorted(map(str, allowed)), found])
        if found is not None and there[id].text != text_of(id, found):
            torn.append(id)
    stray = [id for id in there if id != "steady" and id not in tally.known and id not in tally.maybe]
    return {
        "faults": dict(faults),
        "acknowledged": dict(tally.acknowledged),
        "lost": len(lost),
        "torn": len(torn),
        "stray": len(stray),
        "first_lost": lost[:5],
        "problems_found_by_verify": problems[:5],
        "documents": len(there),
        "unacknowledged_whose_outcome_is_open": len(tally.maybe),
        "searcher": {
            "looks": searcher.looks,
            "steady_document_missing": searcher.missing,
            "torn": searcher.torn,
            "refused_while_the_server_was_away": searcher.unavailable,
        },
        "errors_that_writers_met": dict(tally.errors),
        "one_sentence_each": tally.sentences,
        "seconds_until_a_write_was_acknowledged_after_sigkill": [round(one, 1) for one in back],
        "seed": seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", nargs=3, metavar=("ADDRESS", "NAME", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.writer:
        address, name, seed = given.writer
        writing(address, name, int(seed))
        return
    enter("benchmarks.milvus_faults", sys.argv[1:])
    print(json.dumps(machine()))
    with running() as server, supervised(server) as revived:
        found = run(server, given.rounds, given.seed)
    found["times_the_server_ended_by_itself"] = revived.count(True)
    print(json.dumps(found, indent=1))
    if given.rounds >= 3:
        write("milvus_faults", found)
    if found["lost"] or found["torn"] or found["stray"] or found["problems_found_by_verify"]:
        sys.exit("something acknowledged was lost or torn")


if __name__ == "__main__":
    main()
