"""The product itself, beside the study: an index in a folder of its own, which tunes itself and nobody helps."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from incdsi import Index
from incdsi.engine.protocol import View
from incdsi.engine.settings import Settings
from incdsi.index.quality import LEARNED_ALONE, Probe, ranks_by_fusion
from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Part, Questions
from incdsi_lab.embedded import KnownTexts
from incdsi_lab.experiments.comparing import asked, interval
from incdsi_lab.experiments.datasets import Given
from incdsi_lab.experiments.judging import encoded
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Piece, Task
from incdsi_lab.experiments.weights import named as weights_named
from incdsi_lab.report.sections import Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "product", "The product itself"
ABOUT = (
    "`incdsi itself` is the product: an index that gets the initial documents with their questions, tunes itself by "
    "those it holds out, and then gets the new ones; it is told nothing of the study. Trained first, it begins with "
    "vectors trained together."
)
Begun = Literal["empty", "trained"]
MODES = ("learned", "fused")
NAMES: dict[Begun, str] = {"empty": "incdsi itself", "trained": "incdsi itself, trained first"}
ROWS = {f"{NAME}, {begun}, {mode}": f"{NAMES[begun]}, {mode}" for begun in NAMES for mode in MODES}


def tasks(study: Study) -> list[Task]:
    """Both ways to begin, each filled once."""
    return [_task(study, begun) for begun in NAMES]


def finished(study: Study) -> bool:
    """Whether both were run."""
    return all(f"{NAME}/{begun}" in study.pieces for begun in NAMES)


def section(study: Study) -> Section:
    """What it chose for itself; its figures are in the main table."""
    chosen = {begun: Settings.from_json(study.piece(f"{NAME}/{begun}")["settings"]) for begun in NAMES}
    cells = tuple(
        (
            NAMES[begun],
            weights_named(settings.hyperparameters),
            f"{settings.lexical_weight:.2f}",
            f"{settings.nearest_share:.2f}",
            f"{settings.tuned_at:,}",
            *(interval(rows(study)[f"{NAME}, {begun}, {mode}"]["ranks"][g]) for mode in MODES for g in ("old", "new")),
        )
        for begun, settings in chosen.items()
    )
    heads = tuple(f"{mode} {group}" for mode in MODES for group in ("old", "new"))
    columns = ("index", "weights", "lexical weight", "nearest share", "questions held out at the last tuning", *heads)
    some = asked(rows(study)[f"{NAME}, empty, fused"]["ranks"])
    table = Table(name=NAME, caption=f"What it chose for itself, and H@1 ({some})", columns=columns, rows=cells)
    return Section(name=NAME, title=TITLE, paragraphs=(ABOUT,), tables=(table,))


def rows(study: Study) -> dict[str, Piece]:
    """What each mode reached after all new documents, as pieces of the main table."""
    found = {}
    for begun in NAMES:
        piece = study.piece(f"{NAME}/{begun}")
        for mode in MODES:
            found[f"{NAME}, {begun}, {mode}"] = {"ranks": piece["ranks"][mode], "seconds": {"add": piece["add"]}}
    return found


def _task(study: Study, begun: Begun) -> Task:
    def run(progress: Progress) -> Piece:
        with TemporaryDirectory(prefix="incdsi-") as folder:
            index = opened(study, Path(folder) / "index", study.initial, begun, progress)
            with index:
                begin = time.perf_counter()
                index.add_many(study.new.documents, asked_of(study.new))
                added = time.perf_counter() - begin
                found = judged(index.engine.view(), study.groups(len(study.new)))
                settings = index.engine.view().settings
        return {"ranks": found, "add": added, "settings": settings.to_json() | {"confidence": None}}

    each = 0.1 if begun == "empty" else 0.02
    seconds = each * len(study.initial) + 0.01 * len(study.split.test)
    return Task(name=f"{NAME}/{begun}", run=run, seconds=seconds)


def opened(study: Study, path: Path, part: Part, begun: Begun, progress: Progress | None = None) -> Index:
    """An index of these documents, placed one after another from nothing or trained together."""
    encoder, generator = KnownTexts(study.data), _spans(study)
    if begun == "trained":
        queries = asked_of(part)
        return Index.build(
            part.documents,
            queries=queries,
            path=path,
            train="frozen",
            encoder=encoder,
            generator=generator,
            progress=progress,
        )
    index = Index.create(path, encoder, generator=generator)
    index.add_many(part.documents, asked_of(part), progress=progress)
    return index


def asked_of(part: Part) -> dict[str, Sequence[str]]:
    """What people asked for each document, to learn from."""
    asked: dict[str, list[str]] = {document.id: [] for document in part.documents}
    known = part.queries.natural()
    for text, owner in zip(known.texts, known.owners, strict=True):
        asked[part.documents[owner].id].append(text)
    return dict(asked)


def judged(view: View, groups: Mapping[str, Questions]) -> dict[str, dict[str, str]]:
    """The ranks of each group's documents by mode, encoded; rows are positions, counted from 1."""
    fusions = (LEARNED_ALONE, view.settings.fusion)
    found: dict[str, dict[str, str]] = {mode: {} for mode in MODES}
    for name, questions in groups.items():
        ranks = ranks_by_fusion(view, probes_of(questions), fusions)
        for mode, some in zip(MODES, ranks, strict=True):
            found[mode][name] = encoded(some)
    return found


def probes_of(questions: Questions) -> list[Probe]:
    """Questions as an index measures itself by."""
    each: Any = zip(questions.texts, questions.embeddings, questions.owners, strict=True)
    return [Probe(text=text, embedding=vector, row=int(owner) + 1, dense=0.0) for text, vector, owner in each]


def _spans(study: Study) -> Given:
    """The queries that the study has generated."""
    spans: dict[str, list[str]] = {}
    for text, owner in zip(study.data.spans.texts, study.data.spans.owners, strict=True):
        spans.setdefault(study.data.documents[owner].id, []).append(text)
    return Given(spans)
