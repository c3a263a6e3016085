"""How well an index that tuned itself finds, beside what anybody could do with the same texts and questions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.index.confidence import told_right
from benchmarks.index.run import MODES, Ranks, Result, Run, say
from benchmarks.real import RealData
from incdsi import Index
from incdsi.index.quality import LEARNED_ALONE, WORDS_ALONE, Probe, ranks_by_fusion
from incdsi.info import Quality
from incdsi_lab.anchors import Anchor, anchors
from incdsi_lab.baselines.protocol import Part, Questions, joined
from incdsi_lab.metrics import CONFIDENCE, wilson
from incdsi_lab.ranking import ranks_among

RETRAINED = "retrained"


def quality_squad(run: Run) -> Result:
    """Questions for most documents; retraining on all of them beside it."""
    return _quality(run, "squad_plus", retrained=True)


def quality_nq(run: Run) -> Result:
    """Where most documents have generated queries alone."""
    return _quality(run, "nq_passages")


def quality_clinc(run: Run) -> Result:
    """Short texts, and a hundred questions for each."""
    return _quality(run, "clinc150")


def _quality(run: Run, name: str, *, retrained: bool = False) -> Result:
    data = run.data(name)
    if run.documents and run.documents < len(data.documents):
        data = data.only(np.random.default_rng(0).permutation(len(data.documents))[: run.documents])
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(run.folder / f"quality-{name}", data, order, tuning=True)
    with index:
        asked = probes(index, data)
        say(f"quality: {len(asked):,} questions")
        ranks = index_ranks(index, asked)
        trusted = told_right(index, asked)
    ranks |= ranks_by(anchors(), data, joined([data.train, data.spans]), data.test)
    others = [way for way in ranks if way not in MODES]
    if retrained:
        ranks[RETRAINED] = _retrained(data)
    pairs = [("fused", other) for other in (*others, "learned", "lexical")]
    pairs += [("learned", other) for other in ("dense", *([RETRAINED] if retrained else []))]
    best = max(others, key=lambda way: Quality.of(ranks[way]).hits_at_1)
    return {"fill": filling, **compared(ranks, pairs), "best_anchor": best, "confidence": trusted}


def ranks_by(ways: Iterable[Anchor], data: RealData, known: Questions, asked: Questions) -> dict[str, Ranks]:
    """The right document's rank for each question asked, by plain ways of searching that know these questions."""
    part = Part(documents=tuple(data.documents), embeddings=data.embeddings, queries=known, held_out=data.val)
    ranks = {}
    for way in ways:
        say(f"plain search: {way.name}")
        way.fit(part)
        ranks[way.name] = way.ranks(asked)
    return ranks


def _retrained(data: RealData) -> Ranks:
    from benchmarks.stage1 import frozen  # brings torch

    say("quality: retraining on everything")
    return ranks_among(frozen(data).vectors, data.test.embeddings, data.test.owners)


def probes(index: Index, data: RealData) -> list[Probe]:
    rows = {record.document.id: record.row for record in index.engine.records()}
    asked = zip(data.test.texts, data.test.embeddings, data.test.owners, strict=True)
    return [
        Probe(text=text, embedding=embedding, row=rows[data.documents[owner].id], dense=0.0)
        for text, embedding, owner in asked
    ]


def index_ranks(index: Index, asked: list[Probe]) -> dict[str, Ranks]:
    """The right document's rank for each test question by mode, as far as it counts."""
    view = index.engine.view()
    alone = {"learned": LEARNED_ALONE, "lexical": WORDS_ALONE}
    ranks = ranks_by_fusion(view, asked, [alone.get(mode, view.settings.fusion) for mode in MODES])
    return dict(zip(MODES, ranks, strict=True))


def compared(ranks: dict[str, Ranks], pairs: list[tuple[str, str]]) -> Result:
    """Quality by way of searching, and differences of H@1 question by question, each with its 95 % interval."""
    quality = {way: {**asdict(Quality.of(some)), "h@1_interval": _interval(some)} for way, some in ranks.items()}
    differences = {}
    for left, right in pairs:
        each = 100.0 * ((ranks[left] == 1).astype(float) - (ranks[right] == 1))
        mean, error = float(each.mean()), float(each.std() / np.sqrt(len(each)))
        interval = [mean - CONFIDENCE * error, mean + CONFIDENCE * error]
        differences[f"{left} - {right}"] = {
            "h@1": mean,
            "standard_error": error,
            "interval": interval,
            "n": len(each),
        }
    return {"quality": quality, "differences": differences}


def _interval(ranks: Ranks) -> list[float]:
    return [100.0 * end for end in wilson((ranks == 1).astype(np.float64))]
