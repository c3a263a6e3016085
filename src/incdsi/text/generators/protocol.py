"""What a generator is, and running one over many documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidInput
from incdsi.progress import Progress
from incdsi.text.queries import distinct


class Generator(Protocol):
    """Writes the queries one document should answer."""

    def __call__(self, document: Document, /) -> Sequence[str]:
        """The queries, best first."""


@runtime_checkable
class BatchGenerator(Protocol):
    """A generator that is faster on many documents at once."""

    def generate_many(self, documents: Sequence[Document], progress: Progress | None = None) -> list[list[str]]:
        """The queries of each document, in the order of the documents."""


def generate_all(
    documents: Iterable[Document],
    generator: Generator,
    progress: Progress | None = None,
) -> dict[str, list[str]]:
    """Queries by document id: whitespace folded, none empty, none twice for one document.

    Raises DuplicateDocument for an id that occurs twice, InvalidInput if the generator returns anything but
    strings.
    """
    batch = list(documents)
    _require_distinct_ids(batch)
    if isinstance(generator, BatchGenerator):
        written: Iterable[Sequence[str]] = generator.generate_many(batch, progress)
        return {document.id: distinct(texts) for document, texts in zip(batch, written, strict=True)}
    queries = {}
    for done, document in enumerate(batch, start=1):
        queries[document.id] = distinct(_checked(document, generator(document)))
        if progress is not None:
            progress(done, len(batch))
    return queries


def _require_distinct_ids(documents: Sequence[Document]) -> None:
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise DuplicateDocument(f"document id {document.id!r} occurs twice; remove one")
        seen.add(document.id)


def _checked(document: Document, texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidInput(f"document {document.id!r}: the generator must return a list of strings, not {texts!r:.80}")
    return list(texts)
