"""Errors as application/problem+json (RFC 9457)."""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.responses import Response

from incdsi import errors
from incdsi.errors import IncDSIError, InvalidInput, NotAllowed, NotFound, Overloaded
from incdsi.server.schemas import Problem

MEDIA_TYPE = "application/problem+json"
SEE = "see docs/HTTP.md"
# The first match counts: subclasses come before their bases.
STATUS: tuple[tuple[type[IncDSIError], int], ...] = (
    (errors.UnknownDocument, 404),
    (errors.DuplicateDocument, 409),
    (errors.VersionConflict, 412),
    (errors.TooLarge, 413),
    (errors.TooSlow, 408),
    (errors.KeyReused, 422),
    (errors.NotFound, 404),
    (errors.NotAllowed, 403),
    (errors.Overloaded, 503),
    (errors.IndexLocked, 503),
    (errors.DamagedBase, 503),
    (errors.EncoderUnavailable, 503),
    (errors.DiskFull, 507),
    (errors.ReadOnlyIndex, 403),
    (errors.MissingExtra, 415),
    (errors.InvalidInput, 422),
)


class Refused(Exception):
    """An error with its own status and headers."""

    def __init__(self, error: IncDSIError, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status
        self.headers = dict(headers or {})
        self.told: dict[str, Any] = {}

    def telling(self, more: Mapping[str, Any]) -> Self:
        """Add members that say what was done before the refusal."""
        self.told = dict(more)
        return self


def malformed(sentence: str) -> Refused:
    """400: the request cannot be read."""
    return Refused(InvalidInput(sentence), 400)


def no_key(sentence: str) -> Refused:
    """401: no key, or a wrong one."""
    return Refused(NotAllowed(sentence), 401, {"WWW-Authenticate": "Bearer"})


def too_many(sentence: str, retry_after: float) -> Refused:
    """429: too many requests."""
    return Refused(Overloaded(sentence, retry_after), 429)


def no_such_path(status: int, headers: Mapping[str, str] | None, advice: str = SEE) -> Refused:
    """404 or 405: no such path, or not with this method."""
    wanted = "endpoint" if status == 404 else "method here"
    return Refused(NotFound(f"no such {wanted}; {advice}"), status, headers)


def status_of(error: IncDSIError) -> int:
    """The HTTP status of an exception; 500 if it is our own fault."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def as_problem(error: Exception, request_id: str, folder: Path) -> Response:
    """The answer to an exception; never shows where the index's folder is."""
    refused = error if isinstance(error, Refused) else None
    cause = refused.error if refused else error if isinstance(error, IncDSIError) else None
    if cause is None:
        cause = IncDSIError("internal error; the server log has this request id")
    status = refused.status if refused else status_of(cause)
    headers = refused.headers if refused else {}
    if isinstance(cause, Overloaded) or status == 503:
        headers["Retry-After"] = str(max(1, round(getattr(cause, "retry_after", 1.0))))
    problem = Problem(
        type=f"urn:incdsi:problem:{type(cause).__name__}",
        title=http.HTTPStatus(status).phrase,
        status=status,
        detail=without_folder(str(cause), folder),
        error=type(cause).__name__,
        request_id=request_id,
    )
    told = refused.told if refused else {}
    return Response(to_json({**told, **problem.model_dump()}), status, headers, media_type=MEDIA_TYPE)


def without_folder(sentence: str, folder: Path) -> str:
    """The sentence with "the index" for its folder, where that is a path and not part of a word or an id in quotes."""
    name = str(folder)
    first, *rest = sentence.split(name)
    told, before = first, first
    for after in rest:
        is_path = before[-1:] in ("", " ", "(") and after[:1] in ("", "/", " ", ":", ";", ",", ")")
        told, before = told + ("the index" if is_path else name) + after, after
    return told


def invalid_fields(error: ValidationError) -> Refused:
    """What is wrong with a body's fields, without repeating its content."""
    found: Sequence[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in found):
        return malformed(f"the body is not JSON ({found[0]['msg']})")
    parts = [f"{'.'.join(str(step)[:40] for step in one['loc']) or 'body'}: {one['msg']}" for one in found[:3]]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Refused(InvalidInput(f"invalid fields: {'; '.join(parts)}{more}"), 422)
