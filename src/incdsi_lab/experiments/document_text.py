"""Document text: its beginning as one more query, or the whole of it as the anchor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incdsi.hyperparameters import Hyperparameters
from incdsi_lab.baselines.protocol import Part, Questions, joined
from incdsi_lab.experiments.comparing import asked, compared, interval, plain, unique
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import FORM_OF, GENERAL, PAPER, incremental
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import tuned, tuned_tasks
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "text", "Document text"
WORDS = 32
LOOSE = 1e-3  # lambda2 without an anchor: a pull to zero as strong as one to the text would leave nothing
# By name: the form, whether the text's beginning is a query, whether the text is the anchor.
VARIANTS: dict[str, tuple[str, bool, bool]] = {
    "paper's form": (PAPER, False, False),
    "paper's form, text as a query": (PAPER, True, False),
    "general form without anchor": (GENERAL, False, False),
    "general form without anchor, text as a query": (GENERAL, True, False),
    "general form, text as anchor": (GENERAL, False, True),
    "general form, text as anchor and as a query": (GENERAL, True, True),
}


def tasks(study: Study) -> list[Task]:
    """Every variant with all new documents."""
    return unique([study.initial_task(), *tuned_tasks(study), *(_task(study, name) for name in VARIANTS)])


def with_beginnings(study: Study) -> Part:
    """The new documents with their first words as one more query each."""
    texts = tuple(" ".join(document.content.split()[:WORDS]) for document in study.new.documents)
    embeddings = study.data.encoder.encode(texts)
    beginnings = Questions.of(texts, np.arange(len(texts)), embeddings, generated=True)
    return replace(study.new, queries=joined([study.new.queries, beginnings]))


def section(study: Study) -> Section:
    """One row a variant."""
    pieces = {name: study.piece(_name(name)) for name in VARIANTS}
    rows = tuple(
        (name, interval(ranks["old"]), interval(ranks["new"]), plain(ranks["old"], "H@10"), plain(ranks["new"], "H@10"))
        for name, ranks in ((name, piece["ranks"]) for name, piece in pieces.items())
    )
    new = {name: hits1(piece["ranks"]["new"]) for name, piece in pieces.items()}
    names = list(VARIANTS)
    text = (
        f"Only the new documents differ. The first {WORDS} words as one more query change new H@1 by "
        f"{new[names[1]] - new[names[0]]:+.1f} points in the paper's form and {new[names[5]] - new[names[4]]:+.1f} in "
        f"the general form; the anchor changes it by {new[names[4]] - new[names[2]]:+.1f} (without it, "
        f"λ2 is at most {LOOSE:g})."
    )
    columns = ("variant", "H@1 old", "H@1 new", "H@10 old", "H@10 new")
    caption = f"What the document's own text is used for ({asked(pieces[names[0]]['ranks'])})"
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(text,),
        tables=(Table(name="text", caption=caption, columns=columns, rows=rows),),
    )


def _name(variant: str) -> str:
    return f"{NAME}/{variant.replace(',', '').replace(chr(39), '')}"


def _weights(study: Study, form: str, anchored: bool) -> Hyperparameters:
    how = tuned(study, FORM_OF[form])
    if anchored or form == PAPER:
        return how
    return replace(how, anchor_scale=0.0, weights=replace(how.weights, anchor=min(how.weights.anchor, LOOSE)))


def _task(study: Study, variant: str) -> Task:
    form, as_query, anchored = VARIANTS[variant]
    return compared(
        study,
        _name(variant),
        lambda progress: incremental(study, form, progress, how=_weights(study, form, anchored)),
        lambda: with_beginnings(study) if as_query else study.new,
        seconds=(0.01 + 0.01 * as_query) * len(study.split.new),
    )
