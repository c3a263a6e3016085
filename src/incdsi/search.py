"""Fuse learned and lexical scores, filter, rank."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidInput

Mode = Literal["fused", "learned", "lexical"]
Scores = NDArray[np.float32]
DEFAULT_FUSION = 0.3  # weight of the lexical score until it is tuned


def check_mode(mode: str) -> Mode:
    """The mode, or a sentence that lists those there are."""
    for known in get_args(Mode):
        if mode == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"expected mode to be one of {', '.join(get_args(Mode))}, found {mode!r}")


def fuse(learned: Scores, lexical: Scores, alive: NDArray[np.bool_], lexical_weight: float) -> Scores:
    """The weighted sum of both scores, each in standard deviations from its mean over all documents: (n,).

    By score and not by rank: how far a document leads counts.
    """
    learned_part, lexical_part = parts(learned, lexical, alive, lexical_weight)
    return learned_part + lexical_part


def parts(learned: Scores, lexical: Scores, alive: NDArray[np.bool_], lexical_weight: float) -> tuple[Scores, Scores]:
    """The two weighted scores whose sum is the fused one, (n,) each."""
    weight = np.float32(lexical_weight)
    return (1.0 - weight) * standardised(learned, alive), weight * standardised(lexical, alive)


def rank(scores: Scores, allowed: NDArray[np.bool_], k: int) -> NDArray[np.intp]:
    """The slots of the k best allowed documents, best first; ties go to the lower slot."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(f"expected k to be a whole number of at least 1, found {k!r}")
    slots = np.flatnonzero(allowed)
    if len(slots) > k:
        best = scores[slots]
        kth = np.partition(best, len(best) - k)[len(best) - k]
        slots = slots[best >= kth]
    order = np.lexsort((slots, -scores[slots]))
    return slots[order[:k]]


def standardised(scores: Scores, alive: NDArray[np.bool_]) -> Scores:
    """Standard deviations from the mean over the documents alive; zeros where all are the same."""
    # In float64, then rounded: the order of the documents leaves no trace in the result.
    values = scores[alive].astype(np.float64)
    if len(values) == 0:
        return np.zeros_like(scores)
    mean, spread = np.float32(values.mean()), np.float32(values.std())
    if not spread > 0:
        return np.zeros_like(scores)
    result: Scores = (np.where(alive, scores, mean) - mean) / spread  # the dead have -inf
    return result
