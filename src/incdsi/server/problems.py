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
# The first that fits counts: the more particular ones come first.
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
    (errors.DiskFull, 507),
    (errors.ReadOnlyIndex, 403),
    (errors.InvalidInput, 422),
)


class Refused(Exception):
    """An error with a status of its own, and headers."""

    def __init__(self, error: IncDSIError, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status
        self.headers = dict(headers or {})
        self.told: dict[str, Any] = {}

    def telling(self, more: Mapping[str, Any]) -> Self:
        """The same with further members: what was done before it was refused."""
        self.told = dict(more)
        return self


def malformed(sentence: str) -> Refused:
    """A request that cannot be read at all."""
    return Refused(InvalidInput(sentence), 400)


def no_key(sentence: str) -> Refused:
    """Nobody we know."""
    return Refused(NotAllowed(sentence), 401, {"WWW-Authenticate": "Bearer"})


def too_many(sentence: str, retry_after: float) -> Refused:
    """Beyond the rate."""
    return Refused(Overloaded(sentence, retry_after), 429)


def no_such_path(status: int, headers: Mapping[str, str] | None) -> Refused:
    """A path, or a method of it, that is not there."""
    sentence = "expected a path of docs/HTTP.md, found another" if status == 404 else "expected another method here"
    return Refused(NotFound(sentence), status, headers)


def status_of(error: IncDSIError) -> int:
    """The HTTP status of an exception; 500 for what is our own fault."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def as_problem(error: Exception, request_id: str, folder: Path) -> Response:
    """The answer to an exception; the index's folder is nobody's business."""
    refused = error if isinstance(error, Refused) else None
    cause = refused.error if refused else error if isinstance(error, IncDSIError) else None
    if cause is None:
        cause = IncDSIError("expected to answer, found a fault of the server; its log has the request's id")
    status = refused.status if refused else status_of(cause)
    headers = refused.headers if refused else {}
    if isinstance(cause, Overloaded) or status == 503:
        headers["Retry-After"] = str(max(1, round(getattr(cause, "retry_after", 1.0))))
    problem = Problem(
        type=f"urn:incdsi:problem:{type(cause).__name__}",
        title=http.HTTPStatus(status).phrase,
        status=status,
        detail=str(cause).replace(str(folder), "the index"),
        error=type(cause).__name__,
        request_id=request_id,
    )
    told = refused.told if refused else {}
    return Response(to_json({**told, **problem.model_dump()}), status, headers, media_type=MEDIA_TYPE)


def invalid_fields(error: ValidationError) -> Refused:
    """What is wrong with the fields of a body, in one sentence that repeats no content."""
    found: Sequence[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in found):
        return malformed(f"expected JSON, found something else ({found[0]['msg']})")
    parts = [f"{'.'.join(str(step)[:40] for step in one['loc']) or 'body'}: {one['msg']}" for one in found[:3]]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Refused(InvalidInput(f"expected other fields, found {'; '.join(parts)}{more}"), 422)
