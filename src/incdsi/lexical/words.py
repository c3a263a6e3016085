"""Text -> words in any script: case, accents and compatibility forms, and where a word ends."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

REMEMBERED = 1 << 14  # words: nine in ten of a text were among so many before it
# Accents of Latin, Greek and Cyrillic, Hebrew points, Arabic vowel signs and stretching. The voicing marks
# of kana and the vowel signs of Indic scripts distinguish words and stay.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0640\u064b-\u065f\u0670]")
# Scripts written without spaces, and Hangul, whose particles stick to words: Thai to Myanmar, Khmer, kana,
# Han, Hangul.
_UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Possible marks, and the character that Unicode's stream-safe format puts between long runs of them.
_MARKS = re.compile(r"[^\x00-\u02ff\w\s]{30}")
_JOINER = "\u034f"
_RUN = re.compile(f"([{_UNSPACED}]+)")
# `re` does not count vowel signs of Indic and South-East Asian scripts as letters, so their blocks are listed.
_WORD = re.compile(r"[\w\u0900-\u0963\u0971-\u109f\u1780-\u17ff]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def split(lowered: str, term: Callable[[str], str]) -> list[str]:
    """The terms of a text in lower case, in order; `term` makes one of a word. Unspaced scripts go by characters."""
    if lowered.isascii():
        return [term(word) for word in _ASCII_WORD.findall(lowered)]
    terms: list[str] = []
    for word in _WORD.findall(lowered):
        if word.isascii():
            terms.append(term(word))
            continue
        for place, part in enumerate(_RUN.split(word)):  # unspaced runs at odd places
            if place % 2:
                terms.extend(_characters_and_pairs(part))
            elif part:
                terms.append(term(part))
    return terms


def fold(text: str) -> str:
    """`text` without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", _normalize("NFKD", text).casefold()).replace("_", " ")
    return _normalize("NFC", plain)


def composed(text: str) -> str:
    """`text` without case and compatibility forms, with the accents that are part of a letter."""
    if text.isascii():
        return fold(text)
    plain = _normalize("NFC", _normalize("NFKD", text).casefold())
    return _ACCENTS.sub("", plain).replace("_", " ")


def turkish_case(text: str) -> str:
    """`text` with its I in lower case as Turkish has it: with a dot or without."""
    return _normalize("NFC", text).replace("I", "\u0131").replace("\u0130", "i")


@lru_cache(maxsize=REMEMBERED)
def term_key(term: str) -> int:
    """A 64-bit number for `term`, the same in every process.

    Among a million terms, two share a number with probability 3e-8; they would then count as one word.
    """
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _normalize(form: Literal["NFC", "NFKD"], text: str) -> str:
    """Like unicodedata.normalize, which is quadratic in a run of marks, but with runs cut to 30."""
    if text.isascii():
        return text
    joined = _MARKS.sub(r"\g<0>" + _JOINER, text)
    return unicodedata.normalize(form, joined).replace(_JOINER, "")


def _characters_and_pairs(run: str) -> list[str]:
    # Characters alone so that a one-character word is found inside a run, pairs for precision.
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
