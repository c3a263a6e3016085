"""Where V starts: at the text's embedding, at the mean query, at random; what that does to additions."""

from __future__ import annotations

from typing import get_args

from incdsi.progress import Progress
from incdsi.training.settings import Start
from incdsi_lab.experiments.comparing import asked, compared, interval, plain, unique
from incdsi_lab.experiments.judging import hits1, judged
from incdsi_lab.experiments.methods import GENERAL, PAPER, incremental, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.tuned import tuned_tasks
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "starts", "Start of V"
STARTS: tuple[Start, ...] = get_args(Start)
TOLD = {"text": "the text's embedding", "queries": "the mean of its queries", "random": "random"}


def tasks(study: Study) -> list[Task]:
    """An initial model from each start, judged before and after additions in both forms."""
    models = [study.initial_task(start) for start in STARTS]
    before = [_before(study, start) for start in STARTS]
    after = [_after(study, start, form) for start in STARTS for form in (PAPER, GENERAL)]
    return unique([study.initial_task(), *tuned_tasks(study), *models, *before, *after])


def section(study: Study) -> Section:
    """One row a start and form."""
    rows = []
    for start in STARTS:
        before = study.piece(f"{NAME}/before/{start}")["ranks"]["old"]
        for form in (PAPER, GENERAL):
            ranks = study.piece(f"{NAME}/{form}/{start}")["ranks"]
            new = (interval(ranks["new"]), plain(ranks["new"], "H@10"))
            rows.append((TOLD[start], named(form), interval(before), interval(ranks["old"]), *new))
    initial = {start: hits1(study.piece(f"{NAME}/before/{start}")["ranks"]["old"]) for start in STARTS}
    best = max(initial, key=lambda start: initial[start])
    text = (
        f"Before any addition the initial model has {initial['text']:.1f} % H@1 when V starts at the text's embedding, "
        f"{initial['queries']:.1f} at the mean query and {initial['random']:.1f} at random ({TOLD[best]} is best, "
        f"after {study.settings.frozen_epochs} epochs each). New documents are then added with the weights "
        "tuned for the first of them."
    )
    columns = ("start", "form", "H@1 before", "H@1 old", "H@1 new", "H@10 new")
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        tables=(Table(name="starts", caption=f"Where V starts ({asked(ranks)})", columns=columns, rows=tuple(rows)),),
    )


def _before(study: Study, start: Start) -> Task:
    def run(_: Progress) -> Piece:
        method = incremental(study, PAPER, start=start)
        method.fit(study.initial)
        return {"ranks": judged(method, {"old": study.groups(0)["old"]})}

    return Task(name=f"{NAME}/before/{start}", run=run, seconds=study.judging_seconds())


def _after(study: Study, start: Start, form: str) -> Task:
    return compared(
        study,
        f"{NAME}/{form}/{start}",
        lambda progress: incremental(study, form, progress, start=start),
        lambda: study.new,
        seconds=0.01 * len(study.split.new),
    )
