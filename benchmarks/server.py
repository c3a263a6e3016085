"""A minute of mixed load on the server, beside the same load on a plain faiss server: `make bench-server`.

The load comes from a process of its own over 16 connections: 90 % searches (test questions of squad_plus), 8 %
additions (passages of nq_passages, embedded live by both), 2 % deletions of what was added. Ours is filled by
embeddings made before, does not tune itself, and is on the disk before it answers; afterwards it is killed,
started again, and every acknowledged write is looked for. The peer is FastAPI, sentence-transformers and a flat
faiss index in memory: nothing of it survives.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import BaseModel

from benchmarks.index.__main__ import work_folder
from benchmarks.index.adding import fill
from benchmarks.index.run import Result, say, spread
from benchmarks.index.sources import cut_sets
from benchmarks.machine import SHARED_DATA, machine, write
from benchmarks.real import RealData, real_data

CONNECTIONS = 16
WARM_SECONDS = 3.0
SHARES = (("search", 0.90), ("add", 0.08), ("delete", 0.02))
K = 10
UNLIMITED = {"INCDSI_RATE": "1000000", "INCDSI_BURST": "1000000"}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How long, and how many documents; `cut` keeps that many."""

    seconds: float = 60.0
    cut: int | None = None
    additions: int = 9000


SMALL = Size(seconds=5.0, cut=60, additions=200)


# The load: raw HTTP/1.1, so that the one who asks costs little


