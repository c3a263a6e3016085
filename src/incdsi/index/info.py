"""What there is to know about an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from incdsi.hyperparameters import Hyperparameters
from incdsi.index.quality import Quality, quality
from incdsi.index.settings import Method, Settings, hyperparameters_from
from incdsi.index.tuning import Tuning
from incdsi.store import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """Counts and settings; `quality` on the held-out queries, by way of searching.

    `unresolved` documents were placed beside one that was deleted since.
    """

    documents: int
    queries: int
    generated_queries: int
    held_out_queries: int
    preserve_rows: int
    unresolved: int
    dimension: int
    encoder: str
    method: Method
    hyperparameters: Hyperparameters
    lexical_weight: float
    tuning: bool
    last_tuning: Tuning | None
    version: int
    quality: Mapping[str, Quality]

    @classmethod
    def of(cls, records: Sequence[Record], settings: Settings, last_tuning: Tuning | None, version: int) -> Self:
        queries = [query for record in records for query in record.queries]
        general = settings.method == "general"
        return cls(
            documents=len(records),
            queries=len(queries),
            generated_queries=sum(query.generated for query in queries),
            held_out_queries=sum(query.held_out for query in queries) if general else 0,
            preserve_rows=sum(query.preserved for query in queries) if general else len(records),
            unresolved=_unresolved(records),
            dimension=settings.dimension,
            encoder=settings.fingerprint,
            method=settings.method,
            hyperparameters=settings.hyperparameters,
            lexical_weight=settings.lexical_weight,
            tuning=settings.tuning,
            last_tuning=last_tuning,
            version=version,
            quality=quality(records, settings),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """From plain values, others than its own ignored."""
        own = {field.name: plain[field.name] for field in fields(cls)}
        own["hyperparameters"] = hyperparameters_from(own["hyperparameters"])
        own["last_tuning"] = own["last_tuning"] and Tuning.from_json(own["last_tuning"])
        return cls(**{**own, "quality": {name: Quality(**one) for name, one in own["quality"].items()}})


def _unresolved(records: Sequence[Record]) -> int:
    there = {record.row for record in records}
    return sum(not there.issuperset(record.constrained_by) for record in records)
