"""Mean and spread of a query's scores over all documents, from sums that each document changes once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.products import Doubles, Floats
from incdsi.rows.scores import Spread

PORTION = 4096  # vectors taken to float64 at a time
NOISE = 1e-13  # of the most there was: what rounding may leave where all scores are the same


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over `count` vectors v of v - c and (v - c)(v - c)', about a centre c.

    mean(v.q) = c.q + total.q / n and n var(v.q) = q' squares q - (total.q)^2 / n. The centre is the first vector
    there was: differences from it keep their digits where all documents are nearly alike. `most` is the largest trace
    that `squares` ever had. What rounding left of documents that came and went is small beside it, and does not
    show: the mean is given to float32's precision, and a spread too small to tell from it is none.
    """

    count: int
    centre: Doubles
    total: Doubles
    squares: Doubles
    most: float

    @staticmethod
    def none(width: int) -> Moments:
        return Moments(0, np.zeros(width), np.zeros(width), np.zeros((width, width)), 0.0)

    def added(self, vectors: Floats) -> Moments:
        """With these vectors (m, h) as well."""
        if len(vectors) == 0:
            return self
        centre = self.centre if self.count else vectors[0].astype(np.float64)
        return self._changed(vectors, centre, 1)

    def removed(self, vectors: Floats) -> Moments:
        """Without these vectors (m, h)."""
        if len(vectors) == self.count:
            return Moments.none(len(self.centre))
        return self._changed(vectors, self.centre, -1)

    @property
    def worn(self) -> bool:
        """Whether more has gone than is left: time to sum up anew."""
        return bool(np.trace(self.squares) < self.most / 2)

    def spread(self, query: Floats) -> Spread:
        """Of the scores of all vectors with this query."""
        if self.count == 0:
            return Spread(0, 0.0, 0.0)
        q = query.astype(np.float64)
        along = float(self.total @ q)
        mean = float(self.centre @ q) + along / self.count
        squares = float(q @ self.squares @ q) - along * along / self.count
        noise = NOISE * float(q @ q) * self.most
        return Spread(self.count, float(np.float32(mean)), squares if squares > noise else 0.0)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "count": np.array([self.count]),
            "most": np.array([self.most]),
            "centre": self.centre,
            "total": self.total,
            "squares": self.squares,
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], count: int, h: int) -> Moments | None:
        """Those that were saved of so many vectors (h,); None where none fit."""
        shapes = {"count": (1,), "most": (1,), "centre": (h,), "total": (h,), "squares": (h, h)}
        fit = all(name in arrays and arrays[name].shape == shape for name, shape in shapes.items())
        if not fit or int(arrays["count"][0]) != count:
            return None
        centre, total, squares = (np.array(arrays[name], dtype=np.float64) for name in ("centre", "total", "squares"))
        return Moments(count, centre, total, squares, float(arrays["most"][0]))

    def _changed(self, vectors: Floats, centre: Doubles, sign: int) -> Moments:
        total, squares, change = self.total, self.squares, np.add if sign > 0 else np.subtract
        for part in _portions(vectors):
            apart = part - centre
            total = change(total, apart.sum(axis=0))
            products = apart.T @ apart
            squares = change(squares, products, out=products)  # a second matrix would cost as much as the sum
        most = max(self.most, float(np.trace(squares)))
        return Moments(self.count + sign * len(vectors), centre, total, squares, most)


def _portions(vectors: Floats) -> Iterator[Doubles]:
    for start in range(0, len(vectors), PORTION):
        yield vectors[start : start + PORTION].astype(np.float64)
