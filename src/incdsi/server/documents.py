"""/v1/documents: add, get, change, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic_core import from_json, to_json
from starlette.concurrency import iterate_in_threadpool
from starlette.convertors import Convertor, register_url_convertor

from incdsi.documents import LONGEST_ID, Addition, Document, queries_to_json
from incdsi.errors import DuplicateDocument, InvalidInput, Overloaded, UnknownDocument
from incdsi.index import Index
from incdsi.server import bodies, schemas
from incdsi.server.answers import Reply
from incdsi.server.openapi import CREATE_ONLY, EXAMPLE, body, problems, writing
from incdsi.server.problems import Refused
from incdsi.server.schemas import AdditionOut, DocumentIn, DocumentOut, DocumentsIn, DocumentWithQueries
from incdsi.server.service import Service, reply, response, service_of
from incdsi.server.streams import take_stream
from incdsi.server.writes import Add, Done, Kept, Write

router = APIRouter(tags=["documents"])
DocumentId = Annotated[
    str,
    Path(min_length=1, max_length=LONGEST_ID, description="Percent-encoded as a whole.", examples=["boots-18"]),
]
PATH = "/v1/documents/{id:anything}"
IN_MEMORY = 8 << 20  # bytes of an export; a longer one is spooled to disk
QUESTIONS = {"queries", "taught"}  # fields that belong to a request, not to its document
PIECE = 1 << 16  # bytes sent at a time


class Anything(Convertor[str]):
    """The rest of a path: an id may contain slashes and line breaks."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", Anything())


@router.post(
    "/v1/documents",
    status_code=201,
    response_model=schemas.Added | schemas.Streamed,
    responses=problems(408, 409, 412, 413, 415, 422, 507),
    openapi_extra=writing(body(DocumentIn, DocumentsIn, example=EXAMPLE, stream=True)),
)
async def add(request: Request) -> Response:
    """Add one document, many (all or none), or a stream whose lines succeed or fail one by one."""
    service = service_of(request)
    if bodies.media_type(request) in bodies.STREAM_TYPES:
        return response(await take_stream(request, service))
    content = await bodies.body(request, service.settings)
    one = not _is_batch(content)
    found = [bodies.parsed(content, DocumentIn)] if one else list(bodies.parsed(content, DocumentsIn).documents)
    documents, queries = checked(found, service)
    if_version = bodies.version_asked(request)

    def write(kept: Kept[list[Addition]] | None) -> Write[list[Addition]]:
        if if_version is None:
            return Add.of(documents, queries, kept)
        return Write(act=lambda index: index.add_many(documents, queries, if_version=if_version, whole=True), kept=kept)

    return await service.once(request, content, write, _added, service.added)


@router.post(
    "/v1/documents/upsert",
    response_model=schemas.Upserted,
    responses=problems(408, 409, 412, 413, 415, 422, 507),
    openapi_extra=writing(body(DocumentsIn, example={"documents": [EXAMPLE]})),
)
async def upsert_many(request: Request) -> Response:
    """Add or replace many documents, all or none, as PUT does with one."""
    service = service_of(request)
    content = await bodies.body(request, service.settings)
    documents, queries = checked(bodies.parsed(content, DocumentsIn).documents, service)
    if_version, new = bodies.version_asked(request), set[str]()

    def change(index: Index) -> list[Addition]:
        new.update(document.id for document in documents if document.id not in index)
        return index.upsert_many(documents, queries, if_version=if_version, whole=True)

    def write(kept: Kept[list[Addition]] | None) -> Write[list[Addition]]:
        return Write(act=change, look=lambda index: sum(document.id in index for document in documents), kept=kept)

    def count(done: Done[list[Addition]]) -> None:
        if new:
            service.added(replace(done, result=[one for one in done.result if one.document_id in new]))

    return await service.once(request, content, write, _upserted, count)


