"""Embeddings from token states: those of a text whatever is beside it, and those of passages inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

Floats = NDArray[np.float32]
_Kind = tuple[int, int, int]  # of a text in a run: how many there are, tokens of the longest, and of its own
TOGETHER = 8  # texts in one run: twice as many are no faster
SPARED = 8  # tokens that one is padded by at most: a run of its own costs as much as ten
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

    Texts of nearly as many tokens share a run. Whether the runtime then computes each as if it were alone is seen the
    first time that texts of such lengths come up in a run of that shape: where it does not, they never share one again.
    """

    def __init__(self, run: Callable[[Sequence[Encoding]], Floats]) -> None:
        """`run` gives the token states (b, length, h) of texts, padded to the longest."""
        self._run = run
        self._sound: dict[_Kind, bool] = {}

    def states(self, encodings: Sequence[Encoding]) -> Iterator[tuple[int, Floats]]:
        """The place of each text, and its states (length, h)."""
        places = sorted(range(len(encodings)), key=lambda place: -len(encodings[place]))
        while places:
            size = TOGETHER
            while size > 1 and not self._fit([len(encodings[place]) for place in places[:size]], size):
                size //= 2  # few shapes come up
            group, places = places[:size], places[size:]
            yield from zip(group, self._together([encodings[place] for place in group]), strict=True)

    def _fit(self, lengths: Sequence[int], size: int) -> bool:
        """Whether texts of so many tokens, falling, may share a run."""
        near = len(lengths) == size and lengths[0] - lengths[-1] <= SPARED
        return near and all(self._sound.get(kind, True) for kind in _kinds(lengths))

    def _together(self, encodings: Sequence[Encoding]) -> list[Floats]:
        lengths = [len(encoding) for encoding in encodings]
        states = [some[:length] for some, length in zip(self._run(encodings), lengths, strict=True)]
        if len(encodings) == 1 or self._are_sound(encodings, _kinds(lengths), states):
            return states
        return [self._run([encoding])[0] for encoding in encodings]

    def _are_sound(self, encodings: Sequence[Encoding], kinds: Sequence[_Kind], states: Sequence[Floats]) -> bool:
        """By a text of each new kind, the first and the last: blocks of rows begin at the one and end at the other."""
        new = {kind: place for place, kind in enumerate(kinds) if kind not in self._sound}
        for place in {0, len(kinds) - 1, *new.values()} if new else ():
            same = np.array_equal(self._run([encodings[place]])[0], states[place])
            self._sound[kinds[place]] = self._sound.get(kinds[place], True) and same
        return all(self._sound[kind] for kind in kinds)


def _kinds(lengths: Sequence[int]) -> list[_Kind]:
    """What each text of a run is, by how many tokens they have, falling."""
    return [(len(lengths), lengths[0], length) for length in lengths]
