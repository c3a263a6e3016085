"""Whether a hit is as probably right as it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.index.run import Result
from incdsi import Index
from incdsi.index.quality import Probe
from incdsi.search import evidence, fused
from incdsi_lab.calibration import reliability


def told_right(index: Index, asked: Sequence[Probe]) -> Result | None:
    """How far the confidence of first hits can be relied on; None where the index says none."""
    view = index.engine.view()
    confidence = view.settings.confidence
    if confidence is None:
        return None
    told, right = np.empty(len(asked)), np.empty(len(asked), dtype=bool)
    for place, probe in enumerate(asked):
        parts = view.learned(probe.embedding), view.nearest(probe.embedding), view.lexical(probe.text)
        whole = fused(*parts, view.settings.fusion)
        first = whole.top(1)
        seen = evidence(whole, first.rows, first.scores, view.asked_for(first.rows))
        told[place] = confidence.of(seen)[0]
        right[place] = first.rows[0] == probe.row
    return reliability(told, right)
