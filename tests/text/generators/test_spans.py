"""Spans: queries without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidInput
from incdsi.text.generators import Spans, generate_all
from incdsi.text.generators.spans import CHARACTERS, WORDS
from incdsi.text.queries import distinct

GUIDE = """# Boots guide

Dr. Smith tested boots in the U.S. Alps. They kept water out for 12 hours, and the soles held on ice.

## Care and cleaning

- Wash them with [cold water](https://example.org/water).
- Never dry boots at a fire.

```python
print("not a span")
```
"""


def spans(text: str, title: str = "", limit: int = 15) -> list[str]:
    return Spans(limit)(Document(id="d", text=text, title=title))


def test_title_headings_and_sentences_with_their_subject() -> None:
    found = spans(GUIDE, "Boots guide")
    assert found[0] == "Boots guide"
    assert "Boots guide: Care and cleaning" in found
    assert "Boots guide: Dr. Smith tested boots in the U.S. Alps." in found
    assert "Boots guide: Wash them with cold water." in found
    assert not any("not a span" in text or "example.org" in text for text in found)


def test_a_sentence_that_names_its_subject_gets_no_prefix() -> None:
    found = spans("The Rocky Fire crossed the highway. Nobody expected that.", "Rocky Fire")
    assert "The Rocky Fire crossed the highway." in found
    assert "Rocky Fire: Nobody expected that." in found


def test_a_long_title_is_a_span_but_no_prefix() -> None:
    title = "Rocky Fire in California defies expectations and defenses"
    assert spans("Nobody expected that.", title) == [title, "Nobody expected that."]


def test_a_short_text_is_filled_up_with_clauses() -> None:
    found = spans("They kept the cold water out, and the soles held well on ice.")
    assert found == [
        "They kept the cold water out, and the soles held well on ice.",
        "and the soles held well on ice.",
        "They kept the cold water out",
    ]


def test_the_sentences_that_say_most_come_first() -> None:
    filler = "It is so. " * 3
    found = spans(filler + "Glaciers carve deep valleys through granite mountains. " + filler, limit=1)
    assert found == ["Glaciers carve deep valleys through granite mountains."]


def test_a_document_without_words_has_no_spans() -> None:
    assert spans("") == spans(" \n\t ") == spans("...") == []
    assert spans("", "🥾 emoji ✅") == ["🥾 emoji ✅"]


def test_a_megabyte_is_read_from_beginning_to_end() -> None:
    sentences = [f"Place{i} holds the stone number {i} of the long wall." for i in range(20_000)]
    found = spans(" ".join(sentences)[:1_000_000])
    places = [int(text.split()[0].removeprefix("Place")) for text in found if text.startswith("Place")]
    assert len(found) == 15
    assert max(places) - min(places) > 10_000


def test_scripts_without_spaces_are_cut_into_sentences() -> None:
    assert spans("日本語の文章です。二つ目の文です。") == ["日本語の文章です。", "二つ目の文です。"]


TEXT = st.one_of(
    st.text(max_size=400), st.lists(st.sampled_from(["Word. ", "# H\n", ", ", "- b\n", "x" * 90, "```\n"])).map("".join)
)


@given(text=TEXT, title=st.text(max_size=20), limit=st.integers(1, 20))
def test_spans_are_few_short_folded_distinct_and_always_the_same(text: str, title: str, limit: int) -> None:
    found = spans(text, title, limit)
    assert len(found) <= limit
    assert found == distinct(found) == spans(text, title, limit)
    assert all(len(span.split()) <= WORDS and len(span) <= CHARACTERS for span in found)


def test_generate_all_takes_any_callable_and_reports_progress() -> None:
    seen: list[tuple[int, int]] = []
    documents = [Document(id=name, text=f"about {name}") for name in "ab"]
    found = generate_all(documents, lambda d: [f" what is  {d.id}", "", f"What is {d.id}"], lambda *at: seen.append(at))
    assert found == {"a": ["what is a"], "b": ["what is b"]}
    assert seen == [(1, 2), (2, 2)]


def test_generate_all_refuses_an_id_twice_and_what_is_no_list_of_strings() -> None:
    document = Document(id="a", text="x")
    with pytest.raises(DuplicateDocument, match="id 'a' occurs twice"):
        generate_all([document, document], Spans())
    for wrong in ("a string", [1]):
        with pytest.raises(InvalidInput, match="document 'a': the generator must return a list of strings"):
            generate_all([document], lambda _, wrong=wrong: wrong)  # type: ignore[misc]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="limit must be a whole number of at least 1, not 0"):
        Spans(0)
