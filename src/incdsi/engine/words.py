"""BM25 by slot, where a slot may have several texts: the best of them counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import CorruptStore
from incdsi.lexical import LexicalIndex
from incdsi.rows.groups import Groups
from incdsi.rows.scores import Slots

SIZES = "units"  # beside the arrays of the lexical index: how many texts each slot has


class OwnWords:
    """The words of each slot's texts: of a document, or of its passages, one after another."""

    def __init__(self, language: str) -> None:
        self._index = LexicalIndex(language=language)
        self.units = Groups()
        self._slots = 0

    def add(self, words: Sequence[Sequence[str]]) -> None:
        """Those of the next slots."""
        first, together = self.units.count(self._slots), [text for some in words for text in some]
        sizes = [len(some) for some in words]
        self._index.add_many(range(first, first + len(together)), together, sizes=sizes)
        self.units.append(np.array(sizes, dtype=np.int64))
        self._slots += len(words)

    def remove(self, slots: Sequence[int]) -> None:
        self._index.remove_many(self.units.places(np.array(slots, dtype=np.intp))[0].tolist())

    def scores_and_limit(self, text: str, slots: int) -> tuple[NDArray[np.float32], float]:
        """The score of every text of the first so many slots, and what none of them reaches."""
        return self._index.scores_and_limit(text, self.units.count(slots))

    def score_of(self, words: Sequence[str], query: str) -> float:
        """The score of the best of these texts, were they those of a slot."""
        return self._index.score_of(words, query)

    def marker(self, query: str) -> Callable[[str], list[tuple[int, int]]]:
        return self._index.marker(query)

    def to_arrays(self, slots: Slots) -> dict[str, NDArray[Any]]:
        """Everything in these slots, all that are in use and rising; slots[i] becomes i."""
        places, sizes = self.units.places(slots)
        return {**self._index.to_arrays(places), SIZES: sizes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], language: str, slots: int) -> Self:
        """The inverse of `to_arrays`, for so many slots; those of an older version have one text each."""
        found = cls(language)
        sizes = np.asarray(arrays[SIZES]) if SIZES in arrays else np.ones(slots, dtype=np.int64)
        found._index = LexicalIndex.from_arrays(arrays, language, sizes)
        if len(sizes) != slots:
            raise CorruptStore("the base has words of other documents than vectors; it is read anew from the store")
        found.units.append(sizes)
        found._slots = slots
        return found
