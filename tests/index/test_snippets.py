"""A snippet is short, on one line, around what was asked, with its words marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import Snippet
from incdsi.index.snippets import LENGTH, snippet_of
from incdsi.lexical import LexicalIndex


def shown(text: str, query: str) -> str:
    return snippet_of(text, LexicalIndex().marker(query)).marked("[", "]")


def test_a_short_text_is_whole_with_its_words_marked_as_they_are_compared():
    assert shown("They planned, and\n\tplanning was dry.", "plan") == "They [planned], and [planning] was dry."
    assert shown("Cafés of Zürich; zurich_cafe", "zürich café") == "[Cafés] of [Zürich]; [zurich]_[cafe]"
    assert shown("nothing of it", "zebra") == "nothing of it"
    assert shown("", "zebra") == ""


def test_in_scripts_without_spaces_the_parts_that_were_asked_are_marked():
    assert shown("防水登山靴和手機", "登山靴") == "防水[登山靴]和手機"
    assert shown("登る", "登山") == "[登]る"


def test_a_long_text_is_cut_around_the_most_different_words():
    text = "boots boots boots. " + "filler " * 300 + "The waterproof hiking boots. " + "filler " * 300
    found = shown(text, "waterproof boots")
    assert "The [waterproof] hiking [boots]." in found
    assert found.startswith("…")
    assert found.endswith("…")


def test_a_word_longer_than_a_snippet_is_marked_as_far_as_it_is_shown():
    found = snippet_of("靴" * 2000, LexicalIndex().marker("靴"))
    assert found.marks == ((0, LENGTH),)
    assert found.text == "靴" * LENGTH + "…"


@given(st.text(st.sampled_from("ab .\nß漢é"), max_size=900), st.sampled_from(["a", "b漢", "ab ßé", "."]))
def test_marks_rise_lie_inside_and_are_words_of_the_query(text: str, query: str) -> None:
    index = LexicalIndex()
    found = snippet_of(text, index.marker(query))
    assert len(found.text) <= LENGTH + 2
    assert "\n" not in found.text
    ends = [0, *(end for _, end in found.marks)]
    assert all(end <= start < last <= len(found.text) for end, (start, last) in zip(ends, found.marks, strict=False))
    assert Snippet.from_json(found.to_json()) == found


def test_words_that_many_documents_have_are_marked_only_where_there_are_no_others():
    index = LexicalIndex()
    index.add_many(range(60), ["the boots"] * 50 + ["the river"] * 10)
    assert index.marker("the river")("the river in the boots") == [(4, 9)]
    assert index.marker("the boots")("the boots") == [(0, 3), (4, 9)]
