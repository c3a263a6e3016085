"""Shared queries are dropped from all; the representative query is the mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import fold
from incdsi.errors import InvalidInput
from incdsi.text.queries import distinct, drop_shared, represent

QUERIES = st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from(["x", "X ", " y", "y", "", "z  w", "Z w"])))


def test_a_shared_query_is_dropped_from_every_document() -> None:
    queries = {"a": ["who won", "deep  river"], "b": ["Who  WON ", "long"], "c": ["who won"]}
    assert drop_shared(queries) == {"a": ["deep river"], "b": ["long"], "c": []}


def test_a_query_twice_in_one_document_is_kept_once() -> None:
    assert drop_shared({"a": ["who won", " Who won", "", "  "]}) == {"a": ["who won"]}


@given(queries=QUERIES)
def test_what_is_left_belongs_to_one_document_and_nothing_else_is_lost(queries: dict[str, list[str]]) -> None:
    left = drop_shared(queries)
    assert list(left) == list(queries)
    owners = {key: {name for name in queries if key in map(fold, queries[name])} for key in ("x", "y", "z w")}
    for name, texts in queries.items():
        wanted = {fold(text) for text in texts if text.strip() and owners[fold(text)] == {name}}
        assert sorted(map(fold, left[name])) == sorted(wanted)
    assert drop_shared(left) == left


def test_distinct_keeps_the_first_spelling_and_the_order() -> None:
    assert distinct(["B  b", "a", "b B", "\n", "A"]) == ["B b", "a"]


def test_the_representative_query_is_the_mean() -> None:
    embeddings = np.array([[1, 2], [3, 6]], dtype=np.float32)
    assert represent(embeddings).tolist() == [2, 4]
    assert represent(embeddings).dtype == np.float32


def test_no_query_is_represented_by_zeros() -> None:
    assert represent(np.zeros((0, 3), dtype=np.float32)).tolist() == [0, 0, 0]
    with pytest.raises(InvalidInput, match=r"expected embeddings of shape \(k, h\), found \(3,\)"):
        represent(np.zeros(3, dtype=np.float32))
