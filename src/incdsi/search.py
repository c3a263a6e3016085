"""Fuse the parts of a score and find the best documents, without the score of every document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Best, Doubles, Likely, Rows, Scored
from incdsi.engine.settings import Fusion
from incdsi.errors import InvalidInput
from incdsi.rows.scores import FIRST, NEXT, Share, Spread, best_of

Mode = Literal["fused", "learned", "lexical"]


def check_mode(mode: str) -> Mode:
    """The mode, or a sentence that lists those there are."""
    for known in get_args(Mode):
        if mode == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"there is no mode {mode!r}; choose one of {', '.join(get_args(Mode))}")


def check_k(k: int, name: str = "k") -> None:
    """Refuse what is no number of documents, or of whatever has that name."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1, not {k!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One score of a fused one, measured in its unit, times a weight.

    `unit` is that of its scores, or one that a document about to change would make.
    """

    scored: Scored
    weight: float
    unit: Spread | Share

    @classmethod
    def of(cls, scored: Scored, weight: float) -> Part:
        return cls(scored, weight, scored.unit)

    def values(self, scores: Doubles) -> Doubles:
        """What these scores contribute."""
        return self.weight * self.unit.standardised(scores)

    def of_rows(self, rows: Rows) -> Doubles:
        """What these documents' scores contribute."""
        return self.values(self.scored.score(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """The sum of its parts. By score and not by rank: how far a document leads counts."""

    parts: Sequence[Part]

    def score(self, rows: Rows) -> Doubles:
        """The fused scores of these documents, (m,)."""
        return np.asarray(np.sum([part.of_rows(rows) for part in self.parts], axis=0))

    def top(self, k: int) -> Best:
        """The k best documents, exactly, by the threshold algorithm.

        Of those that are likely the best of some part, the most promising get their whole score. No other document can
        score more than the sum of what those lists leave beyond them: when that is less than the k-th best, it is
        done; else longer lists.
        """
        telling = Fused([part for part in self.parts if part.weight > 0])
        depth = max(FIRST, k)
        while True:
            lists = [part.scored.likely(depth) for part in telling.parts]
            # Asked for indices as well, numpy does not import masked arrays: a fifth of its own import.
            rows, _ = np.unique(np.concatenate([found.rows for found in lists]), return_index=True)
            beyond = telling.beyond(lists)
            best, scores = best_of(rows, self.at_most(rows), self.score, k)
            enough = len(best) == k and scores[-1] > beyond
            if enough or beyond == -np.inf or all(len(found.rows) < depth for found in lists):
                return Best(best, scores, beyond)
            depth *= NEXT

    def at_most(self, rows: Rows) -> Doubles:
        """What these documents score at most, (m,)."""
        return np.asarray(np.sum([part.values(part.scored.at_most(rows)) for part in self.parts], axis=0))

    def beyond(self, lists: Sequence[Likely]) -> float:
        """No document outside the lists, one a part, scores more than this; -inf when there is none."""
        ends = [found.beyond for found in lists]
        if -np.inf in ends:
            return -np.inf
        return float(np.sum([part.values(np.array([end]))[0] for part, end in zip(self.parts, ends, strict=True)]))


def fused(learned: Scored, nearest: Scored, lexical: Scored, fusion: Fusion) -> Fused:
    """The three scores of a query, by weight."""
    return Fused(
        (
            Part.of(learned, fusion.learned_weight),
            Part.of(nearest, fusion.nearest_weight),
            Part.of(lexical, fusion.lexical_weight),
        )
    )


def evidence(whole: Fused, rows: Rows, scores: Doubles, asked_for: NDArray[np.bool_]) -> Doubles:
    """What tells right hits from wrong ones, (hits, 3 + parts): their scores and leads, by the whole and by each part.

    Of the best hits, best first. A lead is over the best other document. A document that people asked for before has
    more to score by, right or wrong.
    """
    best = scores[:2] if len(scores) > 1 else whole.top(2).scores
    leads = [_leads(part.of_rows(rows), part.values(part.scored.top(2).scores)) for part in whole.parts]
    return np.column_stack([scores, _leads(scores, best), *leads, asked_for])


def _leads(values: Doubles, best: Doubles) -> Doubles:
    """How far each is ahead of the best other one; who is not listed has 0."""
    first, second = (*best.tolist(), 0.0, 0.0)[:2]
    return np.asarray(values - np.where(values >= first, second, first))


def rank_within(scored: Scored | Fused, row: int, most: int) -> int:
    """The rank of a document, or `most` + 1 where it is worse; a tie counts against it.

    No credit for documents that cannot be told apart.
    """
    best = scored.top(most + 1)
    place = np.flatnonzero(best.rows == row)
    return int(np.count_nonzero(best.scores >= best.scores[place])) if len(place) else most + 1
