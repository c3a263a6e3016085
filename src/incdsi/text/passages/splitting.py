"""A long text as passages: by headings, then by sentences, each within what an encoder reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from incdsi.errors import InvalidInput
from incdsi.records import Piece
from incdsi.text.passages.headings import sections
from incdsi.text.sentences import sentence_spans

Measure = Callable[[Sequence[str]], Sequence[int]]  # texts to how many tokens each has
Span = tuple[int, int]
LEAST = 16  # tokens of a passage


@dataclass(frozen=True, slots=True)
class Sections:
    """Splits a text into pieces of at most so many `tokens` that end with a sentence and never cross a heading.

    A paragraph's end ends a piece that is half full: a change of the text then moves no edge far from it.
    """

    tokens: int = 128

    def __post_init__(self) -> None:
        if isinstance(self.tokens, bool) or not isinstance(self.tokens, int) or self.tokens < LEAST:
            raise InvalidInput(f"a passage must be allowed at least {LEAST} tokens, not {self.tokens!r}")

    def pieces(self, text: str, measure: Measure) -> list[Piece]:
        return [
            Piece(*span, section.headings)
            for section in sections(text)
            for span in self._within(text, section.start, section.end, measure)
        ]

    def _within(self, text: str, start: int, end: int, measure: Measure) -> Iterator[Span]:
        spans = [_trimmed(text, start + first, start + last) for first, last in sentence_spans(text[start:end])]
        begin, full, before = -1, 0, -1
        for (first, last), size in self._small(text, [span for span in spans if span[0] < span[1]], measure):
            ends = full > self.tokens // 2 and text.count("\n", before, first) > 1
            if begin >= 0 and (ends or full + size > self.tokens):
                yield begin, before
                begin, full = -1, 0
            begin, full, before = first if begin < 0 else begin, full + size, last
        if begin >= 0:
            yield begin, before

    def _small(self, text: str, spans: Sequence[Span], measure: Measure) -> Iterator[tuple[Span, int]]:
        """Sentences with their sizes, those that are too long in parts."""
        sizes = measure([text[first:last] for first, last in spans])
        for (first, last), size in zip(spans, sizes, strict=True):
            parts = -(-size // self.tokens) or 1
            for part in _cut(text, first, last, parts):
                yield part, -(-size // parts)


def located(text: str, given: Sequence[Span | str]) -> list[Piece]:
    """What a splitter of one's own gave, as pieces under their headings; refuses what does not lie in the text."""
    known, found, place = sections(text), list[Piece](), 0
    begins = [section.start for section in known]
    for one in given:
        if isinstance(one, str) and not one.strip():
            continue
        place, end = _span(text, one, place)
        start, end = _trimmed(text, place, end)
        if start < end:
            found.append(Piece(start, end, known[max(0, bisect_right(begins, start) - 1)].headings))
    return found


def _span(text: str, given: Span | str, place: int) -> Span:
    if isinstance(given, str):
        start = text.find(given, place)
        if start < 0:
            raise InvalidInput(
                f"your splitter returned {given!r:.60}, which is not in the text; "
                "return pieces of the text as they stand and in order, or (start, end)"
            )
        return start, start + len(given)
    try:
        start, end = (int(number) for number in given)
    except (TypeError, ValueError):
        raise InvalidInput(f"your splitter must return strings or (start, end), not {given!r:.60}") from None
    if not 0 <= start <= end <= len(text):
        raise InvalidInput(f"your splitter returned ({start}, {end}), but the text has {len(text):,} characters")
    return start, end


def _cut(text: str, first: int, last: int, parts: int) -> Iterator[Span]:
    """A stretch in so many parts of like length, cut between words where there are any."""
    for left in range(parts, 1, -1):
        most = first - (first - last) // left
        least = (first + most) // 2
        space = max(text.rfind(" ", least, most), text.rfind("\n", least, most))
        end = space if space > 0 else most
        yield _trimmed(text, first, end)
        first = end
    yield _trimmed(text, first, last)


def _trimmed(text: str, start: int, end: int) -> Span:
    """The same stretch without the space around it."""
    stretch = text[start:end]
    begin = start + len(stretch) - len(stretch.lstrip())
    return begin, begin + len(stretch.strip())
