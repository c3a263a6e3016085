"""Metadata filters: a small language, the tree it is parsed into, and what the tree means.

    {"lang": "en"}                         equality; kinds are kept apart: 1 is not "1" and not True
    {"year": {"gte": 2000, "lt": 2010}}    eq, gt, gte, lt, lte, in; all of them must hold
    {"or": [...]}, {"and": [...]}, {"not": {...}}

A field that a document does not have matches nothing; `not` gives exactly the documents its filter
leaves out, those without the field among them. A mapping with several names means all of them, an
empty one every document; an empty list under or, and is refused. The names or, and, not are never fields.

Each store compiles the tree to whatever it searches with; `matches` is what all of them must agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from incdsi.documents import MetadataValue, check_number, utf8
from incdsi.errors import InvalidInput

Where = Mapping[str, Any]
Kind = str  # text, number, boolean, null
Comparable = tuple[Kind, str | int | float]

_RANGES: dict[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_OPERATORS = ("eq", *_RANGES, "in")
_DEEPEST = 50
_MOST_VALUES = 30_000  # fields and kinds count too: each is a parameter in SQL, and SQLite allows 32,766


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts, every document."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


@dataclass(frozen=True, slots=True)
class In:
    """The field is one of the values; of one value, equality."""

    field: str
    values: tuple[Comparable, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """The field has the value's kind and is gt, gte, lt or lte: numbers by size, texts by code point."""

    field: str
    operator: str
    value: Comparable


Filter = And | Or | Not | In | Compare


def parse(where: Where) -> Filter:
    """The tree of a filter; refuses what it does not know."""
    tree = _all_of(where, depth=0)
    if (size := _size(tree)) > _MOST_VALUES:
        raise InvalidInput(f"expected at most {_MOST_VALUES} values in a filter, found {size}; split it")
    return tree


def matches(tree: Filter, metadata: Mapping[str, MetadataValue]) -> bool:
    """Whether a document with this metadata passes."""
    match tree:
        case And(parts):
            return all(matches(part, metadata) for part in parts)
        case Or(parts):
            return any(matches(part, metadata) for part in parts)
        case Not(part):
            return not matches(part, metadata)
        case In(field, values):
            return field in metadata and comparable(metadata[field]) in values
        case Compare(field, operator, value):
            return field in metadata and _in_range(comparable(metadata[field]), operator, value)


def matches_everything(tree: Filter) -> bool:
    """Whether it holds for every document whatever its metadata, like {} or what excludes nothing."""
    return _settled(tree) is True


def comparable(value: MetadataValue) -> Comparable:
    """A value's kind and what is compared within it, so that 1, "1" and True never meet."""
    if isinstance(value, bool):
        return ("boolean", int(value))
    if isinstance(value, int | float):
        return ("number", value)
    return ("null", 0) if value is None else ("text", value)


def _in_range(found: Comparable, operator: str, wanted: Comparable) -> bool:
    return found[0] == wanted[0] and _RANGES[operator](found[1], wanted[1])


def _settled(tree: Filter) -> bool | None:
    """What a filter says of all documents alike; None when it depends on their metadata."""
    match tree:
        case And(parts):
            return _every([_settled(part) for part in parts])
        case Or(parts):
            return _opposite(_every([_opposite(_settled(part)) for part in parts]))
        case Not(part):
            return _opposite(_settled(part))
        case In(values=()):
            return False
        case _:
            return None


def _every(parts: list[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _opposite(settled: bool | None) -> bool | None:
    return None if settled is None else not settled


def _size(tree: Filter) -> int:
    match tree:
        case And(parts) | Or(parts):
            return sum(map(_size, parts))
        case Not(part):
            return _size(part)
        case In(_, values):
            return 1 + len({kind for kind, _ in values}) + len(values)
        case Compare():
            return 3


def _all_of(where: object, depth: int) -> Filter:
    if not isinstance(where, Mapping):
        raise InvalidInput(f'expected a filter like {{"lang": "en"}}, found {where!r:.60}')
    if depth > _DEEPEST:
        raise InvalidInput(f"the filter is more than {_DEEPEST} levels deep; flatten it")
    return _and([_part(name, value, depth) for name, value in where.items()])


def _and(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _part(name: object, value: object, depth: int) -> Filter:
    if not isinstance(name, str):
        raise InvalidInput(f"field names in a filter must be strings, found {name!r:.60}")
    if name == "not":
        return Not(_all_of(value, depth + 1))
    if name in ("and", "or"):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InvalidInput(f"expected a list of filters under {name!r}, found {value!r:.60}")
        if not value:
            raise InvalidInput(f"{name!r} is an empty list; put a filter in it or leave it out")
        parts = [_all_of(part, depth + 1) for part in value]
        return _and(parts) if name == "and" else Or(tuple(parts))
    return _field(name, value)


def _field(field: str, wanted: object) -> Filter:
    name = f"filter on {field!r:.60}"  # once: a long field may have many values
    utf8(field, name)
    tests = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
    if not tests:
        raise InvalidInput(f"{name}: no operator; use one of {', '.join(_OPERATORS)}")
    return _and([_test(field, name, *test) for test in tests.items()])


def _test(field: str, name: str, operator: object, value: object) -> Filter:
    if operator == "eq":
        return In(field, (_checked(name, value),))
    if operator == "in":
        if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str):
            raise InvalidInput(f"{name}: expected a list under 'in', found {value!r:.60}")
        return In(field, tuple(_checked(name, one) for one in value))
    if isinstance(operator, str) and operator in _RANGES:
        return Compare(field, operator, _ordered(name, operator, value))
    raise InvalidInput(f"{name}: unknown operator {operator!r:.60}; use one of {', '.join(_OPERATORS)}")


def _ordered(name: str, operator: str, value: object) -> Comparable:
    checked = _checked(name, value)
    if checked[0] not in ("number", "text"):
        raise InvalidInput(f"{name}: expected a number or text under {operator!r}, found {value!r}")
    return checked


def _checked(name: str, value: object) -> Comparable:
    if not isinstance(value, str | int | float | bool | None):
        raise InvalidInput(f"{name}: expected a string, number, boolean or null, found {type(value).__name__}")
    check_number(value, name)
    if isinstance(value, str):
        utf8(value, name)
    return comparable(value)
