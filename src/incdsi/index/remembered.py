"""Who writes queries for new texts and what splits them: remembered beside the index's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from incdsi.engine.protocol import Engine
from incdsi.text import generators
from incdsi.text.generators import Generator, Spans
from incdsi.text.passages import Sections, Splitter, identity

GENERATOR, SPLITTER = "generator", "splitter"  # keys of their own: older versions pass over them
DEFAULT_GENERATOR = Spans(limit=6)  # the title and the sentences that say most; each more costs as much to embed
DEFAULT_SPLITTER = Sections()
T = TypeVar("T")


def generator_of(engine: Engine, given: Generator | None) -> Generator:
    """The one that was given, which the index then remembers, or the one it remembers; the default of older ones."""
    return _remembered(engine, GENERATOR, given, DEFAULT_GENERATOR, generators.described, generators.restored)


def splitter_of(engine: Engine, given: Splitter | None) -> Splitter:
    """The same for what splits long texts."""
    return _remembered(engine, SPLITTER, given, DEFAULT_SPLITTER, identity.described, identity.restored)


def _remembered(
    engine: Engine,
    key: str,
    given: T | None,
    default: T,
    described: Callable[[T], dict[str, Any]],
    restored: Callable[[Mapping[str, Any]], T],
) -> T:
    stored = engine.setting(key)
    known = stored if isinstance(stored, Mapping) else described(default)
    if given is None:
        return restored(known)
    if described(given) != known:
        with engine.write() as batch:
            batch.set_setting(key, described(given))
    return given
