"""What training reports: epochs and moments. No torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from incdsi.info import Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One finished epoch: mean training loss and held-out quality; epoch 0 is the start, before any step."""

    number: int
    loss: float | None
    quality: Quality | None

    @classmethod
    def from_json(cls, fields: dict[str, object]) -> Epoch:
        """The inverse of `dataclasses.asdict`."""
        quality = fields["quality"]
        measured = Quality(**quality) if isinstance(quality, dict) else None
        return cls(number=fields["number"], loss=fields["loss"], quality=measured)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where training is after a step; `loss` is this step's mean, `ended` the epoch it completed."""

    step: int
    total: int
    loss: float
    ended: Epoch | None


Observe = Callable[[Moment], None]
