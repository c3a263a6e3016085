"""Metadata filters to SQL: every value is a parameter, every name is checked or a parameter too.

    {"lang": "en"}                         equality; kinds are kept apart: 1 is not "1" and not True
    {"year": {"gte": 2000, "lt": 2010}}    eq, gt, gte, lt, lte, in; all of them must hold
    {"or": [...]}, {"and": [...]}, {"not": {...}}

A field that a document does not have matches nothing; `not` gives exactly the documents its filter
leaves out, those without the field among them. A mapping with several names means all of them, an
empty one every document; an empty list under or, and is refused. The names or, and, not are never fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from incdsi.documents import check_number
from incdsi.errors import InvalidInput
from incdsi.store.codec import indexed, utf8

_RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPERATORS = ("eq", *_RANGES, "in")
_DEEPEST = 50
_MOST_PARAMETERS = 30_000  # SQLite allows 32,766

Where = Mapping[str, Any]
Parameters = list[Any]


def compile_filter(where: Where) -> tuple[str, Parameters]:
    """A condition on `documents.row` and its parameters; refuses what it does not know."""
    parameters: Parameters = []
    condition = _all_of(where, parameters, depth=0)
    if len(parameters) > _MOST_PARAMETERS:
        raise InvalidInput(f"expected at most {_MOST_PARAMETERS} values in a filter, found {len(parameters)}; split it")
    return condition, parameters


def matches_everything(where: Where) -> bool:
    """Whether a valid filter holds for every document whatever its metadata, like {} or what excludes nothing."""
    return _settled(where) is True


def _settled(where: Where) -> bool | None:
    """What a filter says of all documents alike; None when it depends on their metadata."""
    return _every([_settled_part(name, value) for name, value in where.items()])


def _settled_part(name: str, value: Any) -> bool | None:
    if name == "not":
        return _opposite(_settled(value))
    if name == "and":
        return _every([_settled(part) for part in value])
    if name == "or":
        return _opposite(_every([_opposite(_settled(part)) for part in value]))
    return False if isinstance(value, Mapping) and "in" in value and not value["in"] else None


def _every(parts: list[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _opposite(settled: bool | None) -> bool | None:
    return None if settled is None else not settled


def _all_of(where: object, parameters: Parameters, depth: int) -> str:
    if not isinstance(where, Mapping):
        raise InvalidInput(f'expected a filter like {{"lang": "en"}}, found {where!r:.60}')
    if depth > _DEEPEST:
        raise InvalidInput(f"expected a filter at most {_DEEPEST} levels deep, found a deeper one; flatten it")
    return _join("AND", [_part(name, value, parameters, depth) for name, value in where.items()], empty="1")


def _part(name: object, value: object, parameters: Parameters, depth: int) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"expected filter names as strings, found {name!r:.60}")
    if name == "not":
        return f"NOT {_all_of(value, parameters, depth + 1)}"
    if name in ("and", "or"):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InvalidInput(f"expected a list of filters under {name!r}, found {value!r:.60}")
        if not value:
            raise InvalidInput(f"{name!r} is an empty list; put a filter in it or leave it out")
        return _join(name.upper(), [_all_of(part, parameters, depth + 1) for part in value])
    return _field(name, value, parameters)


def _field(field: str, wanted: object, parameters: Parameters) -> str:
    name = f"filter on {field!r:.60}"  # once: a long field may have many values
    utf8(field, name)
    tests = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
    if not tests:
        raise InvalidInput(f"{name}: expected one of {', '.join(_OPERATORS)}, found none")
    return _join("AND", [_test(field, name, *test, parameters) for test in tests.items()])


def _test(field: str, name: str, operator: object, value: object, parameters: Parameters) -> str:
    parameters.append(field)
    if operator == "eq":
        condition = _equals(name, [value], parameters)
    elif operator == "in":
        if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str):
            raise InvalidInput(f"{name}: expected a list under 'in', found {value!r:.60}")
        condition = _equals(name, list(value), parameters)
    elif isinstance(operator, str) and operator in _RANGES:
        condition = _range(name, operator, value, parameters)
    else:
        raise InvalidInput(f"{name}: expected one of {', '.join(_OPERATORS)}, found {operator!r:.60}")
    return f"documents.row IN (SELECT row FROM metadata WHERE field = ? AND {condition})"


def _equals(name: str, values: list[Any], parameters: Parameters) -> str:
    by_kind: dict[str, list[Any]] = {}
    for value in values:
        kind, comparable = _checked(name, value)
        by_kind.setdefault(kind, []).append(comparable)
    parts = []
    for kind, comparables in by_kind.items():
        parameters.extend((kind, *comparables))
        parts.append(f"(kind = ? AND value IN ({', '.join('?' * len(comparables))}))")
    return _join("OR", parts, empty="0")


def _range(name: str, operator: str, value: object, parameters: Parameters) -> str:
    kind, comparable = _checked(name, value)
    if kind not in ("number", "text"):
        raise InvalidInput(f"{name}: expected a number or text under {operator!r}, found {value!r}")
    parameters.extend((kind, comparable))
    return f"kind = ? AND value {_RANGES[operator]} ?"


def _checked(name: str, value: object) -> tuple[str, str | int | float]:
    if not isinstance(value, str | int | float | bool | None):
        raise InvalidInput(f"{name}: expected a string, number, boolean or null, found {type(value).__name__}")
    check_number(value, name)
    if isinstance(value, str):
        utf8(value, name)
    return indexed(value)


def _join(word: str, parts: list[str], *, empty: str = "") -> str:
    if len(parts) <= 1:
        return parts[0] if parts else empty
    half = len(parts) // 2  # balanced, because SQLite limits how deep an expression may be
    return f"({_join(word, parts[:half], empty=empty)} {word} {_join(word, parts[half:], empty=empty)})"
