"""Figures as data, drawn by matplotlib: lines, points and bars, one colour and mark for each method everywhere."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, Literal

from incdsi.errors import MissingExtra

Kind = Literal["line", "points", "bars", "level"]
# Okabe and Ito's palette, which colour-blind readers can tell apart; in print the marks do.
STYLES: dict[str, tuple[str, str]] = {
    "general": ("#0072B2", "o"),
    "paper": ("#D55E00", "s"),
    "retraining": ("#000000", "D"),
    "dense": ("#009E73", "^"),
    "BM25": ("#E69F00", "v"),
    "DPR": ("#CC79A7", "P"),
    "DSI-DPR": ("#56B4E9", "X"),
    "DSI-Scratch": ("#8B6C42", "*"),
    "fused": ("#7F3FBF", "h"),
}
OTHERS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "P"), ("#E69F00", "v"), ("#56B4E9", "X"))
GREY, INK = "#D9D9D9", "#222222"
WIDTH, WIDE, HEIGHT = 4.3, 5.6, 3.3  # inches a panel, one that stands alone, and their height
LEGEND_ROW, LETTER, HANDLE = 0.2, 0.072, 0.6  # inches
SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "incdsi",
    "figure.facecolor": "white",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values y over x; `style` names the method whose colour and mark it has, `spread` is drawn around it.

    `labels` stand beside the points, or under the bars.
    """

    label: str
    y: tuple[float, ...]
    x: tuple[float, ...] = ()
    kind: Kind = "line"
    style: str = ""
    dashed: bool = False
    spread: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Panels side by side with a file name and a caption, which is also what screen readers say."""

    name: str
    caption: str
    panels: tuple[Panel, ...] = field(default_factory=tuple)

    def svg(self) -> bytes:
        """The drawing as SVG, the same bytes for the same data."""
        return _saved(self, "svg")

    def png(self) -> bytes:
        """The drawing as PNG at 160 dots an inch."""
        return _saved(self, "png")


def _saved(figure: Figure, kind: str) -> bytes:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtra("drawing figures needs matplotlib; install it with: pip install 'incdsi[eval]'") from error
    out = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        width = (WIDE if len(figure.panels) == 1 else WIDTH) * len(figure.panels)
        columns = _columns(figure, width)
        rows = -(-len(_labels(figure)) // columns)
        canvas = Canvas(figsize=(width, HEIGHT + LEGEND_ROW * rows), layout="constrained")
        axes = canvas.subplots(1, len(figure.panels), squeeze=False)[0]
        for panel, place in zip(figure.panels, axes, strict=True):
            _draw(panel, place)
        _legend(canvas, axes, columns)
        canvas.savefig(out, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _draw(panel: Panel, axes: Any) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold", color=INK)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.log_x:
        axes.set_xscale("log")
        _name_ticks(panel, axes)
    if panel.log_y:
        axes.set_yscale("log")
    for number, series in enumerate(panel.series):
        colour, mark = STYLES.get(series.style, OTHERS[number % len(OTHERS)])
        DRAWN[series.kind](axes, series, colour, mark)


def _name_ticks(panel: Panel, axes: Any) -> None:
    """Where there are few values on a logarithmic axis, they are its ticks."""
    values = sorted({value for series in panel.series for value in series.x})
    if values:
        axes.set_xticks(values, [f"{value:,.5g}" for value in values], minor=False)
        axes.set_xticks([], minor=True)


def _line(axes: Any, series: Series, colour: str, mark: str) -> None:
    dashes = "--" if series.dashed else "-"
    axes.plot(series.x, series.y, dashes, color=colour, marker=mark, markersize=4.5, linewidth=1.6, label=series.label)
    if series.spread:
        low = [value - some for value, some in zip(series.y, series.spread, strict=True)]
        high = [value + some for value, some in zip(series.y, series.spread, strict=True)]
        axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)


def _points(axes: Any, series: Series, colour: str, mark: str) -> None:
    face = "none" if series.dashed else colour
    axes.scatter(
        series.x, series.y, s=38, marker=mark, edgecolors=colour, facecolors=face, label=series.label, zorder=3
    )
    for label, x, y in zip(series.labels, series.x, series.y, strict=False):
        axes.annotate(label, (x, y), textcoords="offset points", xytext=(6, 4), fontsize=8, color=INK)


def _bars(axes: Any, series: Series, colour: str, mark: str) -> None:
    """Horizontal bars, the first on top, each in its method's colour."""
    colours = [STYLES.get(_method(label), (colour, mark))[0] for label in series.labels]
    places = range(len(series.y))
    axes.barh(places, series.y, color=colours, height=0.68)
    axes.set_yticks(list(places), series.labels)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    for place, value in zip(places, series.y, strict=True):
        axes.annotate(
            f"{value:,.3g}", (value, place), textcoords="offset points", xytext=(4, 0), va="center", fontsize=8.5
        )
    axes.margins(x=0.16)


def _level(axes: Any, series: Series, colour: str, mark: str) -> None:
    axes.axhline(series.y[0], color=colour, linestyle="--", linewidth=1.2, label=series.label)


DRAWN = {"line": _line, "points": _points, "bars": _bars, "level": _level}


def _method(label: str) -> str:
    """The method a bar's label begins with."""
    return max((name for name in STYLES if name in label), key=len, default="")


def _labels(figure: Figure) -> list[str]:
    """What the legend says, each label once."""
    return list(dict.fromkeys(one.label for panel in figure.panels for one in panel.series if one.label))


def _columns(figure: Figure, width: float) -> int:
    """How many columns of the legend fit under the panels."""
    labels = _labels(figure)
    longest = max((len(label) for label in labels), default=0)
    return max(1, min(len(labels), int(width / (HANDLE + LETTER * longest))))


def _legend(canvas: Any, axes: Any, columns: int) -> None:
    """One legend under all panels, each label once."""
    found: dict[str, Any] = {}
    for place in axes:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            if label:
                found.setdefault(label, handle)
    if found:
        canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)
