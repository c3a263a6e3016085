"""A filter's tree to SQL over the table `metadata`; every name and value is a parameter."""

from __future__ import annotations

from typing import Any

from incdsi.filters import And, Comparable, Compare, Filter, In, Not, Or

_RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

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


def _join(word: str, parts: list[str], *, empty: str) -> str:
    if len(parts) <= 1:
        return parts[0] if parts else empty
    half = len(parts) // 2  # balanced, because SQLite limits how deep an expression may be
    return f"({_join(word, parts[:half], empty=empty)} {word} {_join(word, parts[half:], empty=empty)})"
