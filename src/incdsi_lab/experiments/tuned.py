"""The weights of each form, tuned once for all experiments by rehearsals: initial documents and validation queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from incdsi.engine.settings import Method
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.tuning import best_keeping
from incdsi.progress import Progress
from incdsi_lab.baselines.classification import trained
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.weights import PATH
from incdsi_lab.tuning import BETA, Rehearsal, drawn, f_beta, hyperparameters, quality, tune

FORMS: tuple[Method, ...] = ("paper", "general")
REHEARSAL = "rehearsal"


def tuned_tasks(study: Study, forms: Sequence[Method] = FORMS) -> list[Task]:
    """One search per form, old quality judged at the number of additions the study will make."""
    return [_without_task(study), *(_task(study, form) for form in forms)]


def tuned(study: Study, form: Method) -> Hyperparameters:
    """What each form is tuned by: the paper's by its F-beta, the general one by the rule."""
    return chosen_by(study, form, BETA) if form == "paper" else by_the_rule(study, form)


def chosen_by(study: Study, form: Method, beta: float) -> Hyperparameters:
    """The trial with the highest F-beta for this beta, the first of equals."""
    best = max(trials(study, form), key=lambda trial: f_beta(trial["new"], trial["old"], beta))
    return Hyperparameters.from_json(best["weights"])


def by_the_rule(study: Study, form: Method) -> Hyperparameters:
    """The best trial for new documents among those that keep the old ones."""
    level = study.piece(f"tuned/{form}")["level"]
    best = best_keeping(trials(study, form), lambda trial: trial["old"], lambda trial: trial["new"], level)
    return Hyperparameters.from_json(best["weights"])


def rehearsed(study: Study) -> str:
    """How the weights were chosen."""
    piece = study.piece("tuned/general")
    return (
        f"Weights were chosen in rehearsals ({len(piece['trials'])} of the general form) of {piece['added']:,} "
        f"additions: the {len(study.split.tuning):,} tuning documents and initial ones in the place of new ones, to a "
        f"model trained without them, judged by {piece['queries']:,} of their validation queries and all of the "
        "others'. The rule: the best for new documents among the trials that leave old ones the MRR@10 they have where "
        f"all initial documents are trained together ({100 * piece['level']:.1f} %)."
    )


def trials(study: Study, form: Method) -> list[Piece]:
    """What was rehearsed: weights, and old and new quality."""
    found: list[Piece] = study.piece(f"tuned/{form}")["trials"]
    return found


def _without_task(study: Study) -> Task:
    """Trains the initial documents that a rehearsal leaves in, without those that it takes out."""

    def run(progress: Progress) -> Piece:
        kept = drawn(study.split, len(study.split.new), study.settings.seed)[0]
        vectors = trained(study.initial.take(kept), study.frozen, progress=progress)
        study.pieces.keep_array(REHEARSAL, vectors)
        return {"documents": len(vectors)}

    return Task(name=REHEARSAL, run=run, seconds=study.training_seconds(len(study.split.initial)))


def _rehearsal(study: Study, form: Method) -> Rehearsal:
    data, split = study.data, study.split
    return Rehearsal.of(
        data,
        split,
        study.state(form),
        [data.asked(split.train), data.spans],
        expected=len(split.new),
        without=study.pieces.array(REHEARSAL),
        adapted=study.settings.encoder_epochs > 0,
        seed=study.settings.seed,
    )


def _searched(study: Study, rehearsal: Rehearsal, progress: Progress) -> list[Piece]:
    """As the paper does."""
    found = tune(
        rehearsal,
        trials=study.settings.trials,
        seed=study.settings.seed,
        optimiser=study.settings.optimiser,
        journal=study.pieces.path("tuned/paper", "journal"),
        progress=progress,
    )
    return [{"weights": asdict(hyperparameters(trial.values, "paper")), **trial.facts} for trial in found]


def _stepped(rehearsal: Rehearsal, progress: Progress) -> list[Piece]:
    """Step by step from careful to bold."""
    trials = []
    for how in PATH:
        old, new = map(quality, rehearsal.ranks(how))
        trials.append({"weights": asdict(how), "old": old, "new": new})
        progress(len(trials), len(PATH))
    return trials


def _task(study: Study, form: Method) -> Task:
    def run(progress: Progress) -> Piece:
        rehearsal = _rehearsal(study, form)
        return {
            "trials": _searched(study, rehearsal, progress) if form == "paper" else _stepped(rehearsal, progress),
            "level": rehearsal.level,
            "added": len(rehearsal.newcomers),
            "queries": len(rehearsal.questions),
        }

    each = 0.5 + (0.01 if form == "general" else 0.004) * len(study.split.new)
    trials = len(PATH) if form == "general" else study.settings.trials
    return Task(name=f"tuned/{form}", run=run, seconds=trials * each)
