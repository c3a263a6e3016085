"""What there is to know about an index, from its records."""

from __future__ import annotations

from collections.abc import Sequence

from incdsi.index.quality import quality
from incdsi.index.settings import Settings
from incdsi.info import Info, Tuning
from incdsi.store import Record


def info_of(records: Sequence[Record], settings: Settings, last_tuning: Tuning | None, version: int) -> Info:
    """Counts, settings and quality of an index that holds these records."""
    queries = [query for record in records for query in record.queries]
    general = settings.method == "general"
    return Info(
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


def _unresolved(records: Sequence[Record]) -> int:
    there = {record.row for record in records}
    return sum(not there.issuperset(record.constrained_by) for record in records)
