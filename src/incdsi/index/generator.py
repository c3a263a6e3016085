"""Who writes queries for new texts: remembered beside the index's settings."""

from __future__ import annotations

from collections.abc import Mapping

from incdsi.engine.protocol import Engine
from incdsi.text.generators import Generator, Spans, described, restored

GENERATOR = "generator"  # a key of its own: older versions pass over it
DEFAULT_GENERATOR = Spans(limit=6)  # the title and the sentences that say most; each more costs as much to embed


def generator_of(engine: Engine, given: Generator | None) -> Generator:
    """The one that was given, which the index then remembers, or the one it remembers; the default of older ones."""
    stored = engine.setting(GENERATOR)
    known = stored if isinstance(stored, Mapping) else described(DEFAULT_GENERATOR)
    if given is None:
        return restored(known)
    if described(given) != known:
        with engine.write() as batch:
            batch.set_setting(GENERATOR, described(given))
    return given
