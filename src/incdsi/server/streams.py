"""A stream of documents, added in portions while it arrives; each line succeeds or fails on its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic_core import from_json
from starlette.requests import Request

from incdsi.documents import Addition, Document
from incdsi.errors import IncDSIError, TooSlow
from incdsi.index import Index
from incdsi.server import bodies
from incdsi.server.answers import Reply, key_of
from incdsi.server.problems import Refused, malformed
from incdsi.server.schemas import DocumentIn, Refusal, Streamed
from incdsi.server.service import Service, reply
from incdsi.server.writes import Done, Write

PORTION = 64  # documents added together
MOST_REFUSALS = 1000


@dataclass(frozen=True, kw_only=True)
class Line:
    """A document and its line number."""

    number: int
    document: Document
    queries: Sequence[str]


@dataclass
class Tally:
    """What became of the lines so far."""

    lines: int = 0
    added: int = 0
    refused: int = 0
    conflicts: int = 0
    version: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, number: int, id: str | None, error: IncDSIError) -> None:
        self.refused += 1
        if len(self.refusals) < MOST_REFUSALS:
            self.refusals.append(Refusal(line=number, id=id, error=type(error).__name__, detail=str(error)))


async def take_stream(request: Request, service: Service) -> Reply:
    """Add the lines as they arrive; the answer says which were refused and why.

    If the stream breaks off, every complete line is still added, and the problem reports the same.
    """
    if key_of(request) is not None or bodies.version_asked(request) is not None:
        raise malformed("a stream takes neither Idempotency-Key nor If-Match; send JSON instead")
    begin, tally = time.perf_counter(), Tally(version=await service.reading(lambda: service.index.version))
    problem = await _taken(request, service, tally)
    streamed = Streamed(**vars(tally), milliseconds=round(1e3 * (time.perf_counter() - begin), 3))
    if problem is not None:
        if not isinstance(problem.error, TooSlow):
            await bodies.discard(request)
        raise problem.telling(streamed.model_dump())
    return reply(streamed, tally.version, 201)


async def _taken(request: Request, service: Service, tally: Tally) -> Refused | None:
    """Add every complete line; what cut the stream short, if anything did."""
    portion, problem = list[Line](), None
    try:
        async for content in bodies.lines(request, service.settings, service.stopping):
            tally.lines += 1
            if content.strip() and (line := _line(content, tally.lines, service, tally)):
                portion.append(line)
            if len(portion) == PORTION:
                await _add(portion, service, tally)
                portion = []
    except Refused as error:
        problem = error
    await _add(portion, service, tally)
    return problem


def _line(content: bytes, number: int, service: Service, tally: Tally) -> Line | None:
    try:
        found = bodies.parsed(content, DocumentIn)
        queries = found.asked()
        service.check_queries(queries)
        document = Document(id=found.id, title=found.title, text=found.text, metadata=found.metadata)
    except Refused as error:
        tally.refuse(number, _id_of(content), error.error)
    except IncDSIError as error:
        tally.refuse(number, _id_of(content), error)
    else:
        return Line(number=number, document=document, queries=queries)
    return None


def _id_of(content: bytes) -> str | None:
    try:
        found = from_json(content)
    except ValueError:
        return None
    id = found.get("id") if isinstance(found, dict) else None
    return id if isinstance(id, str) else None


async def _add(portion: Sequence[Line], service: Service, tally: Tally) -> None:
    if not portion:
        return
    done = await service.write_patiently(Write(act=lambda index: _add_portion(index, portion)))
    additions = [one for one in done.result if isinstance(one, Addition)]
    service.added(Done(result=additions, version=done.version, seconds=done.seconds))
    tally.added += len(additions)
    tally.conflicts += sum(bool(one.conflicts) for one in additions)
    tally.version = done.version
    for line, result in zip(portion, done.result, strict=True):
        if isinstance(result, IncDSIError):
            tally.refuse(line.number, line.document.id, result)


def _add_portion(index: Index, portion: Sequence[Line]) -> list[Addition | IncDSIError]:
    """An addition or an error for each line: added together if possible, else by halves."""
    try:
        queries = {line.document.id: line.queries for line in portion}
        return list(index.add_many([line.document for line in portion], queries))
    except IncDSIError as error:
        if len(portion) == 1:
            return [error]
    half = len(portion) // 2
    return _add_portion(index, portion[:half]) + _add_portion(index, portion[half:])
