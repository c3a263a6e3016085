"""How well an index finds, beside retraining, dense search and BM25."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.index.run import MODES, Ranks, Result, Run, say
from benchmarks.real import RealData
from incdsi import Index
from incdsi.index.quality import LEARNED_ALONE, WORDS_ALONE, Probe, ranks_by_fusion
from incdsi.info import Quality
from incdsi_lab.ranking import ranks_among


def quality_squad(run: Run) -> Result:
    """From empty in random order, weights it tuned itself, against retraining on all, dense and BM25."""
    from benchmarks.stage1 import frozen  # brings torch

    data = run.data("squad_plus")
    filling, ranks = _filled_ranks(run, data, "quality-squad", tuning=True)
    say("quality: retraining on everything")
    ranks["retrained"] = ranks_among(frozen(data).vectors, data.test.embeddings, data.test.owners)
    pairs = [("learned", "retrained"), ("learned", "dense")]
    pairs += [("fused", other) for other in ("lexical", "dense", "learned")]
    return {"fill": filling, **_compared(ranks, pairs)}


def quality_nq(run: Run) -> Result:
    """From empty in random order with the weights an index starts with, where most queries are generated."""
    data = run.data("nq_passages")
    filling, ranks = _filled_ranks(run, data, "quality-nq", tuning=False)
    return {"fill": filling, **_compared(ranks, [("learned", "dense"), ("fused", "lexical"), ("fused", "learned")])}


def _filled_ranks(run: Run, data: RealData, name: str, *, tuning: bool) -> tuple[Result, dict[str, Ranks]]:
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(run.folder / name, data, order, tuning=tuning)
    say(f"quality: {len(data.test.texts)} questions")
    ranks = _index_ranks(index, data)
    index.close()
    ranks["dense"] = ranks_among(data.embeddings, data.test.embeddings, data.test.owners)
    return filling, ranks


def _index_ranks(index: Index, data: RealData) -> dict[str, Ranks]:
    """The right document's rank for each test question by mode, as far as it counts."""
    engine, asked = index.engine, zip(data.test.texts, data.test.embeddings, data.test.owners, strict=True)
    rows = {record.document.id: record.row for record in engine.records()}
    probes = [
        Probe(text=text, embedding=embedding, row=rows[data.documents[owner].id], dense=0.0)
        for text, embedding, owner in asked
    ]
    view = engine.view()
    alone = {"learned": LEARNED_ALONE, "lexical": WORDS_ALONE}
    ranks = ranks_by_fusion(view, probes, [alone.get(mode, view.settings.fusion) for mode in MODES])
    return dict(zip(MODES, ranks, strict=True))


def _compared(ranks: dict[str, Ranks], pairs: list[tuple[str, str]]) -> Result:
    """Quality by way of searching, and differences of H@1 with their standard errors, question by question."""
    differences = {}
    for left, right in pairs:
        each = 100.0 * ((ranks[left] == 1).astype(float) - (ranks[right] == 1))
        error = float(each.std() / np.sqrt(len(each)))
        differences[f"{left} - {right}"] = {"h@1": float(each.mean()), "standard_error": error, "n": len(each)}
    return {"quality": {way: asdict(Quality.of(some)) for way, some in ranks.items()}, "differences": differences}
