"""uvicorn's HTTP protocol, which closes on a client that sends or reads nothing, or too much before its request."""

from __future__ import annotations

import asyncio
import secrets

from starlette.datastructures import MutableHeaders
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from incdsi.errors import InvalidInput, TooLarge
from incdsi.server.problems import Refused, as_problem
from incdsi.server.settings import ServerSettings


def protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """The protocol with the limits in these settings."""
    seconds, patience, most = settings.header_seconds, settings.body_seconds, settings.header_bytes

    class Limited(HttpToolsProtocol):
        """What is no body (heads, trailers, the lengths of chunks) may not go on for long, in bytes or seconds."""

        _overdue: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None
        _beside_bodies = 0  # bytes since the last head or piece of a body
        _head_too_large = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            before = self.cycle
            self._beside_bodies += len(data)
            super().data_received(data)
            if self._beside_bodies > most and not self.transport.is_closing():
                self._head_too_large = True
                self.send_400_response("")
            elif self.cycle is not before:
                self._head_arrived()
            elif self._overdue is None and (self.cycle is None or self.cycle.response_complete):
                self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_arrived()
            self._was_read()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait_for_reader()

        def resume_writing(self) -> None:
            self._was_read()
            super().resume_writing()

        def on_headers_complete(self) -> None:
            if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > most:
                self._head_too_large = True
                raise ValueError("the head is too large")  # ends the parsing: uvicorn then answers by the method below
            self._beside_bodies = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._beside_bodies = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._beside_bodies = 0
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            """A problem for what cannot be read as a request; nothing when another answer is being sent."""
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_answer(_too_large(most) if self._head_too_large else _no_http()))
            self.transport.close()

        def _wait_for_reader(self) -> None:
            left = self.transport.get_write_buffer_size()
            self._unread = self.loop.call_later(patience, self._require_progress, left)

        def _require_progress(self, before: int) -> None:
            if self.transport.get_write_buffer_size() < before:
                self._wait_for_reader()
            else:
                self.transport.abort()  # nobody reads: what waits for them would be held for ever

        def _was_read(self) -> None:
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def _wait_for_head(self) -> None:
            self._overdue = self.loop.call_later(seconds, self._too_slow)

        def _head_arrived(self) -> None:
            if self._overdue is not None:
                self._overdue.cancel()
                self._overdue = None

        def _too_slow(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    def _answer(refused: Refused) -> bytes:
        response = as_problem(refused, request_id := secrets.token_hex(8), settings.index)
        headers = MutableHeaders(raw=response.raw_headers)
        headers["X-Request-ID"], headers["Connection"] = request_id, "close"
        lines = b"".join(b"%s: %s\r\n" % header for header in headers.raw)
        return b"%s%s\r\n%s" % (STATUS_LINE[refused.status], lines, response.body)

    return Limited


def _too_large(most: int) -> Refused:
    return Refused(TooLarge(f"the request's headers have more than {most:,} bytes; send fewer or shorter ones"), 431)


def _no_http() -> Refused:
    return Refused(InvalidInput("this cannot be read as an HTTP/1.1 request; check what sends it"), 400)
