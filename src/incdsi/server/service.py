"""What a running server holds, and how a request reaches the index."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from incdsi.documents import Addition, Hit
from incdsi.errors import Overloaded, TooLarge
from incdsi.index import Index
from incdsi.progress import Stopwatch
from incdsi.server.answers import Answers, Reply, ticket_of
from incdsi.server.figures import InfoKeeper, Observer, Recorder
from incdsi.server.logbook import Logbook
from incdsi.server.metrics import Metrics
from incdsi.server.projection import Projection
from incdsi.server.schemas import Answer, SearchRequest
from incdsi.server.settings import ServerSettings
from incdsi.server.together import Together
from incdsi.server.writes import Done, Kept, Write, WriteQueue

T = TypeVar("T")
HIT_BYTES = 256  # of an answer that a hit takes besides its text
MOST_EXPORTS = 4  # at a time: each may spool a copy of all documents to disk
MOST_FILES = 2  # read at a time: each is kept on disk until it is read
WAIT_FOR_ROOM = 0.05  # seconds before a stream tries again


class Room:
    """How many more bytes an answer may hold."""

    def __init__(self, most: int) -> None:
        self._most = self.left = most

    def take(self, hits: Sequence[Hit]) -> None:
        """Leave less for the next hits; every hit counts, however short its text."""
        texts = (text for hit in hits for text in (hit.document.text, *(one.text for one in hit.passages)))
        self.left -= HIT_BYTES * len(hits) + sum(len(text.encode("utf-8", "replace")) for text in texts)
        if self.left < 0:
            raise self._over()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Say what to do if there is no room left."""
        try:
            yield
        except TooLarge:
            raise self._over() from None

    def _over(self) -> TooLarge:
        return TooLarge(f"the hits exceed {self._most:,} bytes; lower k, or send fewer queries at once")


