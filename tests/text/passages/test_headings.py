"""Markdown's, HTML's and underlined headings, and what lies under them."""

from __future__ import annotations

import pytest

from incdsi.text.passages.headings import sections


def told(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (text[one.start : one.end].strip(), one.headings) for one in sections(text) if text[one.start : one.end].strip()
    ]


@pytest.mark.parametrize(
    "text",
    [
        "before\n# Boots\nof leather\n## Care\nwith wax\n# Tents\nof canvas",
        "before\n\nBoots\n=====\nof leather\n\nCare\n----\nwith wax\n\nTents\n=====\nof canvas",
        "before\n\nBoots\n*****\n\nof leather\n\nCare\n~~~~~\nwith wax\n\nTents\n*****\nof canvas\n",
        "before <h1>Boots</h1> of leather <h2 class='x'><a href='#c'>Care</a></h2>\nwith wax<H1>Tents</H1>of canvas",
    ],
    ids=["Markdown", "Markdown underlined", "reStructuredText", "HTML"],
)
def test_each_section_is_under_its_heading_and_those_above_it(text):
    assert told(text) == [
        ("before", ()),
        ("of leather", ("Boots",)),
        ("with wax", ("Boots", "Care")),
        ("of canvas", ("Tents",)),
    ]


def test_what_only_looks_like_a_heading_is_text():
    for text in (
        "```\n# a comment\n```\nrest",
        "~~~\nTitle\n=====\n~~~",
        "a sentence that goes on and on.\n---\nrest",
        "- an item\n---\nrest",
        "a line far longer than its rule\n---\nrest",
        "<h1>never closed",
        "#hashtag",
        "---\n---\n",
    ):
        assert told(text) == [(text.strip(), ())]


def test_links_and_emphasis_leave_a_headings_words():
    assert told("# **Dry** [feet](a.md) `now`\nx") == [("x", ("Dry feet now",))]


def test_a_level_that_is_left_out_is_not_missed():
    assert told("### deep\na\n# top\nb\n### again\nc") == [("a", ("deep",)), ("b", ("top",)), ("c", ("top", "again"))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# One\n```\ncode\n# Two\ntext", ["One", "Two"]),
        ("# One\n```\ncode\n# Two\n```python\n# a comment\n```\n# Three\n", ["One", "Two", "Three"]),
        ("# One\n~~~\ncode\n# Two\n```\n# a comment\n```\n# Three\n", ["One", "Two", "Three"]),
        ("# One\n```\ncode\n\nTwo\n===\ntext", ["One", "Two"]),
        ("# One\n\nast\n~~~\n\ntext\n# Two\n", ["One", "ast", "Two"]),
    ],
    ids=["to the end", "up to the next that opens", "around one of another kind", "underlined", "underlines itself"],
)
def test_a_fence_that_is_never_closed_hides_no_heading(text, found):
    assert [one.headings[-1] for one in sections(text)[1:]] == found


@pytest.mark.parametrize(
    "code",
    [
        "````\n```\n# a comment\n```\n# another\n````",
        "```\n# a comment\n   `````  ",
        "~~~ python\n# a comment\n```\n# another\n~~~",
        "- item\n\n    ```\n    # a comment\n    ```",
        "1. item\n   ```sh\n   # a comment\n    ```",
        "    ```\n    # a comment\n```",
        "- item\n\n      ```\n      never closed",
        "```one line``` of code",
        "```\r\n# a comment\r\n```\r",
    ],
    ids=[
        "shorter inside",
        "longer at its end",
        "another kind inside",
        "in a list",
        "end further in",
        "end further out",
        "open in a list that ends",
        "in a line",
        "of Windows",
    ],
)
def test_code_between_fences_has_no_headings_and_what_follows_has(code):
    assert [one.headings for one in sections(f"# One\n{code}\n# Two\ntext")[1:]] == [("One",), ("Two",)]
