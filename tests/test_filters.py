"""The filter language: what it refuses, the tree it becomes, and what the tree means."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from incdsi.errors import InvalidInput
from incdsi.filters import And, Compare, Exists, In, Not, Or, Part, Starts, matches, matches_everything, parse

BOOTS = {
    "lang": "en",
    "year": 2001,
    "price": 80.0,
    "new": True,
    "sale": None,
    "size": "42",
    "weight": 1,
    "tags": ("red", "waterproof", 7),
    "worn": [],
    "made": date(2024, 5, 1),
}


def nested(depth: int) -> dict[str, Any]:
    return {"not": nested(depth - 1)} if depth else {"a": 1}


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ({}, And(())),
        ({"lang": "en"}, In("lang", (("text", "en"),))),
        ({"lang": {"eq": "en"}}, In("lang", (("text", "en"),))),
        ({"a": {"in": [1, True, None]}}, In("a", (("number", 1), ("boolean", 1), ("null", 0)))),
        (
            {"year": {"gte": 2000, "lt": 2010}},
            And((Compare("year", "gte", ("number", 2000)), Compare("year", "lt", ("number", 2010)))),
        ),
        ({"a": None, "b": False}, And((In("a", (("null", 0),)), In("b", (("boolean", 0),))))),
        ({"a": {"ne": 1}}, Not(In("a", (("number", 1),)))),
        ({"a": {"nin": [1, "x"]}}, Not(In("a", (("number", 1), ("text", "x"))))),
        ({"a": {"any": [1]}}, In("a", (("number", 1),))),
        ({"a": {"all": [1, "x"]}}, And((In("a", (("number", 1),)), In("a", (("text", "x"),))))),
        ({"a": {"contains": "x"}}, Or((In("a", (("text", "x"),)), Part("a", "x")))),
        ({"a": {"contains": 1}}, In("a", (("number", 1),))),
        ({"a": {"starts": "x"}}, Starts("a", "x")),
        ({"a": {"exists": True}, "b": {"exists": False}}, And((Exists("a"), Not(Exists("b"))))),
        ({"a": {"gte": date(2024, 5, 1)}}, Compare("a", "gte", ("text", "2024-05-01"))),
        ({"a": np.int64(1)}, In("a", (("number", 1),))),
        (
            {"$and": [{"a": {"$in": [1]}}, {"$or": [{"$not": {"b": {"$lt": 2}}}]}]},
            {"and": [{"a": {"in": [1]}}, {"or": [{"not": {"b": {"lt": 2}}}]}]},
        ),
        ({"or": [{"a": 1}, {"not": {"and": [{}]}}]}, Or((In("a", (("number", 1),)), Not(And(()))))),
    ],
)
def test_a_filter_becomes_a_small_tree(where: dict[str, Any], tree: Any) -> None:
    tree = parse(tree) if isinstance(tree, dict) else tree
    assert parse(where) == tree
    assert hash(parse(where)) == hash(tree)


def test_trees_of_filters_that_mean_different_things_differ() -> None:
    assert len({parse({"a": value}) for value in (1, True, "1", None, 0, False, "")}) == 7
    assert parse({"a": 1}) == parse({"a": 1.0})


def test_a_tree_cannot_be_changed() -> None:
    tree = parse({"a": 1})
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.field = "b"  # type: ignore[misc, union-attr]


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"lang": "en"},
        {"year": 2001.0},
        {"new": True},
        {"sale": None},
        {"size": "42"},
        {"price": {"gt": 79, "lte": 80}},
        {"lang": {"gte": "de", "lt": "\U00010000"}},
        {"lang": {"in": ["de", "en"]}},
        {"lang": {"in": frozenset({"en"})}},
        {"not": {"colour": "red"}},
        {"tags": "red"},  # one of its values
        {"tags": {"in": ["blue", 7]}},
        {"tags": {"any": ["blue", "red"]}},
        {"tags": {"all": ["waterproof", "red"]}},
        {"tags": {"contains": "red"}},
        {"tags": {"starts": "water"}},
        {"tags": {"gt": 6}},
        {"tags": {"ne": "blue", "nin": ["green"]}},
        {"tags": {"lt": 8, "gt": "waterfall"}},  # by one value each
        {"lang": {"contains": "n", "starts": "e"}},
        {"lang": {"all": ["en"]}},
        {"year": {"contains": 2001}},
        {"sale": {"exists": True}},  # null is there
        {"worn": {"exists": True}},
        {"worn": {"ne": None}},
        {"colour": {"exists": False}},
        {"colour": {"ne": "red"}},  # as one without the field
        {"colour": {"nin": ["red"]}},
        {"made": "2024-05-01"},
        {"made": date(2024, 5, 1)},
        {"made": {"gte": date(2024, 1, 1), "lt": datetime(2024, 5, 1, 1)}},
        {"made": {"starts": "2024-05"}},
        {"not": {"colour": {"gt": 0}}},
        {"or": [{"lang": "de"}, {"year": {"lt": 2002}}]},
        {"and": [{}, {"lang": "en"}], "year": {"gte": 2001}},
    ],
)
def test_what_passes(where: dict[str, Any]) -> None:
    assert matches(parse(where), BOOTS)
    assert not matches(parse({"not": where}), BOOTS)


@pytest.mark.parametrize(
    "where",
    [
        {"not": {}},
        {"colour": None},  # a missing field is not null
        {"sale": 0},
        {"sale": ""},
        {"sale": False},
        {"weight": True},
        {"new": 1},
        {"size": 42},
        {"year": "2001"},
        {"size": {"gt": 1}},  # a text is no number, even when it looks like one
        {"weight": {"lt": "x"}},
        {"new": {"gte": 0}},
        {"sale": {"gte": 0}},
        {"tags": {"contains": "water"}},  # of a list a value, not a part of one
        {"tags": {"all": ["red", "blue"]}},
        {"tags": {"nin": ["blue", "red"]}},
        {"tags": {"starts": "7"}},
        {"worn": {"in": [None, "", 0]}},
        {"worn": {"contains": ""}},
        {"year": {"starts": "2"}},
        {"year": {"contains": "2001"}},
        {"sale": {"exists": False}},
        {"colour": {"exists": True}},
        {"colour": {"contains": ""}},
        {"lang": {"starts": "E"}},
        {"lang": {"contains": "N"}},
        {"lang": {"ne": "en"}},
        {"made": {"gt": datetime(2024, 5, 1)}},
        {"LANG": "en"},
        {"lang": "EN"},
        {"lang": {"in": []}},
        {"lang": {"gt": "a", "lt": "b"}},
    ],
)
def test_what_does_not_pass(where: dict[str, Any]) -> None:
    assert not matches(parse(where), BOOTS)
    assert matches(parse({"not": where}), BOOTS)


@pytest.mark.parametrize(
    ("where", "everything"),
    [
        ({}, True),
        ({"and": [{}, {"or": [{"a": 1}, {}]}]}, True),
        ({"not": {"a": {"in": []}}}, True),
        ({"not": {"not": {}}}, True),
        ({"a": {"nin": []}}, True),
        ({"a": {"any": []}}, False),
        ({"a": {"exists": True}}, False),
        ({"not": {"and": [{"a": 1}, {"b": {"gt": 1, "in": []}}]}}, True),
        ({"a": {"in": []}}, False),
        ({"not": {}}, False),
        ({"or": [{"a": 1}, {"not": {}}]}, False),
        ({"not": {"a": 1}}, False),
    ],
)
def test_a_filter_without_a_condition_is_known_to_match_everything(where: dict[str, Any], everything: bool) -> None:
    assert matches_everything(parse(where)) is everything


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"a": {"like": "x"}}, "unknown operator 'like'; use one of eq, ne, gt, gte, lt, lte, in, nin, any, all, "),
        ({"a": {"$like": "x"}}, r"unknown operator '\$like'"),
        ({"a": {"$$eq": "x"}}, r"unknown operator '\$\$eq'"),
        ({"a": {"all": []}}, "'all' is an empty list; put a value in it or leave it out"),
        ({"a": {"any": "x"}}, "expected a list under 'any'"),
        ({"a": {"starts": 1}}, "expected text under 'starts', found 1"),
        ({"a": {"starts": "\ud800"}}, "surrogate"),
        ({"a": {"exists": 1}}, "expected true or false under 'exists', found 1"),
        ({"a": {"eq": {}}}, "expected a string, number, boolean, date or null, found dict"),
        ({"$or": []}, r"'\$or' is an empty list"),
        ({"a": {}}, "no operator; use one of eq"),
        ({"a": {"gt": True}}, "number or text"),
        ({"a": {"lte": None}}, "number or text"),
        ({"a": {"in": "abc"}}, "a list under 'in'"),
        ({"a": [1]}, "found a list; put it under any or all"),
        ({"a": {"in": [[1]]}}, "found a list"),
        ({1: "a"}, "names in a filter must be strings, found 1"),
        ({"or": {"a": 1}}, "list of filters"),
        ({"or": []}, "'or' is an empty list; put a filter in it or leave it out"),
        ({"not": {"and": []}}, "'and' is an empty list"),
        ({"not": 3}, "a filter like"),
        ({"a": 2**70}, "64 bits"),
        ({"a": {"lt": float("nan")}}, "finite"),
        ({"a": {"in": list(range(40_000))}}, "at most 30000"),
        (nested(51), "more than 50 levels deep"),
        ("lang", "a filter like"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate"),
    ],
)
def test_an_unknown_filter_is_refused_with_what_works(where: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        parse(where)


def test_the_largest_filters_are_taken_and_one_value_more_is_not() -> None:
    parse(nested(50))
    parse({"a": {"in": [*range(29_998)]}})  # with the field and the kind 30,000
    parse({"or": [{"a": {"gt": 1}}] * 10_000})
    for where in ({"a": {"in": [*range(29_999)]}}, {"a": {"in": [*range(29_997), "x"]}}):
        with pytest.raises(InvalidInput, match="at most 30000 values in a filter, found 30001; split it"):
            parse(where)
