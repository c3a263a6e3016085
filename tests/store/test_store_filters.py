"""Filters in SQL: the rows found are those whose metadata `matches`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import sample

from incdsi.filters import matches, matches_everything, parse
from incdsi.records import Record
from incdsi.store import Store

FIELDS = st.sampled_from(["a", "b", "A", ""])
NUMBERS = st.sampled_from(
    [0, -0.0, 1, 1.0, 2.5, -3, 5e-324, 1e308, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 2.0**63]
)
# U+FFFF comes before U+10000 by code point and in UTF-8, after it in UTF-16.
TEXTS = st.sampled_from(["", "1", "1.0", "true", "null", "en", "EN", "é", "z", "z\0", "z\0z", "\uffff", "\U00010000"])
ORDERED = NUMBERS | TEXTS | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.sampled_from(
    [
        date(2024, 5, 1),
        datetime(2024, 5, 1, 12),
        datetime(2024, 5, 1, 12, tzinfo=UTC),
        datetime(2024, 5, 1, 12, 0, 0, 5),
    ]
)
VALUES = ORDERED | st.text(max_size=3) | st.booleans() | st.none() | TIMES
BEGINNINGS = TEXTS | st.sampled_from(["2024", "\ud7ff", "z\U0010ffff", "\U0010ffff"]) | st.text(max_size=2)
TESTS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(["eq", "ne", "contains", "$eq", "$contains"]), VALUES, min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["in", "nin", "any", "$in"]), st.lists(VALUES, max_size=4), min_size=1, max_size=2),
    st.fixed_dictionaries({"all": st.lists(VALUES, min_size=1, max_size=3)}),
    st.dictionaries(st.sampled_from(["gt", "gte", "lt", "$lte"]), ORDERED | TIMES, min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["starts", "contains"]), BEGINNINGS, min_size=1, max_size=2),
    st.fixed_dictionaries({"exists": st.booleans()}),
)
FILTERS = st.recursive(
    st.dictionaries(FIELDS, TESTS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=6,
)
METADATA = st.dictionaries(FIELDS, VALUES | BEGINNINGS | st.lists(VALUES, max_size=4), max_size=3)


def found(store: Store, where: dict[str, Any]) -> list[int]:
    rows: list[int] = store.filter_rows(parse(where)).tolist()
    return rows


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.create(tmp_path_factory.mktemp("filters") / "shop", {}) as made:
        yield made


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents=st.lists(METADATA, max_size=6), filters=st.lists(FILTERS, min_size=1, max_size=6))
def test_sql_finds_the_documents_that_match(
    shop: Store, documents: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    with shop.transaction() as tx:
        rows = [tx.insert(sample(f"d{number}", metadata=fields)) for number, fields in enumerate(documents)]
    try:
        for where in filters:
            tree = parse(where)
            passing = [row for row, fields in zip(rows, documents, strict=True) if matches(tree, fields)]
            assert shop.filter_rows(tree).tolist() == passing
            assert passing == rows or not matches_everything(tree)
    finally:
        with shop.transaction() as tx:
            for number in range(len(documents)):
                tx.delete(f"d{number}")


def test_long_and_deep_filters_work(store: Store) -> None:
    with store.transaction() as tx:
        ones = [tx.insert(sample(f"one{number}", metadata={"a": 1})) for number in range(2)]
        for number, value in enumerate([2.5, "1", True, None]):
            tx.insert(sample(f"other{number}", metadata={"a": value}))
    assert found(store, {"or": [{"a": 1}] * 1500}) == ones
    assert found(store, {"and": [{"a": 1}] * 1500}) == ones
    assert found(store, {"a": {"in": [*range(1, 29_000)]}}) == ones
    inside_out: dict[str, Any] = {"a": 1}
    for _ in range(50):
        inside_out = {"not": inside_out}
    assert found(store, inside_out) == ones
    deep: dict[str, Any] = {"a": 1}
    for _ in range(49):
        deep = {"and": [deep] + [{}] * 100}
    assert found(store, deep) == ones


def test_filters_follow_updates_and_deletions(store: Store) -> None:
    def tagged(id: str, tag: str) -> Record:
        return sample(id, metadata={"tag": tag})

    with store.transaction() as tx:
        tx.insert(tagged("a", "old"))
        tx.insert(tagged("b", "old"))
        tx.replace("a", tagged("a", "new"))
    assert found(store, {"tag": "old"}) == [2]
    with store.transaction() as tx:
        tx.delete("b")
    assert found(store, {"tag": {"in": ["old", "new"]}}) == [1]
    assert found(store, {}) == [1]
