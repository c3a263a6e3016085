"""The weights of each form, tuned once for all experiments, by validation queries alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from incdsi.engine.settings import Method
from incdsi.hyperparameters import Hyperparameters
from incdsi.progress import Progress
from incdsi_lab.experiments.incremental import newcomers
from incdsi_lab.experiments.judging import decoded
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.weights import PATH
from incdsi_lab.ranking import ranks_among
from incdsi_lab.streams import add_all
from incdsi_lab.tuning import BETA, Rehearsal, best_keeping, f_beta, hyperparameters, quality, tune

FORMS: tuple[Method, ...] = ("paper", "general")


def tuned_tasks(study: Study, forms: Sequence[Method] = FORMS) -> list[Task]:
    """The paper's form tuned as in the paper; for the general one every step of the path, after what it is held to."""
    from incdsi_lab.experiments.main_table import retrained_task  # which needs these weights for other methods

    made = {"paper": lambda: [_paper_task(study)], "general": lambda: [retrained_task(study), _general_task(study)]}
    return [study.initial_task(), *(task for form in forms for task in made[form]())]


def tuned(study: Study, form: Method) -> Hyperparameters:
    """What each form is tuned by: the paper's by its F-beta, the general one by the rule."""
    return chosen_by(study, form, BETA) if form == "paper" else by_the_rule(study)


def chosen_by(study: Study, form: Method, beta: float) -> Hyperparameters:
    """The trial with the highest F-beta for this beta, the first of equals."""
    best = max(trials(study, form), key=lambda trial: f_beta(trial["new"], trial["old"], beta))
    return Hyperparameters.from_json(best["weights"])


def by_the_rule(study: Study) -> Hyperparameters:
    """The best step of the path for new documents among those that leave old ones what retraining leaves them."""
    level = study.piece("tuned/general")["level"]
    best = best_keeping(trials(study, "general"), lambda trial: trial["old"], lambda trial: trial["new"], level)
    return Hyperparameters.from_json(best["weights"])


def rehearsed(study: Study) -> str:
    """How the weights were chosen."""
    paper, general = (study.piece(f"tuned/{form}") if f"tuned/{form}" in study.pieces else None for form in FORMS)
    assert general is not None
    said = (
        f"The rule: of {len(general['trials'])} steps from careful to bold, the best for new documents by their "
        f"{general['queries']['new']:,} validation queries, among those that leave the {general['queries']['old']:,} "
        f"of old ones at least the MRR@10 that retraining leaves them ({100 * general['level']:.1f} %)."
    )
    if paper is None:
        return said
    return (
        f"{said} The paper's form is tuned by its F-beta (β = {BETA:g}) in {len(paper['trials'])} rehearsals of "
        f"{paper['added']:,} additions: the {len(study.split.tuning):,} tuning documents and initial ones in the place "
        f"of new ones, judged by {paper['queries']:,} of their validation queries and all of the others'."
    )


def trials(study: Study, form: Method) -> list[Piece]:
    """What was tried: weights, and old and new quality."""
    found: list[Piece] = study.piece(f"tuned/{form}")["trials"]
    return found


def _general_task(study: Study) -> Task:
    """All new documents added at every step, judged by validation queries alone."""

    def run(progress: Progress) -> Piece:
        last = study.additions[-1]
        groups = study.groups(last, validation=True)
        tried = []
        for how in PATH:
            vectors = add_all(study.state("general"), newcomers(study.new), hyperparameters=how).state.vectors
            reached = {name: ranks_among(vectors, some.embeddings, some.owners) for name, some in groups.items()}
            tried.append({"weights": asdict(how), **{name: quality(ranks) for name, ranks in reached.items()}})
            progress(len(tried), len(PATH))
        level = quality(decoded(study.piece(f"main/retraining/{last}")["val"]["old"]))
        return {"trials": tried, "level": level, "queries": {name: len(some) for name, some in groups.items()}}

    return Task(name="tuned/general", run=run, seconds=len(PATH) * (0.5 + 0.01 * len(study.split.new)))


def _paper_task(study: Study) -> Task:
    """The paper's search, old quality judged at the number of additions the study will make."""

    def run(progress: Progress) -> Piece:
        data, split = study.data, study.split
        rehearsal = Rehearsal.of(
            data,
            split,
            study.state("paper"),
            [data.asked(split.train), data.spans],
            expected=len(split.new),
            adapted=study.settings.encoder_epochs > 0,
            seed=study.settings.seed,
        )
        found = tune(
            rehearsal,
            trials=study.settings.trials,
            seed=study.settings.seed,
            optimiser=study.settings.optimiser,
            journal=study.pieces.path("tuned/paper", "journal"),
            progress=progress,
        )
        tried = [{"weights": asdict(hyperparameters(trial.values, "paper")), **trial.facts} for trial in found]
        return {"trials": tried, "added": len(rehearsal.newcomers), "queries": len(rehearsal.questions)}

    seconds = study.settings.trials * (0.5 + 0.004 * len(study.split.new))
    return Task(name="tuned/paper", run=run, seconds=seconds)
