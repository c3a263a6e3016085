"""A plain hybrid: the standard scores of two ways of searching, added up for every document."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
LEXICAL_WEIGHT = 0.3  # not tuned


def fuse(learned: Floats, lexical: Floats, lexical_weight: float) -> Floats:
    """The weighted sum of the standard scores, (n,)."""
    weight = np.float32(lexical_weight)
    return (1.0 - weight) * standardised(learned) + weight * standardised(lexical)


def standardised(scores: Floats) -> Floats:
    """Standard deviations from the mean; zeros where all are the same."""
    values = scores.astype(np.float64)
    if len(values) == 0 or not values.std() > 0:
        return np.zeros_like(scores)
    result: Floats = (scores - np.float32(values.mean())) / np.float32(values.std())
    return result
