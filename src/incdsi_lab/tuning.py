"""Choose weights and margins by rehearsing additions: Bayesian optimisation of the F-beta of old and new quality.

| here               | paper   | paper's form        | general form       |
| ------------------ | ------- | ------------------- | ------------------ |
| `weights.retrieve` | lambda1 | U(0.05, 0.95)       | the same           |
| `weights.anchor`   | lambda2 | LogU(1e-8, 1e-3)    | LogU(1e-3, 1)      |
| `margins`          | gamma   | U(0, 10)            | the same           |
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidInput
from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters, Margins, Weights
from incdsi.index.settings import Method
from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.embedded import Embedded
from incdsi_lab.metrics import reciprocal
from incdsi_lab.ranking import Ranks, Standing, ranks_among
from incdsi_lab.splits import Split
from incdsi_lab.streams import Floats, Newcomers, Places, State, add_all
from incdsi_lab.suggesting import Finished, Journal, Range, Suggest, suggest_ax, suggest_gp

TRIALS = 50
BETA = 5.0  # how much more the old documents count than the new ones
STEPS = 100  # of progress in one trial
ANCHORS = {"paper": Range(low=1e-8, high=1e-3, log=True), "general": Range(low=1e-3, high=1.0, log=True)}
# Tried first, so that tuning never ends below them: what serves untuned, and the paper's form at weights near its own.
STARTS: Mapping[Method, tuple[Hyperparameters, ...]] = {
    "general": (SAFE, BOLD),
    "paper": (
        Hyperparameters(
            margins=Margins(retrieve=5.0, preserve=7.0), weights=Weights(retrieve=0.5, anchor=6e-5), anchor_scale=0.0
        ),
    ),
}
OPTIMISERS: Mapping[str, Suggest] = {"gp": suggest_gp, "ax": suggest_ax}
Optimiser = Literal["gp", "ax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Hyperparameters with what they reached: MRR@10 of old and new documents, from 0 to 1, and their F-beta."""

    hyperparameters: Hyperparameters
    old: float
    new: float
    target: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """All trials in the order they were made."""

    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial with the highest target, the first of equals."""
        return max(self.trials, key=lambda trial: trial.target)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """Additions to be tried with many hyperparameters, judged by validation queries from cached embeddings.

    `standing` is where the validation queries of the old documents stand before; `questions` (b, h) and `owners`
    (b,) are those of the newcomers.
    """

    state: State
    newcomers: Newcomers
    standing: Standing
    questions: Floats
    owners: Places
    fingerprint: str

    def __post_init__(self) -> None:
        for name, count in (("old", len(self.standing.queries)), ("new", len(self.questions))):
            if count == 0:
                raise InvalidInput(
                    f"expected validation queries of {name} documents to tune by, found none; "
                    "tell how many additions are expected, or hold out more queries"
                )

    @classmethod
    def of(
        cls,
        embedded: Embedded,
        split: Split,
        state: State,
        questions: Sequence[Questions],
        *,
        expected: int | None = None,
        sample: int | None = None,
        adapted: bool = False,
        seed: int = 0,
    ) -> Rehearsal:
        """Additions to the state of `split.initial`, in that order, placed by the questions and judged by `split.val`.

        The tuning documents alone tell too little of what many more do to the old ones. So when more are
        `expected`, initial documents drawn at random stand in for the rest: they are taken out of the state and
        added again, and everybody's quality is judged after that many. `sample` keeps that many initial documents
        and as small a share of the additions, for speed. With an encoder that was `adapted` to the initial
        documents, stand-ins are no longer new to it: only the tuning documents' queries are then judged as new.
        Test queries and new documents are never looked at.
        """
        if len(state) != len(split.initial):
            raise InvalidInput(
                f"expected a state of the {len(split.initial)} initial documents, found one of {len(state)}"
            )
        kept, added = _drawn(split, expected, sample, np.random.default_rng(seed))
        initial, tuning = embedded.places(split.initial), embedded.places(split.tuning)
        places = np.concatenate([initial, tuning])[added]
        old_places = initial[kept]
        asked = embedded.asked(split.val)
        old, old_owners = _of_documents(asked, old_places, len(embedded.documents))
        new, new_owners = _of_documents(asked, places, len(embedded.documents))
        if adapted:
            unseen = np.flatnonzero(added[new_owners] >= len(initial))
            new, new_owners = new[unseen], new_owners[unseen]
        remaining, newcomers = state.only(kept), Newcomers.of(embedded, places, questions)
        data = (split.collection_digest[:12], embedded.encoder.fingerprint[:12], split.seed, seed)
        return cls(
            state=remaining,
            newcomers=newcomers,
            standing=Standing.of(remaining.vectors, old, old_owners),
            questions=new,
            owners=new_owners,
            fingerprint="-".join(map(str, (*data, sum(map(len, newcomers.queries))))),
        )

    def ranks(self, how: Hyperparameters, progress: Progress | None = None) -> tuple[Ranks, Ranks]:
        """The ranks of the old and of the new documents' validation queries after all additions."""
        stream = add_all(self.state, self.newcomers, hyperparameters=how, progress=progress)
        vectors = stream.state.vectors
        old = self.standing.after(vectors[stream.before :])
        return old, ranks_among(vectors, self.questions, self.owners + stream.before)


