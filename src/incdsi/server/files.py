"""/v1/files: the documents of a file, all or none."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from incdsi.documents import Addition, Document
from incdsi.errors import DuplicateDocument, IncDSIError, InvalidFile, InvalidInput, Overloaded, TooLarge
from incdsi.index import Index
from incdsi.progress import Progress
from incdsi.readers import Layout, read_documents
from incdsi.readers.rows import open_bytes
from incdsi.server import bodies
from incdsi.server.answers import key_of
from incdsi.server.documents import ms
from incdsi.server.logs import frames
from incdsi.server.openapi import problems
from incdsi.server.problems import as_problem, malformed
from incdsi.server.schemas import Answer
from incdsi.server.service import Service, reply, response, service_of
from incdsi.server.writes import Done, Write

router = APIRouter(tags=["documents"])
log = structlog.get_logger("incdsi.server")
MOST_IDS = 1000  # in an answer
LONGEST_NAME = 255  # bytes, as file systems have it
PIECE = 1 << 20
FieldName = Annotated[str, Field(min_length=1)]
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "description": "The file as it is."},
                "example": "id,title,text\nboots-18,Boots,Waterproof boots.\n",
            }
        },
    }
}


class FileQuery(BaseModel):
    """A file's name, whose ending says what it is, and how it is laid out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_NAME, description="Its ending says what it is.", examples=["docs.csv"]),
    ]
    id_field: Annotated[FieldName | None, Field(description="The field with the id, unless it is called so.")] = None
    title_field: Annotated[FieldName | None, Field(description="The field with the title, unless it is called so.")] = (
        None
    )
    text_field: Annotated[list[FieldName], Field(description="The fields with text, unless it is called so.")] = []
    replace: Annotated[bool, Field(description="Replace documents that are there already.")] = False
    progress: Annotated[bool, Field(description="Answer with a line for each step, the result last.")] = False


class FileAdded(Answer):
    """What a file brought; `created` of its documents are new. `ids` are the first 1,000."""

    name: str
    documents: int
    created: int
    conflicts: int
    ids: list[str]
    milliseconds: float
    version: int


@dataclass(frozen=True, kw_only=True)
class Content:
    """The documents of a file, with their queries."""

    documents: list[Document]
    queries: dict[str, list[str]]


@router.post(
    "/v1/files",
    status_code=201,
    response_model=FileAdded,
    responses={
        **problems(408, 409, 413, 415, 422, 507),
        200: {"description": "Progress, if asked for.", "content": {"application/x-ndjson": {}}},
    },
    openapi_extra=BODY,
)
async def add_file(request: Request, asked: Annotated[FileQuery, Query()]) -> Response:
    """Add the documents of a file, all or none: CSV, TSV, JSONL, JSON (also gzipped), Parquet, Markdown, text."""
    service = service_of(request)
    if key_of(request) is not None or bodies.version_asked(request) is not None:
        raise malformed("a file takes neither Idempotency-Key nor If-Match; leave them out")
    _require_name(asked.name)
    if service.files.locked():
        raise Overloaded("other files are being read; try again")
    async with service.files:
        content = await _received(request, service, asked)
    if asked.progress:
        return StreamingResponse(_told(request, service, asked, content), media_type="application/x-ndjson")
    done = await service.write(_write(asked, content))
    return response(reply(_added(service, asked, content, done), done.version, 201))


def _require_name(name: str) -> None:
    """Refuse a name that is a path, or none that a file can have."""
    plain = name == Path(name).name and name.strip(".") and name.isprintable() and "\\" not in name
    if not plain or len(name.encode()) > LONGEST_NAME:
        raise InvalidInput("name must be that of a file, without folders, such as docs.csv")


