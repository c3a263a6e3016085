"""Drafts made before their turn: generating and encoding need no lock, placing does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from incdsi.documents import Document

if TYPE_CHECKING:
    from incdsi.index.draft import Draft

Wording = tuple[tuple[str, bool, bool, bool], ...]  # text, generated, taught, held out


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    draft: Draft
    by: object  # what it depends on beside the document and its queries
    seconds: float


class Ahead:
    """Drafts of documents that wait to be added, by id.

    One is used if it is what would be drafted when its turn comes. Otherwise (another encoder, another document has a
    query by now) the document is drafted again.
    """

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}

    def keep(self, drafts: Sequence[Draft], by: object, seconds: float) -> None:
        """Those made together, in so many seconds, by an encoder and settings that `by` tells apart."""
        each = seconds / max(1, len(drafts))
        self._made |= {draft.document.id: _Made(draft, by, each) for draft in drafts}

    def find(self, document: Document, wording: Wording, by: object) -> tuple[Draft, float] | None:
        """The draft of a document with exactly these queries, and the seconds it took."""
        made = self._made.get(document.id)
        if made is None or made.by != by or made.draft.document != document or made.draft.wording != wording:
            return None
        return made.draft, made.seconds

    def forget(self, ids: Iterable[str]) -> None:
        """Those whose turn is over."""
        for id in ids:
            self._made.pop(id, None)
