"""Choose weights and margins by rehearsing additions: Bayesian optimisation of the F-beta of old and new quality.

| here               | paper   | paper's form        | general form       |
| ------------------ | ------- | ------------------- | ------------------ |
| `weights.retrieve` | lambda1 | U(0.05, 0.95)       | the same           |
| `weights.anchor`   | lambda2 | LogU(1e-8, 1e-3)    | LogU(1e-3, 1)      |
| `margins`          | gamma   | U(0, 10)            | the same           |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from incdsi.engine.settings import Method
from incdsi.errors import InvalidInput
from incdsi.hyperparameters import SAFE, Hyperparameters, Margins, Weights
from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Questions, moved_to
from incdsi_lab.embedded import Embedded
from incdsi_lab.metrics import reciprocal
from incdsi_lab.ranking import Ranks, Standing, ranks_among
from incdsi_lab.splits import Split
from incdsi_lab.streams import Newcomers, Places, State, add_all
from incdsi_lab.suggesting import Finished, Journal, Range, Suggest, suggest_ax, suggest_gp

T = TypeVar("T")
BETA = 5.0  # how much more the old documents count than the new ones
STEPS = 100  # of progress in one trial
ANCHORS = {"paper": Range(low=1e-8, high=1e-3, log=True), "general": Range(low=1e-3, high=1.0, log=True)}
# Tried first, so that tuning never ends below it: what serves untuned, and for the paper's form weights near its own.
# BOLD is not here: it was found on squad_plus, and a study must find its own.
STARTS: Mapping[Method, Hyperparameters] = {
    "general": SAFE,
    "paper": Hyperparameters(
        margins=Margins(retrieve=5.0, preserve=7.0), weights=Weights(retrieve=0.5, anchor=6e-5), anchor_scale=0.0
    ),
}
OPTIMISERS: Mapping[str, Suggest] = {"gp": suggest_gp, "ax": suggest_ax}
Optimiser = Literal["gp", "ax"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """Additions to be tried with many hyperparameters, judged by validation queries from cached embeddings.

    `standing` is where the validation queries of the old documents stand before; `questions` are those of the
    newcomers, whose owners are positions among them.
    """

    state: State
    newcomers: Newcomers
    standing: Standing
    questions: Questions
    fingerprint: str

    def __post_init__(self) -> None:
        for name, count in (("old", len(self.standing.queries)), ("new", len(self.questions))):
            if count == 0:
                raise InvalidInput(
                    f"tuning needs validation queries of {name} documents, and there are none; "
                    "say how many additions are expected, or hold out more queries"
                )

    @classmethod
    def of(
        cls,
        embedded: Embedded,
        split: Split,
        state: State,
        questions: Sequence[Questions],
        *,
        expected: int = 0,
        adapted: bool = False,
        seed: int = 0,
    ) -> Rehearsal:
        """Additions to the state of `split.initial`, in that order, placed by the questions and judged by `split.val`.

        The tuning documents alone say too little about what many more would do to the old ones. When more are
        `expected`, random initial documents stand in for the rest: they are taken out of the state and
        added again, and everybody's quality is judged after that many. With an encoder that was `adapted` to the
        initial documents, stand-ins are no longer new to it: only the tuning documents' queries are then judged as
        new. Test queries and new documents are never looked at.
        """
        if len(state) != len(split.initial):
            raise InvalidInput(
                f"expected a state of the {len(split.initial)} initial documents, found one of {len(state)}"
            )
        kept, added = _drawn(split, expected, np.random.default_rng(seed))
        initial, tuning = embedded.places(split.initial), embedded.places(split.tuning)
        places = np.concatenate([initial, tuning])[added]
        asked, documents = embedded.asked(split.val), len(embedded.documents)
        old, new = (asked.among(moved_to(some, documents)) for some in (initial[kept], places))
        if adapted:
            new = new.take(np.flatnonzero(added[new.owners] >= len(initial)))
        remaining, newcomers = state.only(kept), Newcomers.of(embedded, places, questions)
        data = (split.collection_digest[:12], embedded.encoder.fingerprint[:12], split.seed, seed)
        return cls(
            state=remaining,
            newcomers=newcomers,
            standing=Standing.of(remaining.vectors, old.embeddings, old.owners),
            questions=new,
            fingerprint="-".join(map(str, (*data, sum(map(len, newcomers.queries))))),
        )

    def ranks(self, how: Hyperparameters, progress: Progress | None = None) -> tuple[Ranks, Ranks]:
        """The ranks of the old and of the new documents' validation queries after all additions."""
        stream = add_all(self.state, self.newcomers, hyperparameters=how, progress=progress)
        vectors = stream.state.vectors
        old = self.standing.after(vectors[stream.before :])
        return old, ranks_among(vectors, self.questions.embeddings, self.questions.owners + stream.before)


