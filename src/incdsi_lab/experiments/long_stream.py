"""The long stream: from a tenth of the documents, and from nothing, to all of them, against retraining at each mark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from incdsi.engine.settings import Method
from incdsi.hyperparameters import SAFE, Hyperparameters
from incdsi.progress import Progress
from incdsi_lab.baselines import protocol
from incdsi_lab.baselines.classification import trained
from incdsi_lab.baselines.lexical import BM25
from incdsi_lab.baselines.protocol import Floats, Part
from incdsi_lab.baselines.ranking import best
from incdsi_lab.baselines.vectors import Dense
from incdsi_lab.experiments import product
from incdsi_lab.experiments.comparing import duration, interval, plain, unique
from incdsi_lab.experiments.incremental import newcomers
from incdsi_lab.experiments.judging import LOOK, encoded, hits1, judged, own_ranks
from incdsi_lab.experiments.methods import (
    ANCHORS,
    FINETUNED,
    RETRAINING,
    dpr,
    dsi_dpr,
    finetuning_seconds,
    named,
    scratch,
)
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.tuned import tuned, tuned_tasks
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table
from incdsi_lab.streams import State, Stream, add_all

NAME, TITLE = "stream", "The long stream"
From = Literal["tenth", "nothing"]
BEGUN: dict[From, str] = {"tenth": "from a trained tenth", "nothing": "from nothing"}
# Piece name: form, weights, where it begins.
STREAMS: dict[str, tuple[Method, str, From]] = {
    "paper, from a trained tenth": ("paper", "tuned", "tenth"),
    "paper, from nothing": ("paper", "tuned", "nothing"),
    "general, from a trained tenth": ("general", "tuned", "tenth"),
    "general, from nothing": ("general", "tuned", "nothing"),
    "general, safe weights, from nothing": ("general", "safe", "nothing"),
}
ITSELF = {f"product, {mode}": f"{product.NAMES['empty']}, {mode}" for mode in product.MODES}
GROWN: dict[str, Callable[[], protocol.Method]] = {"dense": Dense, "BM25": BM25, **ANCHORS}
HIDDEN = ("BM25", "plain hybrid, by ranks", "nearest question")  # in the table alone
CONTINUED = ("DPR", "DSI-DPR", "DSI-Scratch")  # fitted to the first tenth


def counts(study: Study) -> list[int]:
    """How many documents there are at each mark."""
    return [max(2, round(mark * len(study.data.documents))) for mark in study.settings.marks]


def tasks(study: Study) -> list[Task]:
    """Every stream, the methods that only grow, continued training, and retraining at each mark."""
    return unique(
        [
            study.initial_task(),
            *tuned_tasks(study),
            _start_task(study),
            *(_stream_task(study, name) for name in STREAMS),
            *(_grown_task(study, name) for name in GROWN),
            *(_continued_task(study, method) for method in _continued(study)),
            _product_task(study),
            *(_retraining_task(study, count) for count in counts(study)),
        ]
    )


def section(study: Study) -> Section:
    """Curves over the size of the index, and a table."""
    named_rows = rows(study)
    series = tuple(
        Series(
            label=label(name),
            style=_style(name),
            dashed="nothing" in name,
            x=tuple(float(count) for count in counts(study)),
            y=tuple(hits1(text) for text, _ in cells),
        )
        for name, cells in named_rows.items()
        if "safe" not in name and name not in HIDDEN
    )
    panel = Panel(title="all documents so far", x="documents in the index", y="H@1 (%)", series=series)
    caption = "H@1 over all documents so far while the index grows; dashed: no vector was trained at the start."
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=_paragraphs(study, named_rows),
        figures=(Figure(name="stream", caption=caption, panels=(panel,)),),
        tables=(_table(study, named_rows),),
    )


def final(study: Study, name: str) -> str:
    """The ranks at the end of a stream, encoded."""
    return str(_cells(study, name)[-1][0])


# Tasks


def _first(study: Study, count: int) -> Part:
    return study.part(study.everything[:count])


def _start_task(study: Study) -> Task:
    count = counts(study)[0]

    def run(progress: Progress) -> Piece:
        vectors = trained(_first(study, count), study.frozen, progress=progress)
        study.pieces.keep_array(f"{NAME}/start", vectors)
        return {"documents": count}

    return Task(name=f"{NAME}/start", run=run, seconds=study.training_seconds(count))


def _start(study: Study) -> Floats:
    return study.pieces.array(f"{NAME}/start")


def _stream_task(study: Study, name: str) -> Task:
    form, weights, begun = STREAMS[name]

    def run(progress: Progress) -> Piece:
        how = SAFE if weights == "safe" else tuned(study, form)
        stream = _streamed(study, form, how, begun, progress)
        at = {}
        for count in counts(study):
            seconds = stream.seconds[count - stream.before] if count > stream.before else {}
            at[str(count)] = {**_judged(study, stream.state.vectors, count), "seconds": sum(seconds.values())}
        return {"at": at}

    return Task(name=f"{NAME}/{name}", run=run, seconds=0.009 * len(study.data.documents) + study.judging_seconds())


def _streamed(study: Study, form: Method, how: Hyperparameters, begun: From, progress: Progress) -> Stream:
    """All documents added in the long stream's order, to the trained tenth or to nothing."""
    first = counts(study)[0] if begun == "tenth" else 0
    everyone = _first(study, len(study.data.documents))
    rest = everyone.take(np.arange(first, len(everyone)))
    if begun == "tenth":
        state = State.of(_start(study), newcomers(everyone.first(first)), form)
    else:
        state = State.empty(everyone.embeddings.shape[1], form)
    marks = [count - first for count in counts(study) if count > first]
    return add_all(state, newcomers(rest), hyperparameters=how, marks=marks, progress=progress)


