"""Clicks of a search box, and which of them are worth learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from incdsi.documents import fold
from incdsi.errors import InvalidInput

# A cautious choice, not the best of those measured: docs/decisions/0017.
LEAST_CLICKS, LEAST_SHARE = 2, 0.6


@dataclass(frozen=True, slots=True)
class Click:
    """Somebody asked `query` and took that document, `count` times."""

    query: str
    document_id: str
    count: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.query, str) or not self.query.strip():
            raise InvalidInput("a click needs the query that was asked")
        if not isinstance(self.document_id, str) or not self.document_id:
            raise InvalidInput("a click needs the id of the document that was taken")
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidInput(f"the count of a click must be a whole number of at least 1, not {self.count!r}")


class Outcome(StrEnum):
    """What became of the clicks on one document for one query."""

    LEARNED = "learned"
    KNOWN = "known"
    UNKNOWN_DOCUMENT = "unknown document"
    TOO_FEW = "too few clicks"
    CONTRADICTED = "contradicted by other clicks"
    TAUGHT_OTHERWISE = "taught for another document"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """`clicks` of the `asked` clicks for a query went to this document."""

    query: str
    document_id: str
    clicks: int
    asked: int
    outcome: Outcome

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        fields = {name: plain[name] for name in ("query", "clicks", "asked")}
        return cls(document_id=plain["id"], outcome=Outcome(plain["outcome"]), **fields)

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        return {"query": plain.pop("query"), "id": plain.pop("document_id"), **plain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What an index made of clicks; with `dry_run`, what it would."""

    lessons: tuple[Lesson, ...]
    dry_run: bool
    version: int

    def count(self, outcome: Outcome) -> int:
        return sum(lesson.outcome is outcome for lesson in self.lessons)

    @property
    def changed(self) -> bool:
        return not self.dry_run and self.count(Outcome.LEARNED) > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": {outcome.value: self.count(outcome) for outcome in Outcome},
            "lessons": [lesson.to_json() for lesson in self.lessons],
            "dry_run": self.dry_run,
            "version": self.version,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        lessons = tuple(map(Lesson.from_json, plain["lessons"]))
        return cls(lessons=lessons, dry_run=plain["dry_run"], version=plain["version"])


@dataclass(frozen=True, slots=True)
class Threshold:
    """A query is learned for a document with at least so many clicks, and that share of the query's clicks."""

    clicks: int = LEAST_CLICKS
    share: float = LEAST_SHARE

    def __post_init__(self) -> None:
        if isinstance(self.clicks, bool) or not isinstance(self.clicks, int) or self.clicks < 1:
            raise InvalidInput(f"the least number of clicks must be a whole number of at least 1, not {self.clicks!r}")
        if not 0.0 < self.share <= 1.0:
            raise InvalidInput(f"the least share of clicks must lie above 0 and at most at 1, not {self.share!r}")

    def passed(self, clicks: int, asked: int) -> Outcome:
        """LEARNED, or why not."""
        if clicks < self.clicks:
            return Outcome.TOO_FEW
        return Outcome.LEARNED if clicks >= self.share * asked else Outcome.CONTRADICTED


def summed(clicks: Iterable[Click]) -> list[Click]:
    """One click for each query and document, with all their counts; a query in the spelling most people chose."""
    spellings: dict[str, Counter[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for click in clicks:
        key = fold(click.query)
        spellings.setdefault(key, Counter())[" ".join(click.query.split())] += click.count
        counts.setdefault(key, Counter())[click.document_id] += click.count
    return [
        Click(max(spellings[key].items(), key=lambda one: (one[1], one[0]))[0], id, count)
        for key, documents in counts.items()
        for id, count in sorted(documents.items(), key=lambda one: (-one[1], one[0]))
    ]


def judged(clicks: Iterable[Click], is_there: Callable[[str], bool], threshold: Threshold) -> list[Lesson]:
    """The lesson of each query and document, by clicks alone; those on documents that are gone count for nobody."""
    totals = summed(clicks)
    there = {id: is_there(id) for id in {click.document_id for click in totals}}
    asked = Counter[str]()
    for click in totals:
        asked[click.query] += click.count if there[click.document_id] else 0
    return [
        Lesson(
            query=click.query,
            document_id=click.document_id,
            clicks=click.count,
            asked=asked[click.query],
            outcome=threshold.passed(click.count, asked[click.query])
            if there[click.document_id]
            else Outcome.UNKNOWN_DOCUMENT,
        )
        for click in totals
    ]
