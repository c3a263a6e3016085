"""Haystack's filters in incdsi's language.

A field that holds a list passes a comparison when one of its values does, and dates are compared as ISO text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from haystack import Document
from haystack.errors import FilterError

from incdsi.errors import InvalidInput
from incdsi.filters import Where, parse

_FIELDS = {field.name for field in fields(Document)}
_ORDERED = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
NOTHING: Where = {"_": {"in": []}}


def where_of(filters: Mapping[str, Any] | None) -> Where | None:
    """The same filter for an index; FilterError if it is none."""
    if not filters:
        return None
    where = _condition(filters)
    try:
        parse(where)
    except InvalidInput as error:
        raise FilterError(str(error)) from error
    return where


def _condition(condition: Mapping[str, Any]) -> Where:
    return _comparison(condition) if "field" in condition else _logic(condition)


def _logic(condition: Mapping[str, Any]) -> Where:
    operator, conditions = _required(condition, "operator"), _required(condition, "conditions")
    if operator not in ("AND", "OR", "NOT"):
        raise FilterError(f"unknown logical operator {operator!r}; use AND, OR or NOT")
    parts = [_condition(part) for part in conditions]
    return {"not": {"and": parts}} if operator == "NOT" else {operator.lower(): parts}


def _comparison(condition: Mapping[str, Any]) -> Where:
    field, value = _name(condition["field"]), _required(condition, "value")
    operator = _required(condition, "operator")
    if operator in _ORDERED:
        return NOTHING if value is None else {field: {_ORDERED[operator]: _ordered(operator, value)}}
    if operator not in _EQUALITIES:
        raise FilterError(f"unknown operator {operator!r}; use {', '.join((*_EQUALITIES, *_ORDERED))}")
    return _EQUALITIES[operator](field, value)


def _required(condition: Mapping[str, Any], key: str) -> Any:
    if key not in condition:
        raise FilterError(f"{key!r} is missing in {dict(condition)}")
    return condition[key]


def _name(field: str) -> str:
    name = field.removeprefix("meta.")
    if name == field and field in _FIELDS:
        raise FilterError(f"incdsi filters on metadata alone, not on {field!r}; put it into meta")
    if "." in name:
        raise FilterError(f"{field!r} is inside nested metadata, which cannot be filtered on; flatten it first")
    return name


def _among(field: str, values: Any) -> Where:
    """One of the values; None stands for a field that is missing, too."""
    if not isinstance(values, list):
        raise FilterError(f"expected a list under 'in' and 'not in', found {type(values).__name__}")
    there = {field: {"in": values}}
    return {"or": [there, {field: {"exists": False}}]} if None in values else there


_EQUALITIES: dict[str, Callable[[str, Any], Where]] = {
    "==": lambda field, value: _among(field, [value]),
    "!=": lambda field, value: {"not": _among(field, [value])},
    "in": _among,
    "not in": lambda field, values: {"not": _among(field, values)},
}


def _ordered(operator: str, value: Any) -> Any:
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise FilterError(f"{value!r} under {operator!r} is not a date, and other texts have no order") from error
    return value
