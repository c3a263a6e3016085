"""Where the words of a query are in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from incdsi.lexical.words import REMEMBERED

Mark = tuple[int, int]
LONGEST = 100  # characters of one; nothing longer is a word
# A word as it stands in a text: with its accents and vowel signs, before anything is folded.
_WORD = re.compile(
    r"(?:[^\W_]++|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0971-\u109f\u1780-\u17ff]++)+"
)
_NOTHING: frozenset[str] = frozenset()


class Forms:
    """Which words have which terms, of all words seen so far: most were seen before. Any number of threads may ask."""

    def __init__(self, terms: Callable[[str], list[str]]) -> None:
        self._terms = terms
        self._known: tuple[dict[str, list[str]], dict[str, set[str]]] = {}, {}  # terms by word, words by term

    def among(self, words: set[str], wanted: frozenset[str]) -> dict[str, list[str]]:
        """Those of the words that have a wanted term, with all their terms."""
        if len(self._known[0]) > REMEMBERED:
            self._known = {}, {}
        seen, having = self._known
        found: dict[str, list[str]] = {}
        for word in words.difference(seen):
            terms = self._terms(word)
            if len(word) <= LONGEST:
                for term in terms:
                    having.setdefault(term, set()).add(word)
                seen[word] = terms
            elif not wanted.isdisjoint(terms):
                found[word] = terms
        for term in wanted:  # `intersection` would go through all terms there are
            found.update((word, seen[word]) for word in having.get(term, _NOTHING) & words)
        return found


class Marker:
    """Where words that have a wanted term are in texts."""

    def __init__(self, wanted: frozenset[str], forms: Forms) -> None:
        self._wanted = wanted
        self._forms = forms

    def __call__(self, text: str) -> list[Mark]:
        """Begin and end of each such word; of a run without spaces, the parts that are one.

        >>> from incdsi.lexical import tokenize
        >>> Marker(frozenset({"plan"}), Forms(tokenize))("They planned two plans.")
        [(5, 12), (17, 22)]
        >>> Marker(frozenset({"登", "山", "登山"}), Forms(tokenize))("防水登山靴")
        [(2, 4)]
        """
        found = self._forms.among(set(_WORD.findall(text)), self._wanted)
        if not found:
            return []
        marked = {word: _within(word, terms, self._wanted) for word, terms in found.items()}
        places = sorted((place, word) for word in marked for place in _places(word, text))
        return [(place + first, place + last) for place, word in places for first, last in marked[word]]


def _places(word: str, text: str) -> Iterator[int]:
    """Where a word begins in a text, as a word of its own."""
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        rest = _WORD.match(text, end)
        if rest is None and (place == 0 or _WORD.match(text, place - 1) is None):
            yield place
        place = text.find(word, end if rest is None else rest.end())


def _within(word: str, said: Sequence[str], wanted: frozenset[str]) -> list[Mark]:
    """Where in a word that has these terms those that are wanted are, some of them."""
    if len(said) == 1:
        return [(0, len(word))]
    common = wanted.intersection(said)
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
