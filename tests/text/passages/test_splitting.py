"""Pieces fit, end with a sentence, stay under one heading, and lose nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.errors import InvalidInput
from incdsi.text.passages.splitting import Sections, located

TEXTS = st.lists(
    st.sampled_from(
        ["One boot. ", "Two boots are dry! ", "\n\n", "# Care\n", "word ", "長い文。", "\n", "Title\n=====\n", "x" * 40]
    ),
    max_size=60,
).map("".join)


def words(texts: Sequence[str]) -> list[int]:
    return [max(len(text.split()), len(text) // 12) for text in texts]


def pieces(text: str, tokens: int = 16) -> list[str]:
    return [text[one.start : one.end] for one in Sections(tokens).pieces(text, words)]


@given(TEXTS)
def test_pieces_are_in_order_fit_and_hold_every_word_that_is_no_heading(text):
    found = Sections(16).pieces(text, words)
    ends = [0, *(one.end for one in found)]
    assert all(one.start >= end for one, end in zip(found, ends, strict=False))
    assert all(text[one.start : one.end] == text[one.start : one.end].strip() != "" for one in found)
    assert max(words([text[one.start : one.end] for one in found]), default=0) <= 16 + 2
    between = [text[end : one.start] for one, end in zip(found, ends, strict=False)] + [text[ends[-1] :]]
    assert set("".join(between).split()) <= {"#", "Care", "Title", "====="}


def test_a_piece_ends_with_a_sentence():
    assert pieces("A boot is dry in a river. " * 5) == ["A boot is dry in a river. A boot is dry in a river."] * 2 + [
        "A boot is dry in a river."
    ]


def test_a_sentence_that_is_too_long_is_cut_between_words():
    assert [len(one.split()) for one in pieces("word " * 40)] == pytest.approx([13, 13, 13], abs=1)
    assert "".join(pieces("字" * 400)) == "字" * 400


def test_a_change_moves_no_edge_far_from_it():
    paragraphs = [
        f"Paragraph {number} tells of thing{number} and of its many colours, at some length." for number in range(40)
    ]
    before = set(pieces("\n\n".join(paragraphs)))
    paragraphs[20:20] = ["A new one comes between, and it is about something else."]
    assert len(set(pieces("\n\n".join(paragraphs))) - before) <= 2


@pytest.mark.parametrize("tokens", [0, 15, 20.0, True])
def test_a_budget_is_a_whole_number_of_some_tokens(tokens):
    with pytest.raises(InvalidInput, match="at least 16 tokens"):
        Sections(tokens)


def test_pieces_of_ones_own_may_be_strings_or_places_and_may_overlap():
    text = "# Boots\none two three"
    expected = [(8, 15, ("Boots",)), (12, 21, ("Boots",))]
    assert located(text, ["one two", "two three"]) == expected
    assert located(text, [(8, 16), (12, 21)]) == expected
    assert located(text, ["  ", (0, 0)]) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["Three"], "which is not in the text"),
        ([(3, 99)], "the text has 21 characters"),
        ([7], "strings or .start, end"),
    ],
)
def test_pieces_of_ones_own_that_are_not_in_the_text_are_refused(given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        located("# Boots\none two three", given)
