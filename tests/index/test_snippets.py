"""A snippet is short, on one line, around what was asked, with its words marked."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import Snippet
from incdsi.index.snippets import LENGTH, snippet_of
from incdsi.lexical import LexicalIndex, tokenize
from incdsi.lexical import marks as marking
from incdsi.lexical.marks import Forms, Marker


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


@given(st.text(st.sampled_from("aAb9 ._ßé\u0301"), max_size=60), st.sampled_from(["a", "ab", "b9 a", "é ß"]))
def test_a_word_is_marked_wherever_it_stands_alone_and_never_inside_another(text: str, query: str) -> None:
    wanted, letters = frozenset(tokenize(query)), "".join(c if c.isalnum() or c == "\u0301" else " " for c in text)
    words = [(place, letters[place:].split(" ")[0]) for place in range(len(text)) if (" " + letters)[place] == " "]
    marked = [(place, place + len(word)) for place, word in words if word and wanted.intersection(tokenize(word))]
    assert Marker(wanted, Forms(tokenize))(text) == marked


def test_words_that_many_documents_have_are_marked_only_where_there_are_no_others():
    index = LexicalIndex()
    index.add_many(range(60), ["the boots"] * 50 + ["the river"] * 10)
    assert index.marker("the river")("the river in the boots") == [(4, 9)]
    assert index.marker("the boots")("the boots") == [(0, 3), (4, 9)]


def test_a_snippet_is_not_made_before_somebody_looks_and_is_then_as_any_other():
    made: list[Snippet] = []

    def make() -> Snippet:
        made.append(Snippet(text="dry boots", marks=((4, 9),)))
        return made[-1]

    later = Snippet.later(make)
    assert not made
    assert later.marked() == "dry **boots**"
    assert later == made[0]
    assert len(made) == 1


@pytest.mark.parametrize("look", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), replace])
def test_copies_of_a_snippet_that_nobody_looked_at_are_whole(look) -> None:
    plain = Snippet(text="dry boots", marks=((4, 9),))
    later = Snippet.later(lambda: plain)
    assert look(later) == plain
    assert hash(look(Snippet.later(lambda: plain))) == hash(plain)
    assert asdict(Snippet.later(lambda: plain)) == asdict(plain)
    assert repr(Snippet.later(lambda: plain)) == repr(plain)


def test_a_snippet_has_no_other_attributes():
    with pytest.raises(AttributeError, match="no attribute 'title'"):
        getattr(Snippet(text=""), "title")  # noqa: B009


@given(
    st.lists(st.text(st.sampled_from("abs 漢é登山"), max_size=150), max_size=12),
    st.sampled_from(["a", "登山 as", "abs"]),
)
def test_words_that_were_seen_before_are_marked_as_new_ones_are(texts: list[str], query: str) -> None:
    wanted, remembered = frozenset(tokenize(query)), Forms(tokenize)
    for text in texts:
        assert Marker(wanted, remembered)(text) == Marker(wanted, Forms(tokenize))(text)


def test_words_are_forgotten_before_they_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marking, "REMEMBERED", 3)
    forms = Forms(tokenize)
    for _ in range(3):
        assert Marker(frozenset({"plan"}), forms)("plans of a planned plan") == [(0, 5), (11, 18), (19, 23)]
        assert Marker(frozenset({"four"}), forms)("one and four more") == [(8, 12)]
