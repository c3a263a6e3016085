"""AsyncRemoteIndex: the same for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from incdsi.client import calls
from incdsi.client.calls import Call
from incdsi.client.connecting import I, Patience, Remote, http, unreachable
from incdsi.client.refusals import refusal
from incdsi.documents import Addition, Document, Hit
from incdsi.errors import Overloaded, ServerUnavailable, UnknownDocument
from incdsi.filters import Where

T = TypeVar("T")


class AsyncRemoteIndex(Remote[I]):
    """`RemoteIndex` with every verb awaited; `count`, `version` and `contains` are verbs here.

    >>> async with AsyncRemoteIndex("http://127.0.0.1:7799") as index:      # doctest: +SKIP
    ...     hits = await index.search("waterproof hiking boots")
    """

    _kind = "AsyncClient"

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Reading

    async def count(self) -> int:
        """How many documents there are."""
        return await self._send(calls.count())

    async def contains(self, id: str) -> bool:
        """Whether that document is there."""
        try:
            await self._send(calls.get(id))
        except UnknownDocument:
            return False
        return True

    async def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return await self._send(calls.version())

    async def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return await self._send(calls.get(id))

    async def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return await self._send(calls.queries(id))

    async def documents(self) -> AsyncIterator[Document]:
        """All documents, as of now, in the order of their last change."""
        try:
            async with self._http.stream("GET", "/v1/documents") as answer:
                if answer.status_code != 200:
                    raise refusal(answer.status_code, answer.headers, await answer.aread())
                async for line in answer.aiter_lines():
                    yield calls.line(line)
        except http().TransportError as error:
            raise unreachable(error, self.url) from error

    async def search(self, text: str, k: int = 10, where: Where | None = None, mode: str = "fused") -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen."""
        return await self._send(calls.search(text, k, where, mode))

    async def search_many(
        self, texts: Sequence[str], k: int = 10, where: Where | None = None, mode: str = "fused"
    ) -> list[list[Hit]]:
        """The k best documents for each text, in one request."""
        return await self._send(calls.search_many(texts, k, where, mode))

    async def info(self) -> I:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        return await self._send(calls.info(self._read_info))

    # Writing

    async def add(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Add a document and what people asked for it; DuplicateDocument when its id is there."""
        return (await self._send(calls.add_many([document], {document.id: queries}, if_version)))[0]

    async def add_many(
        self, documents: Iterable[Document], queries: Mapping[str, Sequence[str]] | None = None
    ) -> list[Addition]:
        """Add documents in order, in portions: one that is refused leaves those before it added."""
        asked = dict(queries or {})
        additions: list[Addition] = []
        for part in calls.portions(documents, asked):
            additions += await self._send(calls.add_many(part, asked, None))
        return additions

    async def update(
        self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None
    ) -> Addition:
        """Replace a document's text, title and metadata; what people asked for it is kept, `queries` come on top."""
        return await self._send(calls.update(document, queries, if_version))

    async def upsert(
        self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None
    ) -> Addition:
        """Update the document if it is there, add it if not."""
        return await self._send(calls.upsert(document, queries, if_version))

    async def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document; no other document's vector changes."""
        return await self._send(calls.teach(query, id, if_version))

    async def delete(
        self,
        id: str | Iterable[str] | None = None,
        *,
        where: Where | None = None,
        resolve: bool = False,
        if_version: int | None = None,
    ) -> int:
        """Remove a document, several at once, or all that pass a filter; how many."""
        return await self._send(calls.delete(id, where, resolve, if_version))

    # Inside

    async def _send(self, call: Call[T]) -> T:
        patience = Patience(self._patience)
        while True:
            try:
                return await self._once(call)
            except (ServerUnavailable, Overloaded) as error:
                await asyncio.sleep(patience.pause(error))

    async def _once(self, call: Call[T]) -> T:
        try:
            answer = await self._http.request(call.method, call.path, content=call.body, headers=dict(call.headers))
        except http().TransportError as error:
            raise unreachable(error, self.url) from error
        if answer.is_success:
            return calls.answered(answer.content, call.read)
        raise refusal(answer.status_code, answer.headers, answer.content)
