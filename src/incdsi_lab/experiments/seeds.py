"""One study with several seeds, each with its own draw of documents and its own report: what all of them show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from incdsi_lab.experiments import long_stream, main_table, rule
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import GENERAL, GENERAL_SAFE, RETRAINING, named
from incdsi_lab.experiments.study import Study
from incdsi_lab.report.pages import About, write_report
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

GROUPS = ("old", "new")
Figures = dict[str, list[tuple[float, ...]]]  # by method, for each seed its figures
BESIDE_RETRAINING = {
    GENERAL: "General form by the rule",
    "product, empty, learned": "The product itself, from nothing, learned",
    "product, trained, learned": "The product itself, trained first, learned",
}
NEWCOMERS = {
    GENERAL_SAFE: "safe weights",
    GENERAL: "weights by the rule",
    "product, trained, learned": "the product's own, trained first",
}


def write_spread(folder: Path, studies: Sequence[Study], names: Sequence[str], about: About) -> Path:
    """The report of all seeds together, beside those of each; the path of its page."""
    sections = []
    if main_table.NAME in names:
        sections.append(main_section(studies, main_table.pieces_at))
    elif rule.NAME in names:
        sections.append(main_section(studies, rule.pieces_at))
    if long_stream.NAME in names:
        sections.append(stream_section(studies))
    return write_report(folder, about, sections)


def main_section(
    studies: Sequence[Study], pieces_at: Callable[[Study, int], Mapping[str, Any]] = main_table.pieces_at
) -> Section:
    """H@1 of old and new documents with all new documents added."""
    found: Figures = {}
    for study in studies:
        for method, piece in pieces_at(study, study.additions[-1]).items():
            found.setdefault(method, []).append(tuple(hits1(piece["ranks"][group]) for group in GROUPS))
    found = {method: each for method, each in found.items() if len(each) == len(studies)}
    old, new = (sum(len(some) for some in side) for side in zip(*(_asked(study) for study in studies), strict=True))
    return Section(
        name=main_table.NAME,
        title=main_table.TITLE,
        paragraphs=(_method(studies), *_worst(found)),
        tables=(
            _table(
                "seeds", f"After all new documents ({old:,} old and {new:,} new test queries in all)", found, GROUPS
            ),
            _each(studies, found),
        ),
        aims=_aims(found),
    )


def stream_section(studies: Sequence[Study]) -> Section:
    """H@1 over everything at the end of the long stream."""
    found: Figures = {}
    for study in studies:
        for name, cells in long_stream.rows(study).items():
            found.setdefault(long_stream.label(name), []).append((hits1(cells[-1][0]),))
    asked = sum(len(long_stream.final(study, "dense")) for study in studies)
    caption = f"All documents, grown in one random order a seed ({asked:,} test queries in all)"
    table = _table("seeds-stream", caption, found, ("all",), reference=long_stream.label(RETRAINING))
    return Section(name=long_stream.NAME, title=long_stream.TITLE, tables=(table,))


def _asked(study: Study) -> tuple[str, str]:
    ranks = main_table.retrained(study)["ranks"]
    return ranks["old"], ranks["new"]


def _method(studies: Sequence[Study]) -> str:
    seeds = ", ".join(str(study.settings.seed) for study in studies)
    return (
        f"Seeds {seeds}: each draws its documents, splits, trains, tunes and tests anew. Mean ± standard deviation "
        "over the seeds; differences to retraining are of the same seed, and the worst is the lowest of them. Weights "
        "were chosen by validation queries alone."
    )


def _table(name: str, caption: str, found: Figures, groups: Sequence[str], reference: str = RETRAINING) -> Table:
    heads = [f"H@1 {group}" for group in groups], [f"{group} vs retraining (worst)" for group in groups]
    base = np.array(found[reference])
    rows = []
    for method, each in found.items():
        values = np.array(each)
        apart = values - base
        rows.append(
            (
                named(method),
                *(
                    f"{mean:.1f} ± {spread:.1f}"
                    for mean, spread in zip(values.mean(axis=0), _spread(values), strict=True)
                ),
                *(
                    "-" if method == reference else f"{mean:+.1f} ({least:+.1f})"
                    for mean, least in zip(apart.mean(axis=0), apart.min(axis=0), strict=True)
                ),
            )
        )
    return Table(name=name, caption=caption, columns=("method", *heads[0], *heads[1]), rows=tuple(rows))


def _each(studies: Sequence[Study], found: Figures) -> Table:
    shown = (RETRAINING, GENERAL, "product, empty, learned", "product, empty, fused", "dense", "plain hybrid")
    rows = tuple(
        (named(method), *(f"{old:.1f}/{new:.1f}" for old, new in found[method])) for method in shown if method in found
    )
    columns = ("method", *(f"seed {study.settings.seed}" for study in studies))
    return Table(name="seeds-each", caption="Old/new H@1 of each seed", columns=columns, rows=rows)


def _spread(values: np.ndarray) -> np.ndarray:
    result: np.ndarray = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return result


def _apart(found: Mapping[str, list[tuple[float, ...]]], method: str, other: str) -> np.ndarray:
    result: np.ndarray = np.array(found[method]) - np.array(found[other])
    return result


def _worst(found: Figures) -> list[str]:
    """Which of the plain ways that were run stand above the product's fused search in at least one seed."""
    mine, beside = main_table.FUSED, [name for name in main_table.BESIDE if name in found]
    if mine not in found or not beside:
        return []
    above = [
        f"{named(name)} ({int((_apart(found, name, mine) >= 0).any(axis=1).sum())} of {len(found[name])} seeds)"
        for name in beside
        if (_apart(found, name, mine) >= 0).any()
    ]
    said = f"not below it on old or on new documents: {', '.join(above)}" if above else "none reaches it in any seed"
    return [f"Beside the product's fused search, of what anybody could do ({', '.join(map(named, beside))}), {said}."]


def _aims(found: Figures) -> tuple[Aim, ...]:
    aims = [
        aim
        for method, how in BESIDE_RETRAINING.items()
        if method in found
        for aim in _near_retraining(found, method, how)
    ]
    for method, how in ((name, how) for name, how in NEWCOMERS.items() if name in found):
        gain = _apart(found, method, "dense")[:, 1]
        aims.append(
            Aim(
                text=f"New documents in a trained index, {how}: at least dense search on average",
                found=f"Found {gain.mean():+.1f} ({', '.join(f'{one:+.1f}' for one in gain)}).",
                reached=bool(gain.mean() >= 0),
            )
        )
    return tuple(aims)


def _near_retraining(found: Figures, method: str, how: str) -> tuple[Aim, Aim]:
    old, new = _apart(found, method, RETRAINING).T
    return (
        Aim(
            text=f"{how}: old H@1 at least retraining's -{main_table.OLD_WITHIN} with every seed",
            found=f"Found {', '.join(f'{one:+.1f}' for one in old)}.",
            reached=bool((old >= -main_table.OLD_WITHIN - 1e-9).all()),
        ),
        Aim(
            text=f"{how}: new H@1 at least retraining's -{main_table.NEW_WITHIN:g} on average",
            found=f"Found {new.mean():+.1f} ({', '.join(f'{one:+.1f}' for one in new)}).",
            reached=bool(new.mean() >= -main_table.NEW_WITHIN - 1e-9),
        ),
    )