async def _received(request: Request, service: Service, asked: FileQuery) -> Content:
    """Read the file from disk, where it is gone again by the time anything is added."""
    with TemporaryDirectory(prefix="incdsi-file-") as scratch:
        path = Path(scratch) / asked.name
        await bodies.save(request, service.settings, path)
        content = await service.slowly(lambda: _read(path, asked, service.settings.file_bytes))
    service.check_queries([query for some in content.queries.values() for query in some])
    return content


def _read(path: Path, asked: FileQuery, most: int) -> Content:
    layout = Layout(id=asked.id_field, title=asked.title_field, text=tuple(asked.text_field))
    with _named(path):
        _require_small(path, most)
        content, size = Content(documents=[], queries={}), 0
        for document, queries in read_documents(path, layout=layout):
            size += len(document.text) + len(document.title)
            if size > most:
                raise _too_large(most)
            content.documents.append(document)
            if queries:
                content.queries[document.id] = queries
    return content


def _require_small(path: Path, most: int) -> None:
    """Refuse a gzipped file that is too large once it is unpacked, without unpacking more than that."""
    with open_bytes(path) as stream:
        size = 0
        while piece := stream.read(PIECE):
            size += len(piece)
            if size > most:
                raise _too_large(most)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the file has more than {most:,} bytes of documents; split it, or stream its documents")


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Sentences as somebody reads them who sent a file, and has no command line: they name no folder and no flag."""
    try:
        yield
    except (InvalidFile, DuplicateDocument) as error:
        text = str(error).replace(f"{path.parent}/", "").removesuffix(", or name the format with --format")
        raise type(error)(re.sub(r"--([a-z]+)-([a-z]+)", r"\1_\2", text)) from None


def _write(asked: FileQuery, content: Content, progress: Progress | None = None) -> Write[list[Addition]]:
    """One transaction, which looks how many of the documents are there before it."""

    def act(index: Index) -> list[Addition]:
        change = index.upsert_many if asked.replace else index.add_many
        return change(content.documents, content.queries, whole=True, progress=progress)

    def there(index: Index) -> int:
        return sum(document.id in index for document in content.documents) if asked.replace else 0

    return Write(act=act, look=there)


def _added(service: Service, asked: FileQuery, content: Content, done: Done[list[Addition]]) -> FileAdded:
    if created := len(content.documents) - (done.before or 0):
        service.added(done)
    return FileAdded(
        name=asked.name,
        documents=len(content.documents),
        created=created,
        conflicts=sum(bool(one.conflicts) for one in done.result),
        ids=[document.id for document in content.documents[:MOST_IDS]],
        milliseconds=ms(done),
        version=done.version,
    )


async def _told(request: Request, service: Service, asked: FileQuery, content: Content) -> AsyncIterator[bytes]:
    """A line for each step; the last one is the result, or the problem."""
    loop, steps = asyncio.get_running_loop(), asyncio.Queue[tuple[int, int] | None]()

    def report(done: int, of: int) -> None:
        with contextlib.suppress(RuntimeError):  # the server has stopped; the write goes on
            loop.call_soon_threadsafe(steps.put_nowait, (done, of))

    writing = asyncio.ensure_future(service.write(_write(asked, content, report)))
    writing.add_done_callback(lambda _: steps.put_nowait(None))
    while (step := await steps.get()) is not None:
        yield _step(*step, len(content.documents))
    yield await _outcome(request, lambda: _added(service, asked, content, writing.result()))


def _step(done: int, of: int, documents: int) -> bytes:
    stage: Literal["adding", "tuning"] = "adding" if of == documents else "tuning"
    return to_json({"stage": stage, "done": done, "of": of}) + b"\n"


async def _outcome(request: Request, result: Callable[[], FileAdded]) -> bytes:
    try:
        return to_json(result().model_dump()) + b"\n"
    except Exception as error:
        if not isinstance(error, IncDSIError):
            log.error("fault", kind=type(error).__name__, where=frames(error))
        return bytes(as_problem(error, request.state.request_id, request.app.state.folder).body) + b"\n"
