"""Any number of places for each slot."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.growing import Growing
from incdsi.rows.scores import Slots

Sizes = NDArray[np.int64]
Number = TypeVar("Number", bound=np.floating[Any])


class Groups:
    """Places for each slot, in the order of slots; those of a slot lie together.

    One thread appends; any number read, each as many slots as it knows of.
    """

    def __init__(self) -> None:
        self._bounds = Growing(np.int64)  # where the places of each slot begin, and the last one's end
        self._bounds.append(np.zeros(1, dtype=np.int64))
        self._one_each = True

    def append(self, sizes: NDArray[np.integer[Any]]) -> None:
        """The next slots have so many places each."""
        self._one_each = self._one_each and bool(np.all(sizes == 1))
        self._bounds.append(self._bounds.values[-1] + np.cumsum(sizes))

    def count(self, slots: int) -> int:
        """How many places the first so many slots have."""
        return int(self._bounds.values[slots])

    def best(self, values: NDArray[Number], slots: int) -> NDArray[Number]:
        """The largest of each slot's values, of the first so many slots; -inf for one without a place."""
        return values[:slots] if self._one_each else _largest(values, self._bounds.values[: slots + 1])

    def owners(self, places: Slots) -> Slots:
        """The slots that have these places."""
        return np.searchsorted(self._bounds.values, places, side="right") - 1

    def each(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the first slots have, for each of their places."""
        return np.repeat(values, np.diff(self._bounds.values[: len(values) + 1]))

    def starts(self, slots: Slots) -> Sizes:
        """Where the places of these slots begin."""
        starts: Sizes = self._bounds.values[slots]
        return starts

    def sizes(self, slots: Slots) -> Sizes:
        """How many places each of these slots has."""
        return self._bounds.values[slots + 1] - self.starts(slots)

    def places(self, slots: Slots) -> tuple[Slots, Sizes]:
        """Where these slots have their places, slot by slot, and how many each has."""
        starts, sizes = self.starts(slots), self.sizes(slots)
        before = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return before + np.arange(len(before)), sizes


def largest_of(values: NDArray[Number], ends: Sizes) -> NDArray[Number]:
    """The largest of each stretch of values, which end there, one after another; -inf of none."""
    return _largest(values, np.concatenate([np.zeros(1, dtype=np.int64), ends]))


def _largest(values: NDArray[Number], bounds: Sizes) -> NDArray[Number]:
    starts, ends = bounds[:-1], bounds[1:]
    some = starts < ends
    largest = np.full(len(ends), -np.inf, dtype=values.dtype)
    if some.any():
        largest[some] = np.maximum.reduceat(values[: ends[-1]], starts[some])
    return largest
