"""Answers to writes with an Idempotency-Key, stored with the write itself, so that a retry never writes twice."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request

from incdsi.errors import KeyReused
from incdsi.records import Answer
from incdsi.server.problems import malformed

LONGEST_KEY = 255
CONDITIONS = ("if-match", "if-none-match")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer as it is sent; `replayed` if it was sent before."""

    status: int
    content: bytes
    version: int
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """What identifies a retried write: its key, and a digest of the request."""

    key: str
    request: bytes

    def answer(self, reply: Reply) -> tuple[str, Answer]:
        """What the store keeps, by key."""
        return self.key, Answer(self.request, reply.status, reply.content, reply.version)

    def require_same(self, request: bytes) -> None:
        if request != self.request:
            raise KeyReused("this Idempotency-Key was used for a different request; send a new one")


class Answers:
    """The first answer to each key: looked up by `find`, or awaited while the write is under way."""

    def __init__(self, find: Callable[[str], Awaitable[Answer | None]]) -> None:
        self._find = find
        self._under_way: dict[str, tuple[bytes, asyncio.Future[Reply]]] = {}

    async def once(self, ticket: Ticket | None, act: Callable[[], Awaitable[Reply]]) -> Reply:
        """The first answer to that key, or what `act` answers now; KeyReused if the key was for another request."""
        if ticket is None:
            return await act()
        if ticket.key in self._under_way:
            first, future = self._under_way[ticket.key]
            ticket.require_same(first)
            return await asyncio.shield(future)
        future = asyncio.get_running_loop().create_future()
        self._under_way[ticket.key] = ticket.request, future
        try:
            reply = await self._known_or_new(ticket, act)
            future.set_result(reply)
            return reply
        except BaseException as error:
            future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if isinstance(error, Exception):
                future.exception()  # retrieved, even if nobody else awaits it
            raise
        finally:
            del self._under_way[ticket.key]

    async def _known_or_new(self, ticket: Ticket, act: Callable[[], Awaitable[Reply]]) -> Reply:
        known = await self._find(ticket.key)
        if known is None:
            return await act()
        ticket.require_same(known.request)
        return Reply(status=known.status, content=known.content, version=known.version, replayed=True)


def ticket_of(request: Request, body: bytes) -> Ticket | None:
    """The request's Idempotency-Key with a digest of method, path, conditions and body."""
    key = key_of(request)
    if key is None:
        return None
    conditions = (request.headers.get(name, "") for name in CONDITIONS)
    parts = (request.method, request.url.path, request.url.query, *conditions)
    head = "\0".join(parts).encode("utf-8", "surrogatepass")
    return Ticket(key=key, request=hashlib.sha256(head + b"\0\0" + body).digest())


def key_of(request: Request) -> str | None:
    """The request's Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is not None and not re.fullmatch(f"[!-~]{{1,{LONGEST_KEY}}}", key):
        raise malformed(f"an Idempotency-Key has 1 to {LONGEST_KEY} visible ASCII characters")
    return key
