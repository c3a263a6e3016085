"""Filling an index, and adding to it one by one and in a batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.index.run import WARM, Result, say, spread, tenths
from benchmarks.index.sources import questions_of
from benchmarks.real import SPANS, RealData
from incdsi import Document, Index
from incdsi.documents import Addition
from incdsi.progress import Progress
from incdsi.text.generators import Spans
from incdsi_lab.embedded import KnownTexts

CORE = ("constrain", "solve", "commit")


def fill(
    path: Path,
    data: RealData,
    places: Iterable[int],
    *,
    tuning: bool,
    asked: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Index, Result]:
    """A new index of these documents in that order, by embeddings made before, and what it took.

    It knows all training questions, or those that were `asked`.
    """
    Index.create(path, data.encoder, tuning=tuning).close()
    encoder = KnownTexts(data)
    index = Index.open(path, encoder, generator=Spans(limit=SPANS))
    documents = [data.documents[place] for place in places]
    known = questions_of(data) if asked is None else asked
    tuning_seconds = _watch_tuning(index)
    begin = time.perf_counter()
    additions = index.add_many(
        documents, {document.id: known[document.id] for document in documents}, progress=tenths("filling")
    )
    wall = time.perf_counter() - begin - sum(tuning_seconds)
    steps = by_step(additions)
    settings = index._session.settings
    return index, {
        "documents": len(documents),
        "encoder": "embeddings made before",
        "generator": f"at most {SPANS} spans a document",
        "encoded_anyway": encoder.encoded,
        "step_ms": steps,
        "without_encoding_ms": 1e3 * wall / len(documents) - steps["encode"],
        "tuning_ms": 1e3 * sum(tuning_seconds) / len(documents),
        "tuned_at_held_out_queries": settings.tuned_at,
        "hyperparameters": asdict(settings.hyperparameters),
        "lexical_weight": settings.lexical_weight,
        "nearest_share": settings.nearest_share,
    }


def _watch_tuning(index: Index) -> list[float]:
    """A list that takes the seconds of every look at whether tuning is due, tuning included."""
    seconds: list[float] = []
    tune = index._tuner.tune_if_due

    def watched(progress: Progress | None) -> None:
        begin = time.perf_counter()
        say("tuning, if it is due")
        tune(progress)
        seconds.append(time.perf_counter() - begin)

    index._tuner.tune_if_due = watched  # type: ignore[method-assign]
    return seconds


def by_step(additions: Sequence[Addition]) -> dict[str, float]:
    """Mean ms a document of each step."""
    return {
        step: 1e3 * float(np.mean([addition.seconds[step] for addition in additions])) for step in additions[0].seconds
    }


def add_one_by_one(index: Index, documents: Sequence[Document], asked: dict[str, list[str]]) -> Result:
    """Spreads of the whole add, of its steps, and of constrain + solve + commit; the first adds warm up."""
    walls, additions = [], []
    for document in documents:
        begin = time.perf_counter()
        additions.append(index.add(document, asked.get(document.id, [])))
        walls.append(time.perf_counter() - begin)
    walls, additions = walls[WARM:], additions[WARM:]
    steps = {step: [addition.seconds[step] for addition in additions] for step in additions[0].seconds}
    core = [sum(addition.seconds[step] for step in CORE) for addition in additions]
    rest = [wall - addition.seconds["encode"] for wall, addition in zip(walls, additions, strict=True)]
    return {
        "whole": spread(walls),
        "without_encoding": spread(rest),
        "core": spread(core),
        **{step: spread(seconds) for step, seconds in steps.items()},
        "status": {name: [a.status for a in additions].count(name) for name in {a.status for a in additions}},
    }


def add_batch(index: Index, documents: Sequence[Document], asked: dict[str, list[str]]) -> Result:
    begin = time.perf_counter()
    additions = index.add_many(documents, {document.id: asked.get(document.id, []) for document in documents})
    whole = 1e3 * (time.perf_counter() - begin) / len(documents)
    steps = by_step(additions)
    return {
        "documents": len(documents),
        "whole_ms": whole,
        "without_encoding_ms": whole - steps["encode"],
        "core_ms": sum(steps[step] for step in CORE),
        "step_ms": steps,
    }
