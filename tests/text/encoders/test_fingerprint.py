"""Which prompts a model wants, by what its files say."""

from __future__ import annotations

import pytest

from incdsi.text.encoders.fingerprint import Prompts


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({}, None, ("", "")),
        ({"query": "q: ", "document": ""}, None, ("q: ", "")),
        ({"query": "q: ", "passage": "p: "}, None, ("q: ", "p: ")),
        ({"query": "", "document": "", "passage": "p: "}, None, ("", "p: ")),
        ({"all": "a: "}, "all", ("a: ", "a: ")),
        ({"query": "q: "}, "query", ("q: ", "")),
        ({"document": "d: "}, "document", ("", "d: ")),
        ({"query": "q: ", "all": "a: "}, "all", ("q: ", "a: ")),
        ({"query": None}, "gone", ("", "")),
    ],
)
def test_prompts_by_name(prompts: dict[str, str | None], default: str | None, expected: tuple[str, str]) -> None:
    found = Prompts.of(prompts, default)
    assert (found.query, found.document) == expected


def test_models_with_one_prompt_keep_the_fingerprint_they_had() -> None:
    assert Prompts("a", "a").settings() == {"prompt": "a"}
    assert Prompts("a", "").settings() == {"prompt": "a", "document_prompt": ""}
