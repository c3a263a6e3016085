"""One JSON line per event, on stderr."""

from __future__ import annotations

import logging
import sys
import traceback

import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(level: int = logging.INFO) -> None:
    """Send structlog's events, and warnings from other loggers, to stderr as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _readable,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                *shared,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ]
        )
    )
    logger = logging.getLogger()
    logger.handlers = [handler]
    logger.setLevel(max(level, logging.WARNING))


def frames(error: BaseException) -> list[str]:
    """Where it happened, without any of the content being handled."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)[-6:]]


def _readable(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace an exception by its kind and place; its message may contain a caller's text."""
    found = event.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found if isinstance(found, BaseException) else sys.exception()
    return event if not found or error is None else {**event, "kind": type(error).__name__, "where": frames(error)}
