"""The screen: rows in 8 bits, multiplied in whole numbers, so that its every bit is the same on every processor.

A row x is kept as x' = s k with whole numbers k from -127 to 127; a vector v is asked as v' = t w with whole numbers w.
Then x.v - x'.v' = (x - x').v + x'.(v - v'), and by Cauchy and Schwarz

    |x.v - x'.v'| <= ||x - x'|| ||v|| + ||x'|| ||v - v'||.

||x - x'|| is measured once for each row and ||v - v'|| once for each vector. Nothing is presumed about how rounding
went, so no row is too strange for the proof. k.w adds up whole numbers whose sums stay below 2^24: exact in int32 and
in float32, in any order. Only s t k.w is rounded, twice, in float32: by less than ROUNDING ||x'|| ||v'||. So with

    error = ||x - x'|| + ROUNDING ||x'||   and   lost = ||v - v'||

and since ||x'|| <= ||x|| + ||x - x'|| and ||v'|| <= ||v|| + lost, what is computed is within

    error (||v|| + lost) + ||x|| lost

of x.v. At h = 384 an error is some 0.7 % of its row's length.

A few vectors are cut to 8 bits as well, for simsimd, which multiplies about as fast as memory is read. Many are cut to
as many bits as sums in float32 have room for (about 11 at h = 384), for BLAS. Where simsimd is not installed BLAS
multiplies a few as well, with the same results.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.products import PORTION, Asked, Coded, Doubles, Floats, row_lengths

try:
    import simsimd
except ImportError:  # then BLAS multiplies
    simsimd = None  # type: ignore[assignment]

LARGEST = 127
SUMMED = 2**24 // LARGEST  # the sum of |w| may be so much: whatever is added up is exact in float32
LEAST, MOST = 1e-15, 1e15  # scales: products of two and a sum are far from float32's ends
ROUNDING = 2.0**-22
MEASURED = 1 + 1e-9  # a length measured in float64 is at least the true one after this
FEW = 16  # vectors that simsimd multiplies at least as soon as BLAS does: more than a document has queries
AT_ONCE = 4096  # rows that BLAS multiplies at once: fewer cost more in waking its threads than they save in cache
_scratch = threading.local()


class Int8:
    """Rows in 8 bits with a scale each; what a row lost is measured."""

    dtype = np.int8
    library: Any = simsimd

    def coded(self, rows: Floats) -> Coded:
        codes = np.empty(rows.shape, dtype=np.int8)
        scales, errors = np.empty(len(rows), dtype=np.float32), np.empty(len(rows))
        for start in range(0, len(rows), PORTION):
            part = slice(start, start + PORTION)
            some = rows[part]
            scales[part] = _usable(np.abs(some).max(axis=1, initial=0) / LARGEST)
            codes[part] = whole = _whole(some, scales[part], LARGEST)
            kept = np.multiply(whole, scales[part, None], dtype=np.float64)
            errors[part] = MEASURED * (_lengths(some - kept) + ROUNDING * _lengths(kept))
        return Coded(codes, scales, errors, row_lengths(rows))

    def asked(self, vectors: Floats) -> Asked:
        room = SUMMED - vectors.shape[1] / 2 - 1  # rounding may add a half to each
        summed = np.abs(vectors).sum(axis=1, dtype=np.float64) / room
        if len(vectors) <= FEW:
            scales = _usable(np.maximum(np.abs(vectors).max(axis=1, initial=0) / LARGEST, summed))
            codes: NDArray[Any] = _whole(vectors, scales, LARGEST).astype(np.int8)
        else:  # whole multiples of a power of two, which float32 holds as well as the numbers themselves
            steps = _usable(np.ldexp(1.0, np.frexp(summed)[1]))
            codes, scales = _whole(vectors, steps, SUMMED) * steps[:, None], np.ones(len(vectors), dtype=np.float32)
        kept = np.multiply(codes, scales[:, None], dtype=np.float64)
        return Asked(codes, scales, MEASURED * row_lengths(vectors), MEASURED * _lengths(vectors - kept))

    def multiply(self, codes: NDArray[Any], asked: Asked) -> Floats:
        if asked.codes.dtype != np.int8:
            return _by_blas(codes, asked.codes)
        if self.library is not None and len(codes):
            # Into an array of its own: with out= simsimd takes a reference to None too many, until Python dies of it.
            found = self.library.cdist(codes, asked.codes, "dot", out_dtype="float32")
            products: Floats = np.asarray(found, dtype=np.float32).reshape(len(codes), -1)
        else:
            products = _by_blas(codes, asked.codes.astype(np.float32))
        products *= asked.scales
        return products


def _usable(scales: NDArray[Any]) -> Floats:
    """As float32; 0 for what is too large or too small to multiply by: all of such a row is its error."""
    return np.where((scales >= LEAST) & (scales <= MOST), scales, 0.0).astype(np.float32)


def _whole(numbers: Floats, scales: Floats, most: int) -> Floats:
    """The whole multiples of their scales nearest to numbers (m, h); float32, and never above `most`."""
    with np.errstate(divide="ignore"):
        inverse = np.where(scales > 0, 1 / scales, 0)[:, None].astype(np.float32)
    result: Floats = np.clip(np.rint(numbers * inverse), -most, most)
    return result


def _lengths(numbers: NDArray[Any]) -> Doubles:
    return np.asarray(np.sqrt(np.square(numbers).sum(axis=1)))


def _by_blas(codes: NDArray[np.int8], vectors: Floats) -> Floats:
    """The products of whole numbers (r, h) and vectors (b, h), exact in float32 by the choice of their scales."""
    floats, products = _floats(codes.shape[1]), np.empty((len(codes), len(vectors)), dtype=np.float32)
    for start in range(0, len(codes), AT_ONCE):
        some = codes[start : start + AT_ONCE]
        np.copyto(floats[: len(some)], some)
        np.matmul(floats[: len(some)], vectors.T, out=products[start : start + AT_ONCE])
    return products


def _floats(width: int) -> Floats:
    """This thread's own room for a portion: taking new memory each time costs more than the product."""
    room: Floats | None = getattr(_scratch, "floats", None)
    if room is None or room.shape[1] != width:
        room = _scratch.floats = np.empty((AT_ONCE, width), dtype=np.float32)
    return room
