"""The ASGI application: routes around one open index, behind the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from incdsi import __version__
from incdsi.errors import IncDSIError, InvalidInput
from incdsi.index import Index
from incdsi.server import about, documents, files, lessons, listing, openapi, pages, searching
from incdsi.server.guard import Guard
from incdsi.server.problems import SEE, Refused, as_problem, no_such_path
from incdsi.server.service import Service
from incdsi.server.settings import ServerSettings

EXPOSED = ["ETag", "Idempotent-Replay", "Retry-After", "X-Request-ID"]
ROUTERS = (about.router, searching.router, lessons.router, listing.router, documents.router, files.router, pages.router)
Connections = Callable[[], int]


def create_app(
    index: Index, settings: ServerSettings, connections: Connections = lambda: 0, *, name: str | None = None
) -> FastAPI:
    """An application that serves this index, one of several if it has a name; the caller closes the index."""
    app = bare_app(settings, *ROUTERS, lifespan=_lifespan)
    app.state.service = service = Service(index, settings, name)
    app.state.stop = service.stop
    app.add_middleware(Guard, settings=settings, metrics=service.metrics, connections=connections)
    allow_origins(app, settings)
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    return app


def bare_app(settings: ServerSettings, *routers: APIRouter, **given: Any) -> FastAPI:
    """These routes, with every error as a problem, and nothing around them yet."""
    app = FastAPI(
        title="incdsi",
        version=__version__,
        description="A search index that learns; see docs/HTTP.md.",
        docs_url=None,  # it would load scripts from another site
        redoc_url=None,
        redirect_slashes=False,
        **given,
    )
    app.state.folder, app.state.advice = settings.folder, SEE
    for router in routers:
        app.include_router(router)
    for kind in (IncDSIError, Refused, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _problem)
    return app


def allow_origins(app: FastAPI, settings: ServerSettings) -> None:
    """Let pages of the origins in the settings call the application."""
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=EXPOSED,
        )


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.service.start()
    try:
        yield
    finally:
        app.state.service.close()


async def _problem(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = no_such_path(error.status_code, error.headers, request.app.state.advice)
    elif isinstance(error, RequestValidationError):
        found = error.errors()[0]
        error = InvalidInput(f"{'.'.join(map(str, found['loc']))}: {found['msg']}")
    return as_problem(error, request.state.request_id, request.app.state.folder)
