"""What people ask and an index answers badly, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from incdsi.documents import Hit, fold
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.search_index import SearchIndex

LEAST_CONFIDENCE, CANDIDATES = 0.5, 3
TOGETHER = 64  # queries searched at a time
Reason = Literal["nothing found", "low confidence", "no word in common"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document that may be what was wanted."""

    id: str
    title: str
    score: float
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A query that was asked `times` times; the candidates, best first."""

    query: str
    times: int
    reason: Reason
    confidence: float | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gaps among so many different queries, the most asked first.

    Judged by confidence; while the index cannot tell one, by whether the best hit shares a word with the query.
    """

    gaps: tuple[Gap, ...]
    queries: int
    judged_by: Literal["confidence", "words"]

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        gaps = (
            Gap(**{**gap, "candidates": tuple(Candidate(**one) for one in gap["candidates"])}) for gap in plain["gaps"]
        )
        return cls(gaps=tuple(gaps), queries=plain["queries"], judged_by=plain["judged_by"])


def find_gaps(
    index: SearchIndex,
    asked: Iterable[str],
    *,
    least: float = LEAST_CONFIDENCE,
    k: int = CANDIDATES,
    most: int | None = None,
    progress: Progress | None = None,
) -> Gaps:
    """Ask it all again, each query once, the `most` frequent ones: what is below `least` is a gap."""
    if not 0.0 <= least <= 1.0:
        raise InvalidInput(f"the least confidence must lie between 0 and 1, not {least!r}")
    if k < 1:
        raise InvalidInput(f"k must be at least 1, not {k}")
    spelled: dict[str, str] = {}
    times = Counter(spelled.setdefault(fold(query), " ".join(query.split())) for query in asked if query.strip())
    queries = sorted(times, key=lambda query: (-times[query], query))[:most]
    found: list[Gap] = []
    told = False
    for start in range(0, len(queries), TOGETHER):
        some = queries[start : start + TOGETHER]
        for query, hits in zip(some, index.search_many(some, k), strict=True):
            told |= any(hit.confidence is not None for hit in hits)
            if reason := _reason(hits, least):
                found.append(_gap(query, times[query], reason, hits))
        if progress is not None:
            progress(start + len(some), len(queries))
    return Gaps(gaps=tuple(found), queries=len(queries), judged_by="confidence" if told else "words")


def _reason(hits: Sequence[Hit], least: float) -> Reason | None:
    if not hits:
        return "nothing found"
    if hits[0].confidence is not None:
        return "low confidence" if hits[0].confidence < least else None
    return None if hits[0].lexical else "no word in common"


def _gap(query: str, times: int, reason: Reason, hits: Sequence[Hit]) -> Gap:
    candidates = tuple(
        Candidate(id=hit.document_id, title=hit.document.title, score=hit.score, confidence=hit.confidence)
        for hit in hits
    )
    confidence = hits[0].confidence if hits else None
    return Gap(query=query, times=times, reason=reason, confidence=confidence, candidates=candidates)
