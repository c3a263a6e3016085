"""Time bars: seconds to add all new documents, for each method of the main table."""

from __future__ import annotations

from incdsi_lab.experiments import main_table
from incdsi_lab.experiments.comparing import duration
from incdsi_lab.experiments.methods import RETRAINING, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "time", "Time to add"
TEXT_ONLY = ("dense", "DPR", "DSI-Scratch")  # DSI-Scratch embeds queries while it learns


def tasks(study: Study) -> list[Task]:
    """Those of the main table."""
    return main_table.tasks(study)


def section(study: Study) -> Section:
    """Bars on a logarithmic scale, and milliseconds a document with and without embedding."""
    count = study.additions[-1]
    methods = main_table.methods_at(study, count)
    adding = {name: study.piece(main_table.name_of(name, count))["seconds"].get("add", 0.0) for name in methods}
    drawn = {name: seconds for name, seconds in adding.items() if name != "dense"}
    bars = Series(label="", kind="bars", y=tuple(max(1e-3, s) for s in drawn.values()), labels=tuple(map(named, drawn)))
    axis = f"seconds to add {count:,} documents (log scale)"
    panel = Panel(title="", x=axis, y="", series=(bars,), log_x=True)
    caption = f"Seconds to add {count:,} new documents, once they are embedded."
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(
            "`with embedding` adds what it cost to embed the new documents and the queries a method uses, as measured "
            "when they were embedded, but not query generation "
            f"({1000 * study.data.seconds.get('generate', 0.0) / len(study.data.documents):.1f} ms a document).",
        ),
        figures=(Figure(name="times", caption=caption, panels=(panel,)),),
        tables=(_table(study, adding, count),),
    )


def _table(study: Study, adding: dict[str, float], count: int) -> Table:
    rows = []
    for name, seconds in adding.items():
        times = _times(adding[RETRAINING] / seconds) if seconds > 0 else "-"
        rows.append(
            (
                named(name),
                duration(seconds),
                f"{1000 * seconds / count:,.2f}",
                f"{1000 * (seconds + _encoding(study, name)) / count:,.1f}",
                times,
            )
        )
    columns = ("method", "all new documents", "ms a document", "ms with embedding", "faster than retraining")
    caption = f"Time to add {count:,} documents to {len(study.initial):,}"
    return Table(name="times", caption=caption, columns=columns, rows=tuple(rows))


def _encoding(study: Study, name: str) -> float:
    """Seconds to embed what a method uses of the new documents before it adds them."""
    if name == "BM25" or (name == "DPR" and study.settings.dpr_towers == "both"):
        return 0.0
    return study.encoding_seconds(study.new, queries=name not in TEXT_ONLY)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.1f}×" if ratio >= 1 else f"{ratio:.2g}×"
