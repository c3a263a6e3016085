"""The main table: every method after 10, 100, ... and all new documents; old and new apart; time."""

from __future__ import annotations

from typing import Any

from incdsi_lab.experiments import product
from incdsi_lab.experiments.comparing import against, compared, duration, interval, plain, times_as_fast, worse
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import (
    ANCHORS,
    FINETUNED,
    GENERAL,
    GENERAL_SAFE,
    PAPER,
    PAPER_SLOW,
    RETRAINING,
    finetuning_seconds,
    makers,
    named,
)
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.experiments.tuned import rehearsed, tuned_tasks
from incdsi_lab.report.paper import CAUTION, printed_table
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "main", "All methods, old and new documents"
COLUMNS = ("method", "H@1 old", "H@1 new", "H@5", "H@10", "MRR@10", "vs retraining", "add")
OLD_WITHIN, NEW_WITHIN = 0.3, 1.0  # points of H@1 below retraining's that are still aimed at
FUSED = "product, empty, fused"
ONCE = (*FINETUNED, *ANCHORS, GENERAL_SAFE)  # run with all new documents alone
BESIDE = ("dense", *ANCHORS)  # what anybody could do in ten lines
CLAIMS = (
    (RETRAINING, "Old documents stay as good as with retraining", ("old",)),
    ("DSI-DPR", "IncDSI is better than continued training with a frozen encoder", ("old", "new")),
    ("DPR", "IncDSI is better than DPR", ("old", "new")),
)


def name_of(method: str, count: int) -> str:
    """The piece's name."""
    return f"main/{method}/{count}"


def methods_at(study: Study, count: int) -> list[str]:
    """The methods that are run with this many new documents."""
    last = count == study.additions[-1]
    return [
        method
        for method in makers(study)
        if (last or method not in ONCE) and (method != PAPER_SLOW or count <= study.settings.slow_documents)
    ]


def tasks(study: Study) -> list[Task]:
    """The initial model, tuning, then each method at each number of additions."""
    made = makers(study)
    return [
        study.initial_task(),
        *tuned_tasks(study),
        *(
            task_of(study, method, count)
            for count in study.additions
            for method in made
            if method in methods_at(study, count)
        ),
    ]


def task_of(study: Study, method: str, count: int) -> Task:
    """One method with this many new documents; retraining also on validation queries, by which points are chosen."""
    return compared(
        study,
        name_of(method, count),
        makers(study)[method],
        lambda: study.new.first(count),
        seconds=_seconds(study, method, count),
        validation=method == RETRAINING,
        run_as=method if count == study.additions[-1] else None,
    )


def pieces_at(study: Study, count: int) -> dict[str, Any]:
    """What every method reached with this many new documents; the product with all of them, where it was run."""
    found = {method: study.piece(name_of(method, count)) for method in methods_at(study, count)}
    return found | (product.rows(study) if count == study.additions[-1] and product.finished(study) else {})


def retrained_task(study: Study) -> Task:
    """Retraining on all documents."""
    return task_of(study, RETRAINING, study.additions[-1])


def retrained(study: Study) -> dict[str, Any]:
    """What it found."""
    return study.piece(name_of(RETRAINING, study.additions[-1]))


def section(study: Study) -> Section:
    """Tables of every number of additions, the aims, and what goes against the paper."""
    tables = [_table(study, count) for count in reversed(study.additions)]
    printed = printed_table(study.data.collection.name)
    last = pieces_at(study, study.additions[-1])
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(*_paragraphs(study, last), *((CAUTION,) if printed else ())),
        tables=(*tables, *((printed,) if printed else ())),
        aims=_aims(last),
        against=_against_the_paper(last),
    )


def _table(study: Study, count: int) -> Table:
    pieces = pieces_at(study, count)
    ranks = pieces[RETRAINING]["ranks"]
    caption = f"After {count:,} new documents ({len(ranks['old']):,} old and {len(ranks['new']):,} new test queries)"
    rows = tuple(_row(study, method, piece, pieces[RETRAINING]) for method, piece in pieces.items())
    return Table(name=f"main-{count}", caption=caption, columns=COLUMNS, rows=rows)


def _row(study: Study, method: str, piece: dict[str, Any], reference: dict[str, Any]) -> tuple[str, ...]:
    ranks = piece["ranks"]
    difference = (
        "-" if method == RETRAINING else f"{against(reference, piece, 'old')} / {against(reference, piece, 'new')}"
    )
    return (
        named(method),
        interval(ranks["old"]),
        interval(ranks["new"]),
        *(
            " / ".join(plain(ranks[group], measure) for group in ("old", "new"))
            for measure in ("H@5", "H@10", "MRR@10")
        ),
        difference,
        duration(piece["seconds"].get("add", 0.0)),
    )


def _paragraphs(study: Study, last: dict[str, Any]) -> list[str]:
    count = study.additions[-1]
    encoding = study.encoding_seconds(study.new, queries=True)
    times = {method: piece["seconds"].get("add", 0.0) for method, piece in last.items()}
    ratios = [
        f"{named(method)} was {times_as_fast(times[RETRAINING], times[method])} "
        f"({times_as_fast(times[RETRAINING] + encoding, times[method] + encoding)} with embedding)"
        for method in (GENERAL, PAPER, PAPER_SLOW)
        if method in times
    ]
    bounded = "" if PAPER_SLOW in last else f" The paper's solver is given at most {study.settings.slow_documents:,}."
    return [
        "Old / new documents; in brackets 95 % intervals (Wilson). Stars mark paired differences of H@1 to retraining "
        "with p < 0.05, 0.01, 0.001 (exact sign test). `add` is the time to add all new documents once their text and "
        f"queries are embedded; embedding {count:,} documents with their queries took {duration(encoding)} more, "
        f"the same for all learned methods with a frozen encoder.{bounded}",
        f"Against retraining, with all {count:,} new documents, adding by {', by '.join(ratios)}. Embedding the new "
        "documents and their queries costs both the same; retraining has the old ones embedded already.",
        *_not_at_its_best(last),
        rehearsed(study),
        *([f"{product.ABOUT} {_beside(last)}"] if FUSED in last else []),
        *_finetuned_note(study),
    ]


