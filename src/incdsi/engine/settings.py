"""What an index remembers about itself, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Self

from incdsi.confidence import Confidence
from incdsi.errors import InvalidInput, UnsupportedFormat
from incdsi.hyperparameters import Hyperparameters
from incdsi.lexical import require_language, stemmer_of

KEY = "index"
Method = Literal["general", "paper"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """How much each part of a fused score counts: the lexical score, and of what it leaves the nearest text's share.

    The rest is the learned score's.
    """

    lexical_weight: float
    nearest_share: float

    @property
    def nearest_weight(self) -> float:
        return (1.0 - self.lexical_weight) * self.nearest_share

    @property
    def learned_weight(self) -> float:
        return (1.0 - self.lexical_weight) * (1.0 - self.nearest_share)


DEFAULT_FUSION = Fusion(0.2, 0.6)  # until it is tuned: the least regret over six sets (decision 0041)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`tuned_at` is the number of held-out queries at the last tuning, `fused_at` when the fusion was last chosen.

    `asked_at` is how many documents people had asked for when too little was held out to choose a fusion by it alone.
    `model` is a folder inside the index, or none; `stemmer` is what stemmed its words when they were last saved. In
    `one_pass`, sentences of a document are embedded with it.
    """

    fingerprint: str
    dimension: int
    model: str | None
    method: Method = "general"
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    lexical_weight: float = DEFAULT_FUSION.lexical_weight
    nearest_share: float = DEFAULT_FUSION.nearest_share
    tuning: bool = True
    tuned_at: int = 0
    fused_at: int = 0
    asked_at: int = 0
    confidence: Confidence | None = None
    language: str = "english"
    stemmer: str | None = None
    one_pass: bool = False

    def __post_init__(self) -> None:
        if self.method not in ("general", "paper"):
            raise InvalidInput(f"the method must be 'general' or 'paper', not {self.method!r}")
        if not 0.0 <= self.lexical_weight <= 1.0:
            raise InvalidInput(f"the lexical weight must lie between 0 and 1, not {self.lexical_weight}")
        if not 0.0 <= self.nearest_share <= 1.0:
            raise InvalidInput(f"the nearest text's share must lie between 0 and 1, not {self.nearest_share}")
        require_language(self.language)

    @property
    def stemmed_now(self) -> Self:
        """The same, by the stemmer that is installed."""
        return replace(self, stemmer=stemmer_of(self.language))

    @property
    def fusion(self) -> Fusion:
        return Fusion(self.lexical_weight, self.nearest_share)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: object) -> Self:
        """As `to_json` made them; UnsupportedFormat when a newer version did, InvalidInput for anything else."""
        if not isinstance(stored, Mapping):
            raise InvalidInput(f"this store holds no index: its settings are {stored!r:.40}; was it made by incdsi?")
        if newer := stored.keys() - {one.name for one in fields(cls)}:
            raise UnsupportedFormat(
                f"a newer version of incdsi wrote this index (its settings have {', '.join(sorted(newer))}); upgrade"
            )
        own = {**stored, "hyperparameters": Hyperparameters.from_json(stored["hyperparameters"])}
        if stored.get("confidence"):
            own["confidence"] = Confidence.from_json(stored["confidence"])
        return cls(**own)
