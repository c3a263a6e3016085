"""Reading a request: never more than allowed, never longer than allowed, never deeper than is useful."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from incdsi.errors import InvalidInput, TooLarge, TooSlow
from incdsi.server.problems import Refused, invalid_fields, malformed
from incdsi.server.settings import ServerSettings

M = TypeVar("M", bound=BaseModel)
JSON_TYPE = "application/json"
STREAM_TYPES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
LINGER_SECONDS = 2.0  # for which the rest of a body that is too large is thrown away, so that the refusal is read


def media_type(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def read(request: Request, model: type[M], settings: ServerSettings) -> M:
    """The body as that model; what is no JSON, too deep (200 levels) or of other fields is refused."""
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
                continue  # thrown away
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


async def lines(request: Request, settings: ServerSettings) -> AsyncIterator[bytes]:
    """The lines of a stream as they arrive, empty ones too, so that they can be counted."""
    rest, size = b"", 0
    async for piece in _pieces(request, lambda: settings.body_seconds):
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


def version_asked(request: Request) -> int | None:
    """The version in If-Match, None without one."""
    found = request.headers.get("if-match")
    if found is None or found.strip() == "*":
        return None
    match = re.fullmatch(r'\s*"(\d{1,18})"\s*', found, re.ASCII)
    if match is None:
        raise malformed('expected If-Match like "45", the version of an earlier answer, found another')
    return int(match[1])


async def _pieces(request: Request, seconds_left: Callable[[], float]) -> AsyncIterator[bytes]:
    stream = request.stream().__aiter__()
    while True:
        try:
            yield await asyncio.wait_for(stream.__anext__(), max(0.0, seconds_left()))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Refused(
                TooSlow("expected the whole request in time, found it unfinished; send it faster"),
                408,
                {"Connection": "close"},
            ) from None
        except ClientDisconnect:
            raise malformed("expected a whole body, found the connection closed") from None


def _check_length(request: Request, most: int) -> None:
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most and "expect" in request.headers:
        raise _too_large(most)  # before the client sends it


def _too_large(most: int) -> Refused:
    sentence = f"expected at most {most:,} bytes, found more; send less at once, or a stream of documents"
    return Refused(TooLarge(sentence), 413, {"Connection": "close"})
