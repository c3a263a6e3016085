"""Every way to the first document vectors, on real questions: `make bench-stage1`.

squad_plus with its own splits; all methods see the train questions and the documents' spans, choose by the
val questions, and are judged on the test questions, all documents being candidates. Each method runs in a
process of its own; its seconds include encoding everything it needs, as measured when it was encoded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine, peak_mb, write
from benchmarks.real import Questions, RealData, real_data
from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters
from incdsi.info import Quality
from incdsi.text.encoders.locate import load_torch_encoder
from incdsi.text.queries import drop_shared
from incdsi.training.finetune import train_finetune
from incdsi.training.loop import Outcome as Course
from incdsi.training.model import TrainedModel
from incdsi.training.pairs import document_positions, flatten
from incdsi.training.records import Moment, Observe
from incdsi.training.settings import FinetuneSettings, FrozenSettings, Start
from incdsi.training.stage1 import train
from incdsi_lab.ranking import ranks_among
from incdsi_lab.streams import Newcomers, State, add_all

Floats = NDArray[np.float32]
EPOCHS_OF_FINETUNING = 3  # what half an hour on two cores allows


@dataclass(frozen=True)
class Outcome:
    """Document vectors (n, h), the questions as their encoder embeds them, and what is worth telling."""

    vectors: Floats
    val: Floats
    test: Floats
    note: str = ""


def dense(data: RealData) -> Outcome:
    return Outcome(data.embeddings, data.val.embeddings, data.test.embeddings)


def mean_queries(data: RealData) -> Outcome:
    questions = data.by_document([data.train, data.spans])
    vectors = np.stack(
        [some.mean(axis=0) if len(some) else text for some, text in zip(questions, data.embeddings, strict=True)]
    )
    return Outcome(vectors, data.val.embeddings, data.test.embeddings)


def solved(data: RealData, how: Hyperparameters) -> Outcome:
    """All rows one after another in random order, from nothing, in the general form."""
    order = np.random.default_rng(0).permutation(len(data.documents))
    documents = Newcomers.of(data, order, [data.train, data.spans])
    state = add_all(State.empty(data.encoder.dimension, "general"), documents, hyperparameters=how).state
    vectors = np.empty_like(data.embeddings)
    vectors[order] = state.vectors
    return Outcome(vectors, data.val.embeddings, data.test.embeddings, f"{len(state.rows):,} preserve rows")


def frozen(data: RealData, start: Start = "text") -> Outcome:
    model = train(
        data.documents,
        _texts(data, [data.train, data.spans]),
        encoder=data.encoder,
        settings=FrozenSettings(start=start),
        validation=_texts(data, [data.val]),
        known=_known(data),
        observe=_telling(),
    )
    return Outcome(model.document_vectors, data.val.embeddings, data.test.embeddings, _curve(model))


def finetuned(data: RealData) -> Outcome:
    """Stage 1's own steps: frozen first, then encoder and vectors together on the natural questions.

    What it leaves out is embedding every training text once more for the index, which takes longer than an epoch.
    """
    positions = document_positions(data.documents)
    encoder, vectors, course = train_finetune(
        load_torch_encoder(),
        frozen(data).vectors,
        flatten(drop_shared(_texts(data, [data.train])), positions),
        flatten(_texts(data, [data.val]), positions),
        FinetuneSettings(epochs=EPOCHS_OF_FINETUNING),
        observe=_telling(),
    )
    return Outcome(vectors, encoder.encode(data.val.texts), encoder.encode(data.test.texts), _curve(course))


def _telling() -> Observe:
    begin = time.perf_counter()

    def observe(moment: Moment) -> None:
        if moment.ended is not None:
            print(f"  {moment.ended} after {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)

    return observe


def _curve(course: Course | TrainedModel) -> str:
    curve = [round(epoch.quality.hits_at_1, 2) for epoch in course.epochs if epoch.quality]
    return f"val H@1 by epoch {curve}, kept {course.best_epoch}"


def _texts(data: RealData, questions: list[Questions]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for some in questions:
        for text, owner in zip(some.texts, some.owners, strict=True):
            texts.setdefault(data.documents[owner].id, []).append(text)
    return texts


def _known(data: RealData) -> dict[str, Floats]:
    known = {document.content: row for document, row in zip(data.documents, data.embeddings, strict=True)}
    for some in (data.train, data.spans, data.val):
        known.update(zip(some.texts, some.embeddings, strict=True))
    return known


METHODS: dict[str, Callable[[RealData], Outcome]] = {
    "dense": dense,
    "mean queries": mean_queries,
    "solved, safe": lambda data: solved(data, SAFE),
    "solved, bold": lambda data: solved(data, BOLD),
    "frozen from text": frozen,
    "frozen from queries": lambda data: frozen(data, "queries"),
    "frozen from random": lambda data: frozen(data, "random"),
    "finetune": finetuned,
}


def run(name: str) -> dict[str, Any]:
    data = real_data()
    begin = time.perf_counter()
    outcome = METHODS[name](data)
    seconds = time.perf_counter() - begin
    needs = ["encode documents", *(["encode queries", "encode spans", "generate"] if name != "dense" else [])]
    return {
        "method": name,
        "test": asdict(Quality.of(ranks_among(outcome.vectors, outcome.test, data.test.owners))),
        "val": asdict(Quality.of(ranks_among(outcome.vectors, outcome.val, data.val.owners))),
        "seconds": seconds,
        "encoding_seconds": sum(data.seconds[part] for part in needs),
        "peak_mb": peak_mb(),
        "note": outcome.note,
    }


def show(result: dict[str, Any]) -> str:
    test, val = result["test"], result["val"]
    return (
        f"{result['method']:<21}{test['hits_at_1']:>7.2f}{test['hits_at_10']:>7.2f}{test['mrr_at_10']:>8.2f}"
        f"{val['hits_at_1']:>9.2f}{result['seconds']:>9.0f}{result['encoding_seconds']:>10.0f}{result['peak_mb']:>9.0f}"
        f"  {result['note']}"
    )


HEADER = f"{'':<21}{'H@1':>7}{'H@10':>7}{'MRR@10':>8}{'val H@1':>9}{'seconds':>9}{'+encoding':>10}{'peak MB':>9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS), help="these methods")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(run(arguments.child)))
        return
    print(json.dumps(machine()))
    data = real_data()
    sizes = f"{len(data.documents)} documents, {len(data.train.texts)} train, {len(data.val.texts)} val, "
    print(sizes + f"{len(data.test.texts)} test questions, {len(data.spans.texts)} spans")
    print(HEADER)
    results = []
    for name in arguments.only:
        command = [sys.executable, "-m", "benchmarks.stage1", "--child", name]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results.append(json.loads(child.stdout.splitlines()[-1]))
        print(show(results[-1]), flush=True)
        written = write("stage1", {"encoding": data.seconds, "methods": results})
    print("written to", written)


if __name__ == "__main__":
    main()
