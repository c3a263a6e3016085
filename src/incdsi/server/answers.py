"""Answers to writes with an Idempotency-Key: kept in a file, so that asking again never writes twice."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import apsw
import structlog
from starlette.requests import Request

from incdsi.errors import KeyReused
from incdsi.server.problems import malformed
from incdsi.store.answers import Answer, AnswerFile

log = structlog.get_logger("incdsi.server")
MOST = 10_000
SECONDS = 86_400
LONGEST_KEY = 255


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer as it goes out; `replayed` when it was given before."""

    status: int
    content: bytes
    version: int
    replayed: bool = False


class Answers:
    """The latest answers by key, for a day or until the index is compacted; those under way are waited for."""

    def __init__(self, folder: Path, *, most: int = MOST, seconds: float = SECONDS) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="incdsi-answers")
        self._under_way: dict[str, tuple[bytes, asyncio.Future[Reply]]] = {}
        self._file = AnswerFile(folder, most=most, seconds=seconds)

    def close(self) -> None:
        self._thread.shutdown()
        self._file.close()

    async def once(self, key: str | None, request: bytes, act: Callable[[], Awaitable[Reply]]) -> Reply:
        """The first answer to that key, or what `act` answers now; KeyReused when it was for another request."""
        if key is None:
            return await act()
        if key in self._under_way:
            first, future = self._under_way[key]
            _require_same(first, request)
            return await asyncio.shield(future)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._under_way[key] = request, future
        try:
            reply = await self._known_or_new(key, request, act)
            future.set_result(reply)
            return reply
        except BaseException as error:
            future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if isinstance(error, Exception):
                future.exception()  # seen, also when nobody else waits for it
            raise
        finally:
            del self._under_way[key]

    async def _known_or_new(self, key: str, request: bytes, act: Callable[[], Awaitable[Reply]]) -> Reply:
        loop = asyncio.get_running_loop()
        known = await loop.run_in_executor(self._thread, self._file.find, key)
        if known is not None:
            _require_same(known.request, request)
            return Reply(status=known.status, content=known.content, version=known.version, replayed=True)
        reply = await act()
        try:
            answer = Answer(request, reply.status, reply.content, reply.version)
            await loop.run_in_executor(self._thread, self._file.keep, key, answer)
        except apsw.Error as error:  # the change itself is on the disk: to say otherwise would be wrong
            log.error("answer not kept", reason=str(error))
        return reply


def key_of(request: Request) -> str | None:
    """The request's Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is not None and not re.fullmatch(f"[!-~]{{1,{LONGEST_KEY}}}", key):
        raise malformed(f"expected an Idempotency-Key of 1 to {LONGEST_KEY} visible characters, found another")
    return key


def fingerprint(request: Request, body: bytes) -> bytes:
    """What makes two requests the same: method, path, If-Match and body."""
    parts = (request.method, request.url.path, request.url.query, request.headers.get("if-match", ""))
    head = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(head + b"\0\0" + body).digest()


def _require_same(first: bytes, request: bytes) -> None:
    if first != request:
        raise KeyReused("expected a new Idempotency-Key for another request, found one that was used; make a new one")
