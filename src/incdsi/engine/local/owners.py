"""Which live documents have a query: a generated one belongs to the first that has it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.text.queries import fold


class QueryOwners:
    """The queries of documents by row, as 64-bit hashes of their folded texts; derived from the store."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, ...]] = {}
        self._count: dict[int, int] = {}

    def put(self, row: int, texts: Iterable[str]) -> None:
        """The queries that the document in that row has from now on."""
        self.remove(row)
        self._take(row, tuple({_hash(text) for text in texts}))

    def remove(self, row: int) -> None:
        """Forget a document, if it is there."""
        for text in self._of.pop(row, ()):
            self._count[text] -= 1
            if not self._count[text]:
                del self._count[text]

    def elsewhere(self, text: str, row: int) -> bool:
        """Whether another document than that in the row has this query."""
        key = _hash(text)
        return self._count.get(key, 0) > (key in self._of.get(row, ()))

    def to_arrays(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The hashes of all these rows, and how many each has."""
        found = [self._of.get(row, ()) for row in rows]
        return {
            "hashes": np.array([text for some in found for text in some], dtype=np.int64),
            "counts": np.array([len(some) for some in found], dtype=np.int64),
        }

    def fill(self, rows: Sequence[int], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave."""
        ends = np.cumsum(arrays["counts"]).tolist()
        hashes = arrays["hashes"].tolist()
        for row, begin, end in zip(rows, [0, *ends], ends, strict=False):
            self._take(row, tuple(hashes[begin:end]))

    def _take(self, row: int, hashes: tuple[int, ...]) -> None:
        self._of[row] = hashes
        for text in hashes:
            self._count[text] = self._count.get(text, 0) + 1


def _hash(text: str) -> int:
    digest = hashlib.blake2b(fold(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
