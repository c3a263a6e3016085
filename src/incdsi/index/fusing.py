"""Which fusion makes the right documents most likely, by what is told of probes and of the documents around theirs.

A count of who is first moves in whole probes: many fusions are alike by it, and the best of many is often chance. How
probable a fusion makes each right document says more, from every probe: how far its rivals lead or trail counts too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incdsi.confidence import Doubles
from incdsi.engine.settings import DEFAULT_FUSION, Fusion
from incdsi.index.quality import WORDS_ALONE, Panel

WORDS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, *(one / 20 for one in range(4, 20)))
# Those tried; by words alone, the share of the nearest text is nothing's.
FUSIONS = (*(Fusion(words, share / 10) for words in WORDS for share in range(11)), WORDS_ALONE)
CHANCE = 0.01  # that a probe is right whatever the scores say: what nothing finds must not choose
CAUTION = 0.5  # of log-likelihood that a squared step away from the default must bring
STEPS = 30
# Where every probe is found, sharper is always likelier; where a fusion misleads, blunter.
BLUNTEST, SHARPEST = 1 / 64, 64.0
CLOSE = 1e-4  # of a sharpness, where steps end
TINY = 1e-9  # a spread that is none
DIGITS = 6  # of a likelihood: rounding does not choose


class Field:
    """What each part gives the documents that probes are compared by, less what it gives the right one."""

    def __init__(self, probes: Sequence[Doubles], weights: Doubles) -> None:
        """Each probe counts by its weight, (probes,)."""
        self._weights = weights
        self._parts = np.concatenate(probes, axis=1)  # (parts, documents of all probes)
        self._sizes = np.array([one.shape[1] for one in probes])
        self._starts = np.cumsum(self._sizes) - self._sizes

    def likelihood(self, fusion: Fusion) -> float:
        """The log-likelihood of all right documents where odds go by the fused score, as sharply as is likeliest.

        A probe that a fusion does not find at all may be right by chance. Newton's steps find the peak.
        """
        weights = (fusion.learned_weight, fusion.nearest_weight, fusion.lexical_weight)
        ahead = np.add.reduce([weight * part for weight, part in zip(weights, self._parts, strict=True)])
        sharpness = 1.0
        for _ in range(STEPS):
            odds, right = self._odds(sharpness * ahead)
            total = self._sums(odds)
            mean = self._sums(odds * ahead) / total
            spread = self._sums(odds * ahead**2) / total - mean**2
            told = self._weights * right / (right + CHANCE)
            step = -(told * mean).sum() / max((told * spread).sum(), TINY)
            last, sharpness = sharpness, _bounded(sharpness + step, sharpness)
            if abs(sharpness - last) <= CLOSE * last:
                break
        right = self._odds(sharpness * ahead)[1]
        return round(float((self._weights * np.log(right + CHANCE)).sum()), DIGITS)

    def _odds(self, ahead: Doubles) -> tuple[Doubles, Doubles]:
        """Of every document to be right, the best of its probe having 1; and how probable each right one is."""
        most = np.maximum.reduceat(ahead, self._starts)
        odds = np.exp(ahead - np.repeat(most, self._sizes))
        return odds, np.exp(-most) / self._sums(odds)

    def _sums(self, values: Doubles) -> Doubles:
        return np.add.reduceat(values, self._starts)


def best_fusion(asked: Sequence[Panel]) -> Fusion:
    """The fusion that makes the documents of probes most likely; few probes do not lead far from the default.

    Every part alone is among those tried. Without probes the default.
    """
    probes = [(one, panel.weight) for panel in asked for one in panel.contributions()]
    if not probes:
        return DEFAULT_FUSION
    field = Field([one for one, _ in probes], np.array([weight for _, weight in probes]))
    return max(FUSIONS, key=lambda fusion: field.likelihood(fusion) - CAUTION * squared_steps(fusion))


def squared_steps(fusion: Fusion) -> float:
    """How far from the default: fifths of a share, and doublings of the words' weight against the rest."""
    share = 5 * (fusion.nearest_share - DEFAULT_FUSION.nearest_share) if fusion != WORDS_ALONE else 0.0
    words = np.log2(_odds(fusion.lexical_weight) / _odds(DEFAULT_FUSION.lexical_weight))
    return float(share**2 + words**2)


def _bounded(sharpness: float, last: float) -> float:
    """No step is longer than a doubling, and none leaves the range."""
    return float(min(max(sharpness, last / 2, BLUNTEST), 2 * last, SHARPEST))


def _odds(weight: float) -> float:
    return max(weight, 0.01) / max(1.0 - weight, 0.01)
