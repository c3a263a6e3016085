"""Hits@1, 5, 10 and MRR@10 as ir-measures has them, with intervals and paired significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidInput, MissingExtra
from incdsi_lab.ranking import Ranks
from incdsi_lab.runs import Qrels, Run

MEASURES = ("H@1", "H@5", "H@10", "MRR@10")
CUTOFFS = (1, 5, 10)
CONFIDENCE = 1.959963984540054  # standard errors in a 95 % interval
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean in percent with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """What each query reached, by measure of MEASURES: (n,) from 0 to 1, in the order of `query_ids`."""

    query_ids: tuple[str, ...]
    values: Mapping[str, Values]

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.query_ids)

    def mean(self, measure: str) -> float:
        """The measure in percent; NaN without queries."""
        return 100 * float(self.values[measure].mean()) if len(self) else float("nan")

    def estimate(self) -> Estimate:
        """H@1 with Wilson's 95 % interval."""
        low, high = wilson(self.values["H@1"])
        return Estimate(mean=self.mean("H@1"), low=100 * low, high=100 * high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How much better b's H@1 is than a's, in points, and the probability of as much by chance alone."""

    difference: float
    p_value: float


def score(run: Run, qrels: Qrels) -> Scores:
    """Judge a run by ir-measures; a query that the run leaves out scores zero.

    The run must not hold tied scores, for judges break ties each in their own way: `ranking.run_of`
    makes such runs.
    """
    measures = _measures()
    import ir_measures

    _require_no_ties(run)
    query_ids = tuple(qrels)
    place = {id: number for number, id in enumerate(query_ids)}
    values = {name: np.zeros(len(query_ids)) for name in MEASURES}
    scored = {id: dict(run[id]) for id in query_ids if id in run}
    judged = {id: dict(relevant) for id, relevant in qrels.items()}
    if scored:
        for found in ir_measures.iter_calc(list(measures), judged, scored):
            values[measures[found.measure]][place[found.query_id]] = found.value
    return Scores(query_ids=query_ids, values=values)


def score_ranks(query_ids: Sequence[str], ranks: Ranks) -> Scores:
    """The same from the rank of each query's document, counted from 1, without making a run."""
    found = np.asarray(ranks)
    if len(found) != len(query_ids):
        raise InvalidInput(f"expected a rank for each of {len(query_ids)} queries, found {len(found)}")
    values: dict[str, Values] = {f"H@{k}": (found <= k).astype(np.float64) for k in CUTOFFS}
    values["MRR@10"] = reciprocal(found)
    return Scores(query_ids=tuple(query_ids), values=values)


def reciprocal(ranks: Ranks) -> Values:
    """1 / rank of each query's document, 0 beyond the tenth; their mean is MRR@10."""
    return np.where(ranks <= 10, 1.0 / ranks, 0.0)


def compare(a: Scores, b: Scores) -> Comparison:
    """The exact paired sign test of H@1 over the same queries: does b differ from a?"""
    if a.query_ids != b.query_ids:
        raise InvalidInput(f"a paired test needs the same queries on both sides; these {len(a)} and {len(b)} differ")
    differences = b.values["H@1"] - a.values["H@1"]
    return Comparison(
        difference=100 * float(differences.mean()) if len(a) else float("nan"), p_value=_by_chance(differences)
    )


def wilson(hits: Values) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) without any."""
    n = len(hits)
    if n == 0:
        return 0.0, 1.0
    share, z = float(hits.mean()), CONFIDENCE
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def _by_chance(differences: Values) -> float:
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def _require_no_ties(run: Run) -> None:
    for query_id, scores in run.items():
        if len({np.float32(score) for score in scores.values()}) != len(scores):
            raise InvalidInput(
                f"query {query_id!r} has tied scores; a run must be without tied scores, as ranking.run_of makes it"
            )


def _measures() -> dict[object, str]:
    """ir-measures' own names, and ours."""
    try:
        from ir_measures import RR, Success
    except ImportError as error:
        raise MissingExtra("judging runs needs ir-measures; install it with: pip install 'incdsi[eval]'") from error
    hits: dict[object, str] = {Success @ k: f"H@{k}" for k in CUTOFFS}
    return {**hits, RR @ 10: "MRR@10"}
