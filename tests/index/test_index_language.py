"""An index keeps the language it was created with, and never mixes two stemmers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from index_samples import TOY, ids, path_of

from incdsi.documents import Document
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import InvalidInput
from incdsi.index import Index
from incdsi.lexical import language
from incdsi.store import Store

WALKS = [Document(id="one", text="eine lange Wanderung"), Document(id="many", text="viele Wanderungen")]


@pytest.fixture
def newer_stemmer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PyStemmer 99, which stems "wanderungen" to "w"."""
    plain = language.Stemmer.Stemmer

    class Newer:
        def __init__(self, name: str, size: int) -> None:
            self._old = plain(name, size)

        def stemWord(self, word: str) -> str:  # noqa: N802
            return "w" if word.startswith("wander") else self._old.stemWord(word)

    monkeypatch.setattr(language.Stemmer, "Stemmer", Newer)
    monkeypatch.setattr(language.Stemmer, "version", lambda: "99.0")
    language.find_language.cache_clear()
    yield
    monkeypatch.undo()
    language.find_language.cache_clear()


def as_of_format_2(path: Path) -> None:
    """The settings as they were before an index had a language."""
    connection = apsw.Connection(str(path / "store.db"))
    stored = json.loads(connection.execute("SELECT value FROM settings WHERE key = ?", (KEY,)).get)
    older = {name: value for name, value in stored.items() if name not in ("language", "stemmer")}
    connection.execute("UPDATE settings SET value = ? WHERE key = ?", (json.dumps(older), KEY))
    connection.execute("DROP TABLE passages")
    connection.execute("DELETE FROM migrations WHERE version > 2")
    connection.pragma("user_version", 2)
    connection.close()


def stored_settings(path: Path) -> Settings:
    with Store.open(path, writer=False) as store:
        return Settings.from_json(store.setting(KEY))


def test_english_unless_said_otherwise(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add(Document(id="boots", text="for a long hike"))
        assert index.info().language == "english"
        assert ids(index, "hiking", mode="lexical") == ["boots"]


def test_words_are_found_by_the_stems_of_its_language_after_every_opening(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY, language="german") as index:
        index.add_many(WALKS)
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one"]
    with Index.open(tmp_path / "shop", TOY) as index:
        assert index.info().language == "german"
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one"]
        index.compact()
    with Index.open(tmp_path / "shop", TOY, language="german") as index:
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one"]
    with Index.build(WALKS, path=tmp_path / "none", encoder=TOY, language="none") as index:
        assert ids(index, "wanderung", mode="lexical") == ["one"]


def test_an_unknown_language_is_refused_with_those_there_are_and_nothing_is_made(tmp_path: Path) -> None:
    for make in (Index.create, lambda *a, **k: Index.open(*a, create=True, **k)):
        with pytest.raises(InvalidInput, match="no stemmer for the language 'klingon'; choose one of: none, arabic"):
            make(tmp_path / "shop", TOY, language="klingon")
        assert not (tmp_path / "shop").exists()


def test_another_language_than_its_own_is_refused(tmp_path: Path) -> None:
    Index.open(tmp_path / "shop", TOY, create=True, language="german").close()
    with pytest.raises(InvalidInput, match="is an index in 'german', not 'french'; its language is chosen when"):
        Index.open(tmp_path / "shop", TOY, create=True, language="french")
    with pytest.raises(InvalidInput, match="a server has its own"):
        Index.open("http://127.0.0.1:9", language="german")


def test_an_index_from_before_languages_is_english_read_or_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add(Document(id="boots", text="for a long hike"))
    as_of_format_2(tmp_path / "shop")
    with Index.open(tmp_path / "shop", TOY) as index:
        assert ids(index, "hiking", mode="lexical") == ["boots"]
        assert index.info().language == "english"
        assert "words were stemmed by an older incdsi and are now by PyStemmer" in caplog.text
        index.add(Document(id="map", text="hiked"))
        assert sorted(ids(index, "hiking", mode="lexical")) == ["boots", "map"]
    caplog.clear()
    with Index.open(tmp_path / "shop", TOY) as index:
        assert sorted(ids(index, "hiking", mode="lexical")) == ["boots", "map"]
    assert not caplog.records
    assert stored_settings(tmp_path / "shop").language == "english"


@pytest.mark.parametrize("based", [False, True])
def test_another_stemmer_stems_everything_anew_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, based: bool, request: pytest.FixtureRequest
) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(WALKS)
        assert ids(index, "wanderung", mode="lexical") == ["one"]
        if based:
            index.compact()
    request.getfixturevalue("newer_stemmer")
    caplog.set_level(logging.WARNING)
    with Index.open(tmp_path / "shop", TOY) as index:
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one"]
        assert [record.message for record in caplog.records] == [
            f"{path_of(index)}: words were stemmed by {stored_settings(tmp_path / 'shop').stemmer} and are now by "
            "PyStemmer 99.0, so some may be found differently; the next change records it"
        ]
        index.add(Document(id="three", text="Wanderer"))
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one", "three"]
    caplog.clear()
    with Index.open(tmp_path / "shop", TOY) as index:
        assert index.engine.live.outdated_base is False  # what could not be used was replaced
        assert sorted(ids(index, "wanderung", mode="lexical")) == ["many", "one", "three"]
    assert not caplog.records
    assert stored_settings(tmp_path / "shop").stemmer == "PyStemmer 99.0"
