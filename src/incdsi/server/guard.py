"""What every request passes through: request id, admission (host, connections, rate, key), log line, safe headers."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incdsi.errors import NotAllowed, Overloaded
from incdsi.server.logs import frames
from incdsi.server.metrics import Metrics
from incdsi.server.problems import Refused, as_problem, no_key, too_many
from incdsi.server.settings import Access, ServerSettings

log = structlog.get_logger("incdsi.server")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN = ("/healthz", "/readyz", "/openapi.json", "/", "/docs", "/favicon.ico")
OPEN_FOLDER = "/page/"
READING = ("/v1/search", "/v1/clicks", "/v1/documents/list", "/v1/documents/count")  # POST, but nothing changes
PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
MOST_CLIENTS = 10_000


class Rate:
    """A token bucket per client; forgets the least recent clients first."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Takes a token and returns 0, or returns the seconds until there is one."""
        now = time.monotonic()
        tokens, before = self._buckets.pop(client, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - before) * self._rate)
        enough = tokens >= 1.0
        self._buckets[client] = tokens - enough, now
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1.0 - tokens) / self._rate


class Dressed:
    """Sends an answer with its request id and safe headers; knows whether it has begun, and its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._request_id = send, request_id
        self.begun, self.status = False, 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


class Guard:
    """ASGI middleware: what it refuses never reaches a route."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        metrics: Metrics,
        connections: Callable[[], int] = lambda: 0,
        also_open: Collection[str] = (),
    ) -> None:
        self._app, self._settings, self._metrics, self._connections = app, settings, metrics, connections
        self._rate = Rate(settings.rate, settings.burst)
        self._hosts = {*LOCAL_NAMES, settings.host, *settings.allowed_hosts}
        self._open = {*OPEN, *also_open}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin, headers = time.perf_counter(), Headers(scope=scope)
        request_id = _request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.bind_contextvars(request_id=request_id)  # for everything else logged in this task
        dressed = Dressed(send, request_id)
        try:
            scope["state"]["access"] = self._admitted(scope, headers)
            await self._app(scope, receive, dressed)
        except Exception as error:
            if not isinstance(error, Refused):
                log.error("fault", request_id=request_id, kind=type(error).__name__, where=frames(error))
            if dressed.begun:
                raise ConnectionAbortedError("the answer has begun and cannot be finished") from None
            await as_problem(error, request_id, self._settings.folder)(scope, receive, dressed)
        except asyncio.CancelledError:  # stop_seconds are over
            if dressed.begun:
                raise
            late = Overloaded(
                "the server stopped before it could answer; check whether the change was made before you retry"
            )
            await as_problem(late, request_id, self._settings.folder)(scope, receive, dressed)
        finally:
            self._note(scope, request_id, dressed.status, time.perf_counter() - begin)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        # The route and never the path or the query: those are the caller's text.
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.requested(route, status)
        client = scope["client"][0] if scope.get("client") else None
        log.info(
            "request",
            **({"index": scope["root_path"].strip("/")} if scope.get("root_path") else {}),
            request_id=request_id,
            method=scope["method"],
            route=route,
            status=status,
            ms=round(1e3 * seconds, 3),
            client=client,
        )

    def _admitted(self, scope: Scope, headers: Headers) -> Access:
        """The caller's access, read or write; raises Refused if none."""
        if self._connections() > self._settings.connections:
            raise Refused(
                Overloaded(f"all {self._settings.connections} connections are in use; try again"),
                503,
                {"Connection": "close"},
            )
        if self._settings.loopback and _name(headers.get("host", "")) not in self._hosts:
            raise Refused(NotAllowed("the Host header names another machine; see allowed_hosts"), 403)
        client = scope["client"][0] if scope.get("client") else "local"
        if wait := self._rate.wait(client):
            raise too_many(f"the limit is {self._settings.rate:g} requests a second; slow down", wait)
        path, locked = local_path(scope), self._settings.key is not None
        if path in self._open or path.startswith(OPEN_FOLDER) or not locked or scope["method"] == "OPTIONS":
            return "read" if locked else "write"
        access = self._access(key_of(headers))
        if access == "read" and scope["method"] not in ("GET", "HEAD") and path not in READING:
            raise Refused(NotAllowed("this key is read-only"), 403)
        return access

    def _access(self, given: str | None) -> Access:
        if given is None:
            raise no_key("a key is required; send it as Authorization: Bearer or X-API-Key")
        found = self._settings.access(given)
        if found is None:
            raise no_key("the key is wrong")
        return found


def local_path(scope: Scope) -> str:
    """The path without the name of the index it begins with, if there are several."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if PLAIN_ID.fullmatch(given) else secrets.token_hex(8)


def key_of(headers: Headers) -> str | None:
    """The key a request carries."""
    kind, _, rest = headers.get("authorization", "").partition(" ")
    return rest.strip() if kind.lower() == "bearer" else headers.get("x-api-key")


def _name(host: str) -> str:
    """A Host header without its port."""
    return re.sub(r":\d*$", "", host).lower()