@router.get("/v1/documents", responses={**problems(422), 200: {"content": {"application/x-ndjson": {}}}})
async def all_documents(request: Request, queries: Annotated[bool, Query()] = False) -> StreamingResponse:
    """All documents as of now, one JSON line each, in the order of their last change."""
    service = service_of(request)
    if service.exports.locked():
        raise Overloaded("too many clients are exporting documents; try again")
    return StreamingResponse(exported(service, _lines(service.index, queries)), media_type="application/x-ndjson")


@router.get(PATH, response_model=DocumentWithQueries, responses=problems(404, 422))
async def get(request: Request, id: DocumentId) -> Response:
    """One document with its asked and taught queries; PUT it to restore it after a delete."""
    service = service_of(request)

    def read() -> Reply:
        index, version = service.index, service.index.version
        document, queries = index.get(id), index.queries(id)
        found = DocumentWithQueries(**document.to_json(), **queries_to_json(queries), version=version)
        return reply(found, version)

    return response(await service.reading(read))


@router.put(
    PATH,
    response_model=schemas.Changed,
    responses={**problems(408, 412, 413, 415, 422, 507), 201: {"model": schemas.Changed}},
    openapi_extra=writing(body(schemas.DocumentBody, example={"text": "Waterproof boots."}), CREATE_ONLY),
)
async def upsert(request: Request, id: DocumentId) -> Response:
    """Add a document, or replace its text, title and metadata; its queries are kept."""
    service = service_of(request)
    content = await bodies.body(request, service.settings)
    given = bodies.parsed(content, schemas.DocumentBody)
    document, queries = Document(id=id, **given.model_dump(exclude=QUESTIONS)), given.asked()
    service.check_queries(queries)
    if_version, if_there = bodies.version_asked(request), bodies.existence_asked(request)

    def change(index: Index) -> list[Addition]:
        _require_existence(index, id, if_there)
        return [index.upsert(document, queries, if_version=if_version)]

    def write(kept: Kept[list[Addition]] | None) -> Write[list[Addition]]:
        return Write(
            act=change,
            look=lambda index: id in index,
            kept=kept,
        )

    return await service.once(request, content, write, _changed, lambda done: _count_created(service, done))


@router.patch(
    PATH,
    response_model=schemas.Changed,
    responses=problems(404, 408, 412, 413, 415, 422, 507),
    openapi_extra=writing(body(schemas.DocumentPatch, example={"title": "Boots"})),
)
async def update(request: Request, id: DocumentId) -> Response:
    """Change the named fields of an existing document; queries are added to those it has."""
    service = service_of(request)
    content = await bodies.body(request, service.settings)
    given = bodies.parsed(content, schemas.DocumentPatch)
    queries = given.asked()
    service.check_queries(queries)
    new = given.model_dump(exclude=QUESTIONS, exclude_none=True)
    if_version = bodies.version_asked(request)

    def change(index: Index) -> list[Addition]:
        document = Document(**{**index.get(id).to_json(), **new})
        return [index.update(document, queries, if_version=if_version)]

    return await service.once(request, content, lambda kept: Write(act=change, kept=kept), _changed)


@router.delete(PATH, response_model=schemas.Deleted, responses=problems(404, 412, 422, 507), openapi_extra=writing({}))
async def delete(request: Request, id: DocumentId) -> Response:
    """Delete a document with its text and queries."""
    service, if_version = service_of(request), bodies.version_asked(request)

    def write(kept: Kept[int] | None) -> Write[int]:
        return Write(act=lambda index: index.delete(id, if_version=if_version), kept=kept)

    return await service.once(request, b"", write, _deleted, lambda done: service.recorder.was_deleted(done.result))


