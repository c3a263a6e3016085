"""Everything placed anew under other settings, then put in place at once: tuning, and another encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from incdsi.errors import InvalidInput
from incdsi.index import tuning
from incdsi.index.info import quality
from incdsi.index.live import Live
from incdsi.index.placing import Draft
from incdsi.index.quality import Probe, probes
from incdsi.index.serving import Serving, preserve_by
from incdsi.index.settings import KEY, Settings
from incdsi.index.tuning import Tuning
from incdsi.progress import Progress
from incdsi.store import Record, Store
from incdsi.text.encoders import Encoder

TUNING_KEY = "tuning"
SWEEPS = 2  # from nothing: documents placed early have not seen those that came after; a second look brought 0.6 H@1
ROUNDS = 3  # of choosing the lexical weight and placing what was taught by it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Other settings and, unless they place documents as before, all `records` placed by them; not stored yet."""

    settings: Settings
    live: Live
    records: Sequence[Record] = ()
    tuning: Tuning | None = None

    def put_in_place(self, store: Store, encoder: Encoder) -> Serving:
        """Store it in one transaction; what is to be served from then on."""
        with store.transaction() as tx:
            for record in self.records:
                tx.replace(record.document.id, record)
            tx.set_setting(KEY, self.settings.to_json())
            if self.tuning is not None:
                tx.set_setting(TUNING_KEY, self.tuning.to_json())
        self.live.sequence = store.version
        return Serving(settings=self.settings, encoder=encoder, live=self.live)


def replaced(
    records: Sequence[Record], settings: Settings, progress: Progress | None, begun: Live | None = None
) -> Replacement:
    """All records, in the order of their rows, placed under these settings, each seeing all others in the end.

    `begun` shows them placed by such settings already, and is changed: then one sweep does, not two from nothing.
    """
    live = begun if begun is not None else Live(settings.dimension, preserve_by(settings))
    sweeps, done = 1 if len(live) else SWEEPS, 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, sweeps * len(records))

    for _ in range(sweeps):
        placed = tuning.sweep(live, records, settings, report)
    placed = _taught_last(live, placed, settings)
    return Replacement(settings=settings, live=live.compacted(), records=placed)


def _taught_last(live: Live, records: Sequence[Record], settings: Settings) -> list[Record]:
    """The records, those that were taught something placed once more, at the end: they see where all others ended."""
    taught = [record for record in records if Draft.of(record).taught]
    others = [record for record in records if not Draft.of(record).taught]
    for _ in range(SWEEPS):
        taught = tuning.sweep(live, taught, settings)
    return [*others, *taught]


def _fused(new: Replacement, asked: Sequence[Probe]) -> Replacement:
    """With the lexical weight that finds most, and what was taught placed to be first at that weight.

    Where another weight moves what was taught so that yet another is best, the last one stands.
    """
    for _ in range(ROUNDS if any(Draft.of(record).taught for record in new.records) else 1):
        weight = tuning.best_fusion(new.live, asked)
        if weight == new.settings.lexical_weight:
            break
        settings = replace(new.settings, lexical_weight=weight)
        new = replace(new, settings=settings, records=_taught_last(new.live, new.records, settings))
    return replace(new, live=new.live.compacted())


def retuned(
    serving: Serving, records: Sequence[Record], held_out: int, version: int, progress: Progress | None
) -> tuple[Replacement, Tuning]:
    """Weights and fusion chosen by the held-out queries; InvalidInput when there are none."""
    asked = probes(records, serving.settings.method)
    if not asked:
        raise InvalidInput(
            f"expected held-out queries to tune by, found none among {len(records)} documents; "
            "add documents with three or more queries each"
        )
    old = serving.settings
    trials = tuning.best_weights(records, asked, old, preserve_by(old), progress)
    before = quality(records, old)
    chosen = replace(old, hyperparameters=trials[0].hyperparameters)
    begun = serving.live.compacted() if chosen == old else None
    new = _fused(replaced(records, chosen, progress, begun), asked)
    after = {**tuning.reached(new.live, asked, new.settings.lexical_weight), "dense": before["dense"]}
    outcome = Tuning(
        version=version,
        queries=len(asked),
        hyperparameters=chosen.hyperparameters,
        lexical_weight=new.settings.lexical_weight,
        before=before,
        after=after,
        trials=tuple(trials),
    )
    return replace(new, settings=replace(new.settings, tuned_at=held_out), tuning=outcome), outcome


def last_tuning(store: Store) -> Tuning | None:
    """The outcome of the last tuning that was put in place; None before the first."""
    stored = store.setting(TUNING_KEY)
    return Tuning.from_json(stored) if isinstance(stored, Mapping) else None
