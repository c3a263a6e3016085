"""RemoteIndex: the verbs of an index, asked of a server."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned, Threshold
from incdsi.client import calls
from incdsi.client.calls import Call
from incdsi.client.connecting import Patience, Remote, http, unreachable, waits
from incdsi.client.refusals import refusal
from incdsi.documents import Addition, Document, DocumentLike, as_documents
from incdsi.errors import Overloaded, ServerError, ServerUnavailable, UnknownDocument
from incdsi.filters import Where
from incdsi.gaps import CANDIDATES, LEAST_CONFIDENCE, Gaps
from incdsi.progress import Progress
from incdsi.search_index import SearchIndex

P = ParamSpec("P")
T = TypeVar("T")


def _verb(call: Callable[P, Call[T]]) -> Callable[Concatenate[RemoteIndex, P], T]:
    @functools.wraps(getattr(SearchIndex, call.__name__))
    def send(self: RemoteIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._send(call(*args, **kwargs))

    return send


class RemoteIndex(Remote):
    """A SearchIndex behind `incdsi serve`; threads may share it.

    A server that is busy or away is retried for `patience` seconds. Every write carries a key that the server
    remembers, so a retry never writes twice.
    """

    _kind = "Client"

    get = _verb(calls.get)
    count = _verb(calls.count)
    queries = _verb(calls.queries)
    search = _verb(calls.search)
    search_many = _verb(calls.search_many)
    info = _verb(calls.info)
    add = _verb(calls.add)
    update = _verb(calls.update)
    upsert = _verb(calls.upsert)
    teach = _verb(calls.teach)
    delete = _verb(calls.delete)

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._send(calls.count())

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and bool(self.get(id))
        except UnknownDocument:
            return False

    @property
    def version(self) -> int:
        """Counts every change; pass it as `if_version` to refuse a lost update."""
        return self._send(calls.version())

    def documents(
        self,
        where: Where | None = None,
        *,
        ids: Iterable[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
        missing_ok: bool = False,
    ) -> Iterator[Document]:
        """Documents in the order they were added: all, or those that pass a filter or have these ids."""
        return self._lines(calls.documents(where, ids=ids, limit=limit, after=after, missing_ok=missing_ok))

    def get_many(self, ids: Iterable[str]) -> list[Document]:
        """The documents with these ids, in that order."""
        wanted = ids if isinstance(ids, str) else list(ids)
        return calls.in_order(self.documents(ids=wanted), wanted)

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """The same, each with its queries."""
        return self._lines(calls.with_queries())

    def add_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Add documents in order, in several requests: if one is refused, those before it stay added.

        With `whole` or `if_version` there is a single request, as large as the server's limits allow.
        """
        batch, additions = as_documents(documents), list[Addition]()
        for call in calls.add_many(batch, queries, if_version, whole):
            additions += self._send(call)
            if progress is not None:
                progress(len(additions), len(batch))
        return additions

    def upsert_many(
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
            additions += self._send(call)
            if progress is not None:
                progress(len(additions), len(batch))
        return additions

    def learn(
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
            found.append(self._send(call))
            if progress is not None:
                progress(len(found), len(calls_made))
        version = found[-1].version if found else self.version
        lessons = tuple(lesson for one in found for lesson in one.lessons)
        return Learned(lessons=lessons, dry_run=dry_run, version=version)

    # Inside

    def _send(self, call: Call[T]) -> T:
        patience = Patience(self._patience)
        while True:
            try:
                return self._once(call)
            except (ServerUnavailable, Overloaded) as error:
                if not (waits(call, error) and self._is_alive()):
                    time.sleep(patience.pause(error))

    def _is_alive(self) -> bool:
        try:
            return self._once(calls.alive())
        except (ServerUnavailable, Overloaded, ServerError):
            return False

    def _once(self, call: Call[T]) -> T:
        try:
            answer = self._http.request(call.method, call.path, content=call.body, headers=dict(call.headers))
        except http().TransportError as error:
            raise unreachable(error, self) from error
        if answer.is_success:
            return calls.answered(answer.content, call.read)
        raise refusal(answer.status_code, answer.headers, answer.content)

    def _lines(self, call: Call[T]) -> Iterator[T]:
        try:
            with self._http.stream(call.method, call.path, content=call.body, headers=dict(call.headers)) as answer:
                if not answer.is_success:
                    raise refusal(answer.status_code, answer.headers, answer.read())
                for line in answer.iter_lines():
                    yield calls.answered(line, call.read)
        except http().TransportError as error:
            raise unreachable(error, self) from error


def kept_gaps(index: RemoteIndex, *, least: float = LEAST_CONFIDENCE, k: int = CANDIDATES) -> Gaps:
    """What people ask and the server answers badly, by the queries it keeps; NotFound if it keeps none."""
    return index._send(calls.gaps(least, k))
