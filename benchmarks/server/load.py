"""The load: raw HTTP/1.1, so that the one who asks costs little."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.index.run import Result, spread

CONNECTIONS = 16
WARM_SECONDS = 3.0
SHARES = (("search", 0.90), ("add", 0.08), ("delete", 0.02))
K = 10


@dataclass
class Client:
    """One connection; asks one thing after another."""

    host: str
    port: int
    content: bytes = b""  # of the last answer
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None, headers: Sequence[str] = ()) -> int:
        """The status of the answer, which is read whole; each of `headers` is a line."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(content)}", *headers]
        writer.write("\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        self.content = await reader.readexactly(int(fields[b"content-length"]))
        return int(answer.split(b" ", 2)[1])

    def close(self) -> None:
        """Leaves the connection; the next question opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Load:
    """What was asked and how it went; `there` were added and acknowledged, `gone` deleted and acknowledged."""

    questions: Sequence[str]
    documents: list[dict[str, str]]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name, _ in SHARES})
    asked: int = 0
    errors: list[str] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    async def run(self, host: str, port: int, warm_until: float, until: float) -> None:
        await asyncio.gather(*(self._one(Client(host, port), n, warm_until, until) for n in range(CONNECTIONS)))

    async def _one(self, client: Client, number: int, warm_until: float, until: float) -> None:
        rng = random.Random(number)
        names, odds = [name for name, _ in SHARES], [share for _, share in SHARES]
        while (begin := time.perf_counter()) < until:
            (what,) = rng.choices(names, odds)
            try:
                status = await getattr(self, f"_{what}")(client, rng)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.errors.append(f"{what}: {error!r}")
                return
            if status is None:
                continue
            self.asked += 1
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
        "requests_with_warming": running.asked,
        "requests_per_second": done / seconds,
        "searches_per_second": len(running.seconds["search"]) / seconds,
        **{name: spread(some) for name, some in running.seconds.items() if some},
        "errors": len(running.errors),
        "first_errors": running.errors[:5],
        "there": sorted(running.there),
        "gone": sorted(running.gone),
    }
