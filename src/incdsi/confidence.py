"""How probably a hit is right: a logistic curve over what was seen of hits, fitted where the right answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
LEAST = 30  # questions to fit on
RIDGE = 1.0
STEPS = 50


@dataclass(frozen=True, slots=True)
class Confidence:
    """P(right) = 1 / (1 + exp(-(slopes . evidence + intercept)))."""

    intercept: float
    slopes: tuple[float, ...]

    @classmethod
    def fitted(cls, evidence: Doubles, right: NDArray[np.bool_]) -> Self:
        """By evidence (m, f) of hits of which some are right: maximum likelihood with a ridge, by Newton's steps."""
        mean, scale = evidence.mean(axis=0), evidence.std(axis=0)
        scale[scale == 0] = 1.0
        inputs = np.column_stack([np.ones(len(evidence)), (evidence - mean) / scale])
        ridge = RIDGE * np.eye(inputs.shape[1])
        ridge[0, 0] = 1e-6
        weights = np.zeros(inputs.shape[1])
        for _ in range(STEPS):
            likely = _logistic(inputs @ weights)
            slope = inputs.T @ (likely - right) + ridge @ weights
            curvature = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + ridge
            step = np.linalg.solve(curvature, slope)
            weights -= step
            if np.abs(step).max() < 1e-9:
                break
        slopes = weights[1:] / scale
        intercept = weights[0] - slopes @ mean
        return cls(float(np.float32(intercept)), tuple(slopes.astype(np.float32).tolist()))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(stored["intercept"], tuple(stored["slopes"]))

    def of(self, evidence: Doubles) -> Doubles:
        """The probability that each hit is right, by its evidence (m, f): to float32's precision.

        Evidence beyond what it was fitted on says nothing: an older fit had less.
        """
        logits = np.multiply(evidence[:, : len(self.slopes)], self.slopes).sum(axis=1) + self.intercept
        return _logistic(logits).astype(np.float32).astype(np.float64)


def _logistic(logits: Doubles) -> Doubles:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))
