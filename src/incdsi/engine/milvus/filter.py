"""A filter as an expression of Milvus.

Metadata is stored under keys that name its kind, so that 1, "1" and true never meet and a missing field is nothing
special: `n:year` [1999, 2003], `t:lang` ["en"], `b:new` [1], `z:price` 1 for null, `e:year` 1 for being there, and the
least and greatest number and text as `n<:year`, `n>:year`. Servers and Lite differ in what they make of anything else.

An expression may let more through than the filter does, never less; where it may, `matches` decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from incdsi.documents import MetadataValue
from incdsi.filters import And, Comparable, Compare, Exists, Filter, In, Not, Or, comparables

MOST_BYTES = 60_000  # Milvus takes 65,536 of JSON
UNKNOWN = "?"  # the only key of what cannot be said so: `matches` decides
IS_UNKNOWN = f'exists filter["{UNKNOWN}"]'
_EXACT = 2**53  # larger numbers are compared as doubles
_TAGS = {"text": "t", "number": "n", "boolean": "b", "null": "z"}
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPPOSITE = {"gt": "<=", "gte": "<", "lt": ">=", "lte": ">"}


class Expression(NamedTuple):
    """What Milvus is asked; `sure` when exactly the documents pass that pass the filter."""

    text: str
    sure: bool


def tagged(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    """Metadata as it is stored to filter by."""
    kept: dict[str, Any] = {}
    for field, value in metadata.items():
        kept[f"e:{field}"] = 1
        kinds: dict[str, list[Any]] = {}
        for kind, one in comparables(value):
            if kind in _TAGS:
                kinds.setdefault(_TAGS[kind], []).append(one)
        for tag, values in kinds.items():
            kept[f"{tag}:{field}"] = values
            if tag in "nt":
                kept[f"{tag}<:{field}"], kept[f"{tag}>:{field}"] = min(values), max(values)
    numbers = (one for value in metadata.values() for kind, one in comparables(value) if kind == "number")
    plain = all(map(_sayable, metadata)) and all(_comparable(("number", one)) for one in numbers)
    return kept if plain and len(json.dumps(kept)) < MOST_BYTES else {UNKNOWN: 1}


def compiled(tree: Filter) -> Expression:
    """The expression for a filter; '' lets every document through."""
    text, sure = _part(tree, negated=False)
    return Expression(text or "", sure)


def _part(tree: Filter, negated: bool) -> tuple[str | None, bool]:
    """An expression, or None for everything, and whether it is sure; negation is pushed down to single tests."""
    match tree:
        case Not(part):
            return _part(part, not negated)
        case And(parts) | Or(parts):
            every = isinstance(tree, And) != negated
            return _joined([_part(part, negated) for part in parts], every)
        case In(field, values) if _sayable(field) and all(map(_comparable, values)):
            return _among(field, values, negated), True
        case Compare(field, operator, value) if _sayable(field) and _comparable(value):
            return _range(field, operator, value, negated), True
        case Exists(field) if _sayable(field):
            return f"{'not ' if negated else ''}exists {_at('e', field)}", True
        case _:
            return None, False


def _joined(parts: list[tuple[str | None, bool]], every: bool) -> tuple[str | None, bool]:
    said = [text for text, _ in parts if text is not None]
    sure = all(sure for _, sure in parts)
    if every:
        return (" and ".join(f"({text})" for text in said) or None), sure
    if not parts:
        return "key < 0", True  # none of nothing
    return (" or ".join(f"({text})" for text in said), sure) if len(said) == len(parts) else (None, False)


def _among(field: str, values: tuple[Comparable, ...], negated: bool) -> str:
    tests = []
    for tag in dict.fromkeys(_TAGS[kind] for kind, _ in values):
        wanted = [value for kind, value in values if _TAGS[kind] == tag]
        if tag == "z":
            tests.append(f"exists {_at(tag, field)}")
        else:
            listed = ", ".join(json.dumps(value) for value in wanted)
            tests.append(f"json_contains_any({_at(tag, field)}, [{listed}])")
    if not tests:
        return "key > 0" if negated else "key < 0"
    return " and ".join(f"not {test}" for test in tests) if negated else " or ".join(tests)


def _range(field: str, operator: str, value: Comparable, negated: bool) -> str:
    """One value is above when the greatest is."""
    tag = _TAGS[value[0]]
    end = _at(f"{tag}{'>' if operator.startswith('g') else '<'}", field)
    if not negated:
        return f"{end} {_SIGNS[operator]} {json.dumps(value[1])}"
    return f"(not exists {end}) or ({end} {_OPPOSITE[operator]} {json.dumps(value[1])})"


def _at(tag: str, field: str) -> str:
    return f'filter["{tag}:{field}"]'


def _sayable(text: str) -> bool:
    """Whether both parsers read it as it is: plain ASCII without quotes, backslashes and brackets."""
    return text.isascii() and text.isprintable() and not set(text) & set("\"'\\[]{}%")


def _comparable(value: Comparable) -> bool:
    kind, plain = value
    if isinstance(plain, str):
        return _sayable(plain)
    return kind != "number" or abs(plain) <= _EXACT
