"""Which live documents have a query: a generated one belongs to the first that has it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import fold


class QueryOwners:
    """The queries of documents by row, as 64-bit hashes of their folded texts; derived from the store.

    Those of a base are sorted arrays, since a million documents have millions; what changed since lies beside them.
    """

    def __init__(self) -> None:
        self._saved = _Saved(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        self._changed: dict[int, tuple[int, ...]] = {}  # by row; nothing for one that is gone
        self._more: dict[int, int] = {}  # by hash, how many more documents have it than are saved

    def put(self, row: int, texts: Iterable[str]) -> None:
        """The queries that the document in that row has from now on."""
        self._change(row, tuple({_hash(text) for text in texts}))

    def remove(self, row: int) -> None:
        """Forget a document, if it is there."""
        self._change(row, ())
        if not self._saved.of(row):
            del self._changed[row]

    def elsewhere(self, text: str, row: int) -> bool:
        """Whether another document than that in the row has this query."""
        key = _hash(text)
        return self._saved.count(key) + self._more.get(key, 0) > (key in self._of(row))

    def others(self, text: str, row: int) -> list[int]:
        """The rows of the other documents that have this query."""
        if not self.elsewhere(text, row):
            return []
        key = _hash(text)
        saved = [one for one in self._saved.having(key) if one not in self._changed]
        return sorted({*saved, *(one for one, own in self._changed.items() if key in own)} - {row})

    def to_arrays(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The hashes of all these rows, and how many each has."""
        found = [np.array(self._of(row), dtype=np.int64) for row in rows]
        return {
            "hashes": np.concatenate([np.empty(0, np.int64), *found]),
            "counts": np.array([len(some) for some in found], dtype=np.int64),
        }

    def fill(self, rows: Sequence[int], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave, into one that knows nothing."""
        self._saved = _Saved(np.array(rows, dtype=np.int64), arrays["counts"], arrays["hashes"])

    def _of(self, row: int) -> tuple[int, ...]:
        changed = self._changed.get(row)
        return self._saved.of(row) if changed is None else changed

    def _change(self, row: int, hashes: tuple[int, ...]) -> None:
        for text, more in [*((text, -1) for text in self._of(row)), *((text, 1) for text in hashes)]:
            self._more[text] = self._more.get(text, 0) + more
            if not self._more[text]:
                del self._more[text]
        self._changed[row] = hashes


class _Saved:
    """Rows (n,), how many hashes each has, and the hashes of all, in that order."""

    def __init__(self, rows: NDArray[np.int64], counts: NDArray[np.int64], hashes: NDArray[np.int64]) -> None:
        order = np.argsort(rows)
        self._rows = rows[order]
        self._ends = np.cumsum(counts)[order]
        self._begins = self._ends - counts[order]
        self._hashes = hashes
        self._sorted = np.sort(hashes)

    def of(self, row: int) -> tuple[int, ...]:
        place = int(np.searchsorted(self._rows, row))
        if place == len(self._rows) or self._rows[place] != row:
            return ()
        return tuple(self._hashes[self._begins[place] : self._ends[place]].tolist())

    def count(self, key: int) -> int:
        """How many documents have this query."""
        first, last = np.searchsorted(self._sorted, key, "left"), np.searchsorted(self._sorted, key, "right")
        return int(last - first)

    def having(self, key: int) -> list[int]:
        """The rows of those documents; reads every hash."""
        filled = np.flatnonzero(self._ends > self._begins)
        order = filled[np.argsort(self._begins[filled])]
        places = np.searchsorted(self._begins[order], np.flatnonzero(self._hashes == key), "right") - 1
        found: list[int] = self._rows[order[places]].tolist()
        return found


def _hash(text: str) -> int:
    digest = hashlib.blake2b(fold(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
