"""Preserve rows in one array, and the ring of rows seen near violation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import Nearest, product_error
from incdsi.solver.problem import Array


class DenseRows:
    """Preserve rows in one array: a pass is one product, in the array's own precision."""

    def __init__(self, rows: Array, ceilings: Array) -> None:
        self._rows = rows
        self._ceilings = np.asarray(ceilings, dtype=np.float64)
        self._lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(self, vectors: NDArray[np.float64], limit: int) -> list[Nearest]:
        return [self._nearest(vector, limit) for vector in vectors]

    def _nearest(self, vector: NDArray[np.float64], limit: int) -> Nearest:
        if len(self._rows) <= limit:
            return self._pick(np.arange(len(self._rows)), np.inf)
        slack = self._slack(vector)
        order = np.argpartition(slack, limit)
        doubt = product_error(self._rows.dtype, len(vector)) * float(np.linalg.norm(vector))
        return self._pick(np.sort(order[:limit]), float(slack[order[limit]]) - doubt)

    def _slack(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far v can move before each row is violated; a zero row is always violated or never."""
        scores = self._rows @ vector.astype(self._rows.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = (self._ceilings - scores) / self._lengths
        slack[np.isnan(slack)] = np.inf  # a zero row with a ceiling of zero
        return np.asarray(slack, dtype=np.float64)

    def _pick(self, chosen: NDArray[np.intp], radius: float) -> Nearest:
        return Nearest(
            indices=chosen,
            owners=chosen,
            rows=self._rows[chosen],
            ceilings=self._ceilings[chosen],
            radius=radius,
        )


class Ring:
    """Rows seen near violation, in their own precision; each is handed out once."""

    def __init__(self, near: Nearest, taken: Sequence[int] = ()) -> None:
        self._near = near
        squares = np.einsum("ij,ij->i", near.rows, near.rows)
        lengths = np.sqrt(np.maximum(squares, np.finfo(near.rows.dtype).tiny))  # squares of tiny numbers underflow
        self._doubts = product_error(near.rows.dtype, near.rows.shape[1]) * lengths
        self._ceilings = near.ceilings.copy()
        gone = set(taken)
        self._ceilings[[place for place, index in enumerate(near.indices.tolist()) if index in gone]] = np.inf

    def worst(self, vector: NDArray[np.float64], most: int) -> Nearest:
        """The rows most violated at the vector, including those too close to call."""
        near = self._near
        scores = near.rows @ vector.astype(near.rows.dtype)
        over = scores + self._doubts * np.linalg.norm(vector) - self._ceilings
        chosen = np.flatnonzero(over > 0)
        if len(chosen) > most:
            chosen = chosen[np.argpartition(-over[chosen], most)[:most]]
        self._ceilings[chosen] = np.inf
        return near.at(chosen)
