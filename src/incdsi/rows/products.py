"""The matrix product everything costs: rows times vectors, quickly, with a bound on its error.

A screen only chooses candidates. Whatever is ranked, returned, compared or stored is computed by `exact`, whose
every bit is the same on every processor, whatever the screen and however many rows or threads take part.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import product_error

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def row_lengths(rows: Floats) -> Floats:
    """The Euclidean length of each row, (n,), with no copy of the rows."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def exact(rows: Floats, vectors: Floats) -> Doubles:
    """Inner products in float64 of rows (m, h) with one vector (h,), or each with its own (m, h): (m,).

    Products of float32 numbers are exact in float64, and numpy adds each row up by itself in an order that depends
    on its width alone. BLAS promises neither.
    """
    return np.asarray(np.multiply(rows, vectors, dtype=np.float64).sum(axis=1))


class Screen(Protocol):
    """One way to multiply a block of rows with vectors.

    `error` bounds |computed - true| / (||row|| ||vector||).
    """

    error: float

    def copy(self, rows: Floats) -> Any:
        """The rows (r, h) in the form `multiply` takes; the rows themselves where nothing is gained."""
        ...

    def refresh(self, copied: Any, rows: Floats, start: int, stop: int) -> None:
        """Bring rows[start:stop] into the copy."""
        ...

    def multiply(self, copied: Any, vectors: Floats) -> Floats:
        """The rows times vectors (b, h): (r, b)."""
        ...


class Float32:
    """numpy, in the rows' own precision."""

    def __init__(self, width: int) -> None:
        self.error = product_error(np.dtype(np.float32), width)

    def copy(self, rows: Floats) -> Floats:
        return rows

    def refresh(self, copied: Floats, rows: Floats, start: int, stop: int) -> None:
        """Nothing to do: the copy is the rows."""

    def multiply(self, copied: Floats, vectors: Floats) -> Floats:
        if len(vectors) == 1:
            return np.asarray((copied @ vectors[0])[:, None])
        return np.asarray(copied @ vectors.T)
