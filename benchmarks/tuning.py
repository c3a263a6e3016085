"""What tuning costs beside filling, and what placing everything anew is worth, by where it begins.

    python -m benchmarks.tuning [--set squad_plus] [--documents 2500] [--seed 0]

An index takes drawn documents with their train questions, by embeddings from the user's cache, without tuning. Then it
is tuned, part by part, and everything is placed by the weights that were chosen in two ways: twice from nothing, and
once from where the documents are. Validation questions are asked of each. CPU time; a quarter of an hour for all of
squad_plus on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.index.run import Result, say, tenths
from benchmarks.index.sources import questions_of
from benchmarks.machine import write
from benchmarks.real import SPANS, RealData, real_data
from incdsi import Index
from incdsi.engine.protocol import View
from incdsi.index import tuning
from incdsi.index.quality import Probe, learned_ranks
from incdsi.index.replacement import replaced
from incdsi.info import Quality
from incdsi.text.generators import Spans
from incdsi_lab.embedded import KnownTexts

PARTS = ("best_weights", "replaced", "_fused", "quality", "reached", "fitted_confidence")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="squad_plus", help="a folder below the data's home")
    parser.add_argument("--documents", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    data = real_data(given.set)
    drawn = np.random.default_rng(given.seed).permutation(len(data.documents))[: given.documents]
    data = data.only(drawn)
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder) / "index", data)
    print(json.dumps(result, indent=1))
    print("written to", write(f"tuning-{given.set}", {"set": given.set, "seed": given.seed, **result}))


def run(path: Path, data: RealData) -> Result:
    count, asked = len(data.documents), questions_of(data)
    Index.create(path, data.encoder).close()
    with Index.open(path, KnownTexts(data), generator=Spans(limit=SPANS)) as index:
        spent: dict[str, float] = {}
        with timed("fill", spent), patch.object(index._tuner, "tune_if_due", lambda progress: None):
            index.add_many(data.documents, asked, progress=tenths("filling"))
        probes = validation(index, data)
        before = found(index.engine.view(), probes)
        engine, source = index.engine, tuning.Everything(index.engine)
        start = engine.view().bench()
        with each_timed(spent), timed("tune", spent):
            outcome = index.tune(tenths("tuning"))
        chosen = replace(start.settings, hyperparameters=outcome.hyperparameters)
        ways: dict[str, Result] = {}
        for way, bench in (("twice from nothing", engine.bench(chosen)), ("once from where they are", start)):
            say(way)
            begin = time.process_time()
            placed = replaced(bench, source, chosen, None)
            ways[way] = {"ms": 1e3 * (time.process_time() - begin) / count, "learned": found(placed.bench, probes)}
    return {
        "documents": count,
        "held_out": outcome.queries,
        "cpu_ms_a_document": {part: 1e3 * seconds / count for part, seconds in spent.items()},
        "with_tuning_over_without": (spent["fill"] + spent["tune"]) / spent["fill"],
        "validation_questions": len(probes),
        "learned_before": before,
        "placing_everything_anew": ways,
        "chosen": asdict(outcome.hyperparameters),
        "trials": [
            {"weights": asdict(one.hyperparameters.weights), "mrr_at_10": one.quality.mrr_at_10}
            for one in outcome.trials
        ],
    }


def validation(index: Index, data: RealData) -> list[Probe]:
    rows = {record.document.id: record.row for record in index.engine.records()}
    asked = zip(data.val.texts, data.val.embeddings, data.val.owners, strict=True)
    return [Probe(text=t, embedding=e, row=rows[data.documents[o].id], dense=0.0) for t, e, o in asked]


def found(view: View, probes: list[Probe]) -> Result:
    return asdict(Quality.of(learned_ranks(view, probes)))


@contextmanager
def timed(name: str, spent: dict[str, float]) -> Iterator[None]:
    begin = time.process_time()
    yield
    spent[name] = spent.get(name, 0.0) + time.process_time() - begin


@contextmanager
def each_timed(spent: dict[str, float]) -> Iterator[None]:
    """Count what each part of tuning takes; what it calls of the others counts twice."""

    def watched(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            with timed(name, spent):
                return act(*given, **named)

        return wrapped

    parts: dict[str, Any] = {name: watched(name, getattr(tuning, name)) for name in PARTS}
    with patch.multiple(tuning, **parts):
        yield


if __name__ == "__main__":
    main()
