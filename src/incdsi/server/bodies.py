"""Reads requests within limits of size, time and nesting."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Message

from incdsi.errors import InvalidInput, Overloaded, TooLarge, TooSlow
from incdsi.server.problems import Refused, invalid_fields, malformed
from incdsi.server.settings import ServerSettings

M = TypeVar("M", bound=BaseModel)
JSON_TYPE = "application/json"
STREAM_TYPES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
LINGER_SECONDS = 2.0  # to discard the rest of an oversized body, so that the client gets to read the refusal


def media_type(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def read(request: Request, model: type[M], settings: ServerSettings) -> M:
    """The body as that model; refuses anything but JSON, nesting beyond 200 levels, and unknown fields."""
    return parsed(await body(request, settings), model)


def parsed(content: bytes, model: type[M]) -> M:
    """These bytes as that model."""
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise invalid_fields(error) from None


async def body(request: Request, settings: ServerSettings) -> bytes:
    """The whole body of a JSON request."""
    if media_type(request) != JSON_TYPE:
        raise Refused(InvalidInput(f"expected Content-Type {JSON_TYPE}, found {media_type(request)!r:.80}"), 415)
    _check_length(request, settings.body_bytes)
    deadline = time.monotonic() + settings.body_seconds
    pieces, size, too_large = list[bytes](), 0, False

    def left() -> float:
        return deadline - time.monotonic()

    try:
        async for piece in _pieces(request, left):
            size += len(piece)
            if too_large:
                continue  # discarded
            pieces.append(piece)
            if size > settings.body_bytes:
                too_large, pieces = True, []
                deadline = min(deadline, time.monotonic() + LINGER_SECONDS)
    except Refused:
        if not too_large:
            raise
    if too_large:
        raise _too_large(settings.body_bytes)
    return b"".join(pieces)


async def lines(request: Request, settings: ServerSettings, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    """The lines of a stream as they arrive, empty ones included so that they can be counted, until `stopping`."""
    rest, size = b"", 0
    async for piece in _pieces(request, lambda: settings.body_seconds, stopping):
        size += len(piece)
        if size > settings.stream_bytes:
            raise _too_large(settings.stream_bytes)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > settings.body_bytes:
            raise _too_large(settings.body_bytes)
    if rest:
        yield rest


async def save(request: Request, settings: ServerSettings, path: Path) -> None:
    """Keep the body in a new file, whatever it is."""
    _check_length(request, settings.file_bytes)
    size = 0
    with path.open("wb") as file:
        async for piece in _pieces(request, lambda: settings.body_seconds):
            size += len(piece)
            if size > settings.file_bytes:
                await discard(request)
                raise _too_large(settings.file_bytes)
            file.write(piece)


def version_asked(request: Request) -> int | None:
    """The version in If-Match, if any; refuses If-None-Match except on PUT, which reads it itself."""
    if "if-none-match" in request.headers and request.method != "PUT":
        raise malformed("If-None-Match only works with PUT; drop it")
    found = request.headers.get("if-match")
    if found is None or found.strip() == "*":
        return None
    match = re.fullmatch(r'\s*"(\d{1,18})"\s*', found, re.ASCII)
    if match is None:
        raise malformed('If-Match must be the version from an earlier answer, such as "45"')
    return int(match[1])


def existence_asked(request: Request) -> bool | None:
    """Whether the document must exist (If-Match: *) or must not (If-None-Match: *); None if it may do either."""
    none = request.headers.get("if-none-match")
    if none is not None and none.strip() != "*":
        raise malformed("If-None-Match must be *, which makes PUT create a document and never replace one")
    any_ = request.headers.get("if-match", "").strip() == "*"
    if none is not None and any_:
        raise malformed("If-Match: * and If-None-Match: * contradict each other; drop one")
    return False if none is not None else True if any_ else None


async def discard(request: Request) -> None:
    """Read on for a moment, so that a client that is still sending gets to read the answer."""
    deadline = time.monotonic() + LINGER_SECONDS
    with contextlib.suppress(Refused):
        async for _ in _pieces(request, lambda: deadline - time.monotonic()):
            pass


async def _pieces(
    request: Request, seconds_left: Callable[[], float], stopping: asyncio.Event | None = None
) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await _next(request, max(0.0, seconds_left()), stopping)
        if message["type"] == "http.disconnect":
            raise malformed("the connection was closed before the whole body arrived")
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _next(request: Request, seconds: float, stopping: asyncio.Event | None) -> Message:
    """What the client sends next, unless it takes too long or the server is stopping."""
    coming = asyncio.ensure_future(request.receive())
    told = asyncio.ensure_future(stopping.wait()) if stopping is not None else None
    try:
        await asyncio.wait([one for one in (coming, told) if one], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if stopping is not None and stopping.is_set():  # even if the client never pauses
            raise Refused(Overloaded("the server is stopping; send the rest again later"), 503, {"Connection": "close"})
        if coming.done():
            return coming.result()
        raise Refused(TooSlow("the request did not arrive in time; send it faster"), 408, {"Connection": "close"})
    finally:
        coming.cancel()
        if told is not None:
            told.cancel()


def _check_length(request: Request, most: int) -> None:
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most and "expect" in request.headers:
        raise _too_large(most)  # before the client sends it


def _too_large(most: int) -> Refused:
    sentence = f"the limit is {most:,} bytes; send less at once, or stream the documents"
    return Refused(TooLarge(sentence), 413, {"Connection": "close"})
