"""Where the words of a query are in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Mark = tuple[int, int]
# A word as it stands in a text: with its accents and vowel signs, before anything is folded.
_WORD = re.compile(
    r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0971-\u109f\u1780-\u17ff])+"
)


def marks(text: str, wanted: frozenset[str], terms: Callable[[str], list[str]]) -> list[Mark]:
    """Begin and end of the words of `text` that have a wanted term; of a run without spaces, the parts that are one.

    >>> from incdsi.lexical import tokenize
    >>> marks("They planned two plans.", frozenset({"plan"}), tokenize)
    [(5, 12), (17, 22)]
    >>> marks("防水登山靴", frozenset({"登", "山", "登山"}), tokenize)
    [(2, 4)]
    """
    known: dict[str, list[Mark]] = {}
    found: list[Mark] = []
    for match in _WORD.finditer(text):
        word, start = match[0], match.start()
        if word not in known:
            known[word] = _within(word, wanted, terms)
        found += ((start + first, start + last) for first, last in known[word])
    return found


def _within(word: str, wanted: frozenset[str], terms: Callable[[str], list[str]]) -> list[Mark]:
    said = terms(word)
    common = wanted.intersection(said)
    if len(said) == 1 or not common:
        return [(0, len(word))] if common else []
    whole = {term for term in common if len(term) > 1} or common  # a character alone counts where no pair does
    lowered, lengths = word.lower(), sorted({len(term) for term in whole})
    spans = ((start, start + length) for start in range(len(lowered)) for length in lengths)
    return _joined(span for span in spans if lowered[slice(*span)] in whole) or [(0, len(word))]


def _joined(places: Iterable[Mark]) -> list[Mark]:
    """Those that overlap or touch as one."""
    found: list[Mark] = []
    for first, last in places:
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
