"""Curves over additions: old and new H@1 while documents arrive, over several random orders."""

from __future__ import annotations

import numpy as np

from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Floats
from incdsi_lab.baselines.ranking import best
from incdsi_lab.experiments import main_table
from incdsi_lab.experiments.comparing import unique
from incdsi_lab.experiments.incremental import newcomers
from incdsi_lab.experiments.judging import LOOK, averaged, encoded, hits1, own_ranks
from incdsi_lab.experiments.methods import (
    FORM_OF,
    GENERAL,
    PAPER,
    RETRAINING,
    named,
    weights,
)
from incdsi_lab.experiments.study import Places, Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.tuned import tuned_tasks
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table
from incdsi_lab.streams import add_all

NAME, TITLE = "curves", "Curves over additions"
STEPS = (1, 3)  # times each power of ten
METHODS = ("dense", PAPER, GENERAL)


def marks(study: Study) -> list[int]:
    """10, 30, 100, ... and all new documents."""
    most = len(study.split.new)
    steps = [step * 10**power for power in range(1, 7) for step in STEPS]
    return [*(step for step in steps if step < most), most]


def tasks(study: Study) -> list[Task]:
    """Dense and both forms, each in every order."""
    streams = [_task(study, method, order) for order in range(study.settings.orders) for method in METHODS]
    last = study.additions[-1]
    return unique([study.initial_task(), *tuned_tasks(study), main_table.task_of(study, RETRAINING, last), *streams])


def section(study: Study) -> Section:
    """One panel for old, one for new documents, with the spread over orders; the same as a table."""
    panels = tuple(
        Panel(
            title=f"{group} documents",
            x="documents added",
            y="H@1 (%)",
            log_x=True,
            series=(*(_series(study, method, group) for method in METHODS), _level(study, group)),
        )
        for group in ("old", "new")
    )
    orders = study.settings.orders
    caption = f"H@1 while documents are added; mean and standard deviation of {orders} random orders."
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=_paragraphs(study),
        figures=(Figure(name="curves", caption=caption, panels=panels),),
        tables=(_table(study),),
    )


def _task(study: Study, method: str, order: int) -> Task:
    def run(progress: Progress) -> Piece:
        shuffled = np.random.default_rng([study.settings.seed, order]).permutation(len(study.new))
        vectors = _vectors(study, method, shuffled, progress)
        return {"at": {str(mark): _judged(study, vectors, mark, shuffled) for mark in marks(study)}}

    seconds = len(marks(study)) * study.judging_seconds() + 0.01 * len(study.split.new) * (method != "dense")
    return Task(name=f"curves/{method}/{order}", run=run, seconds=seconds)


def _vectors(study: Study, method: str, order: Places, progress: Progress) -> Floats:
    """V after all additions in this order; the state at a mark is its beginning."""
    part = study.new.take(order)
    if method == "dense":
        return np.concatenate([study.initial.embeddings, part.embeddings])
    how = weights(study, method)
    stream = add_all(study.state(FORM_OF[method]), newcomers(part), hyperparameters=how, progress=progress)
    return stream.state.vectors


def _judged(study: Study, vectors: Floats, mark: int, order: Places) -> dict[str, str]:
    known = vectors[: len(study.initial) + mark]
    groups = study.groups(mark, order=order)
    return {
        group: encoded(own_ranks(best(some.embeddings, known, LOOK), some.owners)) for group, some in groups.items()
    }


def _averages(study: Study, method: str, mark: int, group: str) -> tuple[float, float]:
    pieces = study.all_pieces([f"curves/{method}/{order}" for order in range(study.settings.orders)])
    return averaged([{"ranks": piece["at"][str(mark)]} for piece in pieces if piece["at"][str(mark)][group]], group)


def _series(study: Study, method: str, group: str) -> Series:
    values = [_averages(study, method, mark, group) for mark in marks(study)]
    return Series(
        label=named(method),
        style=FORM_OF.get(method, method),
        x=tuple(float(mark) for mark in marks(study)),
        y=tuple(mean for mean, _ in values),
        spread=tuple(deviation for _, deviation in values),
    )


def _level(study: Study, group: str) -> Series:
    piece = study.piece(main_table.name_of(RETRAINING, study.additions[-1]))
    label = f"{named(RETRAINING)}, all added"
    return Series(label=label, style=RETRAINING, kind="level", y=(hits1(piece["ranks"][group]),))


def _table(study: Study) -> Table:
    columns = ("method", *(f"+{mark:,}" for mark in marks(study)))
    rows = tuple(
        (f"{named(method)}, {group}", *(_cell(*_averages(study, method, mark, group)) for mark in marks(study)))
        for group in ("old", "new")
        for method in METHODS
    )
    caption = (
        f"H@1 by number of additions: mean ± standard deviation of {study.settings.orders} random orders, of those "
        f"with a query to judge by; {_queries(study)}"
    )
    return Table(name="curves", caption=caption, columns=columns, rows=rows)


def _queries(study: Study) -> str:
    """How many queries a mark has, on average over the orders."""
    ends = [study.piece(f"curves/dense/{order}")["at"] for order in range(study.settings.orders)]
    new = [np.mean([len(at[str(mark)]["new"]) for at in ends]) for mark in marks(study)]
    old = len(ends[0][str(marks(study)[0])]["old"])
    return f"{old:,} old and {'/'.join(f'{count:,.0f}' for count in new)} new test queries"


def _cell(mean: float, deviation: float) -> str:
    return f"{mean:.1f} ± {deviation:.1f}"


def _paragraphs(study: Study) -> tuple[str, ...]:
    last = marks(study)[-1]
    reference = study.piece(main_table.name_of(RETRAINING, study.additions[-1]))["ranks"]
    reached = []
    for method in METHODS[1:]:
        old, new = (_averages(study, method, last, group) for group in ("old", "new"))
        distance = (old[0] - hits1(reference["old"]), new[0] - hits1(reference["new"]))
        apart = f"{distance[0]:+.1f} and {distance[1]:+.1f} from retraining"
        reached.append(f"{named(method)} {_cell(*old)} and {_cell(*new)} ({apart})")
    return (
        f"H@1 of old and of new documents after all {last:,} additions, over {study.settings.orders} orders: "
        f"{'; '.join(reached)}. The deviation shows how much the order matters; the first points of the curves on "
        "new documents rest on few queries.",
    )
