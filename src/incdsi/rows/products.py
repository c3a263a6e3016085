"""The matrix product everything costs: rows times vectors, quickly, with a bound on its error.

float32 in numpy, or bfloat16 in torch where that is faster (processors with matrix units). Both are
screens: whoever needs the exact value looks again at the few rows that the error leaves in doubt.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.preserve import product_error

Floats = NDArray[np.float32]


def row_lengths(rows: Floats) -> Floats:
    """The Euclidean length of each row, (n,), with no copy of the rows."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


class Screen(Protocol):
    """One way to multiply a block of rows with vectors.

    `error` bounds |computed - true| / (||row|| ||vector||); `bytes_per_number` is what a copy costs.
    """

    error: float
    bytes_per_number: int

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

    bytes_per_number = 0

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


class Bfloat16:
    """torch in bfloat16, for processors that multiply it faster than float32."""

    bytes_per_number = 2

    def __init__(self, width: int) -> None:
        # Row, vector and result are rounded to 8 bits each; sums are kept in float32.
        self.error = 3 * 2.0**-8 + product_error(np.dtype(np.float32), width)
        self._torch = importlib.import_module("torch")

    def copy(self, rows: Floats) -> Any:
        return self._torch.zeros(rows.shape, dtype=self._torch.bfloat16)

    def refresh(self, copied: Any, rows: Floats, start: int, stop: int) -> None:
        copied[start:stop] = self._torch.from_numpy(np.array(rows[start:stop]))

    def multiply(self, copied: Any, vectors: Floats) -> Floats:
        columns = self._torch.from_numpy(vectors).to(self._torch.bfloat16).T
        return np.asarray((copied @ columns).float().numpy())


def fastest_screen(width: int) -> Screen:
    """The screen that is faster on this machine for rows of that width, by a short trial, once."""
    return Bfloat16(width) if _bfloat16_pays() else Float32(width)


@functools.cache
def _bfloat16_pays() -> bool:
    # Importing torch takes seconds: only where the processor has something to gain.
    if not multiplies_bfloat16() or importlib.util.find_spec("torch") is None:
        return False
    rows = np.ones((2048, 256), dtype=np.float32)
    vectors = np.ones((32, 256), dtype=np.float32)
    # It must win clearly: it also costs memory and leaves more rows in doubt.
    return _seconds(Bfloat16(256), rows, vectors) < 0.5 * _seconds(Float32(256), rows, vectors)


def multiplies_bfloat16() -> bool:
    """Whether the processor has units for it."""
    processor = Path("/proc/cpuinfo")
    return processor.exists() and any(unit in processor.read_text() for unit in ("amx_bf16", "avx512_bf16"))


def _seconds(screen: Screen, rows: Floats, vectors: Floats) -> float:
    copied = screen.copy(rows)
    screen.refresh(copied, rows, 0, len(rows))
    return min(_timed(lambda: screen.multiply(copied, vectors)) for _ in range(4))


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
