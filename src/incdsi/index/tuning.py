"""Choose weights and fusion by the held-out queries; never below dense search, never below a part."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from incdsi.engine.protocol import Engine
from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput
from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters, Margins, Weights
from incdsi.index.draft import Draft
from incdsi.index.fusing import best_fusion
from incdsi.index.quality import (
    Probe,
    evenly,
    fitted_confidence,
    learned_ranks,
    probes,
    quality,
    reached,
)
from incdsi.index.replacement import Replacement, Solved, place_taught_last, replaced, sweep
from incdsi.index.session import Session
from incdsi.index.unasked import FEWEST, inquiry
from incdsi.info import Quality, Trial, Tuning
from incdsi.progress import Progress
from incdsi.records import Record

ROUNDS = 3  # of choosing the fusion and placing what was taught by it
logger = logging.getLogger("incdsi")
ENOUGH = 200  # held-out queries before the first tuning; four times as many before the next
FEW = 30  # the same, for the fusion alone
TUNING_KEY = "tuning"  # of the store's settings
SAMPLE = 2000  # documents a candidate is tried on
WORSE = 2  # rungs in a row below the best one, and no more are tried
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


class Tuner:
    """Tunes an index by its held-out queries: when it is asked, and whenever enough of them are new."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._not_before = 0  # so many of them, after a tuning that failed
        self._not_before_asked = 0  # so many documents that people asked for, after one that they made due

    def tune(self, progress: Progress | None) -> Tuning:
        """Choose, place everything by it, and put it in place at once; for who holds the lock."""
        session = self._session
        new, outcome = retuned(session.engine, session.count_held_out(), progress)
        session.swap(new)
        return outcome

    def switch(self, on: bool) -> None:
        """Tune, and hold queries out for it, from now on or no more."""
        settings = self._session.settings
        if on and settings.method == "paper":
            raise InvalidInput("an index of the paper's form does not tune itself; make one of the general form")
        if on != settings.tuning:
            self._session.save(replace(settings, tuning=on))

    def tune_if_due(self, progress: Progress | None) -> None:
        """Tune when enough is held out, or choose the fusion alone when there is enough for that.

        What was added is on the disk already: whatever stops the tuning must not look like a refusal.
        """
        settings = self._session.settings
        everything = self._enough(ENOUGH, settings.tuned_at)
        if not everything and not self._enough(FEW, settings.fused_at) and not self._enough_asked(settings):
            return
        try:
            if everything:
                self.tune(progress)
            else:
                self._session.swap(fused_anew(self._session.engine, self._session.held_out))
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt("stopped while the index tuned itself; everything before it is kept") from stop
        except Exception as error:
            self._not_before = 2 * self._session.held_out
            self._session.engine.recover()
            no_room = isinstance(error, OSError | MemoryError)
            logger.warning("the index could not finish tuning itself and goes on: %s", error, exc_info=not no_room)

    def _enough(self, first: int, last: int) -> bool:
        """Whether so many are held out for the first time, or four times as many as the last time."""
        session = self._session
        enough = max(first, 4 * last, self._not_before)
        if not session.settings.tuning or session.held_out < enough:
            return False
        return session.count_held_out() >= enough  # some may have gone with their documents

    def _enough_asked(self, settings: Settings) -> bool:
        """Whether too little is held out, but people asked enough to take some documents as if nobody had.

        There are at least as many questions as documents with any and held-out ones together.
        """
        engine = self._session.engine
        if not settings.tuning or settings.fused_at or self._session.held_out >= FEW:
            return False
        asked = engine.asked()
        enough = max(FEWEST, FEW - self._session.held_out, 4 * settings.asked_at, self._not_before_asked)
        if asked < enough or len(engine.view()) - asked < FEW:
            return False
        self._not_before_asked = 2 * asked  # should it fail: what stopped it may stop a count as well
        return True


