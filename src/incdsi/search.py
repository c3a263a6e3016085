"""Fuse learned and lexical scores, filter, rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from incdsi.errors import InvalidInput
from incdsi.rows.products import Doubles, Floats
from incdsi.rows.scores import Mask, Scores, Slots, Spread

Mode = Literal["fused", "learned", "lexical"]
DEFAULT_FUSION = 0.3  # weight of the lexical score until it is tuned


def check_mode(mode: str) -> Mode:
    """The mode, or a sentence that lists those there are."""
    for known in get_args(Mode):
        if mode == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"expected mode to be one of {', '.join(get_args(Mode))}, found {mode!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Every document's score by one way of searching.

    `parts` tells what the learned and the lexical score contribute in the slots asked; None where one has no say.
    """

    scores: Scores
    parts: Callable[[Slots], tuple[Doubles | None, Doubles | None]]

    def among(self, slots: Mask) -> Ranking:
        """The same of these documents alone."""
        return replace(self, scores=replace(self.scores, alive=self.scores.alive & slots))


def by_learned(scores: Scores) -> Ranking:
    """By the learned score alone."""
    return Ranking(scores, lambda slots: (scores.exact(slots), None))


def by_words(lexical: Floats, alive: Mask) -> Ranking:
    """By the lexical score (slots,) alone."""
    known = lexical.astype(np.float64)
    scores = Scores(alive, known, np.zeros_like(known), lambda slots: known[slots])
    return Ranking(scores, lambda slots: (None, known[slots]))


def fused(learned: Scores, spread: Spread, words: Doubles, lexical_weight: float) -> Ranking:
    """By the sum of both, each in standard deviations from its mean over all documents.

    By score and not by rank: how far a document leads counts. `spread` is that of the learned scores; `words`
    (slots,) are standardised and weighted already.
    """
    share = 1.0 - lexical_weight

    def parts(slots: Slots) -> tuple[Doubles, Doubles]:
        return share * spread.standardised(learned.exact(slots)), words[slots]

    scores = Scores(
        alive=learned.alive,
        screened=share * spread.standardised(learned.screened) + words,
        doubt=share * spread.scale * learned.doubt,
        exact=lambda slots: np.add(*parts(slots)),
    )
    return Ranking(scores, parts)


def lexical_part(lexical: Floats, alive: Mask, lexical_weight: float) -> Doubles:
    """The lexical scores (slots,) standardised and weighted, as `fused` takes them."""
    return lexical_weight * standardised(lexical, alive).astype(np.float64)


def fuse(learned: Floats, lexical: Floats, alive: Mask, lexical_weight: float) -> Floats:
    """The sum that `fused` ranks by, of scores known for every document, (n,)."""
    weight = np.float32(lexical_weight)
    return (1.0 - weight) * standardised(learned, alive) + weight * standardised(lexical, alive)


def standardised(scores: Floats, alive: Mask) -> Floats:
    """Standard deviations from the mean over the documents alive; zeros where all are the same."""
    # In float64, then rounded: the order of the documents leaves no trace in the result.
    values = scores[alive].astype(np.float64)
    if len(values) == 0:
        return np.zeros_like(scores)
    mean, spread = np.float32(values.mean()), np.float32(values.std())
    if not spread > 0:
        return np.zeros_like(scores)
    result: Floats = (np.where(alive, scores, mean) - mean) / spread  # the dead have -inf
    return result
