"""Documents and queries are checked when they are made."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, fields, replace

import pytest

from incdsi import Addition, Document, Hit, Query
from incdsi.errors import InvalidDocument


def test_content_is_title_and_text():
    assert Document(id="1", title="Boots", text="Dry feet.").content == "Boots\nDry feet."
    assert Document(id="1", text=" Dry feet. ").content == "Dry feet."
    assert Document(id="1", title="🥾 Boots", text="").content == "🥾 Boots"


def test_metadata_cannot_be_changed_from_outside():
    given = {"lang": "en"}
    document = Document(id="1", text="x", metadata=given)
    given["lang"] = "fr"
    assert document.metadata["lang"] == "en"
    with pytest.raises(TypeError):
        document.metadata["lang"] = "de"  # type: ignore[index]


DOCUMENT = Document(id="1", text="Dry feet.", title="Boots", metadata={"lang": "en", "year": 2001, "new": None})
NOUNS = [
    DOCUMENT,
    Query(text="boots", document_id="1"),
    Hit(document_id="1", score=0.5, rank=1, document=DOCUMENT, learned=0.5),
    Addition(document_id="1", status="solved", margin=0.1, conflicts=("2",), seconds={"solve": 0.25}),
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
@pytest.mark.parametrize("twin", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy, replace])
def test_the_nouns_pickle_copy_and_hash(noun, twin):
    other = twin(noun)
    assert type(other) is type(noun)
    assert other == noun
    assert hash(other) == hash(noun)
    assert len({noun, other}) == 1
    assert repr(other) == repr(noun)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_the_nouns_become_plain_values(noun):
    plain = json.loads(json.dumps(asdict(noun)))
    assert plain.keys() == {field.name for field in fields(noun)}
    assert asdict(noun) == {**plain, **({"conflicts": ("2",)} if "conflicts" in plain else {})}


def test_hits_become_a_table():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(NOUNS[2:3] * 2)
    assert table["document"][1]["metadata"] == {"lang": "en", "year": 2001, "new": None}
    assert table["score"].tolist() == [0.5, 0.5]


def test_documents_that_differ_in_metadata_alone_are_two():
    other = replace(DOCUMENT, metadata={**DOCUMENT.metadata, "lang": "de"})
    assert len({DOCUMENT, other}) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(lang="de"),
        lambda one: one.pop("lang"),
        lambda one: one.popitem(),
        lambda one: one.clear(),
        lambda one: one.setdefault("x", 1),
        lambda one: one.__delitem__("lang"),
        lambda one: one.__ior__({"lang": "de"}),
    ],
)
def test_metadata_refuses_every_change(change):
    with pytest.raises(TypeError, match="cannot be changed"):
        change(DOCUMENT.metadata)
    assert DOCUMENT.metadata["lang"] == "en"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": "", "text": "x"}, "expected a document id of at least one character"),
        ({"id": 7, "text": "x"}, "expected a document id"),
        ({"id": "a", "text": None}, "expected text to be a string, found NoneType"),
        ({"id": "a", "text": "x", "title": 3}, "expected title to be a string, found int"),
        ({"id": "a", "text": "x", "metadata": {"tags": ["b"]}}, "expected metadata 'tags' to be a string, number"),
        ({"id": "a", "text": "x", "metadata": {1: "b"}}, "metadata names must be strings"),
        (
            {"id": "a", "text": "x", "metadata": {"n": float("nan")}},
            "metadata 'n': expected a finite number, found nan",
        ),
        ({"id": "a", "text": "x", "metadata": {"n": 2**63}}, "metadata 'n': expected an integer of at most 64 bits"),
        ({"id": "a", "text": "x", "metadata": [1]}, "expected metadata to be a mapping"),
    ],
)
def test_a_bad_document_is_refused_in_one_sentence(fields, sentence):
    with pytest.raises(InvalidDocument, match=sentence):
        Document(**fields)


def test_an_empty_query_is_refused():
    with pytest.raises(InvalidDocument, match="expected a text of at least one character"):
        Query(text="  ", document_id="a")