def best_weights(
    engine: Engine, sample: Sequence[Record], asked: Sequence[Probe], settings: Settings, progress: Progress | None
) -> list[Trial]:
    """Rungs of the ladder tried on the sample, by the probes of its documents, best first.

    Each begins where the one below it left the documents. Two in a row below the best end it: what is bolder still
    would only be worse. Ties go to the more careful one.
    """
    rows = {record.row for record in sample}
    inside = [probe for probe in asked if probe.row in rows]
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, len(LADDER) * len(sample))

    bench, solved, trials = engine.bench(settings), dict[int, Solved](), list[Trial]()
    for how in LADDER:
        sweep(bench, sample, replace(settings, hyperparameters=how), solved, report)
        trials.append(Trial(hyperparameters=how, quality=Quality.of(learned_ranks(bench, inside))))
        best = max(trials, key=lambda trial: trial.quality.mrr_at_10)
        if best not in trials[-WORSE:]:
            break
    return sorted(trials, key=lambda trial: -trial.quality.mrr_at_10)


def _sampled(rows: Sequence[int], wanted: set[int]) -> set[int]:
    """At most SAMPLE of these rows: those of probes first, then an even choice of the others."""
    if len(rows) <= SAMPLE:
        return set(rows)
    first = [row for row in rows if row in wanted][:SAMPLE]
    others = [row for row in rows if row not in wanted]
    return {*first, *evenly(others, SAMPLE - len(first))}


def _fused(new: Replacement, held_out: Sequence[Probe]) -> Replacement:
    """With the fusion that finds most and its confidence, and what was taught placed to be first by it.

    Where another one moves what was taught so that yet another is best, the last one stands.
    """
    asked = inquiry(new.bench, new.everything, held_out, new.settings)
    for _ in range(ROUNDS if any(Draft.of(record).taught for record in new.source) else 1):
        fusion = best_fusion(asked.again)
        if fusion == new.settings.fusion:
            break
        new = replace(new, settings=replace(new.settings, **asdict(fusion)))
        place_taught_last(new)
    confidence = fitted_confidence(asked.evenly, new.settings.fusion)
    return replace(new, settings=replace(new.settings, confidence=confidence))


class Everything:
    """All records of an engine, read anew each time they are gone through."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __iter__(self) -> Iterator[Record]:
        return self._engine.records()


def fused_anew(engine: Engine, held_out: int) -> Replacement:
    """The same documents by the fusion that the held-out queries choose; only what was taught is placed anew."""
    now, source = engine.whole(), Everything(engine)
    new = Replacement(settings=now.settings, bench=now, source=source, solved={})
    new = _fused(new, list(probes(source, held_out)))
    fused_at, asked_at = (held_out, 0) if held_out >= FEW else (0, engine.asked())
    return replace(new, settings=replace(new.settings, fused_at=fused_at, asked_at=asked_at))


def retuned(engine: Engine, held_out: int, progress: Progress | None) -> tuple[Replacement, Tuning]:
    """Weights and fusion chosen by the held-out queries; InvalidInput when there are none."""
    old, version, source = engine.view().settings, engine.version, Everything(engine)
    asked = list(probes(source, held_out)) if old.method == "general" else []
    if not asked:
        raise InvalidInput(f"there is nothing to tune by: {_nothing_held_out(old, len(engine.view()))}")
    rows = _sampled([record.row for record in source], {probe.row for probe in asked})
    sample = [record for record in source if record.row in rows]
    trials = best_weights(engine, sample, asked, old, progress)
    everything = engine.whole()
    before = quality(everything, source, asked)
    chosen = replace(old, hyperparameters=trials[0].hyperparameters)
    new = _fused(replaced(everything, source, chosen, progress), asked)
    outcome = Tuning(
        version=version,
        queries=len(asked),
        hyperparameters=chosen.hyperparameters,
        lexical_weight=new.settings.lexical_weight,
        nearest_share=new.settings.nearest_share,
        before=before,
        after={**reached(new.bench, asked, new.settings.fusion), "dense": before["dense"]},
        trials=tuple(trials),
    )
    settings = replace(new.settings, tuned_at=held_out, fused_at=held_out)
    return replace(new, settings=settings, beside={TUNING_KEY: outcome.to_json()}), outcome


def _nothing_held_out(settings: Settings, documents: int) -> str:
    off = not settings.tuning and settings.method == "general"
    what = (
        "an index whose tuning is off holds no queries out; switch it on and"
        if off
        else f"none of the {documents:,} documents has a held-out query;"
    )
    return f"{what} add documents with three or more queries each"


def last_tuning(engine: Engine) -> Tuning | None:
    """The outcome of the last tuning that was put in place; None before the first."""
    stored = engine.setting(TUNING_KEY)
    return Tuning.from_json(stored) if isinstance(stored, Mapping) else None
