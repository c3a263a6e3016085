"""Every screen there is, and one as coarse as a screen may be: whatever chooses candidates, answers stay."""

from __future__ import annotations

import os

import numpy as np

from incdsi.preserve import product_error
from incdsi.rows import local
from incdsi.rows.int8 import Int8
from incdsi.rows.products import Asked, Coded, Floats, row_lengths


class Float32:
    """numpy, in the rows' own precision."""

    dtype = np.float32
    error = product_error(np.dtype(np.float32), 4096)

    def coded(self, rows: Floats) -> Coded:
        lengths = row_lengths(rows)
        return Coded(rows, np.ones(len(rows), dtype=np.float32), self.error * lengths, lengths)

    def asked(self, vectors: Floats) -> Asked:
        return Asked(vectors, np.ones(len(vectors), dtype=np.float32), row_lengths(vectors), np.zeros(len(vectors)))

    def multiply(self, codes: Floats, asked: Asked) -> Floats:
        return codes @ asked.codes.T


class Coarse(Float32):
    """Rows, vectors and products cut to the 8 leading bits of bfloat16, without rounding."""

    dtype = np.float64  # unlike Float32's: neither takes over what the other saved
    error = 3 * 2.0**-7 * (1 + 2.0**-6) + Float32.error

    def coded(self, rows: Floats) -> Coded:
        return super().coded(rows)._replace(codes=_cut(rows).astype(np.float64))

    def multiply(self, codes: Floats, asked: Asked) -> Floats:
        return _cut(codes.astype(np.float32) @ _cut(asked.codes).T)


class Int8ByBlas(Int8):
    """What a machine without simsimd does."""

    library = None


def _cut(numbers: Floats) -> Floats:
    return (np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


SCREENS = [Int8, Int8ByBlas, Float32, Coarse]


def use_the_screen_asked_for() -> None:
    """What every index of this process multiplies by: the one that INCDSI_TEST_SCREEN names."""
    (chosen,) = (screen for screen in SCREENS if screen.__name__ == os.environ.get("INCDSI_TEST_SCREEN", "Int8"))
    local.Int8 = chosen  # type: ignore[misc]
