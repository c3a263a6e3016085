"""`make soak`."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from benchmarks.index.run import Result, spread
from benchmarks.machine import machine, write
from benchmarks.progress import Countdown
from benchmarks.server.processes import Process, ours
from benchmarks.soak import __doc__ as about
from benchmarks.soak.clients import Figures, Held, Soaker, Wire
from benchmarks.soak.disk import Disk, small_disk
from incdsi.demo.corpus import python_documentation
from incdsi.index import Index
from incdsi.store import Store

CLIENTS = 8
DOCUMENTS = 60  # a client's
CHARACTERS = 600
FLAT = 0.10  # of its median is the most that memory may grow over the run
ENOUGH = 10  # lives of the server before its memory can be judged


@dataclass(frozen=True)
class Plan:
    """When what happens, in seconds; short runs are the same in small."""

    seconds: float

    @property
    def life(self) -> float:
        """From one kill to the next."""
        return min(60.0, self.seconds / 5)

    @property
    def full(self) -> float:
        """How long the disk is full, each time."""
        return self.life / 2

    def fills(self) -> list[float]:
        """The first between two kills, the second around one."""
        lives = int(self.seconds / self.life)
        return [(lives // 3 + 0.2) * self.life, (2 * lives // 3 + 0.8) * self.life]


@dataclass
class Soak:
    """One run: the server, what is asked of it, and what is seen."""

    plan: Plan
    disk: Disk
    log: IO[str]
    seed: int
    wire: Wire = field(default_factory=Wire)
    figures: Figures = field(default_factory=Figures)
    memory: list[tuple[float, int, float]] = field(default_factory=list)  # seconds, life, MB
    kills: int = 0
    refused_starts: int = 0
    full_phases: int = 0
    checks: int = 0
    documents_checked: int = 0
    missing: list[str] = field(default_factory=list)

    async def run(self) -> None:
        texts = [one.text[:CHARACTERS] for one in python_documentation()]
        self.clients = [
            Soaker(number, self.wire, self.figures, texts, DOCUMENTS, self.seed) for number in range(CLIENTS)
        ]
        await self._start()
        self._begun, self._countdown = time.monotonic(), Countdown(self.plan.seconds, "s")
        until = self._begun + self.plan.seconds
        others = [asyncio.create_task(act()) for act in (self._kill, self._fill, self._watch)]
        try:
            await asyncio.gather(*(client.run(until) for client in self.clients))
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self.disk.free()
        for task in others:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        await self._check()
        self.server.stop(signal.SIGTERM)
        self._check_files()

    async def _start(self) -> None:
        command = ours(self.disk.folder)
        try:
            self.server = await asyncio.to_thread(Process, command, self.log)
        except RuntimeError:  # it may not be able to, without any room
            self.refused_starts += 1
            self.disk.free()
            self.server = await asyncio.to_thread(Process, command, self.log)
        self.wire.at(self.server.url)

    async def _kill(self) -> None:
        """Kill it in the middle of everything, start it again, look for all that was acknowledged."""
        while True:
            await asyncio.sleep(self.plan.life - (time.monotonic() - self._begun) % self.plan.life)
            if self._left() < self.plan.life / 2:
                return
            self.wire.up.clear()
            self.server.stop(signal.SIGKILL)
            self.kills += 1
            while not all(client.waiting for client in self.clients):
                await asyncio.sleep(0.01)
            await self._start()
            self.wire.up.clear()
            await self._check()
            self.wire.up.set()

    async def _fill(self) -> None:
        for moment in self.plan.fills() if self.disk.small else []:
            await asyncio.sleep(self._begun + moment - time.monotonic())
            self.disk.fill()
            self.full_phases += 1
            self._be_wordy(True)
            await asyncio.sleep(self.plan.full)
            self._be_wordy(False)
            self.disk.free()

    def _be_wordy(self, wordy: bool) -> None:
        for client in self.clients:
            client.wordy = wordy

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            at = time.monotonic() - self._begun
            if self.wire.up.is_set():
                self.memory.append((at, self.kills, self.server.resident_mb()))
            done = sum(self.figures.statuses.values())
            self._countdown.show(at, f"{done:,} requests, {self.kills} kills, {len(self.figures.wrong)} wrong")

    async def _check(self) -> None:
        """Every document by the server, against what was acknowledged; what is pending may be there or not."""
        found = await asyncio.to_thread(_all_documents, self.server.url)
        self._compare(found)

    def _check_files(self) -> None:
        with Store.open(self.disk.folder / "shop", writer=False) as store:
            self.missing += store.verify()
            found = {}
            for record in store.changes(0).upserts:
                taught = [query.text for query in record.queries if query.taught]
                found[record.document.id] = (record.document.text, taught)
        self._compare(found)

    def _compare(self, found: dict[str, tuple[str, list[str]]]) -> None:
        self.checks += 1
        self.documents_checked += len(found)
        for client in self.clients:
            certain, possible = client.held, client.possible()
            for id in certain | possible:
                text, taught = found.pop(id, (None, []))
                there = None if text is None else Held(text, frozenset(taught))
                if there not in (certain.get(id), possible.get(id)) or len(taught) != len(set(taught)):
                    self.missing.append(f"{id}: found {there}, acknowledged {certain.get(id)}"[:400])
        self.missing += [f"{id}: nobody added it, or it was deleted" for id in found]

    def _left(self) -> float:
        return self._begun + self.plan.seconds - time.monotonic()


def _all_documents(url: str) -> dict[str, tuple[str, list[str]]]:
    with urllib.request.urlopen(f"{url}/v1/documents?queries=true", timeout=60) as lines:
        rows = [json.loads(line) for line in lines]
    found = {row["id"]: (row["text"], row["taught"]) for row in rows}
    assert len(found) == len(rows), "a document came twice"
    return found


def growth(memory: list[tuple[float, int, float]]) -> Result:
    """How memory went: at the end of each life of the server, and within them once it was warm.

    The first quarter, in which the index fills, is left out.
    """
    memory = memory[len(memory) // 4 :]
    lives = sorted({life for _, life, _ in memory})
    by_life = [[(at, mb) for at, one, mb in memory if one == life] for life in lives]
    last = [samples[-1] for samples in by_life if len(samples) > 1]
    late = [samples[len(samples) // 2 :] for samples in by_life if len(samples) >= 8]
    ends = [mb for _, mb in last]
    return {
        "median_end_of_life_mb": round(float(np.median(ends)), 1),
        "highest_mb": round(max(mb for _, _, mb in memory), 1),
        "growth_over_the_run_mb": round(_slope(last) * (memory[-1][0] - memory[0][0]), 2),
        "growth_within_a_life_mb_per_minute": round(60 * float(np.median([_slope(some) for some in late])), 2)
        if late
        else None,
        "every_30_s": [[round(at), round(mb, 1)] for at, _, mb in memory[::30]],
    }


def _slope(samples: list[tuple[float, float]]) -> float:
    if len(samples) < 2:
        return 0.0
    at, mb = np.array(samples).T
    return float(np.polyfit(at, mb, 1)[0])


def told(soak: Soak) -> tuple[Result, list[str]]:
    """The figures, and what of them is not as it must be."""
    figures, memory = soak.figures, growth(soak.memory)
    found: Result = {
        "seconds": soak.plan.seconds,
        "requests": sum(figures.statuses.values()),
        "kills": soak.kills,
        "restarts": soak.kills,
        "starts_refused_on_a_full_disk": soak.refused_starts,
        "full_disk_phases": soak.full_phases
        if soak.disk.small
        else "none: mounting a small disk is not permitted here",
        "missing_or_wrong_documents": len(soak.missing),
        "wrong_answers": len(figures.wrong),
        "first_wrong": [*soak.missing, *figures.wrong][:5],
        "checks_of_all_documents": soak.checks,
        "documents_checked": soak.documents_checked,
        "statuses": {str(status): count for status, count in sorted(figures.statuses.items())},
        "answers_lost_to_kills": figures.lost_answers,
        "writes_sent_again_with_their_key": figures.sent_again,
        "clients": CLIENTS,
        "documents_at_the_end": sum(len(client.held) for client in soak.clients),
        **{verb.replace(" ", "_"): spread(some) for verb, some in figures.seconds.items() if some},
        "memory": memory,
        "seed": soak.seed,
    }
    failures = {
        "a document is missing or wrong": soak.missing,
        "an answer is not what it must be": figures.wrong,
        "a status above 499 that is not 507": [s for s in figures.statuses if s >= 500 and s != 507],
        "the full disk refused nothing": soak.full_phases and not figures.statuses[507],
        "memory grew": soak.kills >= ENOUGH
        and memory["growth_over_the_run_mb"] > FLAT * memory["median_end_of_life_mb"],
    }
    return found, [name for name, failed in failures.items() if failed]


def main() -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="fewer than 60 write no results")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args()
    print(json.dumps(machine()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the disk goes
    with small_disk() as disk, tempfile.TemporaryFile("w+") as log:
        Index.create(disk.folder / "shop").close()
        soak = Soak(Plan(60 * given.minutes), disk, log, given.seed)
        try:
            asyncio.run(soak.run())
        finally:
            if hasattr(soak, "server") and soak.server.process.poll() is None:
                soak.server.stop(signal.SIGKILL)
        found, failures = told(soak)
        if failures:
            log.seek(0)
            print("".join(log.readlines()[-20:]), file=sys.stderr)
    print(json.dumps({**found, "memory": {**found["memory"], "every_30_s": "..."}}, indent=1))
    if given.minutes >= 60:
        print("written to", write("soak", found))
    if failures:
        sys.exit(f"failed: {'; '.join(failures)}")


if __name__ == "__main__":
    main()
