"""Turns a server's problem into the exception the index itself would have raised."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from incdsi import errors
from incdsi.errors import IncDSIError, Overloaded, ServerError

KINDS = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, IncDSIError)}


def refusal(status: int, headers: Mapping[str, str], content: bytes) -> IncDSIError:
    """The exception for an error answer."""
    problem = _problem(content)
    sentence = problem.get("detail") or f"status {status}, but not from an incdsi server; check the address"
    if problem.get("error") == "Overloaded" or (not problem and status in (429, 503)):
        return Overloaded(sentence, _seconds(headers.get("retry-after", "1")))
    return KINDS.get(problem.get("error", ""), ServerError)(sentence)


def _problem(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("detail"), str) else {}


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 1.0
