"""Everything one running server holds, and the ways a request reaches the index."""

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
from incdsi.server.metrics import Metrics
from incdsi.server.projection import Projection
from incdsi.server.schemas import Answer, SearchRequest
from incdsi.server.settings import ServerSettings
from incdsi.server.writes import Done, Kept, Write, WriteQueue

T = TypeVar("T")
HIT_BYTES = 256  # of an answer that a hit takes beside its text
MOST_EXPORTS = 4  # at a time: each may hold a copy of all documents on the disk until it is read
WAIT_FOR_ROOM = 0.05  # seconds between two tries of a stream to be taken


class Room:
    """How many bytes an answer may still have."""

    def __init__(self, most: int) -> None:
        self._most = self.left = most

    def take(self, hits: Sequence[Hit]) -> None:
        """Leave less for the next; as many as there are count by themselves, however short they are."""
        self.left -= sum(HIT_BYTES + len(hit.document.text.encode("utf-8", "replace")) for hit in hits)
        if self.left < 0:
            raise self._over()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Says what to do when there is no room."""
        try:
            yield
        except TooLarge:
            raise self._over() from None

    def _over(self) -> TooLarge:
        return TooLarge(f"the hits have more than {self._most:,} bytes; lower k, or ask fewer queries at once")


class Service:
    """The index with its queue of writes, its threads for searching, and what is counted on the way."""

    def __init__(self, index: Index, settings: ServerSettings) -> None:
        self.index, self.settings = index, settings
        self.metrics = Metrics(lambda: len(index), lambda: index.version)
        self.recorder = Recorder()
        self.info = InfoKeeper(index)
        self.projection = Projection(index)
        self.answers = Answers(lambda key: self.reading(lambda: index.receipts.find(key)))
        self.ready = False
        self.stopping = asyncio.Event()
        self.exports = asyncio.Semaphore(MOST_EXPORTS)

    def start(self) -> None:
        """Threads; nothing runs before."""
        self.queue = WriteQueue(self.index, self.settings.queue, self.metrics.grouped)
        self.metrics.watch_queue(self.queue.__len__)
        self._searching = ThreadPoolExecutor(self.settings.threads, thread_name_prefix="incdsi-search")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="incdsi-slow")
        self._observer = Observer(self.info, self.index, self.recorder, self.queue.quiet)
        self._observer.start(self.settings.quality_seconds)
        self.ready = True

    def stop(self) -> None:
        """Take no more: streams end here and say how far they came."""
        self.ready = False
        self.stopping.set()

    def close(self) -> None:
        """Finish what was accepted, then let go of everything but the index."""
        self.ready = False
        self.queue.close()
        self._observer.close()
        self._searching.shutdown()
        self._slow.shutdown()

    # Reading

    async def reading(self, act: Callable[[], T]) -> T:
        """Done in a thread for searches, which wait for no write."""
        return await asyncio.get_running_loop().run_in_executor(self._searching, act)

    async def slowly(self, act: Callable[[], T]) -> T:
        """Done in the one thread for what takes long, so that it holds up nobody else."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, act)

    async def counted(self) -> tuple[int, int]:
        """How many documents there are, and the version; both are read from the store, so never on the event loop."""
        return await self.reading(lambda: (len(self.index), self.index.version))

    def search(self, text: str, asked: SearchRequest, room: Room) -> list[Hit]:
        """The hits of one query, timed, if there is room for them."""
        begin, watch = time.perf_counter(), Stopwatch()
        with room.told():
            hits = self.index.search(text, asked.k, asked.where, asked.mode, watch=watch, most_bytes=room.left)
        room.take(hits)
        seconds = time.perf_counter() - begin
        self.metrics.searched(seconds, watch.seconds)
        self.recorder.searched(seconds)
        return hits

    # Writing

    async def write(self, write: Write[T]) -> Done[T]:
        """What a write gave, in its turn; Overloaded when too many wait."""
        # Shielded: once accepted it is done, also when the caller has gone.
        return await asyncio.shield(asyncio.wrap_future(self.queue.submit(write)))

    async def write_patiently(self, write: Write[T]) -> Done[T]:
        """The same, waiting for room: for streams, which are slowed down instead of refused."""
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
        """The answer to a write, told to `count`; the first one again when its Idempotency-Key was used before."""
        ticket = ticket_of(request, body)
        kept = None if ticket is None else Kept(ticket=ticket, reply=reply)

        async def act() -> Reply:
            done = await self.write(write(kept))
            count(done)
            return reply(done)

        return response(await self.answers.once(ticket, act))

    def added(self, done: Done[list[Addition]]) -> None:
        """Count documents that were added."""
        self.metrics.added(done.result, done.seconds)
        self.recorder.added(done.result, done.seconds)

    # Limits

    def check_queries(self, texts: Sequence[str]) -> None:
        """Refuse a query that is too long."""
        most = self.settings.query_characters
        if any(len(text) > most for text in texts):
            raise TooLarge(f"expected queries of at most {most:,} characters, found a longer one; shorten it")

    def check_batch(self, documents: int) -> None:
        """Refuse too many documents at once."""
        if documents > self.settings.batch:
            raise TooLarge(
                f"expected at most {self.settings.batch:,} documents at once, found {documents:,}; send a stream"
            )


def service_of(request: Request) -> Service:
    """The server a request came to."""
    service: Service = request.app.state.service
    return service


def reply(answer: Answer, version: int, status: int = 200) -> Reply:
    """A model as it goes out."""
    return Reply(status=status, content=answer.model_dump_json().encode(), version=version)


def response(given: Reply) -> Response:
    """With the version as its ETag."""
    headers = {"ETag": f'"{given.version}"'} | ({"Idempotent-Replay": "true"} if given.replayed else {})
    return Response(given.content, given.status, headers, media_type="application/json")
