"""Whether what is told to be right with a probability is right so often."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 10
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


def reliability(told: Doubles, right: Mask) -> dict[str, Any]:
    """Calibration error over ten bins, Brier score, F1 of a threshold from the other half, and the diagram's points."""
    bins = np.minimum((told * BINS).astype(int), BINS - 1)
    diagram = [
        {
            "from": low / BINS,
            "n": int(inside.sum()),
            "told": float(told[inside].mean()),
            "right": float(right[inside].mean()),
        }
        for low in range(BINS)
        if (inside := bins == low).any()
    ]
    gaps = [one["n"] * abs(one["told"] - one["right"]) for one in diagram]
    order = np.random.default_rng(0).permutation(len(told))
    first, second = np.array_split(order, 2)
    return {
        "n": len(told),
        "calibration_error": float(sum(gaps) / len(told)),
        "brier_score": float(((told - right) ** 2).mean()),
        "brier_score_of_base_rate": float(right.mean() * (1 - right.mean())),
        "f1": float(np.mean([_f1_by(told, right, *halves) for halves in ((first, second), (second, first))])),
        "f1_without_threshold": _f1(np.ones(len(right), dtype=bool), right),
        "diagram": diagram,
    }


def _f1_by(told: Doubles, right: Mask, chosen_on: NDArray[np.intp], used_on: NDArray[np.intp]) -> float:
    """F1 on one half of the threshold that was best on the other."""
    thresholds = np.unique(told[chosen_on])
    best = max(thresholds, key=lambda least: _f1(told[chosen_on] >= least, right[chosen_on]))
    return _f1(told[used_on] >= best, right[used_on])


def _f1(kept: Mask, right: Mask) -> float:
    """Of keeping these answers, where those that are right should be kept."""
    both = int((kept & right).sum())
    return 2 * both / max(1, int(kept.sum()) + int(right.sum()))
