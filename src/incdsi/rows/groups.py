"""Any number of places for each slot."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.scores import Slots
from incdsi.rows.table import Growing

Sizes = NDArray[np.int64]
Number = TypeVar("Number", bound=np.floating[Any])


class Groups:
    """Places for each slot, in the order of slots; those of a slot lie together.

    One thread appends; any number read, each as many slots as it knows of.
    """

    def __init__(self) -> None:
        self._ends = Growing(np.int64)  # where the places of each slot end

    def append(self, sizes: NDArray[np.integer[Any]]) -> None:
        """The next slots have so many places each."""
        self._ends.append(self.count(len(self._ends.values)) + np.cumsum(sizes))

    def count(self, slots: int) -> int:
        """How many places the first so many slots have."""
        return int(self._ends.values[slots - 1]) if slots else 0

    def best(self, values: NDArray[Number], slots: int) -> NDArray[Number]:
        """The largest of each slot's values, of the first so many slots; -inf for one without a place."""
        return largest_of(values, self._ends.values[:slots])

    def starts(self, slots: Slots) -> Sizes:
        """Where the places of these slots begin."""
        starts: Sizes = np.where(slots > 0, self._ends.values[slots - 1], 0)
        return starts

    def places(self, slots: Slots) -> tuple[Slots, Sizes]:
        """Where these slots have their places, slot by slot, and how many each has."""
        starts = self.starts(slots)
        sizes = self._ends.values[slots] - starts
        before = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return before + np.arange(len(before)), sizes


def largest_of(values: NDArray[Number], ends: Sizes) -> NDArray[Number]:
    """The largest of each stretch of values, which end there, one after another; -inf of none."""
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    some = starts < ends
    largest = np.full(len(ends), -np.inf, dtype=values.dtype)
    if some.any():
        largest[some] = np.maximum.reduceat(values[: ends[-1]], starts[some])
    return largest
