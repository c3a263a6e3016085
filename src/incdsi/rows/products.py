"""The matrix product everything costs: rows times vectors, quickly, with a bound on its error.

A screen only chooses candidates. Whatever is ranked, returned, compared or stored is computed by `exact`, whose
every bit is the same on every processor, whatever the screen and however many rows or threads take part.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
PORTION = 1024  # rows taken to another precision at a time: they stay in cache


def row_lengths(rows: Floats) -> Doubles:
    """The Euclidean length of each row, (n,): neither huge nor tiny numbers are lost on the way."""
    squares = np.empty(len(rows))
    for start in range(0, len(rows), PORTION):
        some = rows[start : start + PORTION]
        squares[start : start + PORTION] = exact(some, some)
    return np.asarray(np.sqrt(squares))


def exact(rows: Floats, vectors: Floats) -> Doubles:
    """Inner products in float64 of rows (m, h) with one vector (h,), or each with its own (m, h): (m,).

    Products of float32 numbers are exact in float64, and numpy adds each row up by itself in an order that depends
    on its width alone. BLAS promises neither.
    """
    return np.asarray(np.multiply(rows, vectors, dtype=np.float64).sum(axis=1))


class Coded(NamedTuple):
    """Rows (m, h) as a screen multiplies them: row i is nearly codes[i] * scales[i].

    `errors` (m,) say how nearly, `lengths` (m,) are those of the rows themselves.
    """

    codes: NDArray[Any]
    scales: Floats
    errors: Doubles
    lengths: Doubles

    def of(self, here: Any) -> Coded:
        """The same of some of these rows."""
        return Coded(self.codes[here], self.scales[here], self.errors[here], self.lengths[here])


class Asked(NamedTuple):
    """Vectors (b, h) as a screen multiplies them: nearly codes[j] * scales[j], which is at most `lost` (b,) away.

    `lengths` (b,) are those of the vectors as they were given.
    """

    codes: NDArray[Any]
    scales: Floats
    lengths: Doubles
    lost: Doubles

    def doubt(self, errors: Any, lengths: Any, columns: Any = slice(None)) -> Any:
        """How far products may be from the truth, for these vectors and rows of such errors and lengths."""
        lost = self.lost[columns]
        return errors * (self.lengths[columns] + lost) + lengths * lost


class Screen(Protocol):
    """One way to multiply rows with vectors, quickly.

    |computed - true| <= error (||v|| + lost) + ||row|| lost, with a row's `error` and a vector's `lost`.
    """

    dtype: Any  # of the codes

    def coded(self, rows: Floats) -> Coded:
        """Rows (m, h) in the form `multiply` takes."""
        ...

    def asked(self, vectors: Floats) -> Asked:
        """Vectors (b, h) in the form `multiply` takes."""
        ...

    def multiply(self, codes: NDArray[Any], asked: Asked) -> Floats:
        """Codes of rows times vectors: (r, b), still to be multiplied by the rows' scales."""
        ...
