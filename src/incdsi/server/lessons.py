"""/v1/clicks, /v1/learn and /v1/gaps: what people clicked and asked."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from incdsi.clicks import Click, Learned, Threshold
from incdsi.errors import InvalidInput, NotAllowed, NotFound, TooLarge
from incdsi.gaps import CANDIDATES, LEAST_CONFIDENCE, find_gaps
from incdsi.index import Index
from incdsi.server import bodies
from incdsi.server import lesson_schemas as schemas
from incdsi.server.openapi import body, problems
from incdsi.server.problems import Refused
from incdsi.server.service import Service, reply, response, service_of
from incdsi.server.writes import Write

router = APIRouter(tags=["lessons"])
CLICKS, QUERIES = "--log-clicks", "--log-queries"
MOST_ASKED = 500  # different queries that gaps are looked for among


@router.post(
    "/v1/clicks",
    response_model=schemas.Clicked,
    responses=problems(404, 408, 413, 415, 422),
    openapi_extra=body(schemas.ClickIn, example={"query": "survives a river", "id": "boots-18"}),
)
async def click(request: Request) -> Response:
    """Keep a click in the server's log, if it has one; nothing is learned yet."""
    service = service_of(request)
    given = await bodies.read(request, schemas.ClickIn, service.settings)
    service.check_queries([given.query])
    if not service.clicks.kept:
        raise NotFound(f"this server keeps no such log; start it with {CLICKS} FILE")

    def keep() -> int:
        if given.id not in service.index:
            raise InvalidInput(f"no document {given.id!r} in the index, so nobody can have clicked it")
        service.clicks.note(query=given.query, id=given.id, count=given.count)
        return service.index.version

    version = await service.reading(keep)
    return response(reply(schemas.Clicked(kept=True, version=version), version))


@router.post(
    "/v1/learn",
    response_model=schemas.LearnedOut,
    responses=problems(404, 408, 413, 415, 422, 507),
    openapi_extra=body(schemas.LearnRequest, example={"clicks": [{"query": "dry feet", "id": "boots-18", "count": 3}]}),
)
async def learn(request: Request) -> Response:
    """Learn from these clicks, or from those in the server's log; the same ones again change nothing."""
    service = service_of(request)
    asked = await bodies.read(request, schemas.LearnRequest, service.settings)
    threshold = Threshold(asked.least, asked.share)
    clicks = await service.slowly(lambda: _clicks(service, asked))

    def act(index: Index) -> Learned:
        return index.learn(clicks, least=threshold.clicks, share=threshold.share, dry_run=asked.dry_run)

    if asked.dry_run:
        learned = await service.slowly(lambda: act(service.index))
    else:
        learned = (await service.write(Write(act=act))).result
    return response(reply(schemas.LearnedOut(**learned.to_json()), learned.version))


@router.get("/v1/gaps", response_model=schemas.GapsOut, responses=problems(404, 422))
async def gaps(
    request: Request,
    least: Annotated[float, Query(ge=0.0, le=1.0)] = LEAST_CONFIDENCE,
    k: Annotated[int, Query(ge=1, le=20)] = CANDIDATES,
) -> Response:
    """What people ask and the index answers badly, by the server's log; for keys that may write."""
    service = service_of(request)
    if request.state.access != "write":
        raise Refused(NotAllowed("this key is read-only, and what others asked is theirs"), 403)

    def look() -> schemas.GapsOut:
        asked = [line["query"] for line in service.queries.lines(QUERIES) if isinstance(line.get("query"), str)]
        found = find_gaps(service.index, asked, least=least, k=k, most=MOST_ASKED)
        return schemas.GapsOut(
            gaps=found.gaps, queries=found.queries, judged_by=found.judged_by, version=service.index.version
        )

    found = await service.slowly(look)
    return response(reply(found, found.version))


def _clicks(service: Service, asked: schemas.LearnRequest) -> list[Click]:
    if asked.clicks is None:
        return [found for line in service.clicks.lines(CLICKS) if (found := _logged(line)) is not None]
    service.check_queries([one.query for one in asked.clicks])
    if len(asked.clicks) > schemas.MOST_CLICKS:
        raise TooLarge(f"{len(asked.clicks):,} clicks in one request; the limit is {schemas.MOST_CLICKS:,}")
    return [Click(one.query, one.id, one.count) for one in asked.clicks]


def _logged(line: dict[str, Any]) -> Click | None:
    try:
        return Click(line["query"], line["id"], line.get("count", 1))
    except (KeyError, InvalidInput):
        return None
