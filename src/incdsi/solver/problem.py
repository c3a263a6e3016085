"""The problem solved for one document's vector: arrays, validated on construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incdsi.errors import InvalidProblem
from incdsi.hyperparameters import Margins

Array = NDArray[np.floating[Any]]

LARGEST = 1e50  # for an entry: the square of a product of two still fits into float64


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Constraints on a document vector v, and where it is pulled to.

    | here                          | paper                 | shape  |
    | ----------------------------- | --------------------- | ------ |
    | `queries`                     | q (one: the mean)     | (k, h) |
    | `floors`: q_i.v should reach  | max_j q.v_j + gamma1  | (k,)   |
    | `rows`                        | Z                     | (n, h) |
    | `ceilings`: z_j.v stays below | z_j.v_j - gamma2      | (n,)   |
    | `anchor`                      | 0                     | (h,)   |

    The objective, with k queries and weights lambda1 (retrieve) and lambda2 (anchor):

        (lambda1/k) sum_i max(0, floor_i - q_i.v)^2
        + (1 - lambda1) sum_j max(0, z_j.v - ceiling_j)^2  +  lambda2 ||v - anchor||^2

    `margins` says how much of the floors and ceilings is margin: a query is won above floor - margin,
    a row stolen above ceiling + margin. It affects the status of a solution, not the solution; without it a
    constraint counts as met within a thousandth of its bound.
    """

    queries: Array
    floors: Array
    rows: Array
    ceilings: Array
    anchor: Array
    margins: Margins | None = None

    def __post_init__(self) -> None:
        anchor = as_floats("anchor", self.anchor, 1)
        h = anchor.shape[0]
        queries = as_floats("queries", self.queries, 2, width=h)
        rows = as_floats("rows", self.rows, 2, width=h)
        floors = as_floats("floors", self.floors, 1, length=len(queries), of="query")
        ceilings = as_floats("ceilings", self.ceilings, 1, length=len(rows), of="row")
        if len(queries) == 0 and not anchor.any():
            raise InvalidProblem(
                "there is nothing to place the document by: it has no query and its anchor is zero; "
                "give it a query or text"
            )
        for name, value in zip(
            ("queries", "floors", "rows", "ceilings", "anchor"),
            (queries, floors, rows, ceilings, anchor),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def objective(self, vector: ArrayLike, *, retrieve: float, anchor: float) -> float:
        """The objective at `vector`, in float64 over all rows."""
        v = np.asarray(vector, dtype=np.float64)
        k = max(len(self.queries), 1)
        lost = np.maximum(self.floors - self.queries @ v, 0.0)
        stolen = np.maximum(self.rows @ v - self.ceilings, 0.0)
        pull = v - self.anchor
        return float(retrieve / k * lost @ lost + (1 - retrieve) * stolen @ stolen + anchor * pull @ pull)

    def gradient(self, vector: ArrayLike, *, retrieve: float, anchor: float) -> NDArray[np.float64]:
        """The gradient of the objective at `vector`, in float64 over all rows."""
        v = np.asarray(vector, dtype=np.float64)
        k = max(len(self.queries), 1)
        lost = np.maximum(self.floors - self.queries @ v, 0.0)
        stolen = np.maximum(self.rows @ v - self.ceilings, 0.0)
        slope = (1 - retrieve) * stolen @ self.rows - retrieve / k * lost @ self.queries
        result: NDArray[np.float64] = 2.0 * (slope + anchor * (v - self.anchor))
        return result


def as_floats(
    name: str,
    value: ArrayLike,
    ndim: int,
    *,
    width: int | None = None,
    length: int | None = None,
    of: str = "",
) -> Array:
    """The value as a finite float array of that shape; raises InvalidProblem otherwise."""
    try:
        array = np.asarray(value)
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{name} must be an array of numbers, not {value!r:.80}") from error
    if array.ndim != ndim:
        raise InvalidProblem(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, not shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise InvalidProblem(
            f"expected {name} of dimension {width}, like the anchor, found {array.shape[1]}; use one encoder"
        )
    if length is not None and array.shape[0] != length:
        raise InvalidProblem(f"expected {length} {name}, one per {of}, found {array.shape[0]}")
    if not _all_finite(array):
        raise InvalidProblem(f"NaN or infinity in {name}; check where the numbers come from")
    if array.dtype == np.float64 and max(array.max(initial=0.0), -array.min(initial=0.0)) > LARGEST:
        raise InvalidProblem(f"{name} has numbers above {LARGEST:g}, too large to compute with; scale down")
    return array


def _all_finite(array: Array) -> bool:
    # A finite sum proves it in one quick pass; an infinite sum may just be overflow, so check each entry.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())
