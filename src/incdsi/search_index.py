"""SearchIndex: the verbs every index has, in a folder or behind a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned
from incdsi.documents import Addition, Document, DocumentLike, Hit
from incdsi.filters import Where
from incdsi.info import Info
from incdsi.progress import Progress


class SearchIndex(Protocol):
    """What `Index.open` returns for a folder or an address; `AsyncIndex.open` has the same verbs, awaited.

    Errors are the same too. Two things differ over the wire: a long `add_many` is sent in several requests, and
    ServerError covers what only a server can say.
    """

    def close(self) -> None:
        """Release files, locks and connections."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    @property
    def version(self) -> int:
        """Counts every change; pass it as `if_version` to refuse a lost update."""

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument if there is none."""

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; taught queries are `Taught`."""

    def get_many(self, ids: Iterable[str]) -> list[Document]:
        """The documents with these ids, in that order; UnknownDocument if one is missing."""

    def count(self, where: Where | None = None) -> int:
        """How many documents there are, or how many pass a filter."""

    def documents(
        self,
        where: Where | None = None,
        *,
        ids: Iterable[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
        missing_ok: bool = False,
    ) -> Iterator[Document]:
        """Documents in the order they were added: all, or those that pass a filter or have these ids.

        At most `limit` of them; the next page begins `after` the id of the last. An unknown id is refused, or left
        out if `missing_ok`.
        """

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """All documents as of one moment, each with its queries."""

    def search(
        self,
        text: str,
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        least: float | None = None,
        passages: int = 1,
    ) -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen.

        `least` leaves out hits of less `confidence` than that; InvalidInput while the index cannot tell. Each document
        is found once; of a long one `Hit.passages` are the best `passages`.
        """

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        least: float | None = None,
        passages: int = 1,
    ) -> list[list[Hit]]:
        """The k best documents for each text."""

    def info(self) -> Info:
        """Counts, settings, and the quality of learned, lexical, fused and dense search on held-out queries."""

    def add(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Add a document with what people asked for it; DuplicateDocument if its id is taken."""

    def add_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Add documents in order, in portions; with `whole`, all of them or none."""

    def update(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Replace a document's text, title and metadata; it keeps its queries, and `queries` are added to them."""

    def upsert(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Update the document, or add it if missing."""

    def upsert_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Update those documents that are there and add the others, in portions; with `whole`, all of them or none."""

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """Make this query find that document from now on; no other document's vector changes.

        Except that of a document that was taught the same query before: it gives it up, and the result names it.
        """

    def learn(
        self,
        clicks: Iterable[Click] | None,
        *,
        least: int = LEAST_CLICKS,
        share: float = LEAST_SHARE,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Learned:
        """Learn what people clicked: queries with at least `least` clicks on a document, `share` of all their clicks.

        The same clicks again change nothing; with `dry_run` none do. None is the log that a server keeps.
        """

    def delete(
        self,
        id: str | Iterable[str] | None = None,
        *,
        where: Where | None = None,
        resolve: bool = False,
        if_version: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Delete one document, several, or all that pass a filter; returns how many.

        All or, if an id is unknown, none. `resolve` then places again what was solved with them present.
        """
