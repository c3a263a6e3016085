"""AsyncIndex: an index in a folder for asyncio, beside AsyncRemoteIndex for one behind a server."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from incdsi.client import AsyncRemoteIndex
from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.filters import Where
from incdsi.index.index import Index
from incdsi.index.making import is_address, open_remote
from incdsi.info import Tuning
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator
from incdsi.text.passages import Splitter

P = ParamSpec("P")
T = TypeVar("T")
TOGETHER = 256  # documents of a listing that a thread reads at a time


class Stopped(BaseException):
    """Ends a change between two portions, as Ctrl-C would."""


def _reading(verb: Callable[Concatenate[Index, P], T]) -> Callable[Concatenate[AsyncIndex, P], Coroutine[Any, Any, T]]:
    @functools.wraps(verb)
    async def read(self: AsyncIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._read(lambda: verb(self._index, *args, **kwargs))

    return read


def _changing(verb: Callable[Concatenate[Index, P], T]) -> Callable[Concatenate[AsyncIndex, P], Coroutine[Any, Any, T]]:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    async def change(self: AsyncIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind(self._index, *args, **kwargs)
        stop = threading.Event()
        if "progress" in signature.parameters:
            given.arguments["progress"] = _relay(given.arguments.get("progress"), stop)
        return await self._change(lambda: verb(*given.args, **given.kwargs), stop)

    return change


def _making(make: Callable[P, Index]) -> Callable[P, Coroutine[Any, Any, AsyncIndex]]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    async def made(*args: P.args, **kwargs: P.kwargs) -> AsyncIndex:
        given, stop = signature.bind(*args, **kwargs), threading.Event()
        if "progress" in signature.parameters:
            given.arguments["progress"] = _relay(given.arguments.get("progress"), stop)
        return AsyncIndex(await _made(lambda: make(*given.args, **given.kwargs), stop))

    return made


class AsyncIndex:
    """`Index` for asyncio: every verb is awaited, and so are `count`, `contains` and `version`.

    Searches run beside each other in threads; changes wait for their turn in one. A change that is cancelled before its
    turn is not made. One that has begun is finished before the await ends; if it is made in portions, as by
    `add_many`, it stops after the one it is at, and those before stay.

    >>> async with await AsyncIndex.open("shop") as index:      # doctest: +SKIP
    ...     hits = await index.search("waterproof hiking boots")
    """

    get = _reading(Index.get)
    get_many = _reading(Index.get_many)
    count = _reading(Index.count)
    queries = _reading(Index.queries)
    search = _reading(Index.search)
    search_many = _reading(Index.search_many)
    info = _reading(Index.info)
    verify = _reading(Index.verify)
    backup = _reading(Index.backup)
    add = _changing(Index.add)
    add_many = _changing(Index.add_many)
    update = _changing(Index.update)
    upsert = _changing(Index.upsert)
    upsert_many = _changing(Index.upsert_many)
    teach = _changing(Index.teach)
    attach = _changing(Index.attach)
    learn = _changing(Index.learn)
    delete = _changing(Index.delete)
    resolve = _changing(Index.resolve)
    tune = _changing(Index.tune)
    set_tuning = _changing(Index.set_tuning)
    adopt = _changing(Index.adopt)
    compact = _changing(Index.compact)

    def __init__(self, index: Index) -> None:
        self._index = index
        self._closed = False
        self._readers = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="incdsi-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="incdsi-write")

    # Making and opening

    create = staticmethod(_making(Index.create))
    build = staticmethod(_making(Index.build))

    @classmethod
    async def open(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
        key: str | None = None,
        create: bool = False,
        language: str | None = None,
    ) -> Self | AsyncRemoteIndex:
        """The index in a folder, `create`d if missing; an http(s) address opens an AsyncRemoteIndex."""
        if is_address(path):
            return open_remote(AsyncRemoteIndex, path, key, encoder, generator, splitter, create or None, language)
        return cls(
            await _made(
                lambda: Index.open(
                    Path(path), encoder, generator=generator, splitter=splitter, create=create, language=language
                )
            )
        )

    async def close(self) -> None:
        """Release files and lock, once the changes that wait are made."""
        if self._closed:
            return
        job = self._writer.submit(self._index.close)
        self._closed = True
        self._writer.shutdown(wait=False)
        self._readers.shutdown(wait=False)
        await _ended(job)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._index!r}"

    # Reading

    async def contains(self, id: object) -> bool:
        """Whether that document is there: `id in index` of an Index."""
        return await self._read(lambda: id in self._index)

    async def version(self) -> int:
        """Counts every change; pass it as `if_version` to refuse a lost update."""
        return await self._read(lambda: self._index.version)

    async def last_tuning(self) -> Tuning | None:
        """What the index last chose for itself."""
        return await self._read(lambda: self._index.last_tuning)

    def documents(
        self,
        where: Where | None = None,
        *,
        ids: Iterable[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
        missing_ok: bool = False,
    ) -> AsyncIterator[Document]:
        """Documents in the order they were added: all, or those that pass a filter or have these ids."""
        return self._lines(
            lambda: self._index.documents(where, ids=ids, limit=limit, after=after, missing_ok=missing_ok)
        )

    def with_queries(self) -> AsyncIterator[tuple[Document, list[str]]]:
        """All documents as of one moment, each with its queries."""
        return self._lines(self._index.with_queries)

    # Inside

    async def _read(self, act: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._submit(self._readers, act))

    async def _change(self, act: Callable[[], T], stop: threading.Event) -> T:
        return await _ended(self._submit(self._writer, act), stop)

    async def _lines(self, begin: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        lines = await self._read(begin)
        try:
            while piece := await _ended(self._submit(self._readers, lambda: list(islice(lines, TOGETHER)))):
                for line in piece:
                    yield line
        finally:
            if inspect.isgenerator(lines):
                lines.close()

    def _submit(self, threads: Executor, act: Callable[[], T]) -> Future[T]:
        if self._closed:
            raise InvalidInput(f"{self._index.engine} is closed; open it again")
        return threads.submit(act)


async def _made(make: Callable[[], Index], stop: threading.Event | None = None) -> Index:
    """An index opened in a thread; closed again if the await is cancelled, as nobody else has it then."""
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(make)
        try:
            return await _ended(job, stop)
        except asyncio.CancelledError:
            if not job.cancelled() and job.exception() is None:
                job.result().close()
            raise


async def _ended(job: Future[T], stop: threading.Event | None = None) -> T:
    """What the job came to; a cancelled await ends with it, before it began or after it was told to `stop`."""
    future = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        while not (job.cancel() or job.done()):
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:  # asked again; there is nothing to do but to wait
                continue
        if job.done() and not job.cancelled():
            job.exception()
        raise


def _relay(progress: Progress | None, stop: threading.Event) -> Progress:
    """Tells the loop from a thread, and ends the thread's work once it should `stop`."""
    loop = asyncio.get_running_loop()

    def report(done: int, total: int) -> None:
        if progress is not None:
            loop.call_soon_threadsafe(progress, done, total)
        if stop.is_set():
            raise Stopped

    return report
