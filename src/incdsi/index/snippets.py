"""What a hit shows: the passages of a document that match best, and the stretch that says most of what was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from incdsi.documents import Document, Passage, Snippet
from incdsi.engine.protocol import Doubles
from incdsi.records import Piece

Mark = tuple[int, int]
LENGTH = 240  # characters
BEFORE = 60  # of these before the first word that was asked
MOST = 100_000  # characters of a text that are looked at
CUT = "…"


@dataclass(frozen=True, slots=True)
class Excerpts:
    """How hits of a search are shown: `marks` finds the words asked, `within` tells how well passages match."""

    marks: Callable[[str], Sequence[Mark]]
    within: Callable[[int, int], Doubles]
    most: int

    def of(self, row: int, document: Document, pieces: Sequence[Piece]) -> tuple[tuple[Passage, ...], Snippet]:
        """The best passages of a document, best first, at most so many; none when it is short. And its snippet."""
        if not pieces:
            return (), self._snippet(document.text)
        matches = self.within(row, len(pieces))
        # One that was replaced after it was ranked has other passages: then the first ones.
        order = np.argsort(-matches, kind="stable") if len(matches) == len(pieces) else np.arange(len(pieces))
        best = tuple(self._passage(document, pieces[place]) for place in order[: self.most].tolist())
        return best, best[0].snippet

    def _passage(self, document: Document, piece: Piece) -> Passage:
        text = document.text[piece.start : piece.end]
        return Passage(
            text=text,
            start=piece.start,
            end=piece.end,
            headings=piece.headings,
            snippet=self._snippet(text),
        )

    def _snippet(self, text: str) -> Snippet:
        """Made when somebody looks at it: finding words in ten texts takes as long as finding the texts."""
        return Snippet.later(lambda: snippet_of(text, self.marks))


def snippet_of(text: str, marks: Callable[[str], Sequence[Mark]]) -> Snippet:
    """At most LENGTH characters on one line, around the most different words that `marks` finds, and where they are."""
    flat = " ".join(text[:MOST].split())
    found = marks(flat)
    if len(flat) <= LENGTH:
        return Snippet(text=flat, marks=tuple(found))
    begin = _begin(flat, _first_of_most(flat, found))
    end = _end(flat, begin)
    before, after = CUT if begin else "", CUT if end < len(flat) else ""
    shift = len(before) - begin
    inside = [(first + shift, min(last, end) + shift) for first, last in found if begin <= first < end]
    return Snippet(text=f"{before}{flat[begin:end]}{after}", marks=tuple(inside))


def _first_of_most(text: str, marks: Sequence[Mark]) -> int:
    """Where the stretch with the most different marked words begins; the first of equals."""
    words = [text[first:last].casefold() for first, last in marks]
    inside: Counter[str] = Counter()
    best, start, begin = 0, 0, 0
    for place, ((_, last), word) in enumerate(zip(marks, words, strict=True)):
        inside[word] += 1
        while begin < place and last - marks[begin][0] > LENGTH - BEFORE:
            inside[words[begin]] -= 1
            if not inside[words[begin]]:
                del inside[words[begin]]
            begin += 1
        if len(inside) > best:
            best, start = len(inside), marks[begin][0]
    return start


def _begin(text: str, mark: int) -> int:
    """A sentence's begin not far before the mark, else a word's."""
    if mark <= BEFORE:
        return 0
    sentence = text.rfind(". ", mark - BEFORE, mark)
    if sentence >= 0:
        return sentence + 2
    return text.rfind(" ", mark - BEFORE, mark - BEFORE // 3) + 1 or mark


def _end(text: str, begin: int) -> int:
    if begin + LENGTH >= len(text):
        return len(text)
    space = text.rfind(" ", begin + LENGTH // 2, begin + LENGTH)
    return space if space >= 0 else begin + LENGTH
