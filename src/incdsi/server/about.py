"""About the index and the server: info, figures, map, health, metrics."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic_core import to_json

from incdsi import __version__
from incdsi.documents import LONGEST_ID
from incdsi.errors import Overloaded
from incdsi.server import schemas
from incdsi.server.answers import Reply
from incdsi.server.metrics import CONTENT_TYPE
from incdsi.server.openapi import problems
from incdsi.server.service import reply, response, service_of

router = APIRouter(tags=["about"])
LIMITS = (
    "body_bytes",
    "stream_bytes",
    "file_bytes",
    "batch",
    "query_characters",
    "searches",
    "answer_bytes",
    "rate",
    "burst",
    "queue",
)


@router.get("/v1/version", response_model=schemas.VersionOut, responses=problems())
async def version(request: Request) -> Response:
    """Number of documents and version of the index; costs nothing."""
    documents, number = await service_of(request).counted()
    return response(reply(schemas.VersionOut(documents=documents, version=number, incdsi=__version__), number))


@router.get("/v1/info", response_model=schemas.InfoOut, responses=problems())
async def info(request: Request) -> Response:
    """Counts, settings and quality; the first call after a change reads every document."""
    service = service_of(request)
    found = await service.slowly(service.info)
    own = {field.name: getattr(found, field.name) for field in fields(found)}
    limits = {name: getattr(service.settings, name) for name in LIMITS}
    logs = {"queries": service.queries.kept, "clicks": service.clicks.kept}
    out = schemas.InfoOut(
        **own, name=service.name, logs=logs, incdsi=__version__, access=request.state.access, limits=limits
    )
    return response(Reply(status=200, content=to_json(out), version=out.version))


@router.get("/v1/figures", response_model=schemas.Figures, responses=problems())
async def figures(request: Request) -> Response:
    """Counts and medians since the server started, quality over time, advice."""
    service = service_of(request)
    documents, number = await service.counted()
    return response(reply(service.recorder.figures(documents, number, len(service.queue)), number))


@router.get("/v1/map", response_model=schemas.MapOut | schemas.NeighboursOut, responses=problems(404, 422))
async def map_of_documents(
    request: Request,
    near: Annotated[
        str | None, Query(min_length=1, max_length=LONGEST_ID, description="Only this document and its neighbours.")
    ] = None,
    k: Annotated[int, Query(ge=1, le=schemas.MOST_NEIGHBOURS)] = 8,
) -> Response:
    """All documents in two dimensions, or one with its neighbours."""
    service = service_of(request)
    drawn: schemas.MapOut | schemas.NeighboursOut
    if near is None:
        drawn = await service.slowly(service.projection.points)
    else:
        drawn = await service.slowly(lambda: service.projection.near(near, k))
    return response(reply(drawn, drawn.version))


@router.get("/healthz", response_model=schemas.Health)
async def healthz() -> schemas.Health:
    """The process is running."""
    return schemas.Health(status="ok")


@router.get("/readyz", response_model=schemas.Health, responses=problems())
async def readyz(request: Request) -> schemas.Health:
    """The index is open and the server takes requests."""
    service = service_of(request)
    if not service.ready or await service.reading(lambda: service.index.version) < 0:
        raise Overloaded("the server is starting or stopping; try again")
    return schemas.Health(status="ok")


@router.get("/metrics", response_class=Response, responses={**problems(), 200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    service = service_of(request)
    return Response(await service.reading(service.metrics.text), media_type=CONTENT_TYPE)
