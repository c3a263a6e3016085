"""Several indexes on one server: /NAME/... is what a server of that index alone would answer at /..."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from incdsi.errors import IncDSIError
from incdsi.server import indexes, openapi, pages
from incdsi.server.app import ROUTERS, Connections, allow_origins, bare_app, create_app
from incdsi.server.guard import Guard
from incdsi.server.metrics import Metrics
from incdsi.server.problems import Refused
from incdsi.server.settings import ServerSettings
from incdsi.server.shelf import Shelf


def create_several(shelf: Shelf, settings: ServerSettings, connections: Connections = lambda: 0) -> FastAPI:
    """An application that serves every index of the shelf under its name; the caller closes the shelf."""
    own = settings.opened_by(None)
    app = bare_app(own, indexes.router, pages.router, lifespan=_lifespan)
    apps = {name: create_app(index, settings.of(name), connections, name=name) for name, index in shelf.open.items()}
    app.state.lists = indexes.Lists(shelf, {name: one.state.service for name, one in apps.items()})
    app.state.advice = "this server has several indexes; GET /v1/indexes lists them, and /NAME/v1/... is one"
    app.state.front_page = "indexes.html"
    app.state.stop = lambda: [one.state.stop() for one in apps.values()]
    metrics = Metrics()
    app.add_middleware(Guard, settings=own, metrics=metrics, connections=connections, also_open={indexes.PATH})
    allow_origins(app, own)
    closed: dict[str, ASGIApp] = {
        name: Guard(Closed(error), settings.of(name), metrics, connections) for name, error in shelf.broken.items()
    }
    app.add_middleware(ByName, apps={**apps, **closed})
    app.openapi = lambda: openapi.describe_several(app, bare_app(own, *ROUTERS))  # type: ignore[method-assign]
    return app


class ByName:
    """ASGI middleware: a request that begins with the name of an index goes to that index's application."""

    def __init__(self, app: ASGIApp, apps: dict[str, ASGIApp]) -> None:
        self._app, self._apps = app, apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, slash, _ = scope.get("path", "")[1:].partition("/")
        if scope["type"] != "http" or name not in self._apps:
            await self._app(scope, receive, send)
        elif not slash:  # the page's own addresses are relative to the folder
            query = scope["query_string"].decode("latin-1")
            await RedirectResponse(f"{name}/{'?' if query else ''}{query}")(scope, receive, send)
        else:
            await self._apps[name]({**scope, "root_path": f"/{name}"}, receive, send)


class Closed:
    """ASGI application of an index that could not be opened."""

    def __init__(self, error: IncDSIError) -> None:
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise Refused(self._error, 503)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    with contextlib.ExitStack() as stack:
        for service in app.state.lists.services.values():
            service.start()
            stack.callback(service.close)
        yield
