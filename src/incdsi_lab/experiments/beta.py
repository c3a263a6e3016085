"""The beta sweep: how much the tuner cares for old documents, and what that buys on new ones."""

from __future__ import annotations

from incdsi_lab.experiments.comparing import asked, compared, interval, unique
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import FORM_OF, GENERAL, PAPER, incremental, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import chosen_by, tuned_tasks
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "beta", "Beta sweep"


def tasks(study: Study) -> list[Task]:
    """Both forms with the weights each beta chooses."""
    made = [_task(study, form, beta) for beta in study.settings.betas for form in (PAPER, GENERAL)]
    return unique([study.initial_task(), *tuned_tasks(study), *made])


def section(study: Study) -> Section:
    """Old and new H@1 over beta."""
    betas = study.settings.betas
    pieces = {(form, beta): study.piece(_name(form, beta))["ranks"] for form in (PAPER, GENERAL) for beta in betas}
    series = tuple(
        Series(
            label=f"{named(form)}, {group}",
            style=form,
            dashed=group == "new",
            x=tuple(betas),
            y=tuple(hits1(pieces[form, beta][group]) for beta in betas),
        )
        for form in (PAPER, GENERAL)
        for group in ("old", "new")
    )
    rows = tuple(
        (
            named(form),
            f"{beta:g}",
            weights_named(chosen_by(study, FORM_OF[form], beta)),
            interval(ranks["old"]),
            interval(ranks["new"]),
        )
        for (form, beta), ranks in pieces.items()
    )
    low, high = min(betas), max(betas)
    old, new = (hits1(pieces[GENERAL, high][group]) - hits1(pieces[GENERAL, low][group]) for group in ("old", "new"))
    text = (
        f"F-beta weighs validation MRR@10 of old against tuning documents. From beta {low:g} to {high:g} the general "
        f"form moves by {old:+.1f} points of H@1 on old documents and {new:+.1f} on new ones. Each beta chooses among "
        "the same trials, which were drawn for beta 5."
    )
    panel = Panel(title="all new documents", x="beta", y="H@1 (%)", series=series, log_x=True)
    caption = f"What each beta chooses ({asked(pieces[GENERAL, low])})"
    columns = ("form", "beta", "weights", "H@1 old", "H@1 new")
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        figures=(Figure(name="beta", caption="H@1 of old and new documents over beta.", panels=(panel,)),),
        tables=(Table(name="beta", caption=caption, columns=columns, rows=rows),),
    )


def _name(form: str, beta: float) -> str:
    return f"{NAME}/{form}/{beta:g}"


def _task(study: Study, form: str, beta: float) -> Task:
    return compared(
        study,
        _name(form, beta),
        lambda progress: incremental(study, form, progress, how=chosen_by(study, FORM_OF[form], beta)),
        lambda: study.new,
        seconds=0.01 * len(study.split.new),
    )
