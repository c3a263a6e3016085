"""Margins, weights and the anchor's scale, validated on construction.

| name here            | paper    | meaning                                                   |
| -------------------- | -------- | --------------------------------------------------------- |
| `margins.retrieve`   | gamma1   | by how much a new document should win its own queries     |
| `margins.preserve`   | gamma2   | by how much every other document should keep its own      |
| `weights.retrieve`   | lambda1  | winning own queries versus keeping those of others        |
| `weights.anchor`     | lambda2  | pull towards the anchor (in the paper: towards zero)      |
| `anchor_scale`       | 0        | factor of the text's own embedding, the anchor            |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from incdsi.errors import InvalidHyperparameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """By how much constraints must be met (gamma1, gamma2)."""

    retrieve: float = 2.0
    preserve: float = 1.0

    def __post_init__(self) -> None:
        for name in ("retrieve", "preserve"):
            _require_number(f"margins.{name}", getattr(self, name), at_least=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each part of the objective counts (lambda1, lambda2)."""

    retrieve: float = 0.3
    anchor: float = 0.3

    def __post_init__(self) -> None:
        _require_number("weights.retrieve", self.retrieve, above=0.0, below=1.0)
        _require_number("weights.anchor", self.anchor, above=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """How adding a document trades winning against keeping; the defaults are cautious, for unit-norm encoders.

    Cautious means close to dense search, which suits few natural queries. `BOLD` is for an index where most
    documents have natural queries.
    """

    margins: Margins = field(default_factory=Margins)
    weights: Weights = field(default_factory=Weights)
    anchor_scale: float = 20.0

    def __post_init__(self) -> None:
        _require_number("anchor_scale", self.anchor_scale, at_least=0.0)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        margins, weights = Margins(**stored["margins"]), Weights(**stored["weights"])
        return cls(margins=margins, weights=weights, anchor_scale=stored["anchor_scale"])


def _require_number(
    name: str,
    value: float,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
) -> None:
    wanted = " and ".join(
        [f"above {above:g}"] * (above > -math.inf)
        + [f"at least {at_least:g}"] * (at_least > -math.inf)
        + [f"below {below:g}"] * (below < math.inf)
    )
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidHyperparameters(f"{name} must be a finite number {wanted}, not {value!r}")
    if not (above < value < below and value >= at_least):
        raise InvalidHyperparameters(f"{name} must be {wanted}, not {value:g}")


SAFE = Hyperparameters()
BOLD = Hyperparameters(margins=Margins(retrieve=8.0, preserve=4.0), weights=Weights(retrieve=0.7, anchor=0.05))
# The values the paper's authors tuned for NQ320K.
PAPER = Hyperparameters(
    margins=Margins(retrieve=6.55, preserve=6.94),
    weights=Weights(retrieve=0.484, anchor=3.1e-9),
    anchor_scale=0.0,
)