def f_beta(new: float, old: float, beta: float) -> float:
    """The paper's target: the weighted harmonic mean of new and old quality, old counting beta times as much."""
    below = beta**2 * new + old
    return (1 + beta**2) * new * old / below if below else 0.0


def tune(
    rehearsal: Rehearsal,
    *,
    trials: int = TRIALS,
    beta: float = BETA,
    seed: int = 0,
    journal: Path | str | None = None,
    optimiser: Optimiser = "gp",
    starts: Sequence[Hyperparameters] | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """The hyperparameters that reach most in rehearsal, of `trials` tried, `starts` (none given: STARTS) first.

    With a `journal` file a search that was stopped goes on where it was; the file of another search is refused.
    """
    if trials < 1 or beta < 0:
        raise InvalidInput(f"expected at least one trial and a beta from 0 on, found {trials} and {beta}")
    form = rehearsal.state.form
    first = STARTS[form] if starts is None else tuple(starts)
    ranges = ranges_of(form)
    about = {
        "form": form,
        "beta": beta,
        "seed": seed,
        "optimiser": optimiser,
        "starts": [_values(one) for one in first],
        "old": len(rehearsal.state),
        "added": len(rehearsal.newcomers),
        "data": rehearsal.fingerprint,
    }
    kept = Journal(None if journal is None else Path(journal), about, ranges)
    finished = kept.finished[:trials]
    while len(finished) < trials:
        if len(finished) < len(first):
            values = _values(first[len(finished)])
        else:
            values = OPTIMISERS[optimiser](ranges, finished, seed)
        trial = _tried(rehearsal, values, beta, _within(progress, len(finished), trials))
        kept.add(trial)
        finished.append(trial)
        if progress is not None:
            progress(len(finished) * STEPS, trials * STEPS)
    return Tuned(trials=tuple(_trial(one, form) for one in finished))


def ranges_of(form: Method) -> dict[str, Range]:
    """Where the paper looks, and for the general form where its anchor needs to be."""
    margin = Range(low=0.0, high=10.0)
    return {
        "weights.retrieve": Range(low=0.05, high=0.95),
        "weights.anchor": ANCHORS[form],
        "margins.retrieve": margin,
        "margins.preserve": margin,
    }


def _tried(rehearsal: Rehearsal, values: Mapping[str, float], beta: float, progress: Progress | None) -> Finished:
    begin = time.perf_counter()
    found = rehearsal.ranks(_hyperparameters(values, rehearsal.state.form), progress)
    old, new = (float(reciprocal(ranks).mean()) for ranks in found)
    facts = {"old": old, "new": new, "seconds": time.perf_counter() - begin}
    return Finished(values=dict(values), target=f_beta(new, old, beta), facts=facts)


def _values(how: Hyperparameters) -> dict[str, float]:
    return {
        "weights.retrieve": how.weights.retrieve,
        "weights.anchor": how.weights.anchor,
        "margins.retrieve": how.margins.retrieve,
        "margins.preserve": how.margins.preserve,
    }


def _hyperparameters(values: Mapping[str, float], form: Method) -> Hyperparameters:
    return Hyperparameters(
        weights=Weights(retrieve=values["weights.retrieve"], anchor=values["weights.anchor"]),
        margins=Margins(retrieve=values["margins.retrieve"], preserve=values["margins.preserve"]),
        anchor_scale=STARTS[form][0].anchor_scale,
    )


def _trial(finished: Finished, form: Method) -> Trial:
    return Trial(
        hyperparameters=_hyperparameters(finished.values, form),
        old=finished.facts["old"],
        new=finished.facts["new"],
        target=finished.target,
        seconds=finished.facts["seconds"],
    )


def _drawn(split: Split, expected: int | None, sample: int | None, draw: np.random.Generator) -> tuple[Places, Places]:
    """Places of the initial documents that stay, and of those added in their order: tuning ones follow initial ones."""
    initial, tuning = len(split.initial), len(split.tuning)
    additions = max(tuning, expected or 0)
    share = 1.0 if sample is None else min(1.0, sample / initial)
    wanted = max(1, round(share * additions))
    order = draw.permutation(initial)
    stand_ins = order[: min(max(0, wanted - tuning), initial // 2)]
    stay = order[len(stand_ins) :]
    stay = np.sort(stay[: min(len(stay), max(1, round(share * initial)))])
    added = np.concatenate([initial + draw.permutation(tuning)[:wanted], stand_ins])
    return stay, draw.permutation(added)


def _of_documents(asked: Questions, places: Places, documents: int) -> tuple[Floats, NDArray[np.intp]]:
    """The embeddings of the queries of these documents, and whose each is by its place among them."""
    among = np.full(documents, -1, dtype=np.intp)
    among[places] = np.arange(len(places))
    mine = np.flatnonzero(among[asked.owners] >= 0)
    return asked.embeddings[mine], among[asked.owners[mine]]


def _within(progress: Progress | None, done: int, trials: int) -> Progress | None:
    if progress is None:
        return None
    return lambda part, whole: progress(done * STEPS + STEPS * part // max(whole, 1), trials * STEPS)
