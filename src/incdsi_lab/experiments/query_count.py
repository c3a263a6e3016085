"""How many queries a new document needs: each form with 1, 2, ... and all of its queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incdsi_lab.baselines.protocol import Part
from incdsi_lab.experiments.comparing import asked, compared, interval, plain, unique
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import GENERAL, PAPER, incremental, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import tuned_tasks
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "queries", "Number of queries"
ALL = 0


def counts(study: Study) -> tuple[int, ...]:
    """None, some, and all of them."""
    return (*study.settings.query_counts, ALL)


def tasks(study: Study) -> list[Task]:
    """Both forms with each number of queries."""
    made = [_task(study, form, count) for count in counts(study) for form in (PAPER, GENERAL)]
    return unique([study.initial_task(), *tuned_tasks(study), *made])


def limited(part: Part, count: int, seed: int) -> Part:
    """The part with at most `count` queries per document, drawn at random (ALL: unchanged)."""
    if count == ALL:
        return part
    order = np.random.default_rng([seed, count]).permutation(len(part.queries))
    owners = part.queries.owners[order]
    by_owner = np.argsort(owners, kind="stable")
    first = np.searchsorted(owners[by_owner], owners[by_owner])
    kept = by_owner[np.arange(len(order)) - first < count]
    return replace(part, queries=part.queries.take(np.sort(order[kept])))


def section(study: Study) -> Section:
    """H@1 over the number of queries."""
    pieces = {
        (form, count): study.piece(f"{NAME}/{form}/{count}") for form in (PAPER, GENERAL) for count in counts(study)
    }
    mean = len(study.new.queries) / max(1, len(study.new))
    x = tuple(float(count or mean) for count in counts(study))
    panels = tuple(
        Panel(
            title=f"{group} documents",
            x="queries of a new document",
            y="H@1 (%)",
            series=tuple(
                Series(
                    label=named(form),
                    style=form,
                    x=x,
                    y=tuple(hits1(pieces[form, count]["ranks"][group]) for count in counts(study)),
                )
                for form in (PAPER, GENERAL)
            ),
        )
        for group in ("old", "new")
    )
    rows = tuple(
        (
            named(form),
            f"all ({mean:.1f} on average)" if count == ALL else f"at most {count}",
            interval(piece["ranks"]["old"]),
            interval(piece["ranks"]["new"]),
            plain(piece["ranks"]["new"], "H@10"),
        )
        for (form, count), piece in pieces.items()
    )
    few, every = (hits1(pieces[GENERAL, count]["ranks"]["new"]) for count in (counts(study)[0], ALL))
    text = (
        f"With {counts(study)[0]} query a document the general form reaches {few:.1f} % H@1 on new documents, with all "
        f"of them ({mean:.1f} on average, natural and generated) {every:.1f} %. Queries are drawn at random; the "
        "weights are those tuned with all queries."
    )
    caption = f"Queries of each new document ({asked(pieces[GENERAL, ALL]['ranks'])})"
    columns = ("form", "queries", "H@1 old", "H@1 new", "H@10 new")
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        figures=(Figure(name="queries", caption="H@1 over the number of queries of a new document.", panels=panels),),
        tables=(Table(name="queries", caption=caption, columns=columns, rows=rows),),
    )


def _task(study: Study, form: str, count: int) -> Task:
    return compared(
        study,
        f"{NAME}/{form}/{count}",
        lambda progress: incremental(study, form, progress),
        lambda: limited(study.new, count, study.settings.seed),
        seconds=0.008 * len(study.split.new),
    )
