"""/v1/documents/list and /v1/documents/count: documents by filter, by id and by page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from pydantic_core import to_json

from incdsi.errors import Overloaded
from incdsi.server import bodies
from incdsi.server.answers import Reply
from incdsi.server.documents import exported
from incdsi.server.openapi import body, problems
from incdsi.server.schemas import Counted, CountRequest, DocumentOut, ListRequest
from incdsi.server.service import reply, response, service_of

router = APIRouter(tags=["documents"])
LIST, COUNT = "/v1/documents/list", "/v1/documents/count"


@router.post(
    LIST,
    responses={**problems(404, 408, 413, 415, 422), 200: {"content": {"application/x-ndjson": {}}}},
    openapi_extra=body(ListRequest, example={"where": {"lang": "en"}, "limit": 100}),
)
async def some_documents(request: Request) -> StreamingResponse:
    """Documents by filter or ids, one JSON line each, in the order they were added; `after` goes on behind an id."""
    service = service_of(request)
    asked = await bodies.read(request, ListRequest, service.settings)
    service.check_batch(len(asked.ids or ()))
    if service.exports.locked():
        raise Overloaded("too many clients are exporting documents; try again")
    found = await service.reading(
        lambda: service.index.documents(
            asked.where, ids=asked.ids, limit=asked.limit, after=asked.after, missing_ok=asked.missing_ok
        )
    )
    lines = (to_json(DocumentOut(**document.to_json()).model_dump()) + b"\n" for document in found)
    return StreamingResponse(exported(service, lines), media_type="application/x-ndjson")


@router.post(
    COUNT,
    response_model=Counted,
    responses=problems(408, 413, 415, 422),
    openapi_extra=body(CountRequest, example={"where": {"lang": "en"}}),
)
async def count(request: Request) -> Response:
    """How many documents there are, or how many pass a filter."""
    service = service_of(request)
    asked = await bodies.read(request, CountRequest, service.settings)

    def counted() -> Reply:
        version = service.index.version
        return reply(Counted(documents=service.index.count(asked.where), version=version), version)

    return response(await service.reading(counted))
