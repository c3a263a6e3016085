"""The weights of each form, tuned once for all experiments on tuning documents and validation queries."""

from __future__ import annotations

from dataclasses import asdict

from incdsi.engine.settings import Method
from incdsi.hyperparameters import Hyperparameters
from incdsi.progress import Progress
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.tuning import BETA, Rehearsal, f_beta, hyperparameters, tune

FORMS: tuple[Method, ...] = ("paper", "general")


def tuned_tasks(study: Study) -> list[Task]:
    """One search per form, old quality judged at the number of additions the study will make."""
    return [_task(study, form) for form in FORMS]


def tuned(study: Study, form: Method) -> Hyperparameters:
    """What the paper's beta chooses, with which old documents count most."""
    return chosen_by(study, form, BETA)


def balanced(study: Study, form: Method) -> Hyperparameters:
    """What is chosen when old and new documents count alike, as they do where every document arrives once."""
    return chosen_by(study, form, 1.0)


def chosen_by(study: Study, form: Method, beta: float) -> Hyperparameters:
    """The trial with the highest F-beta for this beta, the first of equals."""
    trials = study.piece(f"tuned/{form}")["trials"]
    best = max(trials, key=lambda trial: f_beta(trial["new"], trial["old"], beta))
    return Hyperparameters.from_json(best["weights"])


def rehearsed(study: Study) -> str:
    """How the weights were chosen."""
    piece = study.piece("tuned/general")
    return (
        f"Weights were chosen in {len(piece['trials'])} rehearsals a form, each of {piece['added']:,} additions: the "
        f"{len(study.split.tuning):,} tuning documents and initial ones in the place of new ones, judged by "
        f"{piece['queries']:,} of their validation queries and all of the others'."
    )


def _task(study: Study, form: Method) -> Task:
    def run(progress: Progress) -> Piece:
        data, split = study.data, study.split
        questions = [data.asked(split.train), data.spans]
        rehearsal = Rehearsal.of(
            data,
            split,
            study.state(form),
            questions,
            expected=len(split.new),
            adapted=study.settings.encoder_epochs > 0,
            seed=study.settings.seed,
        )
        found = tune(
            rehearsal,
            trials=study.settings.trials,
            seed=study.settings.seed,
            optimiser=study.settings.optimiser,
            journal=study.pieces.path(f"tuned/{form}", "journal"),
            progress=progress,
        )
        trials = [{"weights": asdict(hyperparameters(trial.values, form)), **trial.facts} for trial in found]
        return {"trials": trials, "added": len(rehearsal.newcomers), "queries": len(rehearsal.questions)}

    each = 0.5 + (0.01 if form == "general" else 0.004) * len(study.split.new)
    return Task(name=f"tuned/{form}", run=run, seconds=study.settings.trials * each)
