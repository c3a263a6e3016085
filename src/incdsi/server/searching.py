"""/v1/search and /v1/teach."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic_core import from_json

from incdsi.documents import Addition, Hit
from incdsi.errors import InvalidInput, TooLarge
from incdsi.index import Index
from incdsi.server import bodies, schemas
from incdsi.server.answers import Reply
from incdsi.server.documents import ms
from incdsi.server.openapi import body, problems, writing
from incdsi.server.schemas import (
    DEEPEST_RANK,
    DocumentFound,
    Found,
    FoundMany,
    FoundOne,
    HitOut,
    PassageOut,
    SearchRequest,
    SnippetOut,
)
from incdsi.server.service import Room, Service, reply, response, service_of
from incdsi.server.writes import Done, Kept, Write

router = APIRouter(tags=["search"])
ALL_TEXTS = "texts=all"  # as a preference, which servers that know no such field ignore


@router.post(
    "/v1/search",
    response_model=Found | FoundMany,
    responses=problems(408, 413, 415, 422),
    openapi_extra=body(SearchRequest, example={"query": "waterproof hiking boots", "k": 10}),
)
async def search(request: Request) -> Response:
    """The best documents for a query, or for each of many."""
    service = service_of(request)
    asked = await bodies.read(request, SearchRequest, service.settings)
    if "texts" not in asked.model_fields_set and request.headers.get("prefer") == ALL_TEXTS:
        asked = asked.model_copy(update={"texts": "all"})
    _check(asked, service)
    if asked.query is None:
        return response(await service.reading(lambda: _found_many(service, asked)))
    return response(await service.together(asked, lambda some: _found(service, some)))


@router.get("/v1/search", response_model=Found, responses=problems(413, 422))
async def search_by_address(request: Request, asked: Annotated[schemas.SearchQuery, Query()]) -> Response:
    """The best documents for a query that is part of the address."""
    service, given = service_of(request), asked.model_dump(exclude={"q", "where"})
    wanted = SearchRequest(query=asked.q, where=_filter(asked.where), **given)
    _check(wanted, service)
    return response(await service.together(wanted, lambda some: _found(service, some)))


@router.post(
    "/v1/teach",
    response_model=schemas.Taught,
    responses=problems(404, 408, 412, 413, 415, 422, 507),
    openapi_extra=writing(body(schemas.TeachRequest, example={"query": "survives a river", "id": "boots-18"})),
)
async def teach(request: Request) -> Response:
    """Make this query find that document from now on; returns its rank before and after."""
    service = service_of(request)
    content = await bodies.body(request, service.settings)
    lesson = bodies.parsed(content, schemas.TeachRequest)
    service.check_queries([lesson.query])
    if_version = bodies.version_asked(request)

    def write(kept: Kept[list[Addition]] | None) -> Write[list[Addition]]:
        return Write(
            act=lambda index: [index.teach(lesson.query, lesson.id, if_version=if_version)],
            look=lambda index: _rank(index, lesson),
            kept=kept,
        )

    def taught(done: Done[list[Addition]]) -> None:
        service.recorder.was_taught()
        service.clicks.note(query=lesson.query, id=lesson.id, count=1)

    return await service.once(request, content, write, lambda done: _taught(lesson, done), taught)


def _filter(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = from_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("""where must be a JSON object like {"lang": "en"}, percent-encoded""")
    return found


def _check(asked: SearchRequest, service: Service) -> None:
    if (asked.query is None) == (asked.queries is None):
        raise InvalidInput("send either query or queries")
    texts = [asked.query] if asked.query is not None else list(asked.queries or ())
    most = service.settings.searches
    if len(texts) > most:
        raise TooLarge(f"{len(texts):,} queries in one request; the limit is {most:,}")
    service.check_queries(texts)


def _found(service: Service, some: Sequence[SearchRequest]) -> list[Reply]:
    """The answers to requests that differ in their queries alone; the documents of all fit into one answer."""
    begin, version, room = time.perf_counter(), service.index.version, Room(service.settings.answer_bytes)
    texts, asked = [one.query or "" for one in some], some[0]
    replies = []
    for text, hits in zip(texts, service.search(texts, asked, room), strict=True):
        found = [_hit_out(hit, asked.texts) for hit in hits]
        one = Found(query=text, hits=found, seconds=time.perf_counter() - begin, version=version)
        replies.append(reply(one, version))
    return replies


def _found_many(service: Service, asked: SearchRequest) -> Reply:
    begin, version, room = time.perf_counter(), service.index.version, Room(service.settings.answer_bytes)
    texts = list(asked.queries or ())
    results = [
        FoundOne(query=text, hits=[_hit_out(hit, asked.texts) for hit in hits])
        for text, hits in zip(texts, service.search(texts, asked, room), strict=True)
    ]
    return reply(FoundMany(results=results, seconds=time.perf_counter() - begin, version=version), version)


def _hit_out(hit: Hit, texts: str) -> HitOut:
    document = hit.document.to_json()
    if texts == "none" or (texts == "short" and hit.passages):
        document["text"] = None
    return HitOut(
        rank=hit.rank,
        score=hit.score,
        learned=hit.learned,
        lexical=hit.lexical,
        nearest=hit.nearest,
        confidence=hit.confidence,
        document=DocumentFound(**document),
        passages=[PassageOut(**passage.to_json()) for passage in hit.passages],
        snippet=SnippetOut(**hit.snippet.to_json()),
    )


def _taught(lesson: schemas.TeachRequest, done: Done[list[Addition]]) -> Reply:
    (addition,) = done.result
    taught = schemas.Taught(
        **addition.to_json(),
        query=lesson.query,
        rank_before=done.before,
        rank_after=done.after,
        milliseconds=ms(done),
        version=done.version,
    )
    return reply(taught, done.version)


def _rank(index: Index, lesson: schemas.TeachRequest) -> int | None:
    """The document's rank for the query, if among the best 100."""
    hits = index.search(lesson.query, DEEPEST_RANK)
    return next((hit.rank for hit in hits if hit.document_id == lesson.id), None)