@dataclass
class Client:
    """One connection; asks one thing after another."""

    host: str
    port: int
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None) -> int:
        """The status of the answer, which is read whole."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(content)}\r\n"
        writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        await reader.readexactly(int(fields[b"content-length"]))
        return int(answer.split(b" ", 2)[1])


@dataclass
class Load:
    """What was asked and how it went; `there` were added and acknowledged, `gone` deleted and acknowledged."""

    questions: Sequence[str]
    documents: list[dict[str, str]]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name, _ in SHARES})
    errors: list[str] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    async def run(self, host: str, port: int, warm_until: float, until: float) -> None:
        await asyncio.gather(*(self._one(Client(host, port), n, warm_until, until) for n in range(CONNECTIONS)))

    async def _one(self, client: Client, number: int, warm_until: float, until: float) -> None:
        rng = random.Random(number)
        names, odds = zip(*SHARES, strict=True)
        while (begin := time.perf_counter()) < until:
            (what,) = rng.choices(names, odds)
            try:
                status = await getattr(self, f"_{what}")(client, rng)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.errors.append(f"{what}: {error!r}")
                return
            if status is None:
                continue
            if status >= 400:
                self.errors.append(f"{what}: status {status}")
            if begin >= warm_until:
                self.seconds[what].append(time.perf_counter() - begin)

    async def _search(self, client: Client, rng: random.Random) -> int:
        return await client.ask("POST", "/v1/search", {"query": rng.choice(self.questions), "k": K})

    async def _add(self, client: Client, rng: random.Random) -> int | None:
        if not self.documents:
            return None
        document = self.documents.pop()
        status = await client.ask("POST", "/v1/documents", document)
        if status == 201:
            self.there.add(document["id"])
        return status

    async def _delete(self, client: Client, rng: random.Random) -> int | None:
        if not self.there:
            return None
        id = rng.choice(sorted(self.there))
        self.there.discard(id)  # nobody else deletes it
        status = await client.ask("DELETE", f"/v1/documents/{quote(id, safe='')}")
        (self.gone if status == 200 else self.there).add(id)
        return status


def load(folder: Path, url: str, seconds: float) -> Result:
    """The load, in this process: figures, errors, and what was acknowledged."""
    asked = json.loads((folder / "load.json").read_text())
    running = Load(questions=asked["questions"], documents=asked["documents"])
    address = urlsplit(url)
    begin = time.perf_counter()
    warm_until = begin + WARM_SECONDS
    asyncio.run(running.run(address.hostname or "", address.port or 0, warm_until, warm_until + seconds))
    done = sum(map(len, running.seconds.values()))
    return {
        "requests_per_second": done / seconds,
        "searches_per_second": len(running.seconds["search"]) / seconds,
        **{name: spread(some) for name, some in running.seconds.items() if some},
        "errors": len(running.errors),
        "first_errors": running.errors[:5],
        "there": sorted(running.there),
        "gone": sorted(running.gone),
    }


# The servers


class Process:
    """A server in a process of its own; its address is the first line it prints."""

    def __init__(self, command: Sequence[str]) -> None:
        environment = {**os.environ, **UNLIMITED}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"expected {' '.join(command)} to say its address, found it ended")
        self.url: str = json.loads(said)["address"]

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def started(command: Sequence[str], how: signal.Signals = signal.SIGTERM) -> Iterator[Process]:
    """A server for as long as the block lasts."""
    server = Process(command)
    try:
        yield server
    finally:
        server.stop(how)


def ours(folder: Path) -> list[str]:
    command = [sys.executable, "-c", "from incdsi.cli import main; main()", "serve"]
    return [*command, "--index", str(folder / "shop"), "--port", "0", "--json"]


def theirs(folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.server", "--child", "peer", "--folder", str(folder)]


def measured(server: Process, folder: Path, size: Size) -> Result:
    """The load on a server, and its memory before and after."""
    memory = [server.resident_mb()]
    command = [sys.executable, "-m", "benchmarks.server", "--child", "load", "--folder", str(folder)]
    command += ["--url", server.url, "--seconds", str(size.seconds)]
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stdout=said) as child:
        while child.poll() is None:
            time.sleep(1)
            memory.append(server.resident_mb())
        said.seek(0)
        found: Result = json.loads(said.read().splitlines()[-1])
    # The first write makes a server load what only writers need, so the start is that of the load's second quarter.
    settled = memory[len(memory) // 4]
    return {
        **found,
        "memory_before_load_mb": memory[0],
        "memory_start_mb": settled,
        "memory_end_mb": memory[-1],
        "memory_mb_every_second": [round(mb, 1) for mb in memory],
    }


class Asked(BaseModel):
    """What the peer is asked."""

    query: str
    k: int = K


class Given(BaseModel):
    """What the peer is given."""

    id: str
    text: str
    title: str = ""


def peer(folder: Path) -> None:
    """The plain server: FastAPI, sentence-transformers, a flat faiss index, all in memory."""
    import faiss
    import numpy as np
    import uvicorn
    from fastapi import FastAPI
    from sentence_transformers import SentenceTransformer

    from incdsi.text.encoders.locate import HUB_NAME, installed_model

    model = SentenceTransformer(str(installed_model() or HUB_NAME), device="cpu")
    kept = np.load(folder / "peer.npz")
    documents = dict(enumerate(json.loads((folder / "peer.json").read_text())))
    numbers = {row["id"]: number for number, row in documents.items()}
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(kept["embeddings"].shape[1]))
    index.add_with_ids(kept["embeddings"], np.arange(len(documents)))
    mutex, app = threading.Lock(), FastAPI()

    def encoded(text: str) -> Any:
        return model.encode([text], normalize_embeddings=True, show_progress_bar=False)

    @app.post("/v1/search")
    def search(asked: Asked) -> dict[str, Any]:
        embedding = encoded(asked.query)
        with mutex:
            scores, found = index.search(embedding, asked.k)
            rows = [documents[number] for number in found[0].tolist() if number >= 0]
        return {"hits": [{"score": float(s), "document": row} for s, row in zip(scores[0], rows, strict=False)]}

    @app.post("/v1/documents", status_code=201)
    def add(given: Given) -> dict[str, Any]:
        embedding = encoded(f"{given.title}\n{given.text}".strip())
        with mutex:
            number = max(documents) + 1
            index.add_with_ids(embedding, np.array([number]))
            documents[number] = given.model_dump()
            numbers[given.id] = number
        return {"id": given.id}

    @app.delete("/v1/documents/{id}")
    def delete(id: str) -> dict[str, int]:
        with mutex:
            number = numbers.pop(id)
            del documents[number]
            index.remove_ids(np.array([number]))
        return {"deleted": 1}

    class Said(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(json.dumps({"address": f"http://{host}:{port}"}), flush=True)

    Said(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)).run()


# The run


def prepare(folder: Path, size: Size) -> Result:
    """Fill the index, and leave for the others what they need."""
    import numpy as np

    data = real_data(str(folder / "squad_plus") if size.cut else "squad_plus")
    index, filled = fill(folder / "shop", data, range(len(data.documents)), tuning=False)
    index.close()
    np.savez(folder / "peer.npz", embeddings=data.embeddings)
    plain = [{"id": one.id, "title": one.title, "text": one.text} for one in data.documents]
    (folder / "peer.json").write_text(json.dumps(plain))
    (folder / "load.json").write_text(json.dumps({"questions": _questions(data), "documents": _newcomers(size)}))
    return filled


def _questions(data: RealData) -> list[str]:
    return list(data.test.texts)


def _newcomers(size: Size) -> list[dict[str, str]]:
    with gzip.open(SHARED_DATA / "nq_passages" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, size.additions)]
    return [{"id": f"new-{row['id']}", "title": row.get("title", ""), "text": row["text"]} for row in rows]


def survived(folder: Path, found: Result) -> Result:
    """Start the killed server again and look for every acknowledged write."""
    with started(ours(folder)) as server:
        address = urlsplit(server.url)

        async def statuses(ids: Sequence[str]) -> list[int]:
            client = Client(address.hostname or "", address.port or 0)
            return [await client.ask("GET", f"/v1/documents/{quote(id, safe='')}") for id in ids]

        there, gone = (asyncio.run(statuses(found[name])) for name in ("there", "gone"))
    return {
        "acknowledged_additions": len(there),
        "additions_lost": sum(status != 200 for status in there),
        "acknowledged_deletions": len(gone),
        "deletions_lost": sum(status != 404 for status in gone),
    }


def run(folder: Path, size: Size) -> Result:
    if size.cut is not None:
        cut_sets(folder, size.cut)
    say("filling the index")
    command = [sys.executable, "-m", "benchmarks.server", "--child", "prepare", "--folder", str(folder)]
    command += ["--small"] if size.cut else []
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    filled = json.loads(child.stdout.splitlines()[-1])
    say(f"{size.seconds:g} s of load on incdsi serve, then a kill")
    with started(ours(folder), signal.SIGKILL) as server:
        mine = measured(server, folder, size)
    kept = survived(folder, mine)
    say(f"{size.seconds:g} s of load on the faiss server")
    with started(theirs(folder), signal.SIGKILL) as server:
        other = measured(server, folder, size)
    for one in (mine, other):
        del one["there"], one["gone"]
    ratio = mine["searches_per_second"] / other["searches_per_second"]
    return {
        "search_throughput_over_peer": ratio,
        "connections": CONNECTIONS,
        "seconds": size.seconds,
        "filled": {"documents": filled["documents"], "tuning": False},
        "incdsi": mine,
        "after_kill_and_restart": kept,
        "fastapi_sentence_transformers_faiss": other,
    }


def show(found: Result) -> None:
    print(f"\n{found['filled']['documents']:,} documents, {CONNECTIONS} connections, {found['seconds']:g} s")
    heads = f"{'search p50/p99 ms':>20}{'add p50/p99':>18}{'delete p50/p99':>18}"
    print(f"{'':36}{'req/s':>8}{heads}{'MB':>14}{'errors':>8}")
    for name in ("incdsi", "fastapi_sentence_transformers_faiss"):
        one = found[name]
        times = [f"{one[what]['p50_ms']:.1f} / {one[what]['p99_ms']:.1f}" if what in one else "-" for what, _ in SHARES]
        memory = f"{one['memory_start_mb']:.0f} > {one['memory_end_mb']:.0f}"
        row = f"{name:36}{one['requests_per_second']:8.1f}{times[0]:>20}{times[1]:>18}{times[2]:>18}"
        print(f"{row}{memory:>14}{one['errors']:>8}")
        if one["errors"]:
            print(f"  first errors: {'; '.join(one['first_errors'])}")
    print(f"searches a second over the peer's: {found['search_throughput_over_peer']:.2f}")
    print("after SIGKILL and restart:", json.dumps(found["after_kill_and_restart"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs; nothing is written")
    parser.add_argument("--child", choices=["prepare", "load", "peer"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = SMALL if arguments.small else Size()
    if arguments.child == "prepare":
        print(json.dumps(prepare(arguments.folder, size)))
    elif arguments.child == "load":
        print(json.dumps(load(arguments.folder, arguments.url, arguments.seconds)))
    elif arguments.child == "peer":
        peer(arguments.folder)
    else:
        print(json.dumps(machine()))
        with tempfile.TemporaryDirectory(dir=work_folder(), prefix="server-") as folder:
            found = run(Path(folder), size)
        show(found)
        if not arguments.small:
            print("written to", write("server", found))
        lost = found["after_kill_and_restart"]
        if lost["additions_lost"] or lost["deletions_lost"] or found["incdsi"]["errors"]:
            sys.exit("something was lost or went wrong: see above")


if __name__ == "__main__":
    main()
