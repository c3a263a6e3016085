"""The parts that time an index: real documents, many synthetic ones, documents that come and go."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.index.adding import add_batch, add_one_by_one, by_step, fill
from benchmarks.index.run import MODES, WARM, Result, Run, disk_mb, say, spread, tenths
from benchmarks.index.sources import (
    Shares,
    Toy,
    Watched,
    asked_for,
    one_query,
    questions_of,
    synthetic,
    test_texts,
)
from benchmarks.machine import held_mb, resident_mb
from incdsi import Index
from incdsi.engine.local import LocalEngine
from incdsi.text.encoders import load_encoder


def squad(run: Run) -> Result:
    """squad_plus: a batch and one by one into an index of the rest, then reading it in a fresh process."""
    data = run.data("squad_plus")
    shares = Shares.of(data, run.size)
    asked = questions_of(data)
    path = run.folder / "squad"
    index, filling = fill(path, data, shares.filled, tuning=True)
    index.close()
    batch, warm, singles = (
        [data.documents[i] for i in places] for places in (shares.batch, shares.warm, shares.singles)
    )
    with Index.open(path, data.encoder) as index:
        say("adding with the true encoder")
        in_batch = add_batch(index, batch, asked)
        one_by_one = add_one_by_one(index, [*warm, *singles], asked)
        texts = [len(index.engine.get(document.id).queries) for document in singles]
    _write_questions(path, test_texts(data, run.size))
    return {
        "documents": len(data.documents),
        "fill": filling,
        "adds": {
            "encoder": "OnnxEncoder",
            "generator": "the index's own",
            "queries_a_document": {"mean": float(np.mean(texts)), "most": max(texts)},
            "one_by_one": one_by_one,
            "batch": in_batch,
        },
        "reading": run.child("read-squad"),
    }


def scale(run: Run) -> Result:
    """Many synthetic documents of one generated query each."""
    count, encoder = run.size.scale, Toy(run.size.scale)
    path = run.folder / "scale"
    documents = synthetic(0, count)
    later = synthetic(count, WARM + run.size.singles + run.size.batch)
    with Index.create(path, encoder, generator=one_query, tuning=False) as index:
        steps = by_step(index.add_many(documents, progress=tenths("scale, filling")))
    begin = time.perf_counter()
    with Index.open(path, encoder, generator=one_query) as index:
        one_by_one = add_one_by_one(index, later[: WARM + run.size.singles], {})
        in_batch = add_batch(index, later[WARM + run.size.singles :], {})
    say(f"scale, adds: {time.perf_counter() - begin:.0f} s")
    chosen = np.random.default_rng(1).permutation(count)[: WARM + run.size.searches]
    _write_questions(path, [asked_for(documents[place]) for place in chosen])
    return {
        "documents": count,
        "dimension": encoder.dimension,
        "fill": {"step_ms": steps, "without_encoding_ms": sum(ms for step, ms in steps.items() if step != "encode")},
        "adds": {"encoder": "toy, left out", "one_by_one": one_by_one, "batch": in_batch},
        "reading": run.child("read-scale"),
    }


def rounds(run: Run) -> Result:
    """Memory and disk while documents come and go in an index that stays as large as it is."""
    size, encoder = run.size, Toy(run.size.rounds_index)
    path = run.folder / "rounds"
    progress = tenths("add-delete rounds")
    with Index.create(path, encoder, generator=one_query, tuning=False) as index:
        index.add_many(synthetic(0, size.rounds_index))
        start = {"held_mb": held_mb(), "resident_mb": resident_mb(), "disk_mb": sum(disk_mb(path).values())}
        resident = []
        for done in range(0, size.rounds, 100):
            for document in synthetic(size.rounds_index + done, 100):
                index.add(document)
                index.delete(document.id)
            resident.append(resident_mb())
            progress(done + 100, size.rounds)
        end = {"held_mb": held_mb(), "resident_mb": resident[-1], "disk_mb": sum(disk_mb(path).values())}
        index.compact()
    # Empty slots are cleared away in cycles, so the highest of each half are compared, not two moments.
    first, second = (max(half) for half in np.array_split(resident, 2))
    return {
        "documents": size.rounds_index,
        "rounds": size.rounds,
        "start": start,
        "middle": {"resident_mb": resident[len(resident) // 2 - 1]},
        "end": end,
        "highest_mb": {"first half": float(first), "second half": float(second)},
        "growth_mb": float(second - first),
        "resident_mb_every_100_rounds": [round(mb, 1) for mb in resident],
        "disk_mb_after_compact": sum(disk_mb(path).values()),
    }


def _write_questions(path: Path, texts: list[str]) -> None:
    path.with_suffix(".questions").write_text(json.dumps(texts))


def reading(run: Run, name: str) -> Result:
    """Open, hold and search an index in a process that does nothing else; files are in the page cache."""
    path = run.folder / name
    texts = json.loads(path.with_suffix(".questions").read_text())
    encoder = Watched(Toy(run.size.scale) if name == "scale" else load_encoder())
    encoder.encode(texts[:WARM])
    before = resident_mb()
    begin = time.perf_counter()
    index = Index.open(path, encoder)
    opened = time.perf_counter() - begin
    held = resident_mb() - before
    index.search(texts[0])
    first = time.perf_counter() - begin
    searches = {mode: timed_searches(index, encoder, texts, mode) for mode in MODES}
    searched = resident_mb() - before
    begin = time.perf_counter()
    with index.engine.changing(None):
        writer = time.perf_counter() - begin
    assert isinstance(index.engine, LocalEngine)
    result = {
        "documents": len(index),
        "open_seconds": opened,
        "base": index.engine.store.base() is not None,
        "open_and_first_search_seconds": first,
        "open_for_writing_seconds": writer,
        "memory_mb": {"opened": held, "searched": searched, "writing": resident_mb() - before},
        "disk_mb": disk_mb(path),
        "search": searches,
    }
    index.close()
    if name != "scale":
        begin = time.perf_counter()
        Index.open(path).close()
        result["open_with_encoder_seconds"] = time.perf_counter() - begin
    return result


def timed_searches(index: Index, encoder: Watched, texts: Sequence[str], mode: str) -> Result:
    walls, encoding = [], []
    for text in texts:
        spent = encoder.seconds
        begin = time.perf_counter()
        index.search(text, mode=mode)
        walls.append(time.perf_counter() - begin)
        encoding.append(encoder.seconds - spent)
    walls, encoding = walls[WARM:], encoding[WARM:]
    return {
        "whole": spread(walls),
        "encode": spread(encoding),
        "without_encoding": spread([wall - spent for wall, spent in zip(walls, encoding, strict=True)]),
        "encode_share": sum(encoding) / sum(walls),
    }
