"""By which weights newcomers join documents that were trained together: rehearsed on some, taken out and added back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.protocol import Engine, View
from incdsi.hyperparameters import SAFE, Hyperparameters, Margins
from incdsi.index.quality import Probe, evenly, learned_ranks, probes
from incdsi.index.replacement import sweep
from incdsi.index.session import Session
from incdsi.index.tuning import FEW, LADDER, fused_anew
from incdsi.info import Quality
from incdsi.progress import Progress
from incdsi.records import Record
from incdsi.rows.products import exact

Ranks = NDArray[np.intp]
ONE_IN = 10  # documents taken out at once: what one in a hundred does to the others says too little about many
MOST = 300  # of them
TELLING = 300  # queries after which no others are taken out
BETWEEN = LADDER[3]  # SAFE and BOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """Weights, and the MRR@10 of the documents that stayed and of those added back by them, that share of all."""

    hyperparameters: Hyperparameters
    old: float
    new: float
    share: float

    @property
    def whole(self) -> float:
        """That of all, each counted once; less than any where nothing tells of some."""
        whole = (1 - self.share) * self.old + self.share * self.new
        return -np.inf if np.isnan(whole) else whole


def rehearse(session: Session, progress: Progress | None) -> None:
    """Choose the weights of newcomers, and the fusion; no document moves but those that were taught something.

    For whoever holds the lock.
    """
    engine, settings, held_out = session.engine, session.settings, session.count_held_out()
    if settings.method != "general" or not len(engine.view()):
        return
    asked = list(probes(engine.records(), held_out))
    settings = replace(settings, hyperparameters=for_newcomers(engine, asked, progress))
    session.save(settings)
    if settings.tuning and held_out >= FEW:
        new = fused_anew(engine, held_out)
        # Tuning would place everything from nothing: not before there is much more to tune by.
        session.swap(replace(new, settings=replace(new.settings, tuned_at=held_out)))


def for_newcomers(engine: Engine, asked: Sequence[Probe], progress: Progress | None) -> Hyperparameters:
    """What is best for newcomers and others together; where too few queries could tell, by what people asked so far."""
    scale = scale_of(engine.records())
    safe = safe_at(scale, level_of(engine.records()))
    takings = _takings(asked, len(engine.view()))
    if not takings:
        return scaled(BETWEEN, scale) if _mostly_asked(engine.records()) else safe
    candidates = [*(scaled(how, scale) for how in LADDER), safe]
    everything, rows = engine.whole(), set[int]().union(*takings)
    out = {record.row: record for record in engine.records() if record.row in rows}
    tried: list[Rehearsed] = []
    for how in candidates:
        tried.append(_tried(everything, asked, [[out[row] for row in sorted(some)] for some in takings], how))
        if progress is not None:
            progress(len(tried), len(candidates))
    return max(tried, key=lambda one: one.whole).hyperparameters


def safe_at(scale: float, level: float) -> Hyperparameters:
    """The safe weights among trained documents of that scale and level, the larger of both.

    Training raises documents at what was asked for them. An anchor that is merely as long as they are along their
    texts loses to them what plain search would find.
    """
    return scaled(SAFE, max(scale, level))


def level_of(records: Iterable[Record]) -> float:
    """How many times as high as their texts' embeddings documents score at what was asked for them, by the medians.

    At generated queries where too little was asked; 0 where nothing tells.
    """
    scores: tuple[list[tuple[float, float]], ...] = ([], [])  # of what was asked, and of what was generated
    for record in records:
        both = np.stack([record.vector, record.anchor])
        for query in record.queries:
            if query.used:
                own, plain = exact(both, query.embedding).tolist()
                scores[query.generated].append((own, plain))
    for some in scores:
        if len(some) >= FEW:
            own, plain = np.median(np.array(some), axis=0).tolist()
            return float(own / plain) if plain > 0 else 0.0
    return 0.0


def scale_of(records: Iterable[Record]) -> float:
    """How long document vectors are along their own texts' embeddings: the median."""
    products = (exact(np.stack([record.vector, record.anchor]), record.anchor).tolist() for record in records)
    along = [own / length for own, length in products if length > 0]
    found = float(np.median(along)) if along else 0.0
    return found if found > 0 else SAFE.anchor_scale


def scaled(how: Hyperparameters, scale: float) -> Hyperparameters:
    """The same problem in another unit: every vector that solves it is as many times longer as the anchor is."""
    times = scale / how.anchor_scale
    margins = Margins(retrieve=times * how.margins.retrieve, preserve=times * how.margins.preserve)
    return replace(how, margins=margins, anchor_scale=scale)


def _mostly_asked(records: Iterable[Record]) -> bool:
    """Whether people asked for most documents: what was generated alone says little about what they will ask."""
    asked = [any(query.used and not query.generated for query in record.queries) for record in records]
    return 2 * sum(asked) > len(asked)


def _takings(asked: Sequence[Probe], documents: int) -> list[set[int]]:
    """The rows to take out, one set after another and others each time, until TELLING probes do; none where FEW cannot.

    Each is an even choice of those that a held-out query should find. Few probes say by chance what bold weights cost:
    three ranks of three hundred are half a point.
    """
    rows = sorted({probe.row for probe in asked})
    size = min(documents // ONE_IN, MOST, len(rows))
    takings, told = list[set[int]](), 0
    while told < TELLING and 0 < size <= len(rows):
        takings.append(set(evenly(rows, size)))
        told += sum(probe.row in takings[-1] for probe in asked)
        rows = [row for row in rows if row not in takings[-1]]
    return takings if told >= FEW else []


def _tried(
    everything: View, asked: Sequence[Probe], takings: Sequence[Sequence[Record]], how: Hyperparameters
) -> Rehearsed:
    """Over all takings, each taken out and added back alone."""
    ranks, new = list[Ranks](), list[NDArray[np.bool_]]()
    for taken in takings:
        bench, rows = everything.bench(), {record.row for record in taken}
        bench.remove(sorted(rows))
        sweep(bench, taken, replace(bench.settings, hyperparameters=how), {})
        ranks.append(learned_ranks(bench, asked))
        new.append(np.array([probe.row in rows for probe in asked]))
    whole, added = np.concatenate(ranks), np.concatenate(new)
    return Rehearsed(
        hyperparameters=how,
        old=Quality.of(whole[~added]).mrr_at_10,
        new=Quality.of(whole[added]).mrr_at_10,
        share=len(takings[0]) / len(everything),
    )
