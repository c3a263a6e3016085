"""Both forms over a grid of weights: what the frontier and the generated-queries-only experiment share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from incdsi.baselines.protocol import Part
from incdsi.evaluation.experiments.comparing import compared
from incdsi.evaluation.experiments.judging import hits1
from incdsi.evaluation.experiments.methods import incremental
from incdsi.evaluation.experiments.study import Study
from incdsi.evaluation.experiments.tasks import Task
from incdsi.evaluation.experiments.tuned import tuned
from incdsi.evaluation.experiments.weights import GRIDS
from incdsi.evaluation.streams import Form
from incdsi.hyperparameters import Hyperparameters

TUNED = "tuned"
FORMS: tuple[Form, ...] = ("paper", "general")


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


def keys(form: Form) -> list[str]:
    """The names of a form's points."""
    return [TUNED, *(str(place) for place in range(len(GRIDS[form])))]


def weights_of(study: Study, form: Form, key: str) -> Hyperparameters:
    """The weights behind a name."""
    return tuned(study, form) if key == TUNED else GRIDS[form][int(key)]


def points(study: Study, prefix: str, form: Form) -> list[Point]:
    """What the grid's pieces say."""
    found = []
    for key in keys(form):
        piece = study.piece(f"{prefix}/{form}/{key}")
        old, new = (hits1(piece["ranks"][group]) for group in ("old", "new"))
        val_old, val_new = (hits1(piece["val"][group]) for group in ("old", "new"))
        how = weights_of(study, form, key)
        found.append(Point(key=key, how=how, old=old, new=new, val_old=val_old, val_new=val_new))
    return found


def _task(study: Study, prefix: str, form: Form, key: str, part: Callable[[], Part]) -> Task:
    return compared(
        study,
        f"{prefix}/{form}/{key}",
        lambda progress: incremental(study, form, progress, how=weights_of(study, form, key)),
        part,
        seconds=(0.01 if form == "general" else 0.004) * len(study.split.new) + study.judging_seconds(),
        validation=True,
    )
