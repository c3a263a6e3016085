"""A filter's tree to SQL over the table `metadata`; every name and value is a parameter."""

from __future__ import annotations

import sys
from typing import Any

from incdsi.filters import And, Comparable, Compare, Exists, Filter, In, Not, Or, Part, Starts

_RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

_LISTED = (
    "EXISTS (SELECT 1 FROM metadata AS mark WHERE mark.field = metadata.field "
    "AND mark.kind = 'list' AND mark.value = 0 AND mark.row = metadata.row)"
)

Parameters = list[Any]


def compile_filter(tree: Filter) -> tuple[str, Parameters]:
    """A condition on `documents.row` and its parameters."""
    parameters: Parameters = []
    return _condition(tree, parameters), parameters


def _condition(tree: Filter, parameters: Parameters) -> str:
    match tree:
        case And(parts):
            return _join("AND", [_condition(part, parameters) for part in parts], empty="1")
        case Or(parts):
            return _join("OR", [_condition(part, parameters) for part in parts], empty="0")
        case Not(part):
            return f"NOT {_condition(part, parameters)}"
        case In(field, values):
            parameters.append(field)
            return _rows(_equals(values, parameters))
        case Compare(field, operator, (kind, value)):
            parameters.extend((field, kind, value))
            return _rows(f"kind = ? AND value {_RANGES[operator]} ?")
        case Starts(field, beginning):
            parameters.append(field)
            return _rows(_between(beginning, _after(beginning), parameters))
        case Part(field, part):
            parameters.extend((field, part))
            return _rows(f"kind = 'text' AND instr(value, ?) AND NOT {_LISTED}")
        case Exists(field):
            parameters.append(field)
            return _rows("1")


def _rows(condition: str) -> str:
    return f"documents.row IN (SELECT row FROM metadata WHERE field = ? AND {condition})"


def _equals(values: tuple[Comparable, ...], parameters: Parameters) -> str:
    by_kind: dict[str, list[str | int | float]] = {}
    for kind, value in values:
        by_kind.setdefault(kind, []).append(value)
    parts = []
    for kind, alike in by_kind.items():
        parameters.extend((kind, *alike))
        parts.append(f"(kind = ? AND value IN ({', '.join('?' * len(alike))}))")
    return _join("OR", parts, empty="0")


def _between(first: str, after: str, parameters: Parameters) -> str:
    """Texts from one to before another, or to the last when that is empty; the index finds them."""
    parameters.append(first)
    if not after:
        return "kind = 'text' AND value >= ?"
    parameters.append(after)
    return "kind = 'text' AND value >= ? AND value < ?"


def _after(beginning: str) -> str:
    """The first text by code point after all that begin so; empty when there is none."""
    rest = beginning.rstrip(chr(sys.maxunicode))
    if not rest:
        return ""
    following = ord(rest[-1]) + 1
    return rest[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no characters


def _join(word: str, parts: list[str], *, empty: str) -> str:
    if len(parts) <= 1:
        return parts[0] if parts else empty
    half = len(parts) // 2  # balanced, because SQLite limits how deep an expression may be
    return f"({_join(word, parts[:half], empty=empty)} {word} {_join(word, parts[half:], empty=empty)})"