def _finetuned_note(study: Study) -> list[str]:
    chosen = study.settings
    if not chosen.finetuned:
        return ["The finetuned baselines (DPR, DSI-Scratch) were left out in this setting."]
    towers = "query tower only" if chosen.dpr_towers == "query" else "both towers"
    return [
        f"Budgets: DPR {chosen.dpr_epochs} epoch(s) of at most {chosen.dpr_queries:,} queries ({towers}); DSI-Scratch "
        f"{chosen.scratch_epochs} epoch(s) of at most {chosen.scratch_queries:,} queries, half of them replayed; "
        f"DSI-DPR {chosen.further_epochs} more epoch(s); retraining the best of {chosen.frozen_epochs} epochs."
    ]


def _not_at_its_best(last: dict[str, Any]) -> list[str]:
    """A warning when a method that only trains further beats the reference of all aims on old documents."""
    if not worse(last[RETRAINING], last["DSI-DPR"], "old"):
        return []
    further, reference = _h1(last["DSI-DPR"]), _h1(last[RETRAINING])
    return [
        f"Retraining is not at its best here: DSI-DPR, which trains on from the initial model, has {further[0]:.1f} % "
        f"on old documents against {reference[0]:.1f}. Read every comparison with retraining with that in mind."
    ]


def _aims(last: dict[str, Any]) -> tuple[Aim, ...]:
    general, reference = _h1(last[GENERAL]), _h1(last[RETRAINING])
    found = (
        f"Found {general[0]:.1f}/{general[1]:.1f} (old/new H@1) against retraining's "
        f"{reference[0]:.1f}/{reference[1]:.1f}."
    )
    aims = [
        Aim(
            text=f"General form by the rule, {name} H@1 at least retraining's {-within:+g}",
            found=found,
            reached=general[side] >= reference[side] - within,
        )
        for side, (name, within) in enumerate((("old", OLD_WITHIN), ("new", NEW_WITHIN)))
    ]
    if FUSED not in last:
        return tuple(aims)
    mine = _h1(last[FUSED])
    best = max(BESIDE, key=lambda name: sum(_h1(last[name])))
    other = _h1(last[best])
    above = Aim(
        text="The product's fused search above everything that anybody could do in ten lines, old and new",
        found=f"Found {mine[0]:.1f}/{mine[1]:.1f} against {other[0]:.1f}/{other[1]:.1f} ({named(best)}).",
        reached=all(mine[side] > max(_h1(last[name])[side] for name in BESIDE) for side in (0, 1)),
    )
    return (*aims, above)


def _against_the_paper(last: dict[str, Any]) -> tuple[str, ...]:
    """The paper's claims that these figures contradict significantly (paired, p < 0.05), each with the figures."""
    said = []
    for method, claim, groups in CLAIMS:
        if method in last and (lost := [group for group in groups if worse(last[PAPER], last[method], group)]):
            paper, other = _h1(last[PAPER]), _h1(last[method])
            said.append(
                f"{claim}: not here, on {' and '.join(lost)} documents. The paper's form has {paper[0]:.1f}/"
                f"{paper[1]:.1f} (old/new H@1), {named(method)} {other[0]:.1f}/{other[1]:.1f}."
            )
    return tuple(said)


def _beside(last: dict[str, Any]) -> str:
    """What is above the product, of all that needs no learned vectors."""
    mine = _h1(last[FUSED])
    above = [
        f"{named(name)} ({old:.1f}/{new:.1f})"
        for name in BESIDE
        for old, new in [_h1(last[name])]
        if old > mine[0] or new > mine[1]
    ]
    said = f"Not below it, on old or on new documents: {', '.join(above)}." if above else "All of it is below, on both."
    return f"The product's fused search has {mine[0]:.1f}/{mine[1]:.1f} (old/new H@1) beside plain search. {said}"


def _h1(piece: dict[str, Any]) -> tuple[float, float]:
    return hits1(piece["ranks"]["old"]), hits1(piece["ranks"]["new"])


def _seconds(study: Study, method: str, count: int) -> float:
    """Roughly how long a method takes here."""
    size = len(study.split.initial) / 8_773
    chosen = study.settings
    if method in FINETUNED:
        initial, judged = len(study.split.initial), len(study.split.test)
        return finetuning_seconds(study, method, initial=initial, added=count, judged=judged)
    known = {
        "BM25": 20 * size,
        "DSI-DPR": study.training_seconds(len(study.split.initial), chosen.further_epochs),
        RETRAINING: study.training_seconds(len(study.split.initial)),
        PAPER_SLOW: 0.1 * count * size,
        PAPER: 0.004 * count,
        **dict.fromkeys((GENERAL, GENERAL_SAFE), 0.01 * count),
        **dict.fromkeys(ANCHORS, 8 * size),
    }
    return known.get(method, 0.0)
