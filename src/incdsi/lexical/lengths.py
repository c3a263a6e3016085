"""How long texts are, and which of them are of one document: what BM25 measures a word's count by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
# Of a text: there is none, and one that was removed while its postings are still there.
ABSENT, REMOVED = -1, -2


class Norms(NamedTuple):
    """What a search needs, as it was when it began.

    `values` k1 (1 - b + b |d| / mean |d|) by slot, infinite without a text, so that it scores 0; `documents` and the
    sum of their lengths in `words`; `owners` the first slot of each text's document, None if none has several.
    """

    values: NDArray[np.float32]
    documents: int
    words: int
    owners: Numbers | None

    def documents_in(self, slots: Numbers, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many documents still there each stretch of so many texts is of; those of a document lie together."""
        there = np.isfinite(self.values[slots])
        if not there.all():
            slots, sizes = slots[there], _counted(there, sizes)
        if self.owners is None or not len(slots):
            return sizes
        owners, first = self.owners[slots], np.empty(len(slots), dtype=np.bool_)
        np.not_equal(owners[1:], owners[:-1], out=first[1:])
        first[(np.cumsum(sizes) - sizes)[sizes > 0]] = True
        return _counted(first, sizes)


def _counted(which: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of each stretch of so many."""
    before, ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(which)]), np.cumsum(sizes)
    return np.asarray(before[ends] - before[ends - sizes])


class Lengths:
    """The length in words of each text, by slot.

    A document is as long as its texts are on average, in whole words; a text of several is never taken to be shorter
    than the mean document: its length says where it was cut, not how much there is to say.
    """

    def __init__(self, values: Numbers, owners: Numbers | None = None) -> None:
        self.values = values
        self._owners = owners
        self._norms: Norms | None = None

    @classmethod
    def grouped(cls, values: Numbers, sizes: Sequence[int] | NDArray[np.int64]) -> Self:
        """Those of documents that have so many texts each, one after another."""
        return cls(values, _owners(sizes) if np.any(np.asarray(sizes) > 1) else None)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.values >= 0))

    def of(self, slot: int) -> int:
        return int(self.values[slot]) if 0 <= slot < len(self.values) else ABSENT

    def grown(self, slots: Iterable[int]) -> Lengths:
        """A copy with room for these slots."""
        needed = max((slot + 1 for slot in slots), default=0)
        room = len(self.values) if needed <= len(self.values) else max(needed, len(self.values) * 5 // 4)
        values, owners = np.full(room, ABSENT, np.int32), None
        values[: len(self.values)] = self.values
        if self._owners is not None:
            owners = np.arange(room, dtype=np.int32)
            owners[: len(self._owners)] = self._owners
        return Lengths(values, owners)

    def has_room(self, slots: Iterable[int]) -> bool:
        return all(slot < len(self.values) for slot in slots)

    def put(self, slots: Sequence[int], lengths: Sequence[int], sizes: Sequence[int] | None = None) -> None:
        """Texts of these lengths, so many of each document; there is room."""
        places = np.array(slots, dtype=np.intp)
        self.values[places] = lengths
        if self._owners is None and sizes is not None and max(sizes, default=1) > 1:
            self._owners = np.arange(len(self.values), dtype=np.int32)
        if self._owners is not None:
            self._owners[places] = places if sizes is None else places[_owners(sizes)]
        self._norms = None

    def forget(self, slots: Iterable[int], mark: int = ABSENT) -> None:
        self.values[np.fromiter(slots, dtype=np.intp)] = mark
        self._norms = None

    def norms(self, k1: float, b: float) -> Norms:
        """Those of the texts there are; what is given stays as it is when texts come and go."""
        if self._norms is None:
            there = self.values >= 0
            documents, words = self._documents(there)
            slope = k1 * b * documents / max(words or documents, 1)  # documents of nothing are of mean length 1
            norms = (self.values * slope + k1 * (1 - b)).astype(np.float32)
            if self._owners is not None:
                several = np.bincount(self._owners[there], minlength=len(norms))[self._owners] > 1
                np.maximum(norms, np.float32(k1), out=norms, where=several)
            norms[~there] = np.inf
            self._norms = Norms(norms, documents, words, None if self._owners is None else self._owners.copy())
        return self._norms

    def _documents(self, there: NDArray[np.bool_]) -> tuple[int, int]:
        """How many documents there are, and the sum of their lengths."""
        lengths = self.values[there].astype(np.int64)
        if self._owners is None:
            return len(lengths), int(lengths.sum())
        owners = self._owners[there]
        sizes, sums = np.bincount(owners), np.bincount(owners, lengths).astype(np.int64)
        used = sizes > 0
        return int(np.count_nonzero(used)), int((sums[used] // sizes[used]).sum())


def _owners(sizes: Sequence[int] | NDArray[np.int64]) -> Numbers:
    """Of each text the place of its document's first."""
    counts = np.asarray(sizes, dtype=np.int64)
    return np.repeat(np.cumsum(counts) - counts, counts).astype(np.int32)
