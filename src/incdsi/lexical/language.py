"""The language of an index's words: what stems them."""

from __future__ import annotations

import threading
from functools import cache, lru_cache

import Stemmer

from incdsi.errors import InvalidInput
from incdsi.lexical.marks import LONGEST, Forms
from incdsi.lexical.words import REMEMBERED, composed, fold, split, turkish_case

NONE, DEFAULT = "none", "english"
# Snowball's, without second algorithms for a language that has one.
LANGUAGES = (NONE, *sorted({*Stemmer.algorithms()} - {"porter", "dutch_porter"}))


class Language:
    """Text -> terms: lower-cased, stemmed, unaccented words; any script. Any number of threads may use it.

    English words are stemmed without accents, which are foreign to it ("cafés" is "cafes"); other stemmers go by
    the accents of their language, so accents are taken off the stems.
    """

    def __init__(self, name: str) -> None:
        self.name = require_language(name)
        self.stemmer = stemmer_of(name)
        self._stemmers = _Stemmers(name) if name != NONE else None
        self._plain = name in (NONE, DEFAULT)
        self._term = lru_cache(maxsize=REMEMBERED)(self._stemmed)
        self.forms = Forms(self.terms)

    def terms(self, text: str) -> list[str]:
        """The terms of `text` in order; the same for a document and for a query."""
        return split(self._lowered(text), self._term)

    def _lowered(self, text: str) -> str:
        if self._plain:
            return fold(text)
        return composed(turkish_case(text) if self.name == "turkish" else text)

    def _stemmed(self, word: str) -> str:
        if self._stemmers is None or len(word) > LONGEST:  # German's and Serbian's take time quadratic in the length
            return fold(word)
        return fold(self._stemmers.own.stemWord(word) or word)


class _Stemmers(threading.local):
    """Snowball's stemmers keep what they work on in themselves: each thread has its own."""

    def __init__(self, name: str) -> None:
        self.own = Stemmer.Stemmer(name, 0)  # `Language` remembers stems


@cache
def find_language(name: str) -> Language:
    """The one of that name; InvalidInput when there is none."""
    return Language(name)


def require_language(name: str) -> str:
    """The name of a language there is; InvalidInput with all of them for another."""
    if name not in LANGUAGES:
        raise InvalidInput(f"no stemmer for the language {name!r}; choose one of: {', '.join(LANGUAGES)}")
    return name


def stemmer_of(name: str) -> str:
    """What stems words of that language, and in which version; nothing for none."""
    return "" if name == NONE else f"PyStemmer {Stemmer.version()}"


def tokenize(text: str, language: str = DEFAULT) -> list[str]:
    """The terms of `text` in that language.

    >>> tokenize("Levi's Cafés: hiking stories")
    ['levi', 's', 'cafe', 'hike', 'stori']
    """
    return find_language(language).terms(text)
