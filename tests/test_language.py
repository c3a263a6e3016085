"""Words are stemmed in the language of the index, by Snowball."""

from __future__ import annotations

import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from incdsi.errors import InvalidInput, UnsupportedFormat
from incdsi.lexical import LANGUAGES, LexicalIndex, language, require_language, tokenize
from incdsi.lexical.language import Language, find_language

words = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Lm", "Mn", "Nd", "Zs", "Po", "Cs"]))


def test_there_is_none_and_every_language_of_snowball_once() -> None:
    assert LANGUAGES[0] == "none"
    assert {*LANGUAGES} == {"none", *Stemmer.algorithms()} - {"porter", "dutch_porter"}
    assert len(LANGUAGES) > 30


@pytest.mark.parametrize("name", ["klingon", "English", "en", "", "porter"])
def test_another_name_is_refused_with_the_languages_there_are(name: str) -> None:
    for refuse in (require_language, find_language, lambda name: LexicalIndex(language=name)):
        with pytest.raises(
            InvalidInput, match=f"no stemmer for the language '{name}'; choose one of: none, arabic, .*"
        ):
            refuse(name)


@pytest.mark.parametrize(
    ("name", "text", "terms"),
    [
        ("english", "hiking a hike", ["hike", "a", "hike"]),
        ("english", "is us gas ox at the", ["is", "us", "gas", "ox", "at", "the"]),
        ("english", "24 2016 3rd 1990s mp3s v2.0", ["24", "2016", "3rd", "1990s", "mp3s", "v2", "0"]),
        ("english", "Cafés, naïve fiancées", ["cafe", "naiv", "fiance"]),
        ("english", "книги", ["книги"]),
        ("none", "Hiking Cafés 2016", ["hiking", "cafes", "2016"]),
        ("german", "Häuser Haus HAEUSER Straße strasse", ["haus", "haus", "haus", "strass", "strass"]),
        ("french", "mangées mangée été chevaux", ["mang", "mang", "ete", "cheval"]),
        ("russian", "книги книга Ёлки", ["книг", "книг", "елк"]),
        ("russian", "кни\u0301ги", ["книг"]),  # a stress mark, which is no letter's own
        ("spanish", "canción canciones", ["cancion", "cancion"]),
        ("turkish", "IŞIK ışık İstanbul", ["ısık", "ısık", "istanbul"]),
        ("greek", "δρόμους ΔΡΟΜΟΣ δρόμος", ["δρομ", "δρομ", "δρομ"]),
        ("hindi", "किताबें किताब", ["किताब", "किताब"]),
        ("arabic", "الكِتَاب", ["كتاب"]),
        ("german", "USB端子x2 黒猫", ["usb", "端", "子", "端子", "x2", "黒", "猫", "黒猫"]),
        ("none", "黒猫", ["黒", "猫", "黒猫"]),
    ],
)
def test_text_becomes_terms_of_the_language(name: str, text: str, terms: list[str]) -> None:
    assert tokenize(text, name) == terms


@pytest.mark.parametrize("name", LANGUAGES)
@given(text=words)
def test_in_every_language_any_text_has_the_same_terms_however_its_accents_are_encoded(name: str, text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert tokenize(composed, name) == tokenize(decomposed, name)
    assert all(tokenize(text, name))


@pytest.mark.parametrize("name", LANGUAGES)
def test_no_term_has_an_accent(name: str) -> None:
    text = "été naïve über ångström façade ό ή Ţ ő"
    assert not [term for term in tokenize(text, name) if unicodedata.normalize("NFKD", term) != term]


@pytest.mark.parametrize("name", ["english", "german", "serbian"])
def test_what_is_too_long_to_be_a_word_is_taken_as_it_is(name: str) -> None:
    assert tokenize("ae" * 51, name) == ["ae" * 51]


def test_threads_stem_as_one_does() -> None:
    """Snowball's stemmers work on a buffer of their own, which two threads must not share."""
    stems = [f"{letter}{word}" for letter in "bcdfghklmnprst" for word in ("ik", "alk", "unn", "or")]
    text = " ".join(f"{stem}{ending}" for stem in stems for ending in ("ing", "ed", "ies", "ations", "fully"))
    shared, found = Language("english"), []
    threads = [threading.Thread(target=lambda: found.append(shared.terms(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Language("english").terms(text)] * 8
    assert shared._stemmers is not None
    owners = [shared._stemmers.own]
    other = threading.Thread(target=lambda: owners.append(shared._stemmers.own))
    other.start()
    other.join()
    assert owners[0] is not owners[1]


def test_an_index_finds_by_the_stems_of_its_language_alone() -> None:
    texts = ["eine lange Wanderung", "viele Wanderungen", "a hiking boot"]
    hits = {}
    for name in ("german", "english", "none"):
        index = LexicalIndex(language=name)
        index.add_many(range(3), texts)
        hits[name] = [np.flatnonzero(index.scores(query, 3)).tolist() for query in ("wanderung", "hike")]
    assert hits == {"german": [[0, 1], []], "english": [[0], [2]], "none": [[0], []]}


def test_arrays_of_another_language_or_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    index = LexicalIndex()
    index.add_many([0], ["hiking"])
    arrays = index.to_arrays()
    assert LexicalIndex.from_arrays(arrays, "english").scores("hike", 1)[0] > 0
    with pytest.raises(UnsupportedFormat, match="another stemmer made the terms"):
        LexicalIndex.from_arrays(arrays, "german")
    monkeypatch.setattr(language.Stemmer, "version", lambda: "99.0")
    find_language.cache_clear()
    try:
        with pytest.raises(UnsupportedFormat, match="another stemmer made the terms"):
            LexicalIndex.from_arrays(arrays, "english")
    finally:
        monkeypatch.undo()
        find_language.cache_clear()


def test_the_languages_are_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent / "docs" / "CLI.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in LANGUAGES)
