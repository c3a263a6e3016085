"""Both forms over a grid of weights: what the frontier and the generated-queries-only experiment share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from incdsi.engine.settings import Method
from incdsi.hyperparameters import Hyperparameters
from incdsi_lab.baselines.protocol import Part
from incdsi_lab.experiments.comparing import compared
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.main_table import OLD_WITHIN, retrained
from incdsi_lab.experiments.methods import incremental
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import FORMS, tuned
from incdsi_lab.experiments.weights import GRIDS
from incdsi_lab.tuning import best_keeping

TUNED = "tuned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One choice of weights: H@1 of old and new documents on test and on validation queries."""

    key: str
    how: Hyperparameters
    old: float
    new: float
    val_old: float
    val_new: float


def grid_tasks(study: Study, prefix: str, part: Callable[[], Part]) -> list[Task]:
    """Every point of both grids, and the tuned weights of both forms."""
    return [_task(study, prefix, form, key, part) for form in FORMS for key in keys(form)]


def keys(form: Method) -> list[str]:
    """The names of a form's points."""
    return [TUNED, *(str(place) for place in range(len(GRIDS[form])))]


def weights_of(study: Study, form: Method, key: str) -> Hyperparameters:
    """The weights behind a name."""
    return tuned(study, form) if key == TUNED else GRIDS[form][int(key)]


def points(study: Study, prefix: str, form: Method) -> list[Point]:
    """What the grid's pieces say."""
    found = []
    for key in keys(form):
        piece = study.piece(f"{prefix}/{form}/{key}")
        old, new = (hits1(piece["ranks"][group]) for group in ("old", "new"))
        val_old, val_new = (hits1(piece["val"][group]) for group in ("old", "new"))
        how = weights_of(study, form, key)
        found.append(Point(key=key, how=how, old=old, new=new, val_old=val_old, val_new=val_new))
    return found


def level(study: Study) -> float:
    """The H@1 that a point must have on old documents' validation queries to keep them as retraining does."""
    return hits1(retrained(study)["val"]["old"]) - OLD_WITHIN


def chosen_by(study: Study) -> str:
    """How many validation queries choose a point."""
    val = retrained(study)["val"]
    return f"{len(val['old']):,} validation queries of old and {len(val['new']):,} of new documents choose"


def keeping_the_old(points: list[Point], level: float) -> Point:
    """The rule, by validation queries alone: the best point for new documents of those that keep old ones so well."""
    return best_keeping(points, lambda point: point.val_old, lambda point: point.val_new, level)


def _task(study: Study, prefix: str, form: Method, key: str, part: Callable[[], Part]) -> Task:
    return compared(
        study,
        f"{prefix}/{form}/{key}",
        lambda progress: incremental(study, form, progress, how=weights_of(study, form, key)),
        part,
        seconds=(0.01 if form == "general" else 0.004) * len(study.split.new) + study.judging_seconds(),
        validation=True,
    )
