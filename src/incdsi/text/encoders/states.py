"""Embeddings from token states: those of a text whatever is beside it, and those of passages inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

Floats = NDArray[np.float32]
TOGETHER = 8  # texts in one run: twice as many are no faster
SMALLEST = 1e-12  # torch's divisor for a vector of zeros


def pooled(states: Floats, normalise: bool) -> Floats:
    """The mean of token states (m, h), of unit length if asked, (h,): numpy adds rows up in their order."""
    mean = states.sum(axis=0, dtype=np.float64) / len(states)
    length = np.sqrt(np.square(mean).sum()) if normalise else 1.0
    return np.asarray(mean / max(length, SMALLEST), dtype=np.float32)


def tokens_of(encoding: Encoding, start: int, stop: int) -> list[int] | None:
    """The places of the tokens of these characters; None where the text was cut before their end, or they have none."""
    offsets: list[tuple[int, int]] = encoding.offsets
    if max((end for _, end in offsets), default=0) < stop:
        return None
    return [place for place, (begin, end) in enumerate(offsets) if begin < end and begin < stop and end > start] or None


class Alone:
    """Token states of texts with the bits that each has alone, several in a run where that changes none of them.

    Texts of as many tokens share a run without padding. Whether the runtime then computes each as if it were alone is
    seen, for each shape of a run, the first time it comes up: where it does not, such texts run one by one.
    """

    def __init__(self, run: Callable[[Sequence[Encoding]], Floats]) -> None:
        """`run` gives the token states (b, length, h) of texts of equal length."""
        self._run = run
        self._sound: dict[tuple[int, int], bool] = {}

    def states(self, encodings: Sequence[Encoding]) -> Iterator[tuple[int, Floats]]:
        """The place of each text, and its states (length, h)."""
        for group in _alike([len(encoding) for encoding in encodings]):
            yield from zip(group, self._together([encodings[place] for place in group]), strict=True)

    def _together(self, encodings: Sequence[Encoding]) -> list[Floats]:
        shape = len(encodings), len(encodings[0])
        if self._sound.get(shape, True):
            states = list(self._run(encodings))
            if shape[0] == 1 or self._is_sound(shape, encodings, states):
                return states
        return [self._run([encoding])[0] for encoding in encodings]

    def _is_sound(self, shape: tuple[int, int], encodings: Sequence[Encoding], states: Sequence[Floats]) -> bool:
        """By the first and the last text: blocks of rows begin at the one and end at the other."""
        if shape not in self._sound:
            alone = [self._run([encodings[end]])[0] for end in (0, -1)]
            self._sound[shape] = np.array_equal(alone[0], states[0]) and np.array_equal(alone[1], states[-1])
        return self._sound[shape]


def _alike(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of equal lengths, in groups of TOGETHER, then of halves of it: few shapes come up."""
    by_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        by_length.setdefault(length, []).append(place)
    for places in by_length.values():
        size = TOGETHER
        while places:
            while len(places) < size:
                size //= 2
            yield places[:size]
            places = places[size:]
