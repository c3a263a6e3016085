"""A Milvus server and its clients, hurt while documents change: `make milvus-faults`.

Writers add, update and delete documents of their own, alone and in batches, and say what they begin and what is
acknowledged; a searcher looks all the while. The server is killed in the middle of each kind of change and started
again, clients are killed, the network goes down for ten seconds during a batch, two writers race, and one is paused
until another has taken over. At the end every acknowledged change must be there, no batch in part, nothing torn, and no
document that nobody wrote.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.machine import machine, write
from benchmarks.milvus_writers import Searcher, Tally, Writer, found_revision, write_for_ever, writer
from tests.milvus_server import MilvusServer, enter, running, set_link

DOWN = 10.0  # seconds without network
PATIENCE = 300.0  # seconds until something must be acknowledged again
SOME = 10  # changes between faults
ROUNDS = 3


class Faults:
    """One index, the writers of it, and what is done to them."""

    def __init__(self, server: MilvusServer, seed: int) -> None:
        self.address = f"milvus://{server.address}/faults"
        self.tally = Tally()
        self.counts: Counter[str] = Counter()
        self.recovered: dict[str, list[float]] = {}  # seconds until the next acknowledgement
        self._server = server
        self._rng = random.Random(seed)
        self._numbers = itertools.count()

    def writer(self) -> Any:
        number = next(self._numbers)
        return writer(self.address, f"w{number}", number, self.tally)

    def round(self) -> None:
        for verb in ("add", "update", "delete", "batch"):
            self.server_killed(verb)
        self.network_down()
        self.two_writers()
        self.writer_paused()

    def server_killed(self, verb: str) -> None:
        """Somebody starts it again, as with any service; afterwards its client is killed as well."""
        with self.writer() as one:
            self._writes(one, SOME)
            self._in_the_middle_of(one, verb)
            self._server.crash()
            self._say(f"server killed during {verb}")
            self._back("server killed", one, time.monotonic())
            self._writes(one, SOME)
        self._say("client killed")

    def network_down(self) -> None:
        with self.writer() as one:
            self._writes(one, SOME)
            self._in_the_middle_of(one, "batch")
            set_link(up=False)
            time.sleep(DOWN)
            set_link(up=True)
            self._say("network down")
            self._back("network down", one, time.monotonic())
            self._writes(one, SOME)

    def two_writers(self) -> None:
        with self.writer() as one, self.writer() as other:
            self._writes(one, 2 * SOME)
            other.require_alive()
            self._say("two writers")

    def writer_paused(self) -> None:
        with self.writer() as paused:
            self._writes(paused, SOME)
            self._in_the_middle_of(paused, "update")
            begun = time.monotonic()
            paused.signal(signal.SIGSTOP)
            with self.writer() as next_one:
                self._back("writer paused", next_one, begun)
                self._writes(next_one, SOME)
                paused.signal(signal.SIGCONT)
                self._writes(next_one, SOME)
            self._back("next writer killed", paused, time.monotonic())
            self._say("writer paused past its lease")

    def _writes(self, one: Writer, count: int) -> None:
        """Wait until so many more are acknowledged, and a moment longer."""
        wanted = self.tally.count + count
        if not self.tally.wait(lambda: self.tally.count >= wanted, PATIENCE):
            one.require_alive()
            raise RuntimeError(f"nothing was acknowledged for {PATIENCE:g} s: {self.tally.sentences}")
        time.sleep(self._rng.uniform(0.0, 0.3))

    def _back(self, fault: str, one: Writer, since: float) -> None:
        self._writes(one, 1)
        self.recovered.setdefault(fault, []).append(round(time.monotonic() - since, 1))

    def _in_the_middle_of(self, one: Writer, verb: str) -> None:
        if not self.tally.wait(lambda: self.tally.begun == verb, PATIENCE):
            one.require_alive()
            raise RuntimeError(f"no {verb} was begun for {PATIENCE:g} s: {self.tally.sentences}")
        time.sleep(self._rng.uniform(0.0, 0.03))

    def _say(self, fault: str) -> None:
        self.counts[fault] += 1
        back = {kind: seconds[-1] for kind, seconds in self.recovered.items()}
        print(f"{fault}: {self.tally.count} acknowledged; back after {back}", file=sys.stderr, flush=True)


@contextmanager
def supervised(server: MilvusServer) -> Iterator[list[float]]:
    """Start the server again whenever it has ended: when it was killed, and when it was cut off from its etcd."""
    done, revived, begun = threading.Event(), list[float](), time.monotonic()

    def watch() -> None:
        while not done.wait(0.5):
            if server.revive():
                revived.append(round(time.monotonic() - begun, 1))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield revived
    finally:
        done.set()
        watching.join()


def judged(tally: Tally, address: str) -> dict[str, Any]:
    """What is there, beside what was said."""
    from incdsi.index import Index
    from tests.index.index_samples import TOY, text_of

    with Index.open(address, TOY) as index:
        assert isinstance(index, Index)
        problems = index.verify()
        there = {one.id: one.text for one in index.documents()}
    now = {id: found_revision(text) for id, text in there.items()}
    lost = [
        [id, sorted(map(str, allowed)), now.get(id)]
        for id, revision in tally.known.items()
        if now.get(id) not in (allowed := {revision, *tally.maybe.get(id, ())})
    ]
    return {
        "documents": len(there),
        "lost": len(lost),
        "first_lost": lost[:5],
        "torn": sum(text != text_of(id, now[id]) for id, text in there.items()),
        "stray": sum(id not in tally.known and id not in tally.maybe for id in there if id != "steady"),
        "batches_that_were_not_acknowledged": len(tally.open_batches),
        "of_them_there_in_part": sum(0 < sum(id in there for id in batch) < len(batch) for batch in tally.open_batches),
        "problems_found_by_verify": problems[:5],
    }


def run(server: MilvusServer, rounds: int, seed: int) -> dict[str, Any]:
    from incdsi.index import Index
    from tests.index.index_samples import TOY, doc

    faults = Faults(server, seed)
    tally = faults.tally
    with Index.create(faults.address, TOY) as index:
        index.add(doc("steady"), ["where is the steady one"])
    searcher = Searcher(faults.address)
    for _ in range(rounds):
        faults.round()
    searcher.stop()
    return {
        "faults": dict(faults.counts),
        "acknowledged": dict(tally.acknowledged),
        **judged(tally, faults.address),
        "searcher": {
            "looks": searcher.looks,
            "steady_document_missing": searcher.missing,
            "torn": searcher.torn,
            "refused": dict(searcher.refusals),
            "unclear_errors": searcher.broken[:5],
        },
        "seconds_until_a_write_was_acknowledged": faults.recovered,
        "errors_that_writers_met": dict(tally.errors),
        "sentences": {kind: sorted(said)[:5] for kind, said in tally.sentences.items()},
        "seed": seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="fewer write no results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", nargs=3, metavar=("ADDRESS", "NAME", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.writer:
        address, name, seed = given.writer
        write_for_ever(address, name, int(seed))
        return
    enter("benchmarks.milvus_faults", sys.argv[1:])
    print(json.dumps(machine()))
    with running() as server, supervised(server) as revived:
        found = run(server, given.rounds, given.seed)
    killed = sum(count for fault, count in found["faults"].items() if fault.startswith("server killed"))
    found["times_the_server_ended_by_itself"] = len(revived) - killed
    print(json.dumps(found, indent=1))
    if given.rounds >= ROUNDS:
        write("milvus-faults", found)
    wrong = ("lost", "torn", "stray", "of_them_there_in_part", "problems_found_by_verify")
    seen = ("steady_document_missing", "torn", "unclear_errors")
    if any(found[what] for what in wrong) or any(found["searcher"][what] for what in seen):
        sys.exit("something acknowledged was lost or torn")


if __name__ == "__main__":
    main()
