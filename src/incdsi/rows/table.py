"""Rows in blocks that never move: growing copies nothing, and a reader's view stays true."""

from __future__ import annotations

import functools
import itertools
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.products import Floats, Screen

T = TypeVar("T")
BLOCK_ROWS = 4096  # a block times 256 vectors stays in cache
WORTH_SHARING = 1 << 26  # multiplications: some 10 ms on one core


class Table:
    """Float32 rows (n, h), appended in order and multiplied block by block.

    A view (`count` rows of `blocks`) taken before an append is not disturbed by it. Whole blocks of
    read-only rows (a mapped file) are used where they lie; anything else is copied.
    """

    def __init__(self, width: int, screen: Screen) -> None:
        self.width = width
        self.screen = screen
        self._blocks: tuple[_Block, ...] = ()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, rows: Floats) -> int:
        """Put rows (m, h) at the end; the index of the first."""
        if rows.ndim != 2 or rows.shape[1] != self.width or rows.dtype != np.float32:
            raise ValueError(f"expected float32 rows of width {self.width}, found {rows.dtype} of shape {rows.shape}")
        first = self._count
        while len(rows):
            offset = self._count % BLOCK_ROWS
            taken = rows[: BLOCK_ROWS - offset]
            if len(taken) == BLOCK_ROWS and not taken.flags.writeable and taken.flags.c_contiguous:
                self._blocks = (*self._blocks, _Block(np.asarray(taken), self.screen))
            else:
                if offset == 0:
                    self._blocks = (*self._blocks, _Block(_zeros(BLOCK_ROWS, self.width), self.screen))
                self._blocks[-1].fill(offset, taken)
            self._count += len(taken)
            rows = rows[len(taken) :]
        return first

    def gather(self, indices: NDArray[np.intp]) -> Floats:
        """The rows at these indices, (m, h)."""
        if np.any(indices[1:] < indices[:-1]):
            order = np.argsort(indices)
            return self.gather(indices[order])[np.argsort(order)]
        blocks = self._blocks
        result = np.empty((len(indices), self.width), dtype=np.float32)
        ends = np.searchsorted(indices, BLOCK_ROWS * np.arange(len(blocks) + 1)).tolist()
        if ends[0] > 0 or ends[-1] < len(indices):
            raise IndexError(f"expected indices of {self._count} rows, found others")
        for number, (start, stop) in enumerate(itertools.pairwise(ends)):
            if start < stop:
                places = indices[start:stop] - number * BLOCK_ROWS
                np.take(blocks[number].rows, places, axis=0, out=result[start:stop], mode="clip")  # no buffer
        return result

    def scan(self, vectors: Floats, count: int, work: Callable[[int, Floats], T]) -> list[T]:
        """What `work` makes of each block's first index and screened products (r, b) of the first `count` rows.

        Large scans share the processor's cores. Whole blocks are multiplied: how a product is rounded then depends on
        a row's place alone, not on how many rows follow it.
        """

        def one(start: int, block: _Block) -> T:
            return work(start, self.screen.multiply(block.screened, vectors)[: count - start])

        starts = range(0, count, BLOCK_ROWS)
        blocks = self._blocks[: len(starts)]
        if len(blocks) > 1 and count * vectors.size >= WORTH_SHARING:
            return list(_cores().map(one, starts, blocks))
        return list(map(one, starts, blocks))


@functools.cache
def _cores() -> ThreadPoolExecutor:
    """A thread for each core; the threads of BLAS stay as the process has set them."""
    return ThreadPoolExecutor(_count_cores(), thread_name_prefix="incdsi-rows")


os.register_at_fork(after_in_child=_cores.cache_clear)  # a fork leaves its threads behind


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Block:
    def __init__(self, rows: Floats, screen: Screen) -> None:
        self.rows = rows
        self._screen = screen
        self.screened: Any = screen.copy(self.rows)
        screen.refresh(self.screened, self.rows, 0, len(self.rows))

    def fill(self, offset: int, rows: Floats) -> None:
        stop = offset + len(rows)
        self.rows[offset:stop] = rows
        self._screen.refresh(self.screened, self.rows, offset, stop)


def _zeros(count: int, width: int) -> Floats:
    """Rows in pages of their own: they go back to the machine with the block, where malloc would keep them."""
    size = count * width * np.dtype(np.float32).itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=np.float32).reshape(count, width)


class Growing:
    """A one-dimensional array that grows by half when it is full."""

    def __init__(self, dtype: Any) -> None:
        self._values: NDArray[Any] = np.empty(1024, dtype=dtype)
        self._count = 0

    def append(self, values: NDArray[Any]) -> None:
        stop = self._count + len(values)
        if stop > len(self._values):
            grown = np.empty(max(stop, len(self._values) * 3 // 2), dtype=self._values.dtype)
            grown[: self._count] = self.values
            self._values = grown  # a reader's slice of the old one stays as it was
        self._values[self._count : stop] = values
        self._count = stop

    @property
    def values(self) -> NDArray[Any]:
        """What is there now; later appends do not show in it."""
        return self._values[: self._count]
