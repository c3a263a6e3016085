"""`make bench-newcomers`: are documents that join a trained index found as plain search would find them?

Nine tenths of a set are trained together (`Index.build(train="frozen")`), which rehearses how newcomers are placed. The
rest joins by each way of placing, and questions of old and new documents are answered by the learned vectors, beside
dense search and what training all of them together finds; as the index chose, by fused search too. What is to be
mended is judged by validation questions, which are asked beside test questions and told alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.quality import compared, ranks_by
from benchmarks.index.run import Result, say, tenths
from benchmarks.machine import write
from benchmarks.no_harm import SETS, known_questions
from benchmarks.real import SPANS, Questions, RealData, real_data
from incdsi import Document, Index
from incdsi.engine.protocol import Bench
from incdsi.hyperparameters import SAFE, Hyperparameters
from incdsi.index.draft import Draft, Drafter
from incdsi.index.placement import place_many
from incdsi.index.quality import Probe, learned_ranks, ranks_by_fusion
from incdsi.index.rehearsal import for_newcomers, level_of, safe_at, scale_of, scaled
from incdsi.index.stage_one import stage_one
from incdsi.progress import Stopwatch
from incdsi.text.generators import Spans
from incdsi_lab.anchors import Meaning, PlainHybrid
from incdsi_lab.baselines.protocol import joined as both
from incdsi_lab.embedded import KnownTexts, cache_home
from incdsi_lab.ranking import Ranks, ranks_among

Mask = NDArray[np.bool_]
ONE_IN = 10
SAFELY, UNTOLD, CHOSEN = "safe", "where too few questions tell", "as the index chose"
FUSED, RETRAINED = f"fused, {CHOSEN}", "all trained together"


@dataclass(frozen=True, kw_only=True, eq=False)
class Company:
    """A trained index, those who join it, and the questions by which both are judged."""

    index: Index
    drafts: Sequence[Draft]
    probes: Sequence[Probe]

    def ways(self) -> dict[str, Hyperparameters]:
        engine = self.index.engine
        scale = scale_of(engine.records())
        return {
            "safe, anchor 20": SAFE,
            "safe, as long as trained vectors": scaled(SAFE, scale),
            SAFELY: safe_at(scale, level_of(engine.records())),
            UNTOLD: for_newcomers(engine, [], None),
            CHOSEN: engine.view().settings.hyperparameters,
        }

    def joined(self, how: Hyperparameters) -> Bench:
        """Everybody, once all have joined this way."""
        view = self.index.engine.view()
        bench: Bench = view.bench()
        placed = place_many(bench, self.drafts, replace(view.settings, hyperparameters=how))
        bench.put([one.record for one in placed])
        return bench


def company(
    index: Index, data: RealData, new: Sequence[Document], asked: dict[str, list[str]], by: Questions
) -> Company:
    """Draft the newcomers; nothing of them is stored."""
    rows = {record.document.id: record.row for record in index.engine.records()}
    drafter = Drafter(
        encoder=KnownTexts(data),
        generator=lambda: Spans(limit=SPANS),
        splitter=lambda: "none",
        hold_out=True,
        elsewhere=index.engine.view().elsewhere,
    )
    drafts = drafter.drafts(new, {one.id: asked[one.id] for one in new}, max(rows.values()) + 1, Stopwatch())
    rows |= {draft.document.id: draft.row for draft in drafts}
    questions = zip(by.texts, by.embeddings, by.owners.tolist(), strict=True)
    return Company(
        index=index,
        drafts=drafts,
        probes=[
            Probe(text=text, embedding=embedding, row=rows[data.documents[owner].id], dense=0.0)
            for text, embedding, owner in questions
        ],
    )


def joined(data: RealData, by: Questions, known: int, seed: int, folder: Path) -> tuple[dict[str, Ranks], Mask]:
    """The ranks of these questions' documents by each way, and which questions are of newcomers."""
    order = np.random.default_rng(seed).permutation(len(data.documents))
    new = set(order[: len(order) // ONE_IN].tolist())
    asked = known_questions(data, known)
    old = [document for place, document in enumerate(data.documents) if place not in new]
    say(f"training {len(old):,} documents together")
    index = Index.build(
        old,
        queries={one.id: asked[one.id] for one in old},
        path=folder,
        train="frozen",
        encoder=KnownTexts(data),
        generator=Spans(limit=SPANS),
        progress=tenths("training"),
    )
    ranks = {}
    with index:
        here = company(index, data, [data.documents[place] for place in sorted(new)], asked, by)
        for way, how in here.ways().items():
            say(f"{len(here.drafts):,} join: {way}")
            bench = here.joined(how)
            ranks[way] = learned_ranks(bench, here.probes)
            if way == CHOSEN:
                (ranks[FUSED],) = ranks_by_fusion(bench, here.probes, [index.engine.view().settings.fusion])
    ranks |= ranks_by((Meaning(), PlainHybrid()), data, data.spans, by)
    return ranks, np.isin(by.owners, sorted(new))


def retrained(data: RealData, by: Questions, known: int) -> Ranks:
    """Ranks where nobody joined: all documents trained together, as an index trains them."""
    say(f"training all {len(data.documents):,} documents together")
    model = stage_one(
        data.documents,
        known_questions(data, known),
        encoder=KnownTexts(data),
        generator=Spans(limit=SPANS),
        mode="frozen",
        progress=tenths("training"),
    )
    assert model is not None
    return ranks_among(model.document_vectors, by.embeddings, by.owners)


def told(ranks: dict[str, Ranks]) -> Result:
    """Each way beside dense search and retraining, and fused search beside plain hybrid search."""
    ways = [way for way in ranks if way not in ("dense", "plain hybrid")]
    pairs = [(way, other) for way in ways for other in ("dense", RETRAINED) if way != other]
    return compared(ranks, [*pairs, (FUSED, "plain hybrid")])


def measured(data: RealData, known: int, seeds: Sequence[int]) -> Result:
    """By part of the questions, by old and by new documents, over all draws of who is new."""
    by = both([data.val, data.test])
    is_test = np.arange(len(by)) >= len(data.val)
    together, found = retrained(data, by, known), []
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=cache_home(), prefix="newcomers-") as folder:
            ranks, new = joined(data, by, known, seed, Path(folder) / "index")
        found.append(({**ranks, RETRAINED: together}, new))

    def side(*, test: bool, young: bool) -> Result:
        parts = [{way: some[(is_test == test) & (new == young)] for way, some in ranks.items()} for ranks, new in found]
        return told({way: np.concatenate([part[way] for part in parts]) for way in parts[0]})

    return {
        "validation": {"old": side(test=False, young=False), "new": side(test=False, young=True)},
        "old": side(test=True, young=False),
        "new": side(test=True, young=True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--known", type=int, default=20, metavar="N", help="questions a document at most")
    parser.add_argument("--documents", type=int, metavar="N", help="a drawn set of so many documents; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], metavar="SEED", help="which tenth is new")
    arguments = parser.parse_args()
    for name in arguments.sets:
        data = real_data(name)
        if arguments.documents and arguments.documents < len(data.documents):
            data = data.only(np.random.default_rng(0).permutation(len(data.documents))[: arguments.documents])
        found = measured(data, arguments.known, arguments.seeds)
        old, new = (found["validation"][side]["quality"] for side in ("old", "new"))
        for way in new:
            say(f"validation, {way}: old {old[way]['hits_at_1']:.1f}, new {new[way]['hits_at_1']:.1f}")
        drawn = f"-{arguments.documents}" if arguments.documents else ""
        result = {"documents": len(data.documents), "known": arguments.known, "seeds": arguments.seeds, **found}
        print("written to", write(f"newcomers-{name}{drawn}", {name: result}))


if __name__ == "__main__":
    main()
