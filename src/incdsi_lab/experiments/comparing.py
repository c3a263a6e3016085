"""A method on the study's documents: fitted to the initial ones, given new ones, judged on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Method, Part
from incdsi_lab.experiments.judging import judged, scores_of, searched, standing
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.metrics import MEASURES, Scores, compare

STAR = "∗"  # not the asterisk, which would mark bold
Make = Callable[[Progress], Method]


def compared(
    study: Study,
    name: str,
    make: Make,
    new: Callable[[], Part],
    *,
    seconds: float,
    validation: bool = False,
    run_as: str | None = None,
) -> Task:
    """The task that adds these documents by this method and keeps the ranks of old and new test queries.

    With `validation` it keeps those of the validation queries too, under `val`. `run_as` names the TREC run it
    writes; what ir-measures makes of that run must be what the ranks say.
    """

    def run(progress: Progress) -> Piece:
        method, part = make(progress), new()
        method.fit(study.initial)
        method.add(part)
        groups = study.groups(len(part))
        found = searched(method, groups)
        piece: Piece = {"added": len(part), "ranks": standing(found, groups)}
        if run_as is not None:
            require_agreement(study.write_run(run_as, found, groups), piece["ranks"])
        if validation:
            piece["val"] = judged(method, study.groups(len(part), validation=True))
        return {**piece, "seconds": dict(method.seconds)}

    return Task(name=name, run=run, seconds=seconds + study.judging_seconds())


def require_agreement(judged: Mapping[str, Scores], ranks: Mapping[str, str]) -> None:
    for group, scores in judged.items():
        ours = scores_of(ranks[group])
        if any(not np.allclose(scores.values[measure], ours.values[measure]) for measure in MEASURES):
            raise InvalidInput(f"ir-measures does not agree with the ranks of {group} documents: a defect of the study")


def asked(ranks: Mapping[str, str]) -> str:
    """How many queries figures of old and new documents rest on."""
    return f"{len(ranks['old']):,} old and {len(ranks['new']):,} new test queries"


def basis(ranks: Mapping[str, str]) -> str:
    """The same for figures without intervals of their own: how wide those are."""
    estimates = [scores_of(ranks[group]).estimate() for group in ("old", "new") if ranks[group]]
    widths = " and ".join(f"±{(estimate.high - estimate.low) / 2:.1f}" for estimate in estimates)
    return f"{asked(ranks)}: 95 % intervals of about {widths} points"


def interval(text: str) -> str:
    """H@1 with its 95 % interval, as tables show it."""
    return str(scores_of(text).estimate()) if text else "-"


def plain(text: str, measure: str) -> str:
    """A measure in percent."""
    return f"{scores_of(text).mean(measure):.1f}" if text else "-"


def against(reference: Mapping[str, Any], piece: Mapping[str, Any], group: str) -> str:
    """The paired difference of H@1 in points, with a star for each of p < 0.05, 0.01, 0.001."""
    if not piece["ranks"][group] or len(piece["ranks"][group]) != len(reference["ranks"][group]):
        return "-"
    found = compare(scores_of(reference["ranks"][group]), scores_of(piece["ranks"][group]))
    stars = STAR * sum(found.p_value < level for level in (0.05, 0.01, 0.001))
    return f"{found.difference:+.1f}{stars}"


def worse(piece: Mapping[str, Any], other: Mapping[str, Any], group: str) -> bool:
    """Whether the other has a significantly higher H@1 (paired, p < 0.05)."""
    found = compare(scores_of(piece["ranks"][group]), scores_of(other["ranks"][group]))
    return found.difference > 0 and found.p_value < 0.05


def times_as_fast(before: float, now: float) -> str:
    """How many times faster, or slower, `now` is, in words."""
    ratio = before / max(now, 1e-9)
    return f"{ratio:,.3g} times faster" if ratio >= 1 else f"{1 / max(ratio, 1e-9):,.3g} times slower"


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 1.0:
        return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def unique(tasks: Sequence[Task]) -> list[Task]:
    """The tasks in order, each name once."""
    return list({task.name: task for task in tasks}.values())
