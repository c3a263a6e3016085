"""Where terms occur: `Postings`, immutable arrays by term, and `Recent`, a small editable set in front of them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.lexical.words import term_key

MAX_SLOT = 2**31 - 1
_MAX_COUNT = 2**16 - 1  # higher counts saturate: BM25 is flat long before
_NOTHING = array("q")
_Number = TypeVar("_Number", np.uint64, np.uint16, np.int64)


@dataclass(frozen=True, slots=True)
class Bag:
    """One document's terms: distinct keys, how often each occurs, and its length in words."""

    keys: array[int]
    counts: array[int]
    length: int

    @classmethod
    def of(cls, terms: Iterable[str]) -> Bag:
        occurrences = Counter(terms)
        length = occurrences.total()
        if length > _MAX_COUNT:
            occurrences = Counter({term: min(count, _MAX_COUNT) for term, count in occurrences.items()})
        return cls(array("Q", map(term_key, occurrences)), array("H", occurrences.values()), length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Immutable postings of t terms and p occurrences, possibly memory-mapped.

    `terms` (t,) uint64 sorted keys; `slots` and `counts` (p,) of term i lie at offsets[i] : offsets[i + 1].
    """

    terms: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def empty(cls) -> Postings:
        return cls(
            terms=np.empty(0, np.uint64),
            offsets=np.zeros(1, np.int64),
            slots=np.empty(0, np.int32),
            counts=np.empty(0, np.uint16),
        )

    def __len__(self) -> int:
        return len(self.slots)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The position of each key in `terms`; -1 if missing."""
        if not len(self.terms):
            return np.full(len(keys), -1, np.int64)
        places = np.searchsorted(self.terms, keys)
        places[places == len(self.terms)] = 0
        return np.where(self.terms[places] == keys, places, -1)

    def terms_of(self, slots: Sequence[int]) -> NDArray[np.int64]:
        """The term position of every posting of the given slots; one pass over all postings."""
        if len(slots) == 1:
            found = np.flatnonzero(self.slots == slots[0])
        else:
            found = np.flatnonzero(np.isin(self.slots, np.array(slots, np.int32)))
        return np.searchsorted(self.offsets, found, side="right") - 1

    def merged(self, bags: Sequence[tuple[int, Bag]], gone: NDArray[np.bool_]) -> Postings:
        """These postings without the slots marked in `gone` and with `bags`; linear in the postings."""
        kept = self._without(gone) if gone.any() else self
        keys = _joined((bag.keys for _, bag in bags), np.uint64)
        counts = _joined((bag.counts for _, bag in bags), np.uint16)
        slots = np.repeat([slot for slot, _ in bags], [len(bag.keys) for _, bag in bags]).astype(np.int32)
        return kept._with(keys, slots, counts)

    def _without(self, gone: NDArray[np.bool_]) -> Postings:
        keep = ~gone[self.slots]
        sizes = np.add.reduceat(keep, self.offsets[:-1], dtype=np.int64)  # every term has a posting
        return Postings(
            terms=self.terms[sizes > 0],
            offsets=_offsets(sizes[sizes > 0]),
            slots=self.slots[keep],
            counts=self.counts[keep],
        )

    def _with(self, keys: NDArray[np.uint64], slots: NDArray[np.int32], counts: NDArray[np.uint16]) -> Postings:
        order = np.argsort(keys, kind="stable")
        keys, slots, counts = keys[order], slots[order], counts[order]
        new_terms, new_sizes = np.unique(keys, return_counts=True)
        terms = np.union1d(self.terms, new_terms)
        sizes = np.zeros(len(terms), np.int64)
        sizes[np.searchsorted(terms, self.terms)] += np.diff(self.offsets)
        sizes[np.searchsorted(terms, new_terms)] += new_sizes
        # A new posting goes after the old ones of its term, or between its neighbours if the term is new.
        places = self.offsets[np.searchsorted(self.terms, keys, side="right")]
        return Postings(
            terms=terms,
            offsets=_offsets(sizes),
            slots=np.insert(self.slots, places, slots),
            counts=np.insert(self.counts, places, counts),
        )


class Recent:
    """Documents since the last merge; a posting is slot << 16 | count, so that one append records it."""

    def __init__(self) -> None:
        self.bags: dict[int, Bag] = {}
        self.size = 0
        self._postings: dict[int, array[int]] = {}

    def add(self, slot: int, bag: Bag) -> None:
        self.bags[slot] = bag
        self.size += len(bag.keys)
        for key, count in zip(bag.keys, bag.counts, strict=True):
            postings = self._postings.get(key)
            if postings is None:
                self._postings[key] = array("q", (slot << 16 | count,))
            else:
                postings.append(slot << 16 | count)

    def remove(self, slot: int) -> None:
        bag = self.bags.pop(slot)
        self.size -= len(bag.keys)
        for key, count in zip(bag.keys, bag.counts, strict=True):
            postings = self._postings[key]
            postings.remove(slot << 16 | count)
            if not postings:
                del self._postings[key]

    def of(self, keys: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.uint16], list[int]]:
        """Copies of the slots and counts of each key's postings, end to end, and how many each key has."""
        found = [self._postings.get(key, _NOTHING) for key in keys]
        packed = _joined(found, np.int64)
        return (packed >> 16).astype(np.int32), packed.astype(np.uint16), [len(part) for part in found]


def _joined(parts: Iterable[array[int]], dtype: type[_Number]) -> NDArray[_Number]:
    return np.frombuffer(b"".join(part.tobytes() for part in parts), dtype)


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
