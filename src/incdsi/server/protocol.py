"""uvicorn's HTTP protocol, with limits on request heads and on clients that stop sending or reading."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, ClassVar

from starlette.datastructures import MutableHeaders
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from incdsi.errors import InvalidInput, TooLarge
from incdsi.server.problems import Refused, as_problem
from incdsi.server.settings import ServerSettings


def protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """The protocol with these settings' limits."""

    class Configured(Limited):
        limits = settings

    return Configured


class Alarm:
    """At most one pending call, after some seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        self.clear()
        self._handle = self._loop.call_later(seconds, call, *args)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def __bool__(self) -> bool:
        return self._handle is not None


class Limited(HttpToolsProtocol):
    """Everything but a body (heads, trailers, chunk lengths) is limited in bytes and seconds."""

    limits: ClassVar[ServerSettings]
    _beside_bodies = 0  # bytes since the last head or piece of a body
    _head_too_large = False

    # Heads must arrive in time and within `header_bytes`

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._overdue, self._unread = Alarm(self.loop), Alarm(self.loop)
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        before = self.cycle
        self._beside_bodies += len(data)
        super().data_received(data)
        if self._beside_bodies > self.limits.header_bytes and not self.transport.is_closing():
            self._head_too_large = True
            self.send_400_response("")
        elif self.cycle is not before:
            self._overdue.clear()
        elif not self._overdue and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.header_bytes:
            self._head_too_large = True
            raise ValueError("the head is too large")  # ends the parsing; uvicorn then calls send_400_response
        self._beside_bodies = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._beside_bodies = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer an unreadable request with a problem, unless another answer is being sent."""
        if self.cycle is None or self.cycle.response_complete:
            most = self.limits.header_bytes
            self.transport.write(self._answer(_too_large(most) if self._head_too_large else _not_http()))
        self.transport.close()

    def _wait_for_head(self) -> None:
        self._overdue.set(self.limits.header_seconds, self.transport.close)

    def _answer(self, refused: Refused) -> bytes:
        response = as_problem(refused, request_id := secrets.token_hex(8), self.limits.folder)
        headers = MutableHeaders(raw=response.raw_headers)
        headers["X-Request-ID"], headers["Connection"] = request_id, "close"
        lines = b"".join(b"%s: %s\r\n" % header for header in headers.raw)
        return b"%s%s\r\n%s" % (STATUS_LINE[refused.status], lines, response.body)

    # A client must keep reading its answer

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        self._unread.clear()
        super().resume_writing()

    def _wait_for_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread.set(self.limits.body_seconds, self._require_progress, left)

    def _require_progress(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._wait_for_reader()
        else:
            self.transport.abort()  # otherwise the rest of the answer would be held for ever

    def connection_lost(self, exc: Exception | None) -> None:
        self._overdue.clear()
        self._unread.clear()
        super().connection_lost(exc)


def _too_large(most: int) -> Refused:
    return Refused(TooLarge(f"the request head exceeds {most:,} bytes; send fewer or shorter headers"), 431)


def _not_http() -> Refused:
    return Refused(InvalidInput("this is not an HTTP/1.1 request; check what sends it"), 400)
