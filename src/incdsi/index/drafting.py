"""Drafting documents before their turn to be written, so that whoever writes does not wait for the encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from incdsi.documents import Document
from incdsi.index.writer import Writer


class Drafting:
    """What to do for documents that are about to be added, while others are being placed."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def begin(self, documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> None:
        """Generate and encode, from any thread; adding them then takes what is still right, and makes the rest."""
        self._writer.draft_ahead(documents, queries)

    def end(self, ids: Iterable[str]) -> None:
        """These were added, or are not going to be."""
        self._writer.ahead.forget(ids)
