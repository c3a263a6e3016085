"""The weights a study tries: safe ones, tuned ones, and a grid that shows what can be traded."""

from __future__ import annotations

from collections.abc import Mapping

from incdsi.engine.settings import Method
from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters, Margins, Weights


def weighed(retrieve: float, anchor: float, first: float, second: float, *, scale: float = 20.0) -> Hyperparameters:
    """lambda1, lambda2, gamma1, gamma2."""
    return Hyperparameters(
        margins=Margins(retrieve=first, preserve=second),
        weights=Weights(retrieve=retrieve, anchor=anchor),
        anchor_scale=scale,
    )


# From careful to daring, then between: lambda1, lambda2, gamma1, gamma2.
GENERAL: tuple[Hyperparameters, ...] = (
    weighed(0.1, 0.3, 1.0, 4.0),
    SAFE,
    weighed(0.5, 0.1, 4.0, 4.0),
    BOLD,
    weighed(0.7, 0.02, 6.0, 4.0),
    weighed(0.9, 0.05, 8.0, 4.0),
    weighed(0.9, 0.02, 6.0, 3.5),
    weighed(0.95, 0.01, 8.0, 2.0),
    weighed(0.7, 0.05, 8.0, 3.5),
    weighed(0.7, 0.05, 8.0, 3.0),
    weighed(0.8, 0.03, 8.0, 3.5),
    weighed(0.8, 0.05, 8.0, 3.75),
    weighed(0.75, 0.05, 8.0, 3.5),
)
PAPERS: tuple[Hyperparameters, ...] = (
    weighed(0.05, 1e-3, 0.5, 10.0, scale=0.0),
    weighed(0.05, 1e-3, 2.0, 8.0, scale=0.0),
    weighed(0.1, 3e-4, 2.0, 6.0, scale=0.0),
    weighed(0.3, 1e-4, 3.0, 7.0, scale=0.0),
    weighed(0.5, 6e-5, 5.0, 7.0, scale=0.0),
    weighed(0.5, 1e-4, 4.0, 4.0, scale=0.0),
    weighed(0.8, 1e-5, 6.0, 4.0, scale=0.0),
    weighed(0.95, 1e-5, 9.0, 2.0, scale=0.0),
    weighed(0.6, 5e-5, 4.5, 4.0, scale=0.0),
    weighed(0.7, 3e-5, 5.0, 5.0, scale=0.0),
)
# What the rule chooses from: two rungs of the product's ladder, the bold one with less and less to preserve.
PATH: tuple[Hyperparameters, ...] = (
    SAFE,
    *(weighed(0.7, 0.05, 8.0, margin) for margin in (6.0, 5.0, 4.5, 4.25, 4.0, 3.75, 3.5, 3.25, 3.0)),
)
GRIDS: Mapping[Method, tuple[Hyperparameters, ...]] = {"general": GENERAL, "paper": PAPERS}


def named(how: Hyperparameters) -> str:
    """As tables show it: λ1, λ2, γ1/γ2."""
    return (
        f"λ1 {how.weights.retrieve:.3g}, λ2 {how.weights.anchor:.2g}, "
        f"γ {how.margins.retrieve:.3g}/{how.margins.preserve:.3g}"
    )
