"""The seam between solver and rows: the one question that adding a document asks about all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nearest:
    """The preserve rows nearest to violation at a vector v.

    A row that is not listed stays below its ceiling at every vector within `radius` of v; a negative
    radius proves nothing. `indices` (m,) tell rows apart, `owners` (m,) are the documents they belong to; `rows`
    (m, h) and `ceilings` (m,) are as stored, not screened.
    """

    indices: NDArray[np.intp]
    owners: NDArray[np.integer[Any]]
    rows: NDArray[np.floating[Any]]
    ceilings: NDArray[np.float64]
    radius: float

    def __len__(self) -> int:
        return len(self.indices)

    def at(self, places: NDArray[np.intp]) -> Nearest:
        """Those in these places of the list; it proves nothing about others."""
        rows, ceilings = self.rows[places], self.ceilings[places]
        return Nearest(
            indices=self.indices[places], owners=self.owners[places], rows=rows, ceilings=ceilings, radius=-np.inf
        )


class PreserveRows(Protocol):
    """Indexed rows under ceilings, wherever they live, that can say who is nearest to violation."""

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        """For each of the vectors (b, h), at most `limit` rows, those nearest to violation."""
        ...

    def __len__(self) -> int:
        """How many rows there are; the next one appended gets this index."""
        ...


def product_error(dtype: np.dtype[Any], dimension: int) -> float:
    """At least |computed - true| / (||row|| ||v||) for row.v in that precision, in any order of summation."""
    return (dimension + 2) * float(np.finfo(dtype).eps)