@router.post(
    "/v1/documents/delete",
    response_model=schemas.Deleted,
    responses=problems(404, 408, 412, 413, 415, 422, 507),
    openapi_extra=writing(body(schemas.DeleteRequest, example={"where": {"lang": "de"}})),
)
async def delete_many(request: Request) -> Response:
    """Delete by ids (all or none) or by a filter, which needs a condition: {} is refused."""
    service = service_of(request)
    content = await bodies.body(request, service.settings)
    given = bodies.parsed(content, schemas.DeleteRequest)
    if (given.ids is None) == (given.where is None):
        raise InvalidInput("send either ids or where")
    service.check_batch(len(given.ids or ()))
    if_version = bodies.version_asked(request)

    def write(kept: Kept[int] | None) -> Write[int]:
        return Write(act=lambda index: _delete(index, given, if_version), kept=kept)

    return await service.once(request, content, write, _deleted, lambda done: service.recorder.was_deleted(done.result))


def checked(found: Sequence[DocumentIn], service: Service) -> tuple[list[Document], dict[str, list[str]]]:
    """Documents and queries as the index takes them; refuses too many or too long ones."""
    service.check_batch(len(found))
    for one in found:
        service.check_queries(one.asked())
    documents = [Document(id=one.id, title=one.title, text=one.text, metadata=one.metadata) for one in found]
    return documents, {one.id: asked for one in found if (asked := one.asked())}


def ms(done: Done[Any]) -> float:
    """Milliseconds from arrival to answer."""
    return round(1e3 * done.seconds, 3)


def _is_batch(content: bytes) -> bool:
    try:
        found = from_json(content)
    except ValueError:
        return False
    return isinstance(found, dict) and "documents" in found


def _require_existence(index: Index, id: str, if_there: bool | None) -> None:
    if if_there is True and id not in index:
        raise Refused(UnknownDocument(f"no document {id!r} to replace, as If-Match: * requires"), 412)
    if if_there is False and id in index:
        raise Refused(DuplicateDocument(f"document {id!r} exists already, and If-None-Match: * only creates"), 412)


def _added(done: Done[list[Addition]]) -> Reply:
    additions = [AdditionOut(**addition.to_json()) for addition in done.result]
    return reply(schemas.Added(additions=additions, milliseconds=ms(done), version=done.version), done.version, 201)


def _upserted(done: Done[list[Addition]]) -> Reply:
    additions = [AdditionOut(**addition.to_json()) for addition in done.result]
    created = len(additions) - (done.before or 0)
    return reply(
        schemas.Upserted(additions=additions, created=created, milliseconds=ms(done), version=done.version),
        done.version,
    )


def _changed(done: Done[list[Addition]]) -> Reply:
    (addition,), created = done.result, _created(done)
    changed = schemas.Changed(**addition.to_json(), created=created, milliseconds=ms(done), version=done.version)
    return reply(changed, done.version, 201 if created else 200)


def _created(done: Done[list[Addition]]) -> bool:
    return done.before is not None and not done.before


def _count_created(service: Service, done: Done[list[Addition]]) -> None:
    if _created(done):
        service.added(done)


def _deleted(done: Done[int]) -> Reply:
    return reply(schemas.Deleted(deleted=done.result, milliseconds=ms(done), version=done.version), done.version)


def _delete(index: Index, given: schemas.DeleteRequest, if_version: int | None) -> int:
    if given.ids is None:
        return index.delete(where=given.where, resolve=given.resolve, if_version=if_version)
    return index.delete(list(dict.fromkeys(given.ids)), resolve=given.resolve, if_version=if_version)


async def exported(service: Service, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The lines in pieces; only so many clients are sent some at a time."""
    async with service.exports:
        async for piece in iterate_in_threadpool(_read_first(lines)):
            yield piece


def _read_first(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Read all lines before sending the first: a slow client must not hold the store's log open."""
    with SpooledTemporaryFile(max_size=IN_MEMORY) as file:
        file.writelines(lines)
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


def _lines(index: Index, with_queries: bool) -> Iterator[bytes]:
    for document, asked in index.with_queries():
        found = DocumentOut(**document.to_json()).model_dump()
        if with_queries:
            found |= queries_to_json(asked)
        yield to_json(found) + b"\n"
