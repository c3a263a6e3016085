"""A score for every slot, known roughly at once and exactly where it matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.products import Doubles, Floats

Slots = NDArray[np.intp]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.integer[Any])
FIRST = 64  # of the best that are looked at first; at 10,000 documents they nearly always do
NEXT = 4  # times as many in each look that follows
AT_ONCE = 8  # exact scores that are computed together with those of as many as are wanted
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


class Scores(ABC):
    """The score of every slot that is `allowed`, roughly known at once and exactly where it matters."""

    def __init__(self, allowed: Mask) -> None:
        self.allowed = allowed
        # Who weighs the parts of a score this way and that asks again.
        self._lists: dict[int, tuple[Slots, float]] = {}
        self._known: dict[int, float] = {}

    @abstractmethod
    def reaching(self, count: int) -> tuple[Slots, float]:
        """Slots with one of the so many best rows, each once, and what no other scores more than; -inf without one."""

    @abstractmethod
    def at_most(self, slots: Slots) -> Doubles:
        """What these score at most: little more than their scores."""

    @abstractmethod
    def computed(self, slots: Slots) -> Doubles:
        """The scores of these, exactly."""

    @abstractmethod
    def within(self, slot: int) -> Doubles:
        """All scores of which that slot's is the best."""

    def exact(self, slots: Slots) -> Doubles:
        """The scores of these; those asked for again are remembered."""
        asked = slots.tolist()
        new = [slot for slot in asked if slot not in self._known]
        if new:
            self._known |= zip(new, self.computed(np.array(new, dtype=np.intp)).tolist(), strict=True)
        return np.array([self._known[slot] for slot in asked])

    def likely(self, k: int) -> tuple[Slots, float]:
        """At least k slots, or all that are allowed, and what no other scores more than; -inf without one."""
        if k not in self._lists:
            self._lists[k] = self._listed(k)
        return self._lists[k]

    def _listed(self, k: int) -> tuple[Slots, float]:
        count = k
        while True:
            slots, beyond = self.reaching(count)
            slots = slots[self.allowed[slots]]
            if len(slots) == np.count_nonzero(self.allowed):
                beyond = -np.inf
            if len(slots) >= k or beyond == -np.inf:
                return slots, beyond
            count *= 2

    def best(self, k: int, order: NDArray[np.integer[Any]] | None = None) -> tuple[Slots, Doubles]:
        """The slots and scores of the k best. Ties go to the lower slot, or to what is lower in `order` (slots,)."""
        depth = max(FIRST, 2 * k)
        while True:
            likely, beyond = self.likely(depth)
            likely = likely[np.argsort(likely if order is None else order[likely])]
            slots, scores = best_of(likely, self.at_most(likely), self.exact, k)
            if beyond == -np.inf or (len(slots) == k and scores[-1] > beyond):
                return slots, scores
            depth *= NEXT


def best_of(
    some: NDArray[Number], at_most: Doubles, exact: Callable[[NDArray[Number]], Doubles], k: int
) -> tuple[NDArray[Number], Doubles]:
    """The k best of some that come in the order of ties, and their scores: who cannot be one of them is not asked."""
    hopeful = np.argsort(-at_most, kind="stable")
    done, scores, best = 0, np.empty(0), np.empty(0, dtype=np.intp)
    while done < len(hopeful) and (len(best) < k or at_most[hopeful[done]] >= scores[best[-1]]):
        more = hopeful[done : done + max(done, k + AT_ONCE)]
        scores = np.concatenate([scores, exact(some[more])])
        done += len(more)
        best = np.lexsort((hopeful[:done], -scores))[:k]
    return some[hopeful[best]], scores[best]


def reached(values: Floats, k: int) -> float:
    """What at least k of these reach, nearly the most that they do; -inf where there are not so many.

    Of many, by the largest of each few: k of those reach the k-th of them.
    """
    few = min(FEW, len(values) // (ENOUGH * k))
    if few > 1:
        values = values[: len(values) // few * few].reshape(few, -1).max(axis=0)
    return float(np.partition(values, len(values) - k)[len(values) - k]) if len(values) >= k else -np.inf
