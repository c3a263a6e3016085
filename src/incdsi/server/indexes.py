"""What a server of several indexes says of all of them: their names, its health, their metrics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.datastructures import Headers

from incdsi.errors import Overloaded
from incdsi.server.guard import key_of
from incdsi.server.metrics import CONTENT_TYPE, together
from incdsi.server.openapi import problems
from incdsi.server.problems import no_key, without_folder
from incdsi.server.schemas import Answer, Health
from incdsi.server.service import Service
from incdsi.server.settings import ServerSettings
from incdsi.server.shelf import Shelf

router = APIRouter(tags=["indexes"])
PATH = "/v1/indexes"


class IndexOut(Answer):
    """One of the indexes; `detail` says why it could not be opened."""

    name: str
    status: Literal["open", "unavailable"]
    documents: int | None
    version: int | None
    access: Literal["write", "read"]
    detail: str | None


class IndexesOut(Answer):
    """The indexes that the key opens, by name."""

    indexes: list[IndexOut]


@dataclass(frozen=True)
class Lists:
    """The shelf, and the services of those indexes that are open."""

    shelf: Shelf
    services: dict[str, Service]

    def names(self) -> list[str]:
        return sorted({*self.shelf.open, *self.shelf.broken})

    def settings(self, name: str) -> ServerSettings:
        return self.shelf.settings.of(name)


@router.get(PATH, response_model=IndexesOut, responses=problems())
async def all_indexes(request: Request) -> IndexesOut:
    """The indexes on this server that the key opens; an index is at /NAME."""
    lists: Lists = request.app.state.lists
    locked, given = lists.shelf.settings.key is not None, key_of(Headers(scope=request.scope))
    if locked and given is None:
        raise no_key("a key is required; send it as Authorization: Bearer or X-API-Key")
    found: list[IndexOut] = []
    for name in lists.names():
        access = lists.settings(name).access(given or "") if locked else "write"
        if access is not None:
            found.append(await _described(lists, name, access))
    if not found:
        raise no_key("the key is wrong")
    return IndexesOut(indexes=found)


@router.get("/healthz", response_model=Health)
async def healthz() -> Health:
    """The process is running."""
    return Health(status="ok")


@router.get("/readyz", response_model=Health, responses=problems())
async def readyz(request: Request) -> Health:
    """The server takes requests; /NAME/readyz says whether that index is open."""
    lists: Lists = request.app.state.lists
    if not all(service.ready for service in lists.services.values()):
        raise Overloaded("the server is starting or stopping; try again")
    return Health(status="ok")


@router.get("/metrics", response_class=Response, responses={**problems(), 200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Metrics of every index for Prometheus, labelled with its name."""
    lists: Lists = request.app.state.lists
    registries = {name: service.metrics.registry for name, service in lists.services.items()}
    return Response(await asyncio.to_thread(together, registries), media_type=CONTENT_TYPE)


async def _described(lists: Lists, name: str, access: Literal["write", "read"]) -> IndexOut:
    if name in lists.shelf.broken:
        why = without_folder(str(lists.shelf.broken[name]), lists.settings(name).folder)
        return IndexOut(name=name, status="unavailable", documents=None, version=None, access=access, detail=why)
    documents, version = await lists.services[name].counted()
    return IndexOut(name=name, status="open", documents=documents, version=version, access=access, detail=None)
