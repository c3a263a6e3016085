"""Answers to writes with an Idempotency-Key: kept in a file, so that asking again never writes twice."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import apsw
import structlog
from starlette.requests import Request

from incdsi.errors import KeyReused
from incdsi.server.problems import malformed
from incdsi.store.connections import BUSY_MILLISECONDS, clear_errors
from incdsi.store.files import ANSWERS

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
    """The latest answers by key, for a day or until the index is compacted: ids, figures, taught queries.

    Kept by the operating system once given (a killed process loses none), written to the disk a little later.
    """

    def __init__(self, folder: Path, *, most: int = MOST, seconds: float = SECONDS) -> None:
        self._most, self._seconds = most, seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="incdsi-answers")
        self._under_way: dict[str, tuple[bytes, asyncio.Future[Reply]]] = {}
        with clear_errors(folder / ANSWERS):
            self._connection = apsw.Connection(str(folder / ANSWERS))
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
            self._connection.pragma("journal_mode", "wal")
            self._connection.pragma("synchronous", "normal")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request BLOB, status INTEGER, "
                "content BLOB, version INTEGER, at REAL); CREATE INDEX IF NOT EXISTS by_age ON answers (at)"
            )

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

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
        known = await loop.run_in_executor(self._thread, self._find, key)
        if known is not None:
            _require_same(known[0], request)
            return known[1]
        reply = await act()
        try:
            await loop.run_in_executor(self._thread, self._keep, key, request, reply)
        except apsw.Error as error:  # the change itself is on the disk: to say otherwise would be wrong
            log.error("answer not kept", reason=str(error))
        return reply

    def _find(self, key: str) -> tuple[bytes, Reply] | None:
        asked = "SELECT request, status, content, version FROM answers WHERE key = ? AND at > ?"
        row = self._connection.execute(asked, (key, time.time() - self._seconds)).fetchone()
        if row is None:
            return None
        return row[0], Reply(status=row[1], content=row[2], version=row[3], replayed=True)

    def _keep(self, key: str, request: bytes, reply: Reply) -> None:
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                (key, request, reply.status, reply.content, reply.version, time.time()),
            )
            self._connection.execute(
                "DELETE FROM answers WHERE at <= max(?, ifnull("
                "(SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?), 0))",
                (time.time() - self._seconds, self._most),
            )


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