def _judged(study: Study, vectors: Floats, count: int) -> dict[str, Any]:
    queries = study.asked(study.everything[:count])
    ranks = own_ranks(best(queries.embeddings, vectors[:count], LOOK), queries.owners)
    return {"ranks": {"all": encoded(ranks)}}


def _grown_task(study: Study, name: str) -> Task:
    def run(_: Progress) -> Piece:
        at, seconds = {}, 0.0
        for count in counts(study):
            method = GROWN[name]()
            method.fit(_first(study, count))
            seconds += method.seconds.get("fit", 0.0)
            at[str(count)] = {
                "ranks": judged(method, {"all": study.asked(study.everything[:count])}),
                "seconds": seconds,
            }
        return {"at": at}

    return Task(name=f"{NAME}/{name}", run=run, seconds=(4 if name == "dense" else 30) * _size(study))


def _product_task(study: Study) -> Task:
    """An index in a folder, which tunes itself whenever it sees fit."""

    def run(progress: Progress) -> Piece:
        at, before, seconds = {}, 0, 0.0
        everyone = _first(study, len(study.data.documents))
        with TemporaryDirectory(prefix="incdsi-") as folder:
            first = everyone.first(counts(study)[0])
            with product.opened(study, Path(folder) / "index", first, "empty", progress) as index:
                for count in counts(study):
                    begin = time.perf_counter()
                    arrived = everyone.take(np.arange(max(before, len(first)), count))
                    index.add_many(arrived.documents, product.asked_of(arrived), progress=progress)
                    seconds += time.perf_counter() - begin
                    groups = {"all": study.asked(study.everything[:count])}
                    at[str(count)] = {"ranks": product.judged(index.engine.view(), groups), "seconds": seconds}
                    before = count
        return {"at": at}

    return Task(name=f"{NAME}/product", run=run, seconds=0.1 * len(study.data.documents))


def _continued(study: Study) -> list[str]:
    return [method for method in CONTINUED if study.settings.finetuned or method not in FINETUNED]


def _from_a_tenth(method: str) -> str:
    return f"{method}, {BEGUN['tenth']}"


def _made(study: Study, method: str, progress: Progress) -> protocol.Method:
    if method == "DPR":
        return dpr(study, progress)
    if method == "DSI-DPR":
        return dsi_dpr(study, _start(study), progress)
    return scratch(study, _start(study), counts(study)[-1] - counts(study)[0], progress)


def _continued_task(study: Study, method_name: str) -> Task:
    def run(progress: Progress) -> Piece:
        method = _made(study, method_name, progress)
        at, before = {}, 0
        for count in counts(study):
            arrived = study.part(study.everything[before:count])
            (method.add if before else method.fit)(arrived)
            at[str(count)] = {
                "ranks": judged(method, {"all": study.asked(study.everything[:count])}),
                "seconds": method.seconds.get("add", 0.0),
            }
            before = count
        return {"at": at}

    return Task(name=f"{NAME}/{_from_a_tenth(method_name)}", run=run, seconds=_continued_seconds(study, method_name))


def _continued_seconds(study: Study, method: str) -> float:
    first, *later = counts(study)
    if method == "DSI-DPR":
        return sum(study.training_seconds(count, study.settings.further_epochs) for count in later)
    judged = round(len(study.split.test) * sum(counts(study)) / counts(study)[-1])
    return finetuning_seconds(study, method, initial=first, added=later[-1] - first if later else 0, judged=judged)


def _retraining_task(study: Study, count: int) -> Task:
    def run(progress: Progress) -> Piece:
        begin = time.perf_counter()
        vectors = trained(_first(study, count), study.frozen, progress=progress)
        return {**_judged(study, vectors, count), "seconds": time.perf_counter() - begin}

    return Task(name=f"{NAME}/{RETRAINING}/{count}", run=run, seconds=study.training_seconds(count))


def _size(study: Study) -> float:
    return len(study.data.documents) / 9_748


# What they say

Cells = list[tuple[str, float]]


