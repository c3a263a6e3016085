"""The half of an index that reads: find, get, list, measure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self

from incdsi.documents import Document, Hit
from incdsi.engine.protocol import Engine
from incdsi.errors import InvalidInput
from incdsi.filters import Where, parse
from incdsi.index import listing
from incdsi.index.draft import asked_of
from incdsi.index.info import info_of
from incdsi.index.session import Session
from incdsi.index.snapshot import Snapshot
from incdsi.index.tuning import last_tuning
from incdsi.info import Info, Tuning
from incdsi.progress import Progress, Stopwatch


class Reader:
    """What any number of threads may do while one writes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.engine: Engine = session.engine

    def __repr__(self) -> str:
        with contextlib.suppress(InvalidInput):  # closed
            return f"{type(self).__name__}({str(self.engine)!r}, {len(self):,} documents)"
        return f"{type(self).__name__}({str(self.engine)!r}, closed)"

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base for quick opening.

        In a forked child nothing happens: they are the parent's.
        """
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.engine.view())

    def __contains__(self, id: object) -> bool:
        return id in self.engine

    @property
    def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return self.engine.version

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return self.engine.get(id).document

    def get_many(self, ids: Iterable[str]) -> list[Document]:
        """The documents with these ids, in that order; UnknownDocument when one is not there."""
        return listing.get_many(self.engine, ids)

    def count(self, where: Where | None = None) -> int:
        """How many documents there are, or how many pass a filter."""
        return len(self) if where is None else len(self.engine.matching(parse(where)))

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return asked_of(self.engine.get(id))

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
        out if `missing_ok`. Which they are is settled by the call.
        """
        return listing.read(self.engine, listing.chosen_rows(self.engine, where, ids, limit, after, missing_ok))

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """All documents as of one moment, each with what people asked for it then."""
        for record in self.engine.records():
            yield record.document, asked_of(record)

    def search(
        self,
        text: str,
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        least: float | None = None,
        passages: int = 1,
        watch: Stopwatch | None = None,
        most_bytes: int | None = None,
    ) -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen.

        `least` leaves out hits of less `confidence` than that; InvalidInput while the index cannot tell.

        Each document is found once; of a long one `Hit.passages` are the best `passages`.

        By words alone (mode "lexical", or a lexical weight of 1) only documents that share a word with it are found.

        `watch` is told the seconds of each step. TooLarge when the documents found have more than `most_bytes`.
        """
        return self.search_many(
            [text], k, where, mode, least=least, passages=passages, watch=watch, most_bytes=most_bytes
        )[0]

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        least: float | None = None,
        passages: int = 1,
        progress: Progress | None = None,
        watch: Stopwatch | None = None,
        most_bytes: int | None = None,
    ) -> list[list[Hit]]:
        """The k best documents for each text: those that `search` finds, to the last bit, and sooner.

        All are of one moment. TooLarge when all documents found together have more than `most_bytes`.
        """
        clock = watch or Stopwatch()

        def find(now: Snapshot) -> list[list[Hit]]:
            found: list[list[Hit]] = []
            for hits in now.search(texts, k, where, mode, least, passages, clock, most_bytes):
                found.append(hits)
                if progress is not None:
                    progress(len(found), len(texts))
            return found

        return self._session.reading(find)

    def info(self) -> Info:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        return self._session.reading(lambda now: info_of(now.engine, self.last_tuning))

    @property
    def last_tuning(self) -> Tuning | None:
        """What the index chose when it last tuned itself, and what that changed; None before the first time."""
        return last_tuning(self.engine)
