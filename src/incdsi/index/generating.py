"""The generator of an index: kept in its store by name and parameters, made again when a change needs it."""

from __future__ import annotations

from collections.abc import Mapping

from incdsi.store import Store
from incdsi.text.generators import Generator, Spans, described, restored

KEY = "generator"  # of the store's settings, beside those of the index: older versions pass over it
DEFAULT = Spans(limit=6)  # the title and the sentences that say most; each more costs as much to embed


def generator_of(store: Store, given: Generator | None) -> Generator:
    """The one that was given, which the store then remembers, or the one it remembers; the default of older ones."""
    stored = store.setting(KEY)
    known = stored if isinstance(stored, Mapping) else described(DEFAULT)
    if given is None:
        return restored(known)
    if described(given) != known:
        with store.transaction() as tx:
            tx.set_setting(KEY, described(given))
    return given
