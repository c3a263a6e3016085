"""Rows in blocks that never move: growing copies nothing, and a reader's view stays true."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from incdsi import cores
from incdsi.errors import DamagedBase
from incdsi.mapped import file_memory, let_go
from incdsi.rows.growing import Growing, lies_still
from incdsi.rows.products import Asked, Coded, Doubles, Floats, Screen

T = TypeVar("T")
Sums = NDArray[np.uint64]
BLOCK_ROWS = 4096  # a block times 256 vectors stays in cache
WORTH_SHARING = 1 << 26  # multiplications: some 10 ms on one core
TOGETHER = 16  # blocks that are multiplied with one vector in one go, where they lie together; with two, half of that
SHARES = 4  # of each core in one scan: handing out a block at a time costs as much as multiplying it
HELD = 64  # full blocks of rows that are held in memory before they go to a file
TOUCHED = 256  # mapped rows that are gathered before one looks how much memory they take
SPARED = 128 << 20  # bytes that they may take
SUMS = ".sums"  # of saved rows: after their name


class Table:
    """Float32 rows (n, h), appended in order and multiplied block by block.

    A view (`count` rows of `blocks`) taken before an append is not disturbed by it. Whole blocks of read-only
    arrays (a mapped file) are used where they lie; anything else is copied. A scan reads the screen's codes alone:
    the rows themselves are touched when they are gathered, and many of them are put aside in a temporary file.
    Those of a base are compared with their sums when they are gathered first: DamagedBase for others than were saved.
    """

    def __init__(self, width: int, screen: Screen) -> None:
        self.width = width
        self.screen = screen
        self._blocks: tuple[_Block, ...] = ()
        self._count = 0
        self._scales, self._errors, self._lengths = Growing(np.float32), Growing(np.float64), Growing(np.float64)
        self._sums, self._proved = Growing(np.uint64), Growing(np.bool_)
        self._worst = 0.0, 0.0
        self._still: _Block | None = None  # the first rows, if they came at once and lie still: gathered in one go
        self._held: list[_Block] = []  # full ones whose rows are in memory
        self._mapped: list[Floats] = []
        self._touched = 0  # rows that were gathered since the memory they take was looked at
        self.damaged = False  # a row was not what was saved
        self._file_memory = 0  # and what files took when mapped rows were let go of

    def __len__(self) -> int:
        return self._count

    @property
    def lengths(self) -> Doubles:
        """The length of each row, (n,)."""
        return self._lengths.values

    @property
    def errors(self) -> Doubles:
        """How far each row may be from what the screen makes of it, (n,)."""
        return self._errors.values

    @property
    def worst(self) -> tuple[float, float]:
        """The largest error and the greatest length that a row ever had."""
        return self._worst

    def append(self, rows: Floats, coded: Coded | None = None, sums: Sums | None = None) -> int:
        """Put rows (m, h) at the end; the index of the first.

        How the screen codes them may be known already, and so may the sums of rows that are yet to be proved.
        """
        if rows.ndim != 2 or rows.shape[1] != self.width or rows.dtype != np.float32:
            raise ValueError(f"expected float32 rows of width {self.width}, found {rows.dtype} of shape {rows.shape}")
        if isinstance(rows, np.memmap):
            self._mapped.append(rows)
        first, start = self._count, 0
        if first == 0 and coded is not None and lies_still(rows) and lies_still(coded.codes):
            self._still = _Block(rows, coded.codes)
        while start < len(rows):
            stop = min(start + BLOCK_ROWS - self._count % BLOCK_ROWS, len(rows))
            some = rows[start:stop]
            part = self.screen.coded(some) if coded is None else coded.of(slice(start, stop))
            self._put(some, part.codes)
            if coded is None:
                self._know(part, sums_of(some))
            start = stop
        if coded is not None:
            self._know(coded, sums_of(rows) if sums is None else sums)
        self._proved.append(np.full(len(rows), sums is None or not isinstance(rows, np.memmap)))
        return first

    def _put(self, rows: Floats, codes: NDArray[Any]) -> None:
        """Rows that one block has room for."""
        offset = self._count % BLOCK_ROWS
        if offset == 0:
            self._blocks = (*self._blocks, _Block(rows, codes))
        else:
            self._blocks[-1].fill(offset, rows, codes)
        self._count += len(rows)
        if self._count % BLOCK_ROWS == 0 and self._blocks[-1].rows.flags.writeable:
            self._held.append(self._blocks[-1])
        if len(self._held) == HELD:
            self._put_aside()

    def _know(self, coded: Coded, sums: Sums) -> None:
        """What the screen and the sums tell of the next rows."""
        self._worst = _worst(self._worst, coded)
        self._scales.append(coded.scales)
        self._errors.append(coded.errors)
        self._lengths.append(coded.lengths)
        self._sums.append(sums)

    def overwrite(self, indices: NDArray[np.intp], rows: Floats) -> None:
        """Other rows (m, h) at these rising indices; whoever reads meanwhile sees some of them already."""
        coded, self._still = self.screen.coded(rows), None
        self._worst = _worst(self._worst, coded)
        for block, places, here in self._places(indices):
            block.overwrite(places, rows[here], coded.codes[here])
        for kept, values in (
            (self._scales, coded.scales),
            (self._errors, coded.errors),
            (self._lengths, coded.lengths),
            (self._sums, sums_of(rows)),
        ):
            kept.overwrite(indices, values)

    def _put_aside(self) -> None:
        """Move the rows of full blocks to a file without a name; without room for it they stay in memory."""
        held, self._held = self._held, []
        with contextlib.suppress(OSError), tempfile.TemporaryFile() as file:
            for block in held:
                file.write(block.rows.data)
            file.flush()
            mapped = np.memmap(file, dtype=np.float32, mode="r", shape=(len(held) * BLOCK_ROWS, self.width))
            self._mapped.append(mapped)
            for number, block in enumerate(held):
                block.rows = np.asarray(mapped[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS])

    def gather(self, indices: NDArray[np.intp]) -> Floats:
        """The rows at these indices, (m, h)."""
        if np.any(indices[1:] < indices[:-1]):
            order = np.argsort(indices)
            return self.gather(indices[order])[np.argsort(order)]
        result = np.empty((len(indices), self.width), dtype=np.float32)
        for block, places, here in self._places(indices):
            np.take(block.rows, places, axis=0, out=result[here], mode="clip")  # no buffer
        self._prove(indices, result)
        self._touched += len(indices)
        if self._mapped and self._touched > TOUCHED:
            self._touched = 0
            self._spare_memory()
        return result

    def _prove(self, indices: NDArray[np.intp], rows: Floats) -> None:
        """Each row is looked at once."""
        new = np.flatnonzero(~self._proved.values[indices])
        if not len(new):
            return
        if not np.array_equal(sums_of(rows[new]), self._sums.values[indices[new]]):
            self.damaged = True
            raise DamagedBase()
        self._proved.values[indices[new]] = True

    def _spare_memory(self) -> None:
        """Let go of mapped rows when much was read since; a row comes with 64 KB around it, or with 2 MB."""
        if file_memory() > self._file_memory + SPARED:
            for rows in self._mapped:
                let_go(rows)
            self._file_memory = file_memory()

    def saved(self, indices: NDArray[np.intp]) -> dict[str, Any]:
        """The rows at these rising indices and what the screen knows of them, as arrays by name.

        Rows and codes are gathered as they are asked for, a slice at a time: they are too many to hold twice.
        """
        return {
            "": Selection(self.gather, indices, self.width, np.float32),
            ".codes": Selection(self._codes, indices, self.width, self.screen.dtype),
            ".scales": self._scales.values[indices],
            ".errors": self._errors.values[indices],
            ".lengths": self._lengths.values[indices],
            SUMS: self._sums.values[indices],
        }

    def append_saved(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put rows at the end that were `saved` under that name; those an older version saved are coded anew."""
        rows, sums = arrays[name], arrays.get(name + SUMS)
        parts = [f"{name}.{part}" for part in Coded._fields]
        known = all(part in arrays and len(arrays[part]) == len(rows) for part in parts)
        if known and arrays[parts[0]].dtype == self.screen.dtype and arrays[parts[0]].shape == rows.shape:
            self.append(rows, Coded(*(arrays[part] for part in parts)), sums)
            return
        if sums is not None and not np.array_equal(sums_of(rows[:]), sums):
            raise DamagedBase()
        self.append(rows)

    def approximate(self, indices: NDArray[np.intp]) -> Floats:
        """The rows at these indices as the screen knows them, (m, h)."""
        return np.asarray(np.multiply(self._codes(indices), self._scales.values[indices, None], dtype=np.float32))

    def _codes(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        if np.any(indices[1:] < indices[:-1]):
            order = np.argsort(indices)
            return self._codes(indices[order])[np.argsort(order)]
        result = np.empty((len(indices), self.width), dtype=self.screen.dtype)
        for block, places, here in self._places(indices):
            np.take(block.codes, places, axis=0, out=result[here], mode="clip")
        return result

    def _places(self, indices: NDArray[np.intp]) -> Iterator[tuple[_Block, NDArray[np.intp], slice]]:
        """Block by block, where in it and where among the rising indices its rows are."""
        still, blocks = self._still, self._blocks
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self._count:
            raise IndexError(f"an index is out of range: there are {self._count} rows")
        done = 0
        if still is not None and (done := int(np.searchsorted(indices, len(still.rows)))):
            yield still, indices[:done], slice(0, done)
        if done == len(indices):
            return
        first, last = int(indices[done]) // BLOCK_ROWS, int(indices[-1]) // BLOCK_ROWS
        ends = done + np.searchsorted(indices[done:], BLOCK_ROWS * np.arange(first, last + 2))
        for number, (start, stop) in enumerate(itertools.pairwise(ends.tolist()), start=first):
            if start < stop:
                yield blocks[number], indices[start:stop] - number * BLOCK_ROWS, slice(start, stop)

    def scan(
        self,
        asked: Asked,
        count: int,
        work: Callable[[Any, Floats, Asked], T],
        wanted: Callable[[slice], NDArray[np.bool_]] | None = None,
        *,
        large: bool | None = None,
    ) -> list[T]:
        """What `work` makes of each block's screened products (r, b), of the first `count` rows.

        It is told which rows they are of, a slice or indices, and what was asked, for the doubt. Where fewer than half
        of a block's rows are `wanted`, the others are left out. Large scans share the processor's cores.
        """
        if large is None:
            large = count * asked.codes.size >= WORTH_SHARING
        scales = self._scales.values

        def one(start: int, codes: NDArray[Any]) -> T:
            here: Any = slice(start, start + len(codes))
            if wanted is not None and 2 * np.count_nonzero(chosen := wanted(here)) < len(codes):
                here, codes = start + np.flatnonzero(chosen), codes[chosen]
            products = self.screen.multiply(codes, asked)
            products *= scales[here, None]
            return work(here, products, asked)

        def some(part: slice) -> list[T]:
            return [one(*piece) for piece in pieces[part]]

        together = max(1, TOGETHER // len(asked.codes)) if wanted is None else 1
        pieces = list(self._pieces(count, together * BLOCK_ROWS))
        if len(pieces) == 1 or not large:
            return some(slice(None))
        size = -(-len(pieces) // (SHARES * cores.count()))
        shares = [slice(start, start + size) for start in range(0, len(pieces), size)]
        return list(itertools.chain.from_iterable(cores.threads().map(some, shares)))

    def _pieces(self, count: int, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """The codes of the first `count` rows, so many at a time where they lie together, and where each begins."""
        still, blocks = self._still, self._blocks
        whole = 0 if still is None else min(len(still.codes), count) // BLOCK_ROWS * BLOCK_ROWS
        if still is not None:
            yield from ((start, still.codes[start : min(start + size, whole)]) for start in range(0, whole, size))
        for start in range(whole, count, BLOCK_ROWS):
            yield start, blocks[start // BLOCK_ROWS].codes[: count - start]

    def products(self, asked: Asked, count: int) -> Floats:
        """The screened products (b, count) of the first rows with vectors (b, h).

        It is as large as for one of them: where many queries come, others want the cores as well.
        """
        found = np.empty((len(asked.codes), count), dtype=np.float32)

        def keep(here: slice, products: Floats, _: Asked) -> None:
            found[:, here] = products.T

        self.scan(asked, count, keep, large=count * self.width >= WORTH_SHARING)
        return found

    def products_of_one(
        self, asked: Asked, count: int, wanted: Callable[[slice], NDArray[np.bool_]] | None = None
    ) -> Floats:
        """The screened products (count,) of the first rows with one vector; 0 where one may be left out by `scan`."""
        found = np.zeros(count, dtype=np.float32)

        def keep(here: Any, products: Floats, _: Asked) -> None:
            found[here] = products[:, 0]

        self.scan(asked, count, keep, wanted)
        return found

    def products_at(self, indices: NDArray[np.intp], asked: Asked) -> Floats:
        """The screened products (m,) of the rows at these indices with one vector."""
        products = self.screen.multiply(self._codes(indices), asked)[:, 0]
        products *= self._scales.values[indices]
        return products


def sums_of(rows: Floats) -> Sums:
    """By which rows (m, h) are known again, (m,)."""
    return np.fromiter(map(xxh3_64_intdigest, np.ascontiguousarray(rows)), dtype=np.uint64, count=len(rows))


def _worst(so_far: tuple[float, float], coded: Coded) -> tuple[float, float]:
    error, length = so_far
    return float(coded.errors.max(initial=error)), float(coded.lengths.max(initial=length))


class _Block:
    """At most BLOCK_ROWS rows and their codes: those of a file where they lie, others in pages of its own."""

    def __init__(self, rows: Floats, codes: NDArray[Any]) -> None:
        self.rows: Floats = np.asarray(rows) if lies_still(rows) else _pages(rows)
        self.codes: NDArray[Any] = np.asarray(codes) if lies_still(codes) else _pages(codes)

    def fill(self, offset: int, rows: Floats, codes: NDArray[Any]) -> None:
        """What lies in a file is copied first, to a block that has room."""
        if len(self.rows) < BLOCK_ROWS:
            self.rows = _pages(self.rows)
        if len(self.codes) < BLOCK_ROWS:
            self.codes = _pages(self.codes)
        self.rows[offset : offset + len(rows)] = rows
        self.codes[offset : offset + len(rows)] = codes

    def overwrite(self, places: NDArray[np.intp], rows: Floats, codes: NDArray[Any]) -> None:
        """What lies in a file is copied first."""
        if not self.rows.flags.writeable:
            self.rows = _pages(self.rows)
        if not self.codes.flags.writeable:
            self.codes = _pages(self.codes)
        self.rows[places], self.codes[places] = rows, codes


def _pages(first: NDArray[Any]) -> NDArray[Any]:
    """Room for a block in pages of its own: they go back to the machine with it, where malloc would keep them."""
    size = BLOCK_ROWS * first.shape[1] * first.itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block = np.frombuffer(pages, dtype=first.dtype).reshape(BLOCK_ROWS, -1)
    block[: len(first)] = first
    return block


class Selection:
    """Some rows of a table, gathered whenever a slice of them is asked for."""

    def __init__(
        self, gather: Callable[[NDArray[np.intp]], NDArray[Any]], indices: NDArray[np.intp], width: int, dtype: Any
    ) -> None:
        self._gather = gather
        self._indices = indices
        self.shape = (len(indices), width)
        self.ndim = 2
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, here: slice) -> NDArray[Any]:
        return self._gather(self._indices[here])
