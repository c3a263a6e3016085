"""Clients that know what they were told: each has documents of its own and does one thing after another."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from benchmarks.server.load import Client, K

SHARES = {"search": 60, "add": 10, "add many": 3, "change": 9, "teach": 8, "delete": 10}
MANY = 5
PATIENCE = 60.0  # seconds for one answer
AGAIN = 0.2  # seconds before a write that found no room is sent again
LONG = " and so on" * 12_000


class Held(NamedTuple):
    """What there must be of a document."""

    text: str
    taught: frozenset[str]


class Operation(NamedTuple):
    """A write: what it asks for, the status it must get, and what its documents are then."""

    verb: str
    method: str
    path: str
    body: object
    status: int
    after: Mapping[str, Held | None]


@dataclass
class Wire:
    """Where the server is; `up` while it takes requests."""

    up: asyncio.Event = field(default_factory=asyncio.Event)
    host: str = ""
    port: int = 0

    def at(self, url: str) -> None:
        address = urlsplit(url)
        self.host, self.port = address.hostname or "", address.port or 0
        self.up.set()


@dataclass
class Figures:
    """What all clients saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {verb: [] for verb in SHARES})
    statuses: Counter[int] = field(default_factory=Counter)
    lost_answers: int = 0  # connections that broke before the answer
    sent_again: int = 0
    wrong: list[str] = field(default_factory=list)


class Soaker:
    """One client; `held` is what was acknowledged, `pending` a write that may have been done or not."""

    def __init__(
        self, number: int, wire: Wire, figures: Figures, texts: Sequence[str], documents: int, seed: int
    ) -> None:
        self.held: dict[str, Held] = {}
        self.pending: Operation | None = None
        self.waiting = False  # for the server
        self.wordy = False  # long texts: a store that has run for a while writes short ones into room it already has
        self._number, self._documents, self._made = number, documents, 0
        self._wire, self._figures, self._texts = wire, figures, texts
        self._choice = random.Random(f"{seed} {number}")
        self._client = Client("", 0)

    async def run(self, until: float) -> None:
        """Ask one thing after another; at the end no write is pending."""
        while time.monotonic() < until:
            (verb,) = self._choice.choices(list(SHARES), list(SHARES.values()))
            if verb == "search":
                await self._search()
            else:
                await self._finish(self._operation(verb))
        self._client.close()

    def possible(self) -> dict[str, Held]:
        """What is there if the pending write was done."""
        return _after(self.held, self.pending) if self.pending else self.held

    async def _search(self) -> None:
        body = {"query": self._text()[:80], "k": K}
        status = await self._asked("search", "POST", "/v1/search", body)
        if status not in (None, 200):
            self._wrong("search", status)

    async def _finish(self, operation: Operation) -> None:
        """Send a write, with one key, until it is done."""
        key = f"Idempotency-Key: {self._number}-{self._choice.randrange(2**62):x}"
        self.pending = operation
        while True:
            status = await self._asked(operation.verb, operation.method, operation.path, operation.body, key)
            if status not in (None, 507):
                break
            self._figures.sent_again += 1
            if status == 507:
                await self._search()  # reading goes on
                await asyncio.sleep(AGAIN)
        if status == operation.status:
            self.held = _after(self.held, operation)
        else:
            self._wrong(operation.verb, status)
        self.pending = None

    async def _asked(self, verb: str, method: str, path: str, body: object, *headers: str) -> int | None:
        """The status of the answer; None when the connection broke."""
        self.waiting = True
        await self._wire.up.wait()
        self.waiting = False
        begun = time.perf_counter()
        self._client.host, self._client.port = self._wire.host, self._wire.port
        try:
            status = await asyncio.wait_for(self._client.ask(method, path, body, headers), PATIENCE)
        except (OSError, asyncio.IncompleteReadError) as error:  # a timeout is an OSError too
            if isinstance(error, TimeoutError):
                self._wrong(verb, f"no answer in {PATIENCE:g} s")
            self._client.close()
            self._figures.lost_answers += 1
            await asyncio.sleep(0.01)
            return None
        self._figures.statuses[status] += 1
        if status < 300:
            self._figures.seconds[verb].append(time.perf_counter() - begun)
        return status

    def _operation(self, verb: str) -> Operation:
        """A write that fits what there is; about as many documents come as go."""
        few, none = len(self.held) < self._documents // 2, not self.held
        if none or (few and verb == "delete") or (verb.startswith("add") and len(self.held) <= self._documents):
            return self._addition(MANY if verb == "add many" else 1)
        if verb.startswith("add"):
            verb = "delete"
        id = self._choice.choice(sorted(self.held))
        path, old = f"/v1/documents/{quote(id, safe='')}", self.held[id]
        if verb == "delete":
            return Operation(verb, "DELETE", path, None, 200, {id: None})
        if verb == "teach":
            query = f"{self._text()[:60]} {self._choice.randrange(10**9)}"
            taught = Held(old.text, old.taught | {" ".join(query.split())})
            return Operation(verb, "POST", "/v1/teach", {"query": query, "id": id}, 200, {id: taught})
        text = self._document()
        return Operation(verb, "PATCH", path, {"text": text}, 200, {id: Held(text, old.taught)})

    def _addition(self, count: int) -> Operation:
        new = {}
        for _ in range(count):
            self._made += 1
            new[f"client {self._number}/{self._made}"] = Held(self._document(), frozenset())
        bodies = [{"id": id, "text": held.text, "queries": [held.text[:50]]} for id, held in new.items()]
        body: Any = bodies[0] if count == 1 else {"documents": bodies}
        return Operation("add" if count == 1 else "add many", "POST", "/v1/documents", body, 201, new)

    def _document(self) -> str:
        return self._text() + (LONG if self.wordy else "")

    def _text(self) -> str:
        return self._choice.choice(self._texts)

    def _wrong(self, verb: str, status: object) -> None:
        self._figures.wrong.append(f"{verb}: {status} {self._client.content[:300]!r}")


def _after(held: Mapping[str, Held], operation: Operation) -> dict[str, Held]:
    return {id: one for id, one in (dict(held) | dict(operation.after)).items() if one is not None}
