"""RemoteIndex: the verbs of an index, asked of a server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from incdsi.client import calls
from incdsi.client.calls import Call
from incdsi.client.connecting import I, Patience, Remote, http, unreachable
from incdsi.client.refusals import refusal
from incdsi.documents import Addition, Document, Hit
from incdsi.errors import InvalidInput, Overloaded, ServerUnavailable, UnknownDocument
from incdsi.filters import Where
from incdsi.progress import Progress

T = TypeVar("T")


class RemoteIndex(Remote[I]):
    """An index behind `incdsi serve`; may be shared by threads.

    A server that is busy or away is asked again for `patience` seconds; every write carries a key by which the
    server recognises it, so that asking again never writes twice. Errors are those of a local index, and
    ServerError for what only a server can say.
    """

    _kind = "Client"

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def __len__(self) -> int:
        return self._send(calls.count())

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str) or not id:
            return False
        try:
            self._send(calls.get(id))
        except UnknownDocument:
            return False
        return True

    @property
    def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return self._send(calls.version())

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return self._send(calls.get(id))

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return self._send(calls.queries(id))

    def documents(self) -> Iterator[Document]:
        """All documents, as of now, in the order of their last change."""
        try:
            with self._http.stream("GET", "/v1/documents") as answer:
                if answer.status_code != 200:
                    raise refusal(answer.status_code, answer.headers, answer.read())
                for line in answer.iter_lines():
                    yield calls.line(line)
        except http().TransportError as error:
            raise unreachable(error, self.url) from error

    def search(self, text: str, k: int = 10, where: Where | None = None, mode: str = "fused") -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen."""
        return self._send(calls.search(text, k, where, mode))

    def search_many(
        self, texts: Sequence[str], k: int = 10, where: Where | None = None, mode: str = "fused"
    ) -> list[list[Hit]]:
        """The k best documents for each text, in one request."""
        return self._send(calls.search_many(texts, k, where, mode))

    def info(self) -> I:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        return self._send(calls.info(self._read_info))

    # Writing

    def add(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Add a document and what people asked for it; DuplicateDocument when its id is there."""
        return self._send(calls.add_many([document], {document.id: queries}, if_version))[0]

    def add_many(
        self,
        documents: Iterable[Document],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
    ) -> list[Addition]:
        """Add documents in order, in portions: one that is refused leaves those before it added."""
        asked = dict(queries or {})
        parts = calls.portions(documents, asked)
        if len(parts) > 1 and if_version is not None:
            raise InvalidInput(f"expected at most {calls.PORTION} documents with if_version, found more; add in parts")
        total, additions = sum(map(len, parts)), list[Addition]()
        for part in parts:
            additions += self._send(calls.add_many(part, asked, if_version))
            if progress is not None:
                progress(len(additions), total)
        return additions

    def update(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Replace a document's text, title and metadata; what people asked for it is kept, `queries` come on top."""
        return self._send(calls.update(document, queries, if_version))

    def upsert(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Update the document if it is there, add it if not."""
        return self._send(calls.upsert(document, queries, if_version))

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document; no other document's vector changes."""
        return self._send(calls.teach(query, id, if_version))

    def delete(
        self,
        id: str | Iterable[str] | None = None,
        *,
        where: Where | None = None,
        resolve: bool = False,
        if_version: int | None = None,
    ) -> int:
        """Remove a document, several at once, or all that pass a filter, with all that was made of them; how many."""
        return self._send(calls.delete(id, where, resolve, if_version))

    # Inside

    def _send(self, call: Call[T]) -> T:
        patience = Patience(self._patience)
        while True:
            try:
                return self._once(call)
            except (ServerUnavailable, Overloaded) as error:
                time.sleep(patience.pause(error))

    def _once(self, call: Call[T]) -> T:
        try:
            answer = self._http.request(call.method, call.path, content=call.body, headers=dict(call.headers))
        except http().TransportError as error:
            raise unreachable(error, self.url) from error
        if answer.is_success:
            return calls.answered(answer.content, call.read)
        raise refusal(answer.status_code, answer.headers, answer.content)
