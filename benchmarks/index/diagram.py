"""`python -m benchmarks.index.diagram`: the reliability diagram of confidence, from what the parts on quality wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.index.run import Result
from benchmarks.machine import RESULTS
from incdsi_lab.metrics import CONFIDENCE
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.tables import Table

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "confidence"
PREFIX = "index-quality-"
ABOUT = """# Confidence
`Hit.confidence` is the probability that a hit is right. `python -m benchmarks.index.diagram` draws this page
from what `python -m benchmarks.index` found about quality."""
COLUMNS = ("set", "n", "calibration error", "Brier score", "of the base rate", "F1 of a threshold", "F1 without one")


def confidences(folder: Path = RESULTS) -> dict[str, Result]:
    """What each result about quality says of confidence, by the name of its set."""
    found = {}
    for path in sorted(folder.glob(f"{PREFIX}*.json")):
        for part in json.loads(path.read_text())["parts"].values():
            if part.get("confidence"):
                found[path.stem.removeprefix(PREFIX)] = part["confidence"]
    return found


def drawn(found: dict[str, Result]) -> Figure:
    """How often first hits were right over how probable they were told to be, one panel a set."""
    return Figure(
        name="reliability",
        caption="How often first hits were right, over how probably they were told to be, with 95 % intervals; "
        "on the dashed line both are the same.",
        panels=tuple(_panel(name, one["diagram"]) for name, one in found.items()),
    )


def _panel(name: str, diagram: list[dict[str, Any]]) -> Panel:
    told, right = (tuple(float(one[key]) for one in diagram) for key in ("told", "right"))
    spread = tuple(
        CONFIDENCE * (share * (1 - share) / one["n"]) ** 0.5 for share, one in zip(right, diagram, strict=True)
    )
    return Panel(
        title=f"{name}, n = {sum(one['n'] for one in diagram):,}",
        x="told",
        y="right",
        series=(
            Series(label="as told", x=(0.0, 1.0), y=(0.0, 1.0), dashed=True, style="retraining"),
            Series(label="first hits, in ten bins", x=told, y=right, spread=spread, style="general"),
        ),
    )


def told(found: dict[str, Result]) -> Table:
    """The figures beside the drawing."""
    figures = ("calibration_error", "brier_score", "brier_score_of_base_rate", "f1", "f1_without_threshold")
    return Table(
        name="confidence",
        caption="Confidence of first hits on test questions; a threshold is chosen on one half and used on the other",
        columns=COLUMNS,
        rows=tuple(
            (name, f"{one['n']:,}", *(f"{one[figure]:.3f}" for figure in figures)) for name, one in found.items()
        ),
    )


def main() -> None:
    found = confidences()
    if not found:
        sys.exit("no result has a confidence yet; run python -m benchmarks.index --only quality-squad first")
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure = drawn(found)
    (FOLDER / "reliability.svg").write_bytes(figure.svg())
    drawing = f"![{figure.caption}](reliability.svg)"
    (FOLDER / "report.md").write_text("\n".join((ABOUT, "", drawing, "", told(found).markdown())))
    print("written to", FOLDER)


if __name__ == "__main__":
    main()
