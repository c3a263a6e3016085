"""Everything placed anew under other settings, to be put in place at once: tuning, and another encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Bench
from incdsi.engine.settings import Settings
from incdsi.index.draft import Draft
from incdsi.index.placement import BATCH, place_in_order, portions
from incdsi.progress import Progress
from incdsi.records import JSON, Record

SWEEPS = 2  # from nothing: documents placed early have not seen those that came after; a second look brought 0.6 H@1


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What placing changed in a record: a fraction of it, so that all can be held while texts and embeddings stream."""

    vector: NDArray[np.float32]
    preserved: NDArray[np.bool_]
    given_up: NDArray[np.bool_]
    own_scores: NDArray[np.float64]
    constrained_by: tuple[int, ...]

    @classmethod
    def of(cls, record: Record) -> Solved:
        return cls(
            vector=record.vector,
            preserved=np.array([query.preserved for query in record.queries], dtype=bool),
            given_up=np.array([query.given_up for query in record.queries], dtype=bool),
            own_scores=np.array([query.own_score for query in record.queries]),
            constrained_by=record.constrained_by,
        )

    def applied(self, record: Record) -> Record:
        """That record as it was placed."""
        queries = tuple(
            replace(query, preserved=bool(preserved), given_up=bool(given_up), own_score=float(own_score))
            for query, preserved, given_up, own_score in zip(
                record.queries, self.preserved, self.given_up, self.own_scores, strict=True
            )
        )
        return replace(record, vector=self.vector, queries=queries, constrained_by=self.constrained_by)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Other settings, and the documents of `source` placed by them in `bench`, as `solved` tells; not stored yet.

    `source` iterates anew over the records, in the order of their rows; `beside` is stored with them, by key.
    """

    settings: Settings
    bench: Bench
    source: Iterable[Record]
    solved: dict[int, Solved]
    beside: Mapping[str, JSON] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """Those that were placed, as they were."""
        return (record for record in self.everything() if record.row in self.solved)

    def everything(self) -> Iterator[Record]:
        """All records of `source`, as they are now."""
        known = self.solved
        return (known[record.row].applied(record) if record.row in known else record for record in self.source)


def sweep(
    bench: Bench,
    records: Iterable[Record],
    settings: Settings,
    solved: dict[int, Solved],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Place the records, one after another; the bench then shows them so, and `solved` tells what changed, by row.

    Each sees all others on the bench: on an empty one those before it, on one that shows them already those after
    it too.
    """
    known = (solved[record.row].applied(record) if record.row in solved else record for record in records)
    drafts_of = (replace(Draft.of(one), start=one.vector if one.row in bench else None) for one in known)
    for drafts in portions(drafts_of, settings, lambda draft: draft.taught, BATCH):
        if len(drafts) > 1:
            bench.lift([draft.row for draft in drafts if draft.row in bench])
        batch = [result.record for result in place_in_order(bench, drafts, settings)]
        bench.put(batch)
        solved.update((record.row, Solved.of(record)) for record in batch)
        if progress is not None:
            progress(len(batch))


def replaced(bench: Bench, source: Iterable[Record], settings: Settings, progress: Progress | None) -> Replacement:
    """All records of `source` placed under these settings, each seeing all others in the end.

    On a bench that shows them where they are by other settings one sweep does, and ends better than two from nothing:
    no document is placed before the others are there.
    """
    sweeps, done, solved = 1 if len(bench) else SWEEPS, 0, dict[int, Solved]()
    total = sweeps * sum(1 for _ in source)

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for _ in range(sweeps):
        sweep(bench, source, settings, solved, report)
    new = Replacement(settings=settings, bench=bench, source=source, solved=solved)
    place_taught_last(new)
    return new


def place_taught_last(new: Replacement) -> None:
    """Place what was taught something once more, at the end: it sees where all others ended."""
    taught = [record for record in new.source if Draft.of(record).taught]
    for _ in range(SWEEPS if taught else 0):
        sweep(new.bench, taught, new.settings, new.solved)
