"""`make bench-newcomers`: are documents that join a trained index found as plain search would find them?

Nine tenths of a set are trained together (`Index.build(train="frozen")`), which rehearses how newcomers are placed. The
rest joins by each way of placing, and test questions of old and new documents are answered by the learned vectors,
beside dense search.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.quality import compared
from benchmarks.index.run import Result, say, tenths
from benchmarks.machine import write
from benchmarks.no_harm import SETS, known_questions
from benchmarks.real import SPANS, RealData, real_data
from incdsi import Document, Index
from incdsi.engine.protocol import Bench
from incdsi.hyperparameters import SAFE, Hyperparameters
from incdsi.index.draft import Draft, Drafter
from incdsi.index.placement import place_many
from incdsi.index.quality import Probe, learned_ranks
from incdsi.index.rehearsal import level_of, safe_at, scale_of, scaled
from incdsi.progress import Stopwatch
from incdsi.text.generators import Spans
from incdsi_lab.anchors import Meaning
from incdsi_lab.baselines.protocol import Part
from incdsi_lab.embedded import KnownTexts, cache_home
from incdsi_lab.ranking import Ranks

ONE_IN = 10
SAFELY, CHOSEN = "safe", "as the index chose"


@dataclass(frozen=True, kw_only=True, eq=False)
class Company:
    """A trained index, those who join it, and the questions by which both are judged."""

    index: Index
    drafts: Sequence[Draft]
    probes: Sequence[Probe]

    def ways(self) -> dict[str, Hyperparameters]:
        scale = scale_of(self.index.engine.records())
        return {
            "safe, anchor 20": SAFE,
            "safe, as long as trained vectors": scaled(SAFE, scale),
            SAFELY: safe_at(scale, level_of(self.index.engine.records())),
            CHOSEN: self.index.engine.view().settings.hyperparameters,
        }

    def ranks(self, how: Hyperparameters) -> Ranks:
        """The rank of each question's document once all have joined this way."""
        view = self.index.engine.view()
        bench: Bench = view.bench()
        placed = place_many(bench, self.drafts, replace(view.settings, hyperparameters=how))
        bench.put([one.record for one in placed])
        return learned_ranks(bench, self.probes)


def company(index: Index, data: RealData, new: Sequence[Document], asked: dict[str, list[str]]) -> Company:
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
    questions = zip(data.test.texts, data.test.embeddings, data.test.owners.tolist(), strict=True)
    return Company(
        index=index,
        drafts=drafts,
        probes=[
            Probe(text=text, embedding=embedding, row=rows[data.documents[owner].id], dense=0.0)
            for text, embedding, owner in questions
        ],
    )


def joined(data: RealData, known: int, seed: int, folder: Path) -> tuple[dict[str, Ranks], NDArray[np.bool_]]:
    """The ranks by each way, and which questions are of newcomers."""
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
    with index:
        here = company(index, data, [data.documents[place] for place in sorted(new)], asked)
        ranks = {}
        for way, how in here.ways().items():
            say(f"{len(here.drafts):,} join: {way}")
            ranks[way] = here.ranks(how)
    dense = Meaning()
    dense.fit(Part(documents=tuple(data.documents), embeddings=data.embeddings, queries=data.spans, held_out=data.val))
    return {**ranks, "dense": dense.ranks(data.test)}, np.isin(data.test.owners, sorted(new))


def told(ranks: dict[str, Ranks]) -> Result:
    """Each way beside dense search."""
    return compared(ranks, [(way, "dense") for way in ranks if way != "dense"])


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
        found = []
        for seed in arguments.seeds:
            with tempfile.TemporaryDirectory(dir=cache_home(), prefix="newcomers-") as folder:
                found.append(joined(data, arguments.known, seed, Path(folder) / "index"))
        sides = {
            side: told(
                {
                    way: np.concatenate([ranks[way][new == (side == "new")] for ranks, new in found])
                    for way in found[0][0]
                }
            )
            for side in ("old", "new")
        }
        for way, quality in sides["new"]["quality"].items():
            say(f"{way}: old {sides['old']['quality'][way]['hits_at_1']}, new {quality['hits_at_1']}")
        drawn = f"-{arguments.documents}" if arguments.documents else ""
        result = {"documents": len(data.documents), "known": arguments.known, "seeds": arguments.seeds, **sides}
        print("written to", write(f"newcomers-{name}{drawn}", {name: result}))


if __name__ == "__main__":
    main()