class Service:
    """The index with its write queue, search threads, metrics and figures; its name, if it is one of several."""

    def __init__(self, index: Index, settings: ServerSettings, name: str | None = None) -> None:
        self.index, self.settings, self.name = index, settings, name
        self.metrics = Metrics()
        self.recorder = Recorder()
        self.queries = Logbook(settings.log_queries, settings.log_bytes)
        self.clicks = Logbook(settings.log_clicks, settings.log_bytes)
        self.info = InfoKeeper(index)
        self.projection = Projection(index)
        self.answers = Answers(lambda key: self.reading(lambda: index.receipts.find(key)))
        self.ready = False
        self.stopping = asyncio.Event()
        self.exports = asyncio.Semaphore(MOST_EXPORTS)
        self.files = asyncio.Semaphore(MOST_FILES)

    def start(self) -> None:
        """Start the threads."""
        self.queue = WriteQueue(self.index, self.settings.queue, self.metrics.grouped)
        self.metrics.watch(lambda: len(self.index), lambda: self.index.version, self.queue.__len__)
        self._searching = ThreadPoolExecutor(self.settings.threads, thread_name_prefix="incdsi-search")
        self._together = Together(self._searching, self.settings.threads)
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="incdsi-slow")
        self._observer = Observer(self.info, self.index, self.recorder, self.queue.quiet)
        self._observer.start(self.settings.quality_seconds)
        self.ready = True

    def stop(self) -> None:
        """Stop taking requests; streams end and report how far they got."""
        self.ready = False
        self.stopping.set()

    def close(self) -> None:
        """Finish what was accepted, then release everything but the index."""
        self.ready = False
        self.queue.close()
        self._observer.close()
        self._searching.shutdown()
        self._slow.shutdown()

    # Reading

    async def reading(self, act: Callable[[], T]) -> T:
        """Run in a search thread; never waits for a write."""
        return await asyncio.get_running_loop().run_in_executor(self._searching, act)

    async def together(self, asked: SearchRequest, answer: Callable[[Sequence[SearchRequest]], Sequence[T]]) -> T:
        """What `answer` makes of a search for one query, with those that wait and differ in their queries alone."""
        kind = asked.model_dump_json(exclude={"query"})
        return await asyncio.wrap_future(self._together.ask(asked, answer, kind))

    async def slowly(self, act: Callable[[], T]) -> T:
        """Run in the one thread for long work, so that it holds up nobody else."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, act)

    async def counted(self) -> tuple[int, int]:
        """Number of documents and version; read from the store, so never on the event loop."""
        return await self.reading(lambda: (len(self.index), self.index.version))

    def search(self, texts: Sequence[str], asked: SearchRequest, room: Room) -> list[list[Hit]]:
        """The hits of each query, timed, if they fit."""
        begin, watch = time.perf_counter(), Stopwatch()
        with room.told():
            found = self.index.search_many(
                texts,
                asked.k,
                asked.where,
                asked.mode,
                least=asked.least,
                passages=asked.passages,
                watch=watch,
                most_bytes=room.left,
            )
        for hits in found:
            room.take(hits)
        count = max(1, len(texts))
        seconds, steps = (time.perf_counter() - begin) / count, {k: v / count for k, v in watch.seconds.items()}
        for text, hits in zip(texts, found, strict=True):
            self.metrics.searched(seconds, steps)
            self.recorder.searched(seconds)
            if asked.log:
                best = hits[0] if hits else None
                self.queries.note(query=text, id=best and best.document_id, confidence=best and best.confidence)
        return found

    # Writing

    async def write(self, write: Write[T]) -> Done[T]:
        """Queue a write and return what it did; Overloaded if too many are waiting."""
        # Shielded: an accepted write is done even if the client has gone.
        return await asyncio.shield(asyncio.wrap_future(self.queue.submit(write)))

    async def write_patiently(self, write: Write[T]) -> Done[T]:
        """The same, but wait for room: streams are slowed down rather than refused."""
        while True:
            try:
                return await self.write(write)
            except Overloaded:
                if self.queue.closing:
                    raise
                await asyncio.sleep(WAIT_FOR_ROOM)

    async def once(
        self,
        request: Request,
        body: bytes,
        write: Callable[[Kept[T] | None], Write[T]],
        reply: Callable[[Done[T]], Reply],
        count: Callable[[Done[T]], None] = lambda done: None,
    ) -> Response:
        """The answer to a write, passed to `count`; the first answer again if the Idempotency-Key was used before."""
        ticket = ticket_of(request, body)
        kept = None if ticket is None else Kept(ticket=ticket, reply=reply)

        async def act() -> Reply:
            done = await self.write(write(kept))
            count(done)
            return reply(done)

        return response(await self.answers.once(ticket, act))

    def added(self, done: Done[list[Addition]]) -> None:
        """Count added documents."""
        self.metrics.added(done.result, done.seconds)
        self.recorder.added(done.result, done.seconds)

    # Limits

    def check_queries(self, texts: Sequence[str]) -> None:
        """Refuse a query that is too long."""
        most = self.settings.query_characters
        if any(len(text) > most for text in texts):
            raise TooLarge(f"a query is longer than {most:,} characters; shorten it")

    def check_batch(self, documents: int) -> None:
        """Refuse too many documents at once."""
        if documents > self.settings.batch:
            most = self.settings.batch
            raise TooLarge(f"{documents:,} documents in one request; the limit is {most:,}: send fewer or stream them")


def service_of(request: Request) -> Service:
    """The server a request came to."""
    service: Service = request.app.state.service
    return service


def reply(answer: Answer, version: int, status: int = 200) -> Reply:
    """A model as an answer."""
    return Reply(status=status, content=answer.model_dump_json().encode(), version=version)


def response(given: Reply) -> Response:
    """An answer as a response, with the version as its ETag."""
    headers = {"ETag": f'"{given.version}"'} | ({"Idempotent-Replay": "true"} if given.replayed else {})
    return Response(given.content, given.status, headers, media_type="application/json")
