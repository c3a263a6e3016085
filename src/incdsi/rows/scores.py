"""A score for every slot, known roughly at once and exactly where it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.products import Doubles

Slots = NDArray[np.intp]
Mask = NDArray[np.bool_]
FEW = 64  # scores of which the largest is looked at
ENOUGH = 4  # times as many of those as are wanted: then hardly more reach what is reached
WHOLE = 48.0
LARGEST = 1e30  # beyond any score: infinity times nothing is no number
LENT = 1000  # scores that few others are taken to be among (decision 0025)


@dataclass(frozen=True, slots=True)
class Spread:
    """How many scores there are, their mean, and the sum of their squared distances from it."""

    count: int
    mean: float
    squares: float

    @property
    def deviation(self) -> float:
        """To float32's precision, so that no rounding of what came before shows in it."""
        return float(np.float32(np.sqrt(max(self.squares, 0.0) / self.count))) if self.count else 0.0

    def joined(self, score: float) -> Spread:
        """With one score more."""
        count = self.count + 1
        mean = self.mean + (score - self.mean) / count
        return Spread(count, mean, self.squares + (score - self.mean) * (score - mean))

    def without(self, score: float) -> Spread:
        """With one of its scores less."""
        count = self.count - 1
        if count == 0:
            return Spread(0, 0.0, 0.0)
        mean = self.mean + (self.mean - score) / count
        return Spread(count, mean, self.squares - (score - self.mean) * (score - mean))

    def leaning_on(self, other: Spread) -> Spread:
        """With LENT scores more that are spread as the other's are: what few scores cannot tell, those do."""
        if other.count == 0:
            return self
        count, apart = self.count + LENT, self.mean - other.mean
        lent = LENT * other.squares / other.count + self.count * LENT / count * apart * apart
        return Spread(count, other.mean + self.count / count * apart, max(self.squares, 0.0) + lent)

    def into(self, other: Spread, scores: Doubles, share: float = 1.0) -> Doubles:
        """Scores of this spread as scores of the other's that stand out by that share of as much; -inf stays."""
        apart = np.maximum(scores, -LARGEST) - self.mean
        return np.where(scores > -np.inf, other.mean + apart * (share * self.scale * other.deviation), -np.inf)

    def standardised(self, scores: Doubles) -> Doubles:
        """The scores in standard deviations from the mean; zeros where all are the same."""
        return (scores - self.mean) * self.scale

    @property
    def scale(self) -> float:
        """One over the standard deviation; 0 where all scores are the same."""
        deviation = self.deviation
        return 1.0 / deviation if deviation > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """Scores that none can reach the `limit` of, measured by the square of the share of it that they reach.

    A whole match counts as WHOLE standard deviations, half a match a quarter of that: few words in common say little.
    """

    limit: float

    def standardised(self, scores: Doubles) -> Doubles:
        """The scores in units that can be added to standard deviations; zeros where nothing can be reached."""
        return WHOLE * (scores * self.scale) ** 2

    @property
    def scale(self) -> float:
        """One over the limit; 0 without one."""
        return 1.0 / self.limit if self.limit > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """`screened` (slots,) is within `doubt` (slots,) of the true score, which `exact` computes for the slots asked.

    Only the slots `alive` hold a document; what the others have means nothing. Where a slot's score is the best of
    several, `each` computes them.
    """

    alive: Mask
    screened: Doubles
    doubt: Doubles
    exact: Callable[[Slots], Doubles]
    each: Callable[[int], Doubles] | None = None

    def within(self, slot: int) -> Doubles:
        """All scores of which that slot's is the best."""
        return self.exact(np.array([slot], dtype=np.intp)) if self.each is None else self.each(slot)

    def best(
        self, k: int, allowed: Mask | None = None, order: NDArray[np.integer[Any]] | None = None
    ) -> tuple[Slots, Doubles]:
        """The slots and scores of the k best documents among those allowed.

        Ties go to the lower slot, or to the slot that is lower in `order` (slots,).
        """
        asked = self.alive if allowed is None else self.alive & allowed
        enough = _reached(np.where(asked, self.screened - self.doubt, -np.inf), k)
        slots = np.flatnonzero(asked & (self.screened + self.doubt >= enough))
        scores = self.exact(slots)
        best = np.lexsort((slots if order is None else order[slots], -scores))[:k]
        return slots[best], scores[best]

    def likely(self, k: int, allowed: Mask) -> tuple[Slots, Doubles]:
        """Slots, in any order, and scores at most, such that at most these reach more than the least of them."""
        at_most = np.where(self.alive & allowed, self.screened + self.doubt, -np.inf)
        slots = np.flatnonzero(self.alive & allowed & (at_most >= _reached(at_most, k)))
        at_most = at_most[slots]
        if len(slots) > k:
            best = np.argpartition(at_most, len(slots) - k)[len(slots) - k :]
            slots, at_most = slots[best], at_most[best]
        return slots, at_most


def _reached(values: Doubles, k: int) -> float:
    """What at least k of these reach, nearly the most that they do; -inf where there are not so many.

    Of many, by the largest of each few: k of those reach the k-th of them.
    """
    few = min(FEW, len(values) // (ENOUGH * k))
    if few > 1:
        values = values[: len(values) // few * few].reshape(few, -1).max(axis=0)
    return float(np.partition(values, len(values) - k)[len(values) - k]) if len(values) >= k else -np.inf