def _cells(study: Study, name: str) -> Cells:
    """Encoded ranks and seconds so far at each mark."""
    if name == RETRAINING:
        pieces = study.all_pieces([f"{NAME}/{RETRAINING}/{count}" for count in counts(study)])
        return [(piece["ranks"]["all"], piece["seconds"]) for piece in pieces]
    if name in ITSELF:
        at, mode = study.piece(f"{NAME}/product")["at"], name.removeprefix("product, ")
        return [(at[str(count)]["ranks"][mode]["all"], at[str(count)]["seconds"]) for count in counts(study)]
    at = study.piece(f"{NAME}/{name}")["at"]
    return [(at[str(count)]["ranks"]["all"], at[str(count)]["seconds"]) for count in counts(study)]


def rows(study: Study) -> dict[str, Cells]:
    continued = (_from_a_tenth(method) for method in _continued(study))
    return {name: _cells(study, name) for name in (*GROWN, *continued, *STREAMS, *ITSELF, RETRAINING)}


def _style(name: str) -> str:
    return name.split(",")[0]


def label(name: str) -> str:
    if name in ITSELF or name in ANCHORS:
        return ITSELF.get(name) or named(name)
    method, _, rest = name.partition(", ")
    return named(method) + (f", {rest}" if rest else "")


def _table(study: Study, rows: dict[str, Cells]) -> Table:
    columns = ("method", *(f"{count:,}" for count in counts(study)), "H@10 at the end", "seconds")
    cells = tuple(
        (
            label(name),
            *(f"{hits1(text):.1f}" for text, _ in some[:-1]),
            interval(some[-1][0]),
            plain(some[-1][0], "H@10"),
            duration(some[-1][1]) if some[-1][1] else "-",
        )
        for name, some in rows.items()
    )
    asked = len(rows[RETRAINING][-1][0])
    caption = f"H@1 by number of documents in the index ({asked:,} test queries at the end); seconds: all additions"
    return Table(name="stream", caption=caption, columns=columns, rows=cells)


def _paragraphs(study: Study, rows: dict[str, Cells]) -> tuple[str, ...]:
    end = {name: hits1(some[-1][0]) for name, some in rows.items()}
    distance = {name: end[name] - end[RETRAINING] for name in STREAMS}
    worst = min(
        hits1(text) - hits1(reference)
        for (text, _), (reference, _) in zip(rows["general, from nothing"], rows[RETRAINING], strict=True)
    )
    return (
        f"All {counts(study)[-1]:,} documents arrive in one random order; every document's test queries are ranked "
        "among all documents so far. Weights are those tuned for additions to the trained model; "
        "`incdsi itself` tunes itself by what it holds out, and places everything again when it does. The last column "
        "is the time of all additions (for BM25: of indexing anew at every mark; for "
        "retraining: of the last training alone).",
        f"At the end retraining has {end[RETRAINING]:.1f} % H@1. The general form is "
        f"{distance['general, from nothing']:+.1f} points from it when it began with nothing and "
        f"{distance['general, from a trained tenth']:+.1f} from a trained tenth; at no mark was the former "
        f"further behind than {min(worst, 0.0):+.1f}. The paper's form is "
        f"{distance['paper, from nothing']:+.1f} and {distance['paper, from a trained tenth']:+.1f}, dense search "
        f"{end['dense'] - end[RETRAINING]:+.1f}, the product's learned score "
        f"{end['product, learned'] - end[RETRAINING]:+.1f}. With words: BM25 over text and known questions "
        f"{end['words + questions']:.1f} %, plain hybrid {end['plain hybrid']:.1f}, the product "
        f"{end['product, fused']:.1f}.",
        *_below_dense(end, list(rows)),
        *_shared_budget(study),
        *_not_unseen(study),
    )


def _not_unseen(study: Study) -> list[str]:
    """Said when the encoder knows most of what arrives."""
    if not study.settings.encoder_epochs:
        return []
    return [
        f"The encoder learned from the {len(study.split.initial):,} initial documents before, and most of those that "
        "arrive here are among them: this is easier than a stream of documents it has never seen."
    ]


def _shared_budget(study: Study) -> list[str]:
    """What the finetuned baselines were given."""
    if not study.settings.finetuned:
        return []
    first, last, everything = counts(study)[0], counts(study)[-1], 2 * (len(study.split.train) + len(study.data.spans))
    return [
        f"DPR learns from the first {first:,} documents and never again; DSI-Scratch learns from at most "
        f"{min(study.settings.scratch_queries, everything):,} queries an epoch for all {last - first:,} additions "
        f"together, half of them replayed: as many as in the main table for {len(study.split.new):,}."
    ]


def _below_dense(end: dict[str, float], names: list[str]) -> list[str]:
    """Names the methods that learn and end where the texts' embeddings would have been better."""
    worse = [f"{label(name)} ({end[name]:.1f})" for name in names if name not in GROWN and end[name] < end["dense"]]
    return (
        [f"Below dense search ({end['dense']:.1f}), whose vectors learn nothing, end: {'; '.join(worse)}."]
        if worse
        else []
    )
