"""Generated queries only: new documents known by their own sentences; both forms at retraining's old H@1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from incdsi.engine.settings import Method
from incdsi_lab.baselines.protocol import Part
from incdsi_lab.experiments.comparing import basis, unique
from incdsi_lab.experiments.grid import Point, chosen_by, grid_tasks, keeping_the_old, level, points
from incdsi_lab.experiments.main_table import OLD_WITHIN, retrained, retrained_task
from incdsi_lab.experiments.methods import named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import FORMS, tuned_tasks
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "generated", "Generated queries only"
ABOVE = 8.0
Chosen = Mapping[Method, Point]


def tasks(study: Study) -> list[Task]:
    """Both grids on the new documents without their natural queries."""
    grids = grid_tasks(study, NAME, lambda: without_natural(study.new))
    return unique([study.initial_task(), *tuned_tasks(study), *grids, retrained_task(study)])


def without_natural(part: Part) -> Part:
    """The part with its generated queries only."""
    return replace(part, queries=part.queries.take(np.flatnonzero(part.queries.generated)))


def section(study: Study) -> Section:
    """The two frontiers, and one point of each that keeps the old documents as retraining does."""
    found = {form: points(study, NAME, form) for form in FORMS}
    kept = level(study)
    chosen = {form: keeping_the_old(some, kept) for form, some in found.items()}
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(_paragraph(chosen, kept), f"{chosen_by(study)} the points compared."),
        figures=(_figure(found),),
        tables=(_table(found, chosen, retrained(study)["ranks"]),),
        aims=(_aim(chosen),),
    )


def _paragraph(chosen: Chosen, kept: float) -> str:
    return (
        f"Weights that keep the old documents as retraining does have at least {kept:.1f} % H@1 on their validation "
        f"queries ({OLD_WITHIN} points below retraining's); of those, each form gets the point with the best H@1 on "
        "the new documents' validation queries. On the test queries the paper's form then has "
        f"{_both(chosen['paper'])} (old/new H@1), the general form {_both(chosen['general'])}."
    )


def _aim(chosen: Chosen) -> Aim:
    paper, general = chosen["paper"], chosen["general"]
    return Aim(
        text=f"Generated queries only: new H@1 at least {ABOVE:g} points above the paper's form",
        found=f"Found {_both(general)} against {_both(paper)}.",
        reached=general.new - paper.new >= ABOVE,
    )


def _both(point: Point) -> str:
    return f"{point.old:.1f}/{point.new:.1f}"


def _figure(found: Mapping[Method, list[Point]]) -> Figure:
    series = tuple(
        Series(
            label=named(form),
            style=form,
            kind="points",
            x=tuple(point.old for point in some),
            y=tuple(point.new for point in some),
        )
        for form, some in found.items()
    )
    panel = Panel(title="generated queries only", x="old documents, H@1 (%)", y="new documents, H@1 (%)", series=series)
    caption = "New documents known by generated queries only: H@1 of old and new documents over a grid of weights."
    return Figure(name="generated", caption=caption, panels=(panel,))


def _table(found: Mapping[Method, list[Point]], chosen: Chosen, ranks: Mapping[str, str]) -> Table:
    rows = tuple(
        (
            named(form),
            weights_named(point.how) + (" (tuned)" if point.key == "tuned" else ""),
            *_marked(point is chosen[form], f"{point.old:.1f}", f"{point.new:.1f}"),
            f"{point.val_old:.1f}",
            f"{point.val_new:.1f}",
        )
        for form, some in found.items()
        for point in sorted(some, key=lambda point: -point.old)
    )
    columns = ("form", "weights", "H@1 old", "H@1 new", "val old", "val new")
    caption = (
        "Generated queries only, all new documents; bold: compared, as old documents are kept as by retraining "
        f"({basis(ranks)})"
    )
    return Table(name="generated", caption=caption, columns=columns, rows=rows)


def _marked(bold: bool, *cells: str) -> tuple[str, ...]:
    return tuple(f"**{cell}**" if bold else cell for cell in cells)
