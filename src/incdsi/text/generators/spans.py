"""Queries without a model: the title, headings, sentences and clauses that say most about a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from incdsi.documents import Document, fold
from incdsi.errors import InvalidInput
from incdsi.markdown import heading, without_links
from incdsi.text.queries import distinct
from incdsi.text.sentences import sentence_spans

WORDS = 64  # most words in a span
CHARACTERS = 480  # the same for scripts without spaces
SUBJECT = 6  # most words of a title that is put before a span: a longer one would drown it
WINDOW = 4096  # characters read at each place in a long text
WINDOWS = 8  # places, spread evenly: 1 MB costs no more than 32 kB

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_CLAUSE = re.compile(r" ?[;:—()\[\]] ?|, | [–-] ")  # of a sentence with its whitespace folded
_WORD = re.compile(r"\w[\w'’.-]*\w|\w")
_COMMON = frozenset(
    """a about after all also an and any are as at be because been before being but by can could did do does for
    from had has have he her his how if in into is it its just may more most no not of on one only or other our
    out over she so some such than that the their them then there these they this to two up was we were what
    when where which who will with would you your""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Spans:
    """A deterministic generator of at most `limit` spans per document, the title first.

    >>> Spans()(Document(id="a", title="Boots", text="Waterproof. They survive a river."))[0]
    'Boots'
    """

    limit: int = 15

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 1:
            raise InvalidInput(f"limit must be a whole number of at least 1, not {self.limit!r}")

    def __call__(self, document: Document) -> list[str]:
        """The spans, distinct and not empty; an empty document has none."""
        title = _shortened(document.title)
        lines = _FENCE.sub("\n", _windows(document.text)).split("\n")
        found = [heading(line) for line in lines]
        headings = [_shortened(_plain(one)) for one in found if one]
        text = "\n".join(line if one is None else "" for line, one in zip(lines, found, strict=True))
        body = _plain(_BULLET.sub("\n\0", text))
        sentences = distinct(_shortened(body[start:end]) for start, end in sentence_spans(body))
        weights = _weights(sentences)
        chosen = [title, *(_about(title, text) for text in distinct(headings)[: self.limit // 3])]
        chosen += [_about(title, text) for text in _spread(sentences, weights, self.limit)]
        if len(chosen) <= self.limit:
            clauses = distinct(part for sentence in sentences for part in _clauses(sentence))
            chosen += [_about(title, text) for text in _covering(clauses, weights, self.limit)]
        return distinct(_shortened(text) for text in chosen)[: self.limit]


def _windows(text: str) -> str:
    """The text or, if it is long, pieces spread evenly over it, cut between words."""
    if len(text) <= WINDOW * WINDOWS:
        return text
    step = (len(text) - WINDOW) / (WINDOWS - 1)
    pieces = [text[round(i * step) : round(i * step) + WINDOW] for i in range(WINDOWS)]
    return "\n\n".join([pieces[0], *(piece.partition(" ")[2] or piece for piece in pieces[1:])])


def _plain(text: str) -> str:
    return without_links(text).replace("**", "").replace("`", "")


def _shortened(text: str) -> str:
    """Whitespace folded, at most WORDS words and CHARACTERS characters."""
    words = text.replace("\0", " ").split()[:WORDS]
    joined = " ".join(words)
    if len(joined) <= CHARACTERS:
        return joined
    cut = joined.rfind(" ", 0, CHARACTERS)
    return joined[: cut if cut > CHARACTERS // 2 else CHARACTERS]


def _clauses(sentence: str) -> Iterator[str]:
    """The parts of a sentence, if it has several, that have at least four words."""
    parts = _CLAUSE.split(sentence)
    if len(parts) > 1:
        yield from (part for part in parts if part.count(" ") >= 3)


def _terms(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _weights(sentences: Iterable[str]) -> dict[str, float]:
    """How much a term says: more if the document repeats it, with quickly diminishing returns."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(_terms(sentence))
    return {term: 1.0 + min(count, 4) / 4 for term, count in counts.items()}


def _spread(texts: list[str], weights: dict[str, float], limit: int) -> list[str]:
    """The texts that say most; if there are many, one from each of `limit` stretches."""
    if len(texts) <= 4 * limit:
        return _covering(texts, weights, limit)
    edges = [place * len(texts) // limit for place in range(limit + 1)]
    return [best for i in range(limit) for best in _covering(texts[edges[i] : edges[i + 1]], weights, 1)]


def _covering(texts: list[str], weights: dict[str, float], limit: int) -> list[str]:
    """At most `limit` texts that together say most, chosen greedily by the terms not said yet."""
    terms = [_terms(text) for text in texts]
    unsaid = dict(weights)
    left = [place for place in range(len(texts)) if terms[place]]
    chosen: list[int] = []
    while left and len(chosen) < limit:
        best = max(left, key=lambda place: (sum(unsaid.get(term, 0.0) for term in terms[place]), -place))
        left.remove(best)
        chosen.append(best)
        for term in terms[best]:
            unsaid[term] = unsaid.get(term, 0.0) / 4
    return [texts[place] for place in chosen]


def _about(title: str, text: str) -> str:
    """The text with the title before it, unless the title is long or the text already contains it."""
    if (
        not title
        or not text
        or len(title.split()) > SUBJECT
        or _terms(title) <= _terms(text)
        or fold(title) in fold(text)
    ):
        return text
    return f"{title}: {text}"
