"""Metadata filters: a small language, the tree it is parsed into, and what the tree means.

    {"lang": "en"}                         equality; kinds are kept apart: 1 is not "1" and not True
    {"year": {"gte": 2000, "lt": 2010}}    eq, ne, gt, gte, lt, lte; all of them must hold
    {"lang": {"in": ["en", "de"]}}         in, nin; any is another word for in
    {"tags": {"all": ["red", "new"]}}      each of these is among the field's values
    {"name": {"contains": "boot"}}         a part of a text; of a list, one of its values
    {"code": {"starts": "BT-"}}            the beginning of a text
    {"price": {"exists": False}}           whether the field is there, null or not
    {"or": [...]}, {"and": [...]}, {"not": {...}}

Each may have a $ before it ($gte, $in, $or). A date or datetime is its ISO text. A field holds one value or a list of
them; a test holds when one of the values passes it. A document without the field passes `ne`, `nin` and `exists: False`
and fails every other test: `not`, `ne` and `nin` give exactly the documents that the test without them leaves out.
A mapping with several names means all of them, an empty one every document; an empty list under or, and, all is
refused. The names or, and, not, with $ or without, are never fields.

Each store compiles the tree to whatever it searches with; `matches` is what all of them must agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from incdsi.documents import MetadataValue, Scalar, check_number, plain, utf8
from incdsi.errors import InvalidInput

Where = Mapping[str, Any]
Kind = str  # text, number, boolean, null; list, which no value to compare with has
Comparable = tuple[Kind, str | int | float]

_RANGES: dict[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_LISTS = ("in", "nin", "any", "all")
_OPERATORS = ("eq", "ne", *_RANGES, *_LISTS, "contains", "starts", "exists")
_JOINS = ("and", "or", "not")
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
    """The field has one of the values; of one value, equality."""

    field: str
    values: tuple[Comparable, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """The field has the value's kind and is gt, gte, lt or lte: numbers by size, texts by code point."""

    field: str
    operator: str
    value: Comparable


@dataclass(frozen=True, slots=True)
class Starts:
    """The field has a text that begins so."""

    field: str
    beginning: str


@dataclass(frozen=True, slots=True)
class Part:
    """The field is one text, not a list, and this is a part of it."""

    field: str
    part: str


@dataclass(frozen=True, slots=True)
class Exists:
    """The field is there."""

    field: str


Filter = And | Or | Not | In | Compare | Starts | Part | Exists


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
            return any(found in values for found in _values(metadata, field))
        case Compare(field, operator, value):
            return any(_in_range(found, operator, value) for found in _values(metadata, field))
        case Starts(field, beginning):
            return any(kind == "text" and str(text).startswith(beginning) for kind, text in _values(metadata, field))
        case Part(field, part):
            whole = plain(metadata.get(field))
            return isinstance(whole, str) and part in whole
        case Exists(field):
            return field in metadata


def matches_everything(tree: Filter) -> bool:
    """Whether it holds for every document whatever its metadata, like {} or what excludes nothing."""
    return _settled(tree) is True


def comparable(value: Scalar) -> Comparable:
    """A value's kind and what is compared within it, so that 1, "1" and True never meet."""
    if isinstance(value, bool):
        return ("boolean", int(value))
    if isinstance(value, int | float):
        return ("number", value)
    return ("null", 0) if value is None else ("text", value)


def comparables(value: MetadataValue) -> tuple[Comparable, ...]:
    """Of one value its own; of a list a mark that it is one, which an empty one has too, and those of its values."""
    kept = plain(value)
    return (("list", 0), *map(comparable, kept)) if isinstance(kept, tuple) else (comparable(kept),)


def _values(metadata: Mapping[str, MetadataValue], field: str) -> tuple[Comparable, ...]:
    return comparables(metadata[field]) if field in metadata else ()


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
        case Compare() | Starts():
            return 3
        case Part() | Exists():
            return 2


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
    join = name.removeprefix("$")
    if join not in _JOINS:
        return _field(name, value)
    if join == "not":
        return Not(_all_of(value, depth + 1))
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidInput(f"expected a list of filters under {name!r}, found {value!r:.60}")
    if not value:
        raise InvalidInput(f"{name!r} is an empty list; put a filter in it or leave it out")
    parts = [_all_of(part, depth + 1) for part in value]
    return _and(parts) if join == "and" else Or(tuple(parts))


def _field(field: str, wanted: object) -> Filter:
    name = f"filter on {field!r:.60}"  # once: a long field may have many values
    utf8(field, name)
    tests = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
    if not tests:
        raise InvalidInput(f"{name}: no operator; use one of {', '.join(_OPERATORS)}")
    return _and([_test(field, name, *test) for test in tests.items()])


def _test(field: str, name: str, operator: object, value: object) -> Filter:
    known = operator.removeprefix("$") if isinstance(operator, str) else ""
    if known in _LISTS:
        return _among(field, name, known, value)
    if known in _RANGES:
        return Compare(field, known, _ordered(name, known, value))
    match known:
        case "eq":
            return In(field, (_checked(name, value),))
        case "ne":
            return Not(In(field, (_checked(name, value),)))
        case "contains":
            equal = In(field, (_checked(name, value),))
            return Or((equal, Part(field, value))) if isinstance(value, str) else equal
        case "starts":
            return Starts(field, _text(name, known, value))
        case "exists" if isinstance(value, bool):
            return Exists(field) if value else Not(Exists(field))
        case "exists":
            raise InvalidInput(f"{name}: expected true or false under 'exists', found {value!r:.60}")
    raise InvalidInput(f"{name}: unknown operator {operator!r:.60}; use one of {', '.join(_OPERATORS)}")


def _among(field: str, name: str, operator: str, value: object) -> Filter:
    if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str):
        raise InvalidInput(f"{name}: expected a list under {operator!r}, found {value!r:.60}")
    values = tuple(_checked(name, one) for one in value)
    if operator == "all":
        if not values:
            raise InvalidInput(f"{name}: 'all' is an empty list; put a value in it or leave it out")
        return _and([In(field, (one,)) for one in values])
    return Not(In(field, values)) if operator == "nin" else In(field, values)


def _ordered(name: str, operator: str, value: object) -> Comparable:
    checked = _checked(name, value)
    if checked[0] not in ("number", "text"):
        raise InvalidInput(f"{name}: expected a number or text under {operator!r}, found {value!r}")
    return checked


def _text(name: str, operator: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name}: expected text under {operator!r}, found {value!r:.60}")
    utf8(value, name)
    return value


def _checked(name: str, value: object) -> Comparable:
    kept = plain(value)
    if isinstance(kept, tuple):
        raise InvalidInput(f"{name}: found a list; put it under any or all")
    if not isinstance(kept, str | int | float | bool | None):
        raise InvalidInput(f"{name}: expected a string, number, boolean, date or null, found {type(value).__name__}")
    check_number(kept, name)
    if isinstance(kept, str):
        utf8(kept, name)
    return comparable(kept)
