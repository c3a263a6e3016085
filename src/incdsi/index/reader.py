"""The half of an index that reads: find, get, list, measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document, Hit
from incdsi.engine.protocol import Engine
from incdsi.filters import Where
from incdsi.index.draft import asked_of
from incdsi.index.info import info_of
from incdsi.index.session import Session
from incdsi.index.tuning import last_tuning
from incdsi.info import Info, Tuning
from incdsi.progress import Stopwatch


class Reader:
    """What any number of threads may do while one writes."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def _engine(self) -> Engine:
        return self._session.engine

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base for quick opening.

        In a forked child nothing happens: they are the parent's.
        """
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._engine.view())

    def __contains__(self, id: object) -> bool:
        return id in self._engine

    @property
    def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return self._engine.version

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return self._engine.get(id).document

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return asked_of(self._engine.get(id))

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]:
        """The titles of those documents that are there, at most so many characters of each, without reading more."""
        return self._engine.titles(ids, longest)

    def documents(self) -> Iterator[Document]:
        """All documents, as of now, in the order they were added."""
        for document, _ in self.with_queries():
            yield document

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """The same, each with what people asked for it then."""
        for record in self._engine.records():
            yield record.document, asked_of(record)

    def search(
        self,
        text: str,
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        watch: Stopwatch | None = None,
        most_bytes: int | None = None,
    ) -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen.

        By words alone (mode "lexical", or a lexical weight of 1) only documents that share a word with it are found.

        `watch` is told the seconds of each step. TooLarge when the documents found have more than `most_bytes`.
        """
        return self._session.current().search(text, k, where, mode, watch or Stopwatch(), most_bytes)

    def search_many(
        self, texts: Sequence[str], k: int = 10, where: Where | None = None, mode: str = "fused"
    ) -> list[list[Hit]]:
        """The k best documents for each text."""
        return [self.search(text, k, where, mode) for text in texts]

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """All ids and their document vectors, (n, h), as of now."""
        return self._engine.vectors()

    def info(self) -> Info:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        return info_of(self._engine, self.last_tuning)

    @property
    def last_tuning(self) -> Tuning | None:
        """What the index chose when it last tuned itself, and what that changed; None before the first time."""
        return last_tuning(self._engine)
