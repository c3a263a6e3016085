"""LlamaIndex's filters in incdsi's language."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from incdsi.filters import Where

_TESTS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.ANY: "any",
    FilterOperator.ALL: "all",
    FilterOperator.CONTAINS: "eq",  # a list that has the value
    FilterOperator.TEXT_MATCH: "contains",
}


def where_of(filters: MetadataFilters | None) -> Where | None:
    """The same filter for an index; ValueError if it has no such test."""
    if filters is None or not filters.filters:
        return None
    parts = [where_of(one) or {} if isinstance(one, MetadataFilters) else _test(one) for one in filters.filters]
    if filters.condition == FilterCondition.NOT:
        return {"not": {"or": parts}}
    return {"or" if filters.condition == FilterCondition.OR else "and": parts}


def _test(one: MetadataFilter) -> dict[str, Any]:
    if one.operator == FilterOperator.IS_EMPTY:
        return {"or": [{one.key: {"exists": False}}, {one.key: {"in": [None, ""]}}]}
    if one.operator not in _TESTS:
        raise ValueError(
            f"incdsi has no filter {one.operator.value!r}; use one of {', '.join(t.value for t in _TESTS)}"
        )
    return {one.key: {_TESTS[one.operator]: one.value}}
