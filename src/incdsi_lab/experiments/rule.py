"""The rule alone: the general form with the weights it chooses, beside retraining and dense search."""

from __future__ import annotations

from typing import Any

from incdsi.hyperparameters import Hyperparameters
from incdsi_lab.experiments import main_table, product
from incdsi_lab.experiments.comparing import against, asked, interval, unique
from incdsi_lab.experiments.methods import GENERAL, GENERAL_SAFE, RETRAINING, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import by_the_rule, rehearsed, trials, tuned_tasks
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "rule", "The rule that chooses"
METHODS = ("dense", RETRAINING, GENERAL_SAFE, GENERAL)


def tasks(study: Study) -> list[Task]:
    """What the rule needs, and what its choice is compared with."""
    last = study.additions[-1]
    compared = (main_table.task_of(study, method, last) for method in METHODS)
    return unique([*tuned_tasks(study, ("general",)), *compared])


def pieces_at(study: Study, count: int) -> dict[str, Any]:
    """What each method reached with this many new documents, and the product where it was run."""
    found = {method: study.piece(main_table.name_of(method, count)) for method in METHODS}
    return found | (product.rows(study) if product.finished(study) else {})


def section(study: Study) -> Section:
    """The steps, which one was chosen, and what it reached."""
    last = study.additions[-1]
    pieces = {method: study.piece(main_table.name_of(method, last)) for method in METHODS}
    reference, chosen = pieces[RETRAINING], by_the_rule(study)
    level = study.piece("tuned/general")["level"]
    tried = tuple(
        (
            weights_named(how) + (" (chosen)" if how == chosen else ""),
            f"{100 * trial['old']:.1f}",
            f"{100 * (trial['old'] - level):+.2f}",
            f"{100 * trial['new']:.1f}",
        )
        for trial in trials(study, "general")
        for how in [Hyperparameters.from_json(trial["weights"])]
    )
    reached = tuple(
        (
            named(method),
            *(interval(piece["ranks"][group]) for group in ("old", "new")),
            *("-" if method == RETRAINING else against(reference, piece, group) for group in ("old", "new")),
        )
        for method, piece in pieces.items()
    )
    columns = ("method", "H@1 old", "H@1 new", "old vs retraining", "new vs retraining")
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(rehearsed(study),),
        tables=(
            Table(
                name="steps",
                caption="All new documents added by each step, MRR@10 of validation queries; no test queries",
                columns=("weights", "old", "old less its level", "new"),
                rows=tried,
            ),
            Table(name=NAME, caption=f"What it reached ({asked(reference['ranks'])})", columns=columns, rows=reached),
        ),
    )
