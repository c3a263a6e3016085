"""Numbers that come one after another, in memory or, as long as nobody adds to them, in the file they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1024  # entries of an array that is empty
LARGE = 1 << 20  # entries of an array whose empty half would be missed


class Growing:
    """A one-dimensional array that grows when it is full: a small one by half, a large one by an eighth.

    Many values that come first and nobody can change, as those of a mapped file, are copied when others come.
    """

    def __init__(self, dtype: Any) -> None:
        self._values: NDArray[Any] = np.empty(SMALL, dtype=dtype)
        self._count = 0

    def append(self, values: NDArray[Any]) -> None:
        stop = self._count + len(values)
        if self._count == 0 and stop >= SMALL and lies_still(values) and values.dtype == self._values.dtype:
            self._values, self._count = np.asarray(values), stop
            return
        if stop > len(self._values):
            more = len(self._values) // (2 if len(self._values) < LARGE else 8)
            self._move(max(stop, len(self._values) + more))
        self._values[self._count : stop] = values
        self._count = stop

    def overwrite(self, indices: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Other values at these indices."""
        if not self._values.flags.writeable:
            self._move(self._count)
        self._values[indices] = values

    def _move(self, size: int) -> None:
        """To an array of that size; a reader's slice of the old one stays as it was."""
        moved = np.empty(size, dtype=self._values.dtype)
        moved[: self._count] = self.values
        self._values = moved

    @property
    def values(self) -> NDArray[Any]:
        """What is there now; later appends do not show in it."""
        return self._values[: self._count]


def lies_still(array: object) -> bool:
    """Whether nobody changes this, so that it need not be copied before more rows come."""
    return isinstance(array, np.ndarray) and not array.flags.writeable and array.flags.c_contiguous
