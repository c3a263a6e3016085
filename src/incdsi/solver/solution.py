"""What a solver returns: the vector, the proof, and a status that says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Status(Enum):
    """How a solve ended; the value is the sentence to show.

    To insist on a query that is lost, raise weights.retrieve or lower weights.anchor.
    """

    SOLVED = "it wins its queries, and every other document keeps its own"
    COMPROMISED = (
        "placed as well as can be, but for some query it and another document are close, as near-duplicates are; "
        "nothing needs mending unless that query matters: then teach it, or remove a duplicate"
    )
    INFEASIBLE = (
        "no vector wins these queries while every other document keeps its own: "
        "drop the conflicting queries or remove the near-duplicate"
    )
    UNFINISHED = (
        "not proved optimal, because weights.anchor is too small for vectors this long: "
        "raise it or scale the vectors down"
    )

    @property
    def ok(self) -> bool:
        return self is Status.SOLVED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Violations:
    """Which constraints are not met in full, whose they are, and by how much (margins included), worst first."""

    indices: NDArray[np.intp]
    owners: NDArray[np.integer[Any]]
    amounts: NDArray[np.float64]

    @classmethod
    def worst_first(
        cls, excess: NDArray[np.float64], indices: NDArray[np.intp], owners: NDArray[np.integer[Any]]
    ) -> Violations:
        """Those with an excess."""
        over = np.flatnonzero(excess > 0)
        over = over[np.argsort(-excess[over], kind="stable")]
        return cls(indices=indices[over], owners=owners[over], amounts=excess[over])

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A document vector and what is proved about it.

    `vector` (h,) float64; `objective` at it over all rows; `bound` on ||vector - minimiser||, always finite; `lost`
    queries are below their floor, `stolen` rows above their ceiling; `passes` counts passes over all rows, `working`
    the rows in the small problem.
    """

    vector: NDArray[np.float64]
    objective: float
    bound: float
    status: Status
    lost: Violations
    stolen: Violations
    passes: int
    working: int
