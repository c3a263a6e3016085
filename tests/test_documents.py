"""Documents and queries are checked when they are made."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import asdict, fields, replace
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi import Addition, Document, Hit, Query, Taught
from incdsi.documents import as_document, plain, queries_from_json, queries_to_json
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
    Addition(
        document_id="1", status="solved", explanation="it wins", margin=0.1, conflicts=("2",), seconds={"solve": 0.25}
    ),
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


def listed(value):
    """The same with lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {name: listed(one) for name, one in value.items()}
    return [listed(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_the_nouns_become_plain_values(noun):
    plain = json.loads(json.dumps(asdict(noun)))
    assert plain.keys() == {field.name for field in fields(noun)}
    assert listed(asdict(noun)) == plain


def test_documents_additions_and_queries_come_back_from_json():
    document = Document(id="1", text="Dry feet.", title="Boots", metadata={"tags": ["new"], "year": 2001})
    assert Document.from_json(json.loads(json.dumps(document.to_json()))) == document
    for margin in (0.1, math.inf):
        addition = replace(NOUNS[3], margin=margin)
        assert Addition.from_json(json.loads(json.dumps(addition.to_json(), allow_nan=False))) == addition
    queries = ["dry feet", Taught("a river")]
    back = queries_from_json(json.loads(json.dumps(queries_to_json(queries))))
    assert [(text, type(text)) for text in back] == [(text, type(text)) for text in queries]


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
        (
            {"id": "a", "text": "x", "metadata": {"tags": {"b": 1}}},
            "expected metadata 'tags' to be a string, number, boolean, date or null, or a list of these, found dict;",
        ),
        ({"id": "a", "text": "x", "metadata": {"tags": [["b"]]}}, "found list in a list; flatten it first"),
        ({"id": "a", "text": "x", "metadata": {"n": [1, float("inf")]}}, "metadata 'n': expected a finite number"),
        ({"id": "a", "text": "x", "metadata": {"n": np.timedelta64(1, "s")}}, "found timedelta"),
        (
            {"id": "a", "text": "x", "metadata": {"n": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}},
            "has no date in UTC; give it as text",
        ),
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


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["a", "b"], ("a", "b")),
        (("a", 1, True, None), ("a", 1, True, None)),
        ([], ()),
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 12, 30), "2024-05-01T12:30:00"),
        (datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2))), "2024-05-01T10:30:00+00:00"),
        ([date(2024, 5, 1), np.int64(3)], ("2024-05-01", 3)),
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2024-05-01"), "2024-05-01"),
        (np.datetime64("2024-05-01T12:30:00.000001000", "ns"), "2024-05-01T12:30:00.000001"),
        (np.datetime64("NaT"), None),
        (np.array([1, 2]), (1, 2)),
    ],
)
def test_metadata_is_kept_plain(given, kept):
    document = Document(id="a", text="x", metadata={"k": given})
    assert document.metadata == {"k": kept}
    assert type(document.metadata["k"]) is type(kept)
    assert Document(id="a", text="x", metadata=json.loads(json.dumps(document.metadata))) == document
    hash(document)


def test_pandas_values_are_kept_plain():
    pandas = pytest.importorskip("pandas")
    kept = Document(
        id="a", text="x", metadata={"at": pandas.Timestamp("2024-05-01T12:30"), "none": pandas.NaT}
    ).metadata
    assert kept == {"at": "2024-05-01T12:30:00", "none": None}


OFFSETS = st.sampled_from([UTC, timezone(timedelta(hours=-8)), timezone(timedelta(hours=5, minutes=45))])
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS)


@given(one=MOMENTS, other=MOMENTS | st.none(), microseconds=st.integers(-2, 2))
def test_moments_sort_as_the_text_they_are_kept_as(one, other, microseconds):
    other = other or one.astimezone(UTC) + timedelta(microseconds=microseconds)
    assert (plain(one) < plain(other), plain(one) == plain(other)) == (one < other, one == other)


def test_a_taught_query_shows_that_it_was_taught():
    assert repr([Taught("a"), "b"]) == "[Taught('a'), 'b']"
    assert f"{Taught('a')}" == "a"
    assert pickle.loads(pickle.dumps(Taught("a"))) == Taught("a")


def test_a_repr_is_one_short_line_whatever_the_document():
    document = Document(id="boots", title="Boots", text="word\n" * 20_000, metadata={"tags": ["red"]})
    shown = repr(document)
    assert shown.startswith("Document(id='boots', text='word\\nword")
    assert shown.endswith("'… (100,000 characters), title='Boots', metadata={'tags': ('red',)})")
    assert len(shown) < 200
    assert len(repr(replace(document, metadata={str(number): "x" * 1000 for number in range(100)}))) < 400
    assert repr(Document(id="a", text="x")) == "Document(id='a', text='x')"
    hit = Hit(document_id="boots", score=1 / 3, rank=1, document=document)
    assert repr(hit) == "Hit(rank=1, score=0.333, document_id='boots', 'Boots')"
    addition = replace(NOUNS[3], document_id="boots", margin=1.25, conflicts=("b",), seconds={"solve": 0.0125})
    assert repr(addition) == "Addition('boots', solved, margin=1.250, conflicts=('b',), 12.5 ms)"
    assert "conflicts" not in repr(replace(addition, conflicts=()))


def test_a_dict_is_a_document_and_what_is_beside_its_fields_is_metadata():
    assert as_document(DOCUMENT) is DOCUMENT
    given = {"id": "1", "title": "Boots", "text": "Dry feet.", "metadata": {"lang": "en", "year": 2001}, "new": None}
    assert as_document(given) == DOCUMENT
    assert as_document({"id": "1", "title": "Boots", "metadata": None}) == Document(id="1", title="Boots", text="")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"text": "x"}, "the document has no 'id', only 'text'"),
        ({}, "the document has no 'id', only nothing"),
        ("text", "expected a Document or a dict, found str"),
        ({"id": "a", "text": 3}, "expected text to be a string, found int"),
        ({"id": "a", "queries": ["x"]}, "document 'a': pass its queries as an argument of their own"),
        ({"id": "a", "k": 1, "metadata": {"k": 2}}, "'k' is given both inside metadata and beside it; keep one"),
        ({"id": "a", "metadata": [1]}, "expected metadata to be a mapping, found list"),
        ({"id": "a", "k": {}}, "expected metadata 'k' to be a string"),
    ],
)
def test_a_dict_that_is_no_document_is_refused_in_one_sentence(given, sentence):
    with pytest.raises(InvalidDocument, match=sentence):
        as_document(given)
