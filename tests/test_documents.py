"""Documents and queries are checked when they are made."""

from __future__ import annotations

import pytest

from incdsi import Document, Query
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


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": "", "text": "x"}, "expected a document id of at least one character"),
        ({"id": 7, "text": "x"}, "expected a document id"),
        ({"id": "a", "text": None}, "expected text to be a string, found NoneType"),
        ({"id": "a", "text": "x", "title": 3}, "expected title to be a string, found int"),
        ({"id": "a", "text": "x", "metadata": {"tags": ["b"]}}, "expected metadata 'tags' to be a string, number"),
        ({"id": "a", "text": "x", "metadata": {1: "b"}}, "expected metadata names as strings"),
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