def quality(ranks: Ranks) -> float:
    """What weights are judged by: MRR@10, from 0 to 1; NaN without queries."""
    return float(reciprocal(ranks).mean()) if len(ranks) else float("nan")


def f_beta(new: float, old: float, beta: float) -> float:
    """The paper's target: the weighted harmonic mean of new and old quality, old counting beta times as much."""
    below = beta**2 * new + old
    return (1 + beta**2) * new * old / below if below else 0.0


def best_keeping(tried: Sequence[T], old: Callable[[T], float], new: Callable[[T], float], level: float) -> T:
    """The one that is best for new documents among those that keep old ones at this level; of equals the first.

    Where none keeps them, the one that comes nearest. What nothing was measured by (NaN) is worth less than anything.
    """
    kept = [one for one in tried if old(one) >= level]
    return max(kept, key=lambda one: _known(new(one))) if kept else max(tried, key=lambda one: _known(old(one)))


def _known(value: float) -> float:
    return -np.inf if np.isnan(value) else value


def tune(
    rehearsal: Rehearsal,
    *,
    trials: int,
    seed: int = 0,
    journal: Path | None = None,
    optimiser: Optimiser = "gp",
    progress: Progress | None = None,
) -> list[Finished]:
    """What `trials` rehearsals reached, each where the ones before it suggest to look, the first one at STARTS.

    With a `journal` file a search that was stopped resumes where it was; the file of another search is refused.
    """
    form = rehearsal.state.form
    ranges = ranges_of(form)
    about = {
        "form": form,
        "beta": BETA,
        "seed": seed,
        "optimiser": optimiser,
        "start": _values(STARTS[form]),
        "old": len(rehearsal.state),
        "added": len(rehearsal.newcomers),
        "data": rehearsal.fingerprint,
    }
    kept = Journal(journal, about, ranges)
    finished = kept.finished[:trials]
    while len(finished) < trials:
        values = OPTIMISERS[optimiser](ranges, finished, seed) if finished else _values(STARTS[form])
        trial = _tried(rehearsal, values, _within(progress, len(finished), trials))
        kept.add(trial)
        finished.append(trial)
        if progress is not None:
            progress(len(finished) * STEPS, trials * STEPS)
    return finished


def ranges_of(form: Method) -> dict[str, Range]:
    """Where the paper looks, and for the general form where its anchor needs to be."""
    margin = Range(low=0.0, high=10.0)
    return {
        "weights.retrieve": Range(low=0.05, high=0.95),
        "weights.anchor": ANCHORS[form],
        "margins.retrieve": margin,
        "margins.preserve": margin,
    }


def _tried(rehearsal: Rehearsal, values: Mapping[str, float], progress: Progress | None) -> Finished:
    begin = time.perf_counter()
    old, new = map(quality, rehearsal.ranks(hyperparameters(values, rehearsal.state.form), progress))
    facts = {"old": old, "new": new, "seconds": time.perf_counter() - begin}
    return Finished(values=dict(values), target=f_beta(new, old, BETA), facts=facts)


def _values(how: Hyperparameters) -> dict[str, float]:
    return {
        "weights.retrieve": how.weights.retrieve,
        "weights.anchor": how.weights.anchor,
        "margins.retrieve": how.margins.retrieve,
        "margins.preserve": how.margins.preserve,
    }


def hyperparameters(values: Mapping[str, float], form: Method) -> Hyperparameters:
    """What a trial's values stand for."""
    return Hyperparameters(
        weights=Weights(retrieve=values["weights.retrieve"], anchor=values["weights.anchor"]),
        margins=Margins(retrieve=values["margins.retrieve"], preserve=values["margins.preserve"]),
        anchor_scale=STARTS[form].anchor_scale,
    )


def _drawn(split: Split, expected: int, draw: np.random.Generator) -> tuple[Places, Places]:
    """Places of the initial documents that stay, and of those added in their order: tuning ones follow initial ones."""
    initial, tuning = len(split.initial), len(split.tuning)
    order = draw.permutation(initial)
    stand_ins = order[: min(max(0, expected - tuning), initial // 2)]
    added = np.concatenate([initial + draw.permutation(tuning), stand_ins])
    return np.sort(order[len(stand_ins) :]), draw.permutation(added)


def _within(progress: Progress | None, done: int, trials: int) -> Progress | None:
    if progress is None:
        return None
    return lambda part, whole: progress(done * STEPS + STEPS * part // max(whole, 1), trials * STEPS)
