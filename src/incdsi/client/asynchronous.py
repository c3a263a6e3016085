"""AsyncRemoteIndex: the same for asyncio."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned, Threshold
from incdsi.client import calls
from incdsi.client.calls import Call
from incdsi.client.connecting import Patience, Remote, http, unreachable, waits
from incdsi.client.refusals import refusal
from incdsi.documents import Addition, Document, DocumentLike, as_documents
from incdsi.errors import Overloaded, ServerError, ServerUnavailable, UnknownDocument
from incdsi.filters import Where
from incdsi.progress import Progress
from incdsi.search_index import SearchIndex

P = ParamSpec("P")
T = TypeVar("T")


def _verb(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncRemoteIndex, P], Coroutine[Any, Any, T]]:
    @functools.wraps(getattr(SearchIndex, call.__name__))
    async def send(self: AsyncRemoteIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(call(*args, **kwargs))

    return send


class AsyncRemoteIndex(Remote):
    """`RemoteIndex` for asyncio: every verb of SearchIndex is awaited, and so are `count`, `contains` and `version`.

    >>> async with AsyncRemoteIndex("http://127.0.0.1:7799") as index:      # doctest: +SKIP
    ...     hits = await index.search("waterproof hiking boots")
    """

    _kind = "AsyncClient"

    get = _verb(calls.get)
    queries = _verb(calls.queries)
    search = _verb(calls.search)
    search_many = _verb(calls.search_many)
    info = _verb(calls.info)
    add = _verb(calls.add)
    update = _verb(calls.update)
    upsert = _verb(calls.upsert)
    teach = _verb(calls.teach)
    delete = _verb(calls.delete)

    async def close(self) -> None:
        """Release the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def count(self, where: Where | None = None) -> int:
        """How many documents there are, which is `len` of a SearchIndex, or how many pass a filter."""
        return await self._send(calls.count(where))

    async def contains(self, id: object) -> bool:
        """Whether that document is there: `id in index` of a SearchIndex."""
        try:
            return isinstance(id, str) and bool(await self.get(id))
        except UnknownDocument:
            return False

    async def version(self) -> int:
        """Counts every change; pass it as `if_version` to refuse a lost update."""
        return await self._send(calls.version())

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
        return self._lines(calls.documents(where, ids=ids, limit=limit, after=after, missing_ok=missing_ok))

    async def get_many(self, ids: Iterable[str]) -> list[Document]:
        """The documents with these ids, in that order."""
        wanted = ids if isinstance(ids, str) else list(ids)
        return calls.in_order([document async for document in self.documents(ids=wanted)], wanted)

    def with_queries(self) -> AsyncIterator[tuple[Document, list[str]]]:
        """The same, each with its queries."""
        return self._lines(calls.with_queries())

    async def add_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Add documents in order, in several requests, as `RemoteIndex.add_many` does."""
        batch, additions = as_documents(documents), list[Addition]()
        for call in calls.add_many(batch, queries, if_version, whole):
            additions += await self._send(call)
            if progress is not None:
                progress(len(additions), len(batch))
        return additions

    async def upsert_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Update or add documents in order, in several requests, each of which is made whole or not at all."""
        batch, additions = as_documents(documents), list[Addition]()
        for call in calls.upsert_many(batch, queries, if_version, whole):
            additions += await self._send(call)
            if progress is not None:
                progress(len(additions), len(batch))
        return additions

    async def learn(
        self,
        clicks: Iterable[Click] | None,
        *,
        least: int = LEAST_CLICKS,
        share: float = LEAST_SHARE,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Learned:
        """Learn what people clicked, in several requests; None for the server's own log, NotFound if it keeps none."""
        calls_made = list(calls.learn(clicks, Threshold(least, share), dry_run))
        found = []
        for call in calls_made:
            found.append(await self._send(call))
            if progress is not None:
                progress(len(found), len(calls_made))
        version = found[-1].version if found else await self.version()
        lessons = tuple(lesson for one in found for lesson in one.lessons)
        return Learned(lessons=lessons, dry_run=dry_run, version=version)

    # Inside

    async def _send(self, call: Call[T]) -> T:
        patience = Patience(self._patience)
        while True:
            try:
                return await self._once(call)
            except (ServerUnavailable, Overloaded) as error:
                if not (waits(call, error) and await self._is_alive()):
                    await asyncio.sleep(patience.pause(error))

    async def _is_alive(self) -> bool:
        try:
            return await self._once(calls.alive())
        except (ServerUnavailable, Overloaded, ServerError):
            return False

    async def _once(self, call: Call[T]) -> T:
        try:
            answer = await self._http.request(call.method, call.path, content=call.body, headers=dict(call.headers))
        except http().TransportError as error:
            raise unreachable(error, self) from error
        if answer.is_success:
            return calls.answered(answer.content, call.read)
        raise refusal(answer.status_code, answer.headers, answer.content)

    async def _lines(self, call: Call[T]) -> AsyncIterator[T]:
        try:
            async with self._http.stream(
                call.method, call.path, content=call.body, headers=dict(call.headers)
            ) as answer:
                if not answer.is_success:
                    raise refusal(answer.status_code, answer.headers, await answer.aread())
                async for line in answer.aiter_lines():
                    yield calls.answered(line, call.read)
        except http().TransportError as error:
            raise unreachable(error, self) from error
