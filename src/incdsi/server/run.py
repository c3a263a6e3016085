"""Runs the server: uvicorn in one process; drops slow clients, finishes what it accepted."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Callable, Iterator
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from incdsi.errors import InvalidInput
from incdsi.index import Index
from incdsi.server import logs
from incdsi.server.app import create_app
from incdsi.server.protocol import protocol
from incdsi.server.settings import ServerSettings
from incdsi.server.several import create_several
from incdsi.server.shelf import Shelf

KEEP_ALIVE = 30  # seconds an idle connection is kept
BACKLOG = 2048


def serve(served: Index | Shelf, settings: ServerSettings, listening: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish what was accepted; calls `listening` with the address."""
    logs.configure()
    _allow_many_files()
    log = structlog.get_logger("incdsi.server")
    with contextlib.closing(bind(settings)) as bound:
        server = Server(served, settings, lambda: listening(address(bound)))
        log.info("start", **_described(served))
        server.run(sockets=[bound])
    log.info("stop", **_described(served))


def _described(served: Index | Shelf) -> dict[str, Any]:
    if isinstance(served, Shelf):
        return {"indexes": [*served.open], "unavailable": [*served.broken]}
    return {"documents": len(served), "version": served.version}


class Server(uvicorn.Server):
    """Serves an index, or several, on bound sockets; calls `listening` once it listens."""

    def __init__(self, served: Index | Shelf, settings: ServerSettings, listening: Callable[[], None]) -> None:
        self._app = self._made(served, settings)
        super().__init__(_config(self._app, settings))
        self._listening = listening

    def _made(self, served: Index | Shelf, settings: ServerSettings) -> FastAPI:
        def connections() -> int:
            return len(self.server_state.connections)

        if isinstance(served, Shelf):
            return create_several(served, settings, connections)
        return create_app(served, settings, connections)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and do not raise it again once everything is finished."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stop()
        await super().shutdown(sockets)


def _config(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol(settings),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=settings.stop_seconds,
        backlog=BACKLOG,
    )


def bind(settings: ServerSettings) -> socket.socket:
    """A bound socket; a taken port is one sentence, before anything starts."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        place = f"{settings.host}:{settings.port}"
        raise InvalidInput(f"cannot listen on {place}: {error.strerror}") from error
    return bound


def address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _allow_many_files() -> None:
    """Raise the limit of open files, and so of connections, as far as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
