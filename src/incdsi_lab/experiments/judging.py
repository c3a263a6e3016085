"""Ranks of the right documents: from a ranking to a line of text that a piece can hold, and on to scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi_lab.baselines.protocol import Method, Questions, Ranked
from incdsi_lab.metrics import Scores, score_ranks

DEPTH = 10
LOOK = 32  # documents asked for: room for ties with the right one
CODES = "123456789a."  # ranks 1 to 10, and beyond


def own_ranks(ranked: Ranked, owners: NDArray[np.int64]) -> NDArray[np.intp]:
    """The rank of each query's document from 1, DEPTH + 1 when it is beyond; a tie counts against it."""
    found = ranked.positions == owners[:, None]
    own = np.where(found, ranked.scores, -np.inf).max(axis=1, initial=-np.inf)
    ahead = (ranked.scores >= own[:, None]).sum(axis=1)
    return np.where(found.any(axis=1), np.minimum(ahead, DEPTH + 1), DEPTH + 1)


def encoded(ranks: NDArray[np.intp]) -> str:
    """One letter a query."""
    return "".join(CODES[rank - 1] for rank in np.minimum(ranks, DEPTH + 1))


def decoded(text: str) -> NDArray[np.intp]:
    """Undo `encoded`."""
    return np.array([CODES.index(letter) + 1 for letter in text], dtype=np.intp)


def judged(method: Method, groups: Mapping[str, Questions]) -> dict[str, str]:
    """What the method's search reaches on each group of queries, encoded."""
    return standing(searched(method, groups), groups)


def searched(method: Method, groups: Mapping[str, Questions]) -> dict[str, Ranked]:
    """What the method finds for each group of queries that has any."""
    return {name: method.search(queries, LOOK) for name, queries in groups.items() if len(queries)}


def standing(found: Mapping[str, Ranked], groups: Mapping[str, Questions]) -> dict[str, str]:
    """The ranks of the right documents in what was found, encoded."""
    return {
        name: encoded(own_ranks(found[name], queries.owners)) if name in found else ""
        for name, queries in groups.items()
    }


def scores_of(text: str) -> Scores:
    """The scores behind an encoded line; queries are known by their places."""
    ranks = decoded(text)
    return score_ranks([str(place) for place in range(len(ranks))], ranks)


def hits1(text: str) -> float:
    """H@1 in percent; NaN without queries."""
    return 100 * text.count("1") / len(text) if text else float("nan")


def averaged(pieces: Sequence[Mapping[str, Any]], group: str) -> tuple[float, float]:
    """Mean and standard deviation of H@1 over several pieces, such as random orders."""
    means = [hits1(piece["ranks"][group]) for piece in pieces]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
