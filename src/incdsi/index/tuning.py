"""Choose weights and fusion by the held-out queries; never below dense search, never below a part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters, Margins, Weights
from incdsi.index.insisting import place_in_order, portions
from incdsi.index.live import Live, Preserve
from incdsi.index.placing import Draft
from incdsi.index.quality import Probe, Quality, learned_ranks, ranks_by_weight
from incdsi.index.settings import Settings, hyperparameters_from
from incdsi.progress import Progress
from incdsi.store import Record

BATCH = 128
SAMPLE = 2000  # documents a candidate is tried on
FUSIONS = tuple(step / 20 for step in range(21))  # lexical weights tried, from none to lexical alone
# From the most careful to the boldest. The first does not leave the text's own embedding: it is dense search,
# so that tuning never ends below it.
LADDER = (
    Hyperparameters(margins=Margins(retrieve=1.0, preserve=1.0), weights=Weights(retrieve=0.3, anchor=100.0)),
    Hyperparameters(margins=Margins(retrieve=1.0, preserve=1.0), weights=Weights(retrieve=0.3, anchor=3.0)),
    SAFE,
    Hyperparameters(margins=Margins(retrieve=4.0, preserve=2.0), weights=Weights(retrieve=0.5, anchor=0.15)),
    BOLD,
    Hyperparameters(margins=Margins(retrieve=6.0, preserve=3.5), weights=Weights(retrieve=0.9, anchor=0.02)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate and what it reached on the held-out queries of the sample."""

    hyperparameters: Hyperparameters
    quality: Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was chosen by `queries` held-out queries, and how well they were found before and after.

    `version` is that of the index it was chosen for; `before` and `after` are by way of searching; `trials`
    are what was tried, best first.
    """

    version: int
    queries: int
    hyperparameters: Hyperparameters
    lexical_weight: float
    before: Mapping[str, Quality]
    after: Mapping[str, Quality]
    trials: tuple[Trial, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "trials": [asdict(trial) for trial in self.trials]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(
            version=stored["version"],
            queries=stored["queries"],
            hyperparameters=hyperparameters_from(stored["hyperparameters"]),
            lexical_weight=stored["lexical_weight"],
            before={mode: Quality(**found) for mode, found in stored["before"].items()},
            after={mode: Quality(**found) for mode, found in stored["after"].items()},
            trials=tuple(
                Trial(
                    hyperparameters=hyperparameters_from(trial["hyperparameters"]), quality=Quality(**trial["quality"])
                )
                for trial in stored["trials"]
            ),
        )


def sweep(
    live: Live, records: Sequence[Record], settings: Settings, progress: Callable[[int], None] | None = None
) -> list[Record]:
    """Place the records, one after another, in the order of their rows; what is live then shows them so.

    Each sees all others that are live: in an empty one those before it, in one that shows them already those after
    it too.
    """
    placed: list[Record] = []
    for drafts in portions([Draft.of(record) for record in records], settings, lambda draft: draft.taught, BATCH):
        rows = [draft.row for draft in drafts]
        if len(drafts) > 1:
            live.remove([row for row in rows if row in live])
        results = place_in_order(live, drafts, settings)
        batch = [result.knowing(rows) for result in results]
        live.put(batch)
        placed += batch
        if progress is not None:
            progress(len(batch))
    return placed


def best_weights(
    records: Sequence[Record],
    asked: Sequence[Probe],
    settings: Settings,
    preserve: Preserve,
    progress: Progress | None = None,
) -> list[Trial]:
    """Every rung of the ladder tried on a sample that holds all it can of the probes' documents, best first.

    Ties go to the more careful one.
    """
    sample = _sample(records, {probe.row for probe in asked})
    rows = {record.row for record in sample}
    inside = [probe for probe in asked if probe.row in rows]
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, len(LADDER) * len(sample))

    trials = []
    for how in LADDER:
        live = Live(settings.dimension, preserve)
        sweep(live, sample, replace(settings, hyperparameters=how), report)
        trials.append(Trial(hyperparameters=how, quality=Quality.of(learned_ranks(live, inside))))
    return sorted(trials, key=lambda trial: -trial.quality.mrr_at_10)


def best_fusion(live: Live, asked: Sequence[Probe]) -> float:
    """The lexical weight that finds most; ties go to the lower one."""
    reached = [Quality.of(ranks).mrr_at_10 for ranks in ranks_by_weight(live, asked, FUSIONS)]
    return FUSIONS[int(np.argmax(reached))]


def reached(live: Live, asked: Sequence[Probe], lexical_weight: float) -> dict[str, Quality]:
    """What learned, lexical and fused search find."""
    ranks = ranks_by_weight(live, asked, (0.0, 1.0, lexical_weight))
    return {mode: Quality.of(some) for mode, some in zip(("learned", "lexical", "fused"), ranks, strict=True)}


def _sample(records: Sequence[Record], wanted: set[int]) -> list[Record]:
    """At most SAMPLE records in order: those of probes first, then an even choice of the others."""
    if len(records) <= SAMPLE:
        return list(records)
    first = [record.row for record in records if record.row in wanted][:SAMPLE]
    others = [record.row for record in records if record.row not in wanted]
    evenly = np.linspace(0, len(others) - 1, min(len(others), SAMPLE - len(first))).astype(int)
    chosen = {*first, *(others[place] for place in evenly)}
    return [record for record in records if record.row in chosen]
