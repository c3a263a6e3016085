"""The frontier: what each form can trade between old and new documents, beside the methods that cannot trade."""

from __future__ import annotations

from typing import Any

from incdsi_lab.experiments import main_table, product
from incdsi_lab.experiments.comparing import basis, unique
from incdsi_lab.experiments.grid import (
    TUNED,
    Point,
    chosen_by,
    grid_tasks,
    keeping_the_old,
    level,
    points,
)
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import ANCHORS, RETRAINING, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import FORMS, tuned_tasks
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "frontier", "The frontier of old and new"
BESIDE = (RETRAINING, "dense", *ANCHORS)
WORDLESS = (RETRAINING, "dense", "best sentence", "product, empty, learned")  # drawn beside the learned points


def tasks(study: Study) -> list[Task]:
    """Both grids, and what stands beside them."""
    last = study.additions[-1]
    beside = [main_table.task_of(study, method, last) for method in BESIDE]
    grids = grid_tasks(study, NAME, lambda: study.new)
    return unique([study.initial_task(), *tuned_tasks(study), *beside, *grids, *product.tasks(study)])


def section(study: Study) -> Section:
    """The frontier drawn, and every point of it in a table."""
    found = {form: points(study, NAME, form) for form in FORMS}
    others = {name: study.piece(main_table.name_of(name, study.additions[-1])) for name in BESIDE}
    beside = {name: piece["ranks"] for name, piece in (others | product.rows(study)).items()}
    chosen = keeping_the_old(found["general"], level(study))
    caption = "H@1 of old and new documents over a grid of weights, all new documents added; filled: tuned weights."
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(_dominance(found), f"{chosen_by(study)} the point that the aims are about."),
        figures=(
            Figure(
                name="frontier",
                caption=caption,
                panels=(
                    _panel("learned and dense", found, {name: beside[name] for name in WORDLESS}),
                    _panel("with words", found, {name: some for name, some in beside.items() if name not in WORDLESS}),
                ),
            ),
        ),
        tables=(_table(found, beside),),
        aims=_aims(chosen, beside[RETRAINING]),
    )


def _aims(chosen: Point, retrained: dict[str, str]) -> tuple[Aim, ...]:
    """What the general form is to reach, at the point that validation queries choose on its frontier."""
    old, new = (hits1(retrained[group]) for group in ("old", "new"))
    found = (
        f"Found {chosen.old:.1f}/{chosen.new:.1f} (old/new H@1, {weights_named(chosen.how)}) against retraining's "
        f"{old:.1f}/{new:.1f}."
    )
    kept = chosen.old >= old - main_table.OLD_WITHIN
    gained = chosen.new >= new - main_table.NEW_WITHIN
    where = "General form, best point for new documents that keeps old ones as retraining does by validation queries"
    return (
        Aim(text=f"{where}: old H@1 at least retraining's minus {main_table.OLD_WITHIN}", found=found, reached=kept),
        Aim(
            text=f"{where}: new H@1 at least retraining's minus {main_table.NEW_WITHIN:g}", found=found, reached=gained
        ),
    )


def _panel(title: str, found: dict[Any, list[Point]], beside: dict[str, Any]) -> Panel:
    series = [_series(form, some, chosen) for form, some in found.items() for chosen in (False, True)]
    for name, ranks in beside.items():
        old, new = (hits1(ranks["old"]),), (hits1(ranks["new"]),)
        series.append(Series(label=named(name), style=name, kind="points", x=old, y=new))
    return Panel(title=title, x="old documents, H@1 (%)", y="new documents, H@1 (%)", series=tuple(series))


def _series(form: str, some: list[Point], chosen: bool) -> Series:
    mine = [point for point in some if (point.key == TUNED) == chosen]
    return Series(
        label=named(form) + (", tuned" if chosen else ", grid"),
        style=form,
        kind="points",
        dashed=not chosen,
        x=tuple(point.old for point in mine),
        y=tuple(point.new for point in mine),
    )


def dominated(points: list[Point], by: list[Point]) -> int:
    """How many of the points have one among the others that is as good on both sides and better on one."""
    return sum(any(b.old >= a.old and b.new >= a.new and (b.old > a.old or b.new > a.new) for b in by) for a in points)


def _dominance(found: dict[Any, list[Point]]) -> str:
    paper, general = found["paper"], found["general"]
    return (
        f"Of the paper's form's {len(paper)} points {dominated(paper, general)} have a point of the general form that "
        f"is no worse on either side; of the general form's {len(general)}, {dominated(general, paper)} have one of "
        "the paper's form. Points are shown on test queries and chosen by validation queries."
    )


def _table(found: dict[Any, list[Point]], beside: dict[str, Any]) -> Table:
    rows = [
        (
            named(form),
            weights_named(point.how) + (" (tuned)" if point.key == TUNED else ""),
            *_cells(point.old, point.new),
        )
        for form, some in found.items()
        for point in sorted(some, key=lambda point: -point.old)
    ]
    for name, ranks in beside.items():
        rows.append((named(name), "-", *_cells(hits1(ranks["old"]), hits1(ranks["new"]))))
    columns = ("method", "weights", "H@1 old", "H@1 new")
    caption = f"The frontier, all new documents added ({basis(beside[RETRAINING])})"
    return Table(name="frontier", caption=caption, columns=columns, rows=tuple(rows))


def _cells(old: float, new: float) -> tuple[str, str]:
    return f"{old:.1f}", f"{new:.1f}"
