"""What an index remembers about itself, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from incdsi.errors import InvalidInput
from incdsi.hyperparameters import Hyperparameters

KEY = "index"
DEFAULT_FUSION = 0.3  # weight of the lexical score until it is tuned
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
            raise InvalidInput(f"the method must be 'general' or 'paper', not {self.method!r}")
        if not 0.0 <= self.lexical_weight <= 1.0:
            raise InvalidInput(f"the lexical weight must lie between 0 and 1, not {self.lexical_weight}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: object) -> Self:
        """As `to_json` made them; InvalidInput for anything else."""
        if not isinstance(stored, Mapping):
            raise InvalidInput(f"this store holds no index: its settings are {stored!r:.40}; was it made by incdsi?")
        return cls(**{**stored, "hyperparameters": Hyperparameters.from_json(stored["hyperparameters"])})
