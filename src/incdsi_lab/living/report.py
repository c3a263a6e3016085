"""The report of a living index: every sentence made from its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as students  # type: ignore[import-untyped]

from incdsi_lab.experiments.comparing import interval
from incdsi_lab.experiments.judging import decoded, hits1
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.living.lives import LIVES
from incdsi_lab.living.study import GROWN, GROWTH, Living, figures
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.machine import PACKAGES, machine
from incdsi_lab.report.pages import About, write_report
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

WAYS = {
    "learned": "learned",
    "learned again": "learned, everything placed again",
    "retraining": "retraining",
    "dense": "dense",
    "fused": "fused",
    "fused again": "fused, everything placed again",
    "plain hybrid": "plain hybrid",
}
STYLES = {"learned": "general", "fused": "fused", "retraining": "retraining", "dense": "dense", "plain hybrid": "BM25"}


def write(living: Living, command: str) -> Path:
    """Tables and figures of what was run; the path of the page."""
    size, found = living.size, machine(PACKAGES)
    settings = living.settings()
    several = size.orders > 1
    orders = f"{size.orders} orders, each with its own draw" if several else "one order"
    whole = len(living.world.data.documents)
    over = "over the orders (Student's t)" if several else "over the questions (differences are paired)"
    if several and size.documents == whole:
        over += "; every order has all documents, so these tell what the order does, not which questions were asked"
    about = About(
        title=f"A living index on {living.world.data.collection.name}",
        summary=(
            f"Indexes grow from nothing to {size.documents:,} documents in {orders}, and things happen to them. Every "
            "document's test question is ranked among all documents so far. All figures are H@1 in percent, with 95 % "
            f"intervals {over}. Learned vectors and fused search are by the product's placement, "
            "fusion and BM25, in memory; retraining trains all vectors on the same questions, right or wrong.",
        ),
        command=command,
        facts={
            "data": f"{living.world.data.collection.name}, {whole:,} documents to draw from",
            "weights": f"{weights_named(settings.hyperparameters)}: the rung of the product's ladder that "
            f"{living.pieces['weights']['queries']} held-out questions choose; the fusion is chosen at every mark",
            "hardware": f"{found['cpu']}, {found['cores']} cores, {found['memory_gib']} GiB",
            "versions": ", ".join(f"{name} {found[name]}" for name in ("python", *PACKAGES)),
        },
    )
    compared = [_losses(living)] if living.lives else []
    lives = [_life(living, one) for one in living.lives]
    return write_report(living.pieces.folder, about, [*compared, _again(living), *lives])


def _life(living: Living, name: str) -> Section:
    marks = living.size.marks
    by_mark = {mark: figures(living.pieces, living.size, name, mark) for mark in marks}
    rows = tuple((label, *(_cell(by_mark[mark][way]) for mark in marks)) for way, label in WAYS.items())
    caption = f"{LIVES[name][0]}: H@1 by number of documents ({_asked(by_mark[marks[-1]]['dense'])})"
    columns = ("way of searching", *(f"{mark:,}" for mark in marks))
    series = tuple(
        Series(
            label=WAYS[way],
            style=style,
            x=tuple(float(mark) for mark in marks),
            y=tuple(_mean(by_mark[mark][way]) for mark in marks),
            spread=tuple(_half(by_mark[mark][way]) for mark in marks),
        )
        for way, style in STYLES.items()
    )
    panel = Panel(title=LIVES[name][0], x="documents", y="H@1 (%)", series=series, log_x=True)
    return Section(
        name=name,
        title=LIVES[name][0].capitalize(),
        tables=(Table(name=name, caption=caption, columns=columns, rows=rows),),
        figures=(Figure(name=name, caption=f"{LIVES[name][0].capitalize()}.", panels=(panel,)),),
    )


def _losses(living: Living) -> Section:
    """How far learned and fused are from retraining and from plain search at the end of each life."""
    last, rows, below = living.size.marks[-1], [], []
    for name in living.lives:
        label, found = LIVES[name][0], figures(living.pieces, living.size, name, last)
        rows.append(
            (
                label,
                *(_cell(found[way]) for way in ("learned", "retraining", "dense", "fused", "plain hybrid")),
                _apart(found["learned"], found["retraining"]),
                _apart(found["fused"], found["plain hybrid"]),
            )
        )
        below += [
            f"{label}: {WAYS[mine]} below {WAYS[other]} by {-_mean_apart(found[mine], found[other]):.1f}"
            for mine, other in (("learned", "dense"), ("fused", "plain hybrid"))
            if _mean_apart(found[mine], found[other]) < 0
        ]
    columns = (
        "life",
        "learned",
        "retraining",
        "dense",
        "fused",
        "plain hybrid",
        "learned - retraining",
        "fused - hybrid",
    )
    said = f"Below plain search on average: {'; '.join(below)}." if below else "No life ends below plain search."
    caption = f"At {last:,} documents ({_asked(found['dense'])})"
    table = Table(name="lives", caption=caption, columns=columns, rows=tuple(rows))
    return Section(name="lives", title="What each life costs", paragraphs=(said,), tables=(table,))


def _again(living: Living) -> Section:
    """What a pass of placing everything again brings, by life and by growth."""
    tables = [_again_by_life(living)] if living.lives else []
    tables += [_again_by_growth(living)] if living.grown else []
    return Section(name="again", title="Placing everything again", tables=tuple(tables))


def _again_by_life(living: Living) -> Table:
    last, rows = living.size.marks[-1], []
    for name in living.lives:
        found = figures(living.pieces, living.size, name, last)
        spent = [living.pieces[f"{name}/{o}"]["at"][str(last)]["again_cpu_seconds"] for o in range(living.size.orders)]
        rows.append(
            (
                LIVES[name][0],
                _apart(found["learned again"], found["learned"]),
                _apart(found["learned again"], found["retraining"]),
                _apart(found["fused again"], found["fused"]),
                f"{1000 * float(np.mean(spent)) / last:.1f}",
            )
        )
    columns = ("life", "learned gains", "then from retraining", "fused gains", "CPU ms a document")
    caption = f"Everything placed once more, at {last:,} documents"
    return Table(name="again", caption=caption, columns=columns, rows=tuple(rows))


def _again_by_growth(living: Living) -> Table:
    grown = []
    for times in GROWTH:
        pieces = [living.pieces[f"{GROWN}/{order}"]["at"][f"{times:g}"] for order in range(living.size.orders)]
        before, after = [piece["learned"] for piece in pieces], [piece["again"] for piece in pieces]
        grown.append(
            (f"{100 * (times - 1):.0f} %", f"{pieces[0]['documents']:,}", _cell(before), _apart(after, before))
        )
    return Table(
        name="growth",
        caption="Documents that came since everything was placed again, and what doing it once more brings (learned)",
        columns=("new since then", "documents", "H@1 before", "gain"),
        rows=tuple(grown),
    )


def _mean(each: Sequence[str]) -> float:
    return float(np.mean([hits1(ranks) for ranks in each]))


def _half(each: Sequence[str]) -> float:
    """Half the width of the 95 % interval of the mean over the orders."""
    return _width([hits1(ranks) for ranks in each])


def _width(values: Sequence[float] | NDArray[np.float64]) -> float:
    if len(values) < 2:
        return 0.0
    return float(students.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def _cell(each: Sequence[str]) -> str:
    return f"{_mean(each):.1f} ± {_half(each):.1f}" if len(each) > 1 else interval(each[0])


def _mean_apart(mine: Sequence[str], other: Sequence[str]) -> float:
    return float(np.mean([hits1(a) - hits1(b) for a, b in zip(mine, other, strict=True)]))


def _apart(mine: Sequence[str], other: Sequence[str]) -> str:
    """The paired difference, with its interval over the orders; over the questions where there is one order."""
    if len(mine) > 1:
        each = np.array([hits1(a) - hits1(b) for a, b in zip(mine, other, strict=True)])
    else:
        each = 100.0 * (decoded(mine[0]) == 1) - 100.0 * (decoded(other[0]) == 1)
    return f"{np.mean(each):+.1f} ± {_width(each):.1f}"


def _asked(each: Sequence[str]) -> str:
    return f"{len(each[0]):,} test questions an order"
