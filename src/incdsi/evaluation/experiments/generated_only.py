"""Generated queries only: new documents known by their own sentences; both forms at the same old H@1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from incdsi.baselines.protocol import Part
from incdsi.evaluation.experiments.comparing import unique
from incdsi.evaluation.experiments.grid import FORMS, Point, grid_tasks, points
from incdsi.evaluation.experiments.methods import named
from incdsi.evaluation.experiments.study import Study
from incdsi.evaluation.experiments.tasks import Task
from incdsi.evaluation.experiments.tuned import tuned_tasks
from incdsi.evaluation.experiments.weights import named as weights_named
from incdsi.evaluation.report.figures import Figure, Panel, Series
from incdsi.evaluation.report.sections import Aim, Section
from incdsi.evaluation.report.tables import Table
from incdsi.evaluation.streams import Form

NAME, TITLE = "generated", "Generated queries only"
ABOVE = 8.0
LEVEL_WITHIN = 0.2  # points below the highest old H@1 that both forms can keep


def tasks(study: Study) -> list[Task]:
    """Both grids on the new documents without their natural queries."""
    return unique(
        [study.initial_task(), *tuned_tasks(study), *grid_tasks(study, NAME, lambda: without_natural(study.new))]
    )


def without_natural(part: Part) -> Part:
    """The part with its generated queries only."""
    return replace(part, queries=part.queries.take(np.flatnonzero(part.queries.generated)))


def section(study: Study) -> Section:
    """The two frontiers, and one point of each at the same old H@1."""
    found = {form: points(study, NAME, form) for form in FORMS}
    chosen, level = at_same_old(found["paper"], found["general"])
    gain = chosen["general"].new - chosen["paper"].new
    text = (
        f"Both forms keep at least {level:.1f} % H@1 of the old documents' validation queries at several weights; of "
        "those, each form gets the point with the best H@1 on the new documents' validation queries. On the test "
        f"queries the paper's form then has {_both(chosen['paper'])} (old/new H@1), the general form "
        f"{_both(chosen['general'])}: {gain:+.1f} points on new documents."
    )
    aim = Aim(
        text=f"Generated queries only: new H@1 at least {ABOVE:g} points above the paper's form at the same old H@1",
        found=f"Found {_both(chosen['general'])} against {_both(chosen['paper'])}, {gain:+.1f} points.",
        reached=gain >= ABOVE,
    )
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        figures=(_figure(found),),
        tables=(_table(found, chosen),),
        aims=(aim,),
    )


def at_same_old(paper: list[Point], general: list[Point]) -> tuple[dict[str, Point], float]:
    """Each form's best point for new documents among those that keep the same old H@1, by validation queries.

    The level is the highest that both forms reach, less LEVEL_WITHIN.
    """
    level = min(max(point.val_old for point in some) for some in (paper, general)) - LEVEL_WITHIN
    chosen = {
        form: max((point for point in some if point.val_old >= level), key=lambda point: _known(point.val_new))
        for form, some in (("paper", paper), ("general", general))
    }
    return chosen, level


def _known(value: float) -> float:
    """The value; where there was no query to measure it with, less than any."""
    return -1.0 if np.isnan(value) else value


def _both(point: Point) -> str:
    return f"{point.old:.1f}/{point.new:.1f}"


def _figure(found: Mapping[Form, list[Point]]) -> Figure:
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


def _table(found: Mapping[Form, list[Point]], chosen: Mapping[str, Point]) -> Table:
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
    caption = "Generated queries only, all new documents; bold: compared at the same old H@1"
    return Table(name="generated", caption=caption, columns=columns, rows=rows)


def _marked(bold: bool, *cells: str) -> tuple[str, ...]:
    return tuple(f"**{cell}**" if bold else cell for cell in cells)
