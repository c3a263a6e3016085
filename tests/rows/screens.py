"""Every screen there is, and one as coarse as a screen may be: whatever chooses candidates, answers stay."""

from __future__ import annotations

import os

import numpy as np

from incdsi.preserve import product_error
from incdsi.rows import local
from incdsi.rows.products import Float32, Floats


class Coarse:
    """Rows, vectors and products cut to the 8 leading bits of bfloat16, without rounding."""

    def __init__(self, width: int) -> None:
        self.error = 3 * 2.0**-7 * (1 + 2.0**-6) + product_error(np.dtype(np.float32), width)

    def copy(self, rows: Floats) -> Floats:
        return np.zeros_like(rows)

    def refresh(self, copied: Floats, rows: Floats, start: int, stop: int) -> None:
        copied[start:stop] = _cut(rows[start:stop])

    def multiply(self, copied: Floats, vectors: Floats) -> Floats:
        return _cut(copied @ _cut(vectors).T)


def _cut(numbers: Floats) -> Floats:
    return (np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


SCREENS = [Float32, Coarse]


def use_the_screen_asked_for() -> None:
    """What every index of this process multiplies by: the one that INCDSI_TEST_SCREEN names."""
    (chosen,) = (screen for screen in SCREENS if screen.__name__ == os.environ.get("INCDSI_TEST_SCREEN", "Float32"))
    local.Float32 = chosen  # type: ignore[misc, assignment]
