"""The beta sweep: how much the tuner cares for old documents, and what that buys on new ones."""

from __future__ import annotations

from incdsi_lab.experiments.comparing import asked, compared, interval, unique
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import PAPER, incremental, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import chosen_by, tuned_tasks
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "beta", "Beta sweep"


def tasks(study: Study) -> list[Task]:
    """The paper's form with the weights each beta chooses."""
    return unique([study.initial_task(), *tuned_tasks(study), *(_task(study, beta) for beta in study.settings.betas)])


def section(study: Study) -> Section:
    """Old and new H@1 over beta."""
    betas = study.settings.betas
    found = {beta: study.piece(_name(beta))["ranks"] for beta in betas}
    series = tuple(
        Series(
            label=f"{named(PAPER)}, {group}",
            style=PAPER,
            dashed=group == "new",
            x=tuple(betas),
            y=tuple(hits1(found[beta][group]) for beta in betas),
        )
        for group in ("old", "new")
    )
    rows = tuple(
        (f"{beta:g}", weights_named(chosen_by(study, "paper", beta)), interval(ranks["old"]), interval(ranks["new"]))
        for beta, ranks in found.items()
    )
    low, high = min(betas), max(betas)
    old, new = (hits1(found[high][group]) - hits1(found[low][group]) for group in ("old", "new"))
    text = (
        f"F-beta weighs validation MRR@10 of old against added documents. From beta {low:g} to {high:g} the paper's "
        f"form moves by {old:+.1f} points of H@1 on old documents and {new:+.1f} on new ones. Each beta chooses among "
        "the same trials, which were drawn for beta 5. No beta says what old documents may lose: a low one counts the "
        "few new documents as much as all others. That is why the general form is tuned by the rule instead."
    )
    panel = Panel(title="all new documents", x="beta", y="H@1 (%)", series=series, log_x=True)
    caption = f"What each beta chooses for the paper's form ({asked(found[low])})"
    columns = ("beta", "weights", "H@1 old", "H@1 new")
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        figures=(Figure(name="beta", caption="H@1 of old and new documents over beta.", panels=(panel,)),),
        tables=(Table(name="beta", caption=caption, columns=columns, rows=rows),),
    )


def _name(beta: float) -> str:
    return f"{NAME}/{PAPER}/{beta:g}"


def _task(study: Study, beta: float) -> Task:
    return compared(
        study,
        _name(beta),
        lambda progress: incremental(study, PAPER, progress, how=chosen_by(study, "paper", beta)),
        lambda: study.new,
        seconds=0.004 * len(study.split.new),
    )
