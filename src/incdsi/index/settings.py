"""What an index remembers about itself, as plain JSON in its store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from incdsi.errors import InvalidInput
from incdsi.hyperparameters import Hyperparameters
from incdsi.search import DEFAULT_FUSION
from incdsi.store import Store
from incdsi.text.generators import Generator, Spans, described, restored

KEY = "index"
GENERATOR = "generator"  # a key of its own: older versions pass over it
DEFAULT_GENERATOR = Spans(limit=6)  # the title and the sentences that say most; each more costs as much to embed
Method = Literal["general", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`tuned_at` is the number of held-out queries at the last tuning; `model` a folder inside the index, or none."""

    fingerprint: str
    dimension: int
    model: str | None
    method: Method = "general"
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    lexical_weight: float = DEFAULT_FUSION
    tuning: bool = True
    tuned_at: int = 0

    def __post_init__(self) -> None:
        if self.method not in ("general", "paper"):
            raise InvalidInput(f"expected method to be 'general' or 'paper', found {self.method!r}")
        if not 0.0 <= self.lexical_weight <= 1.0:
            raise InvalidInput(f"expected a lexical weight between 0 and 1, found {self.lexical_weight}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "hyperparameters": Hyperparameters.from_json(stored["hyperparameters"])})


def stored_settings(store: Store) -> Settings:
    """What the index in that store remembers about itself."""
    stored = store.setting(KEY)
    if not isinstance(stored, Mapping):
        raise InvalidInput(f"expected an index's settings in the store, found {stored!r:.40}; was it made by incdsi?")
    return Settings.from_json(stored)


def generator_of(store: Store, given: Generator | None) -> Generator:
    """The one that was given, which the store then remembers, or the one it remembers; the default of older ones."""
    stored = store.setting(GENERATOR)
    known = stored if isinstance(stored, Mapping) else described(DEFAULT_GENERATOR)
    if given is None:
        return restored(known)
    if described(given) != known:
        with store.transaction() as tx:
            tx.set_setting(GENERATOR, described(given))
    return given
