"""`make bench-clicks`: what learning from a log of clicks is worth when some of them are wrong.

An index of squad_plus documents that nobody has asked anything yet learns from a made log: the training questions, each
asked a few times. In `stray` logs one click in ten goes to the best wrong document; in `misled` ones all clicks of one
question in ten do. Questions that are in no log, of training and validation, tell what each threshold makes of it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.run import Result, say, tenths
from benchmarks.machine import write
from benchmarks.real import SPANS, RealData, real_data
from incdsi import Index
from incdsi.clicks import Click, Outcome
from incdsi.index.quality import LEARNED_ALONE, WORDS_ALONE, Probe, ranks_by_fusion
from incdsi.text.generators import Spans
from incdsi_lab.embedded import KnownTexts, cache_home

Ranks = NDArray[np.intp]
Question = tuple[str, NDArray[np.float32], int]  # a text, its embedding, the place of its document
Asked = list[tuple[str, str, str]]  # a question, its document, the best other one
MODES = ("learned", "lexical", "fused")
WRONG = 0.1
A_DOCUMENT = 3  # training questions of each document in the log
THRESHOLDS = ((1, 0.6), (2, 0.6), (3, 0.6))


def clicks(asked: Asked, wrong: Callable[[np.random.Generator], Callable[[], bool]]) -> list[Click]:
    """Each question is asked once or more often, twice as many once as twice; `wrong` says which clicks go astray."""
    rng = np.random.default_rng(0)
    found = []
    for question, right, other in asked:
        goes_wrong = wrong(rng)
        found += [Click(question, other if goes_wrong() else right) for _ in range(int(rng.geometric(0.5)))]
    return found


def stray(rng: np.random.Generator) -> Callable[[], bool]:
    return lambda: rng.random() < WRONG


def misled(rng: np.random.Generator) -> Callable[[], bool]:
    always = rng.random() < WRONG
    return lambda: always


def clean(rng: np.random.Generator) -> Callable[[], bool]:
    return lambda: False


LOGS = {"clean": clean, "stray": stray, "misled": misled}


class Trial:
    """An index without questions, and copies of it that learn."""

    def __init__(self, data: RealData, folder: Path, documents: int) -> None:
        self.data, self.folder = data, folder
        chosen = np.sort(np.random.default_rng(0).permutation(len(data.documents))[:documents]).tolist()
        self.encoder = KnownTexts(data)
        Index.create(folder / "start", data.encoder, tuning=False).close()
        with self._open("start") as index:
            index.add_many([data.documents[place] for place in chosen], progress=tenths("filling"))
            say("the best wrong document of each training question")
            self.asked = self._asked(index, set(chosen))
            self.before = self._ranks(index)

    def learnt(self, log: str, least: int, share: float) -> Result:
        say(f"{log}: at least {least} clicks, {share:.0%} of a question's")
        shutil.copytree(self.folder / "start", self.folder / "copy")
        with self._open("copy") as index:
            report = index.learn(clicks(self.asked, LOGS[log]), least=least, share=share)
            ranks = self._ranks(index)
        shutil.rmtree(self.folder / "copy")
        right = {(question, document) for question, document, _ in self.asked}
        taken = [lesson for lesson in report.lessons if lesson.outcome is Outcome.LEARNED]
        return {
            "log": log,
            "least_clicks": least,
            "least_share": share,
            "lessons": len(taken),
            "wrong": sum((lesson.query, lesson.document_id) not in right for lesson in taken),
            **{mode: self._gain(mode, ranks) for mode in MODES},
        }

    def _gain(self, mode: str, ranks: dict[str, Ranks]) -> Result:
        each = 100.0 * ((ranks[mode] == 1).astype(float) - (self.before[mode] == 1))
        return {
            "h@1": 100.0 * float((ranks[mode] == 1).mean()),
            "gain": float(each.mean()),
            "standard_error": float(each.std() / np.sqrt(len(each))),
            "n": len(each),
        }

    def _asked(self, index: Index, chosen: set[int]) -> Asked:
        found: Asked = []
        logged, self.apart = self._split(chosen)
        for text, _, owner in logged:
            right, text = self.data.documents[owner].id, " ".join(text.split())
            hits = index.search(text, 2)
            found.append((text, right, next(hit.document_id for hit in hits if hit.document_id != right)))
        return found

    def _split(self, chosen: set[int]) -> tuple[list[Question], list[Question]]:
        """The training questions that are in the log, and those apart from it with the validation ones."""
        logged: list[Question] = []
        apart: list[Question] = []
        seen = Counter[int]()
        for part in (self.data.train, self.data.val):
            for one in zip(part.texts, part.embeddings, part.owners.tolist(), strict=True):
                owner = one[2]
                if owner in chosen:
                    seen[owner] += part is self.data.train
                    in_log = part is self.data.train and seen[owner] <= A_DOCUMENT
                    (logged if in_log else apart).append(one)
        return logged, apart

    def _ranks(self, index: Index) -> dict[str, Ranks]:
        rows = {record.document.id: record.row for record in index.engine.records()}
        probes = [
            Probe(text=text, embedding=embedding, row=rows[self.data.documents[owner].id], dense=0.0)
            for text, embedding, owner in self.apart
        ]
        view = index.engine.view()
        found = ranks_by_fusion(view, probes, (LEARNED_ALONE, WORDS_ALONE, view.settings.fusion))
        return dict(zip(MODES, found, strict=True))

    def _open(self, name: str) -> Index:
        return Index.open(self.folder / name, self.encoder, generator=Spans(limit=SPANS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=400, help="so many of squad_plus, chosen at random")
    documents = parser.parse_args().documents
    with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
        trial = Trial(real_data("squad_plus"), Path(folder), documents)
        wanted = [("clean", 1, 0.6), ("stray", 1, 0.01)]
        wanted += [(log, *least) for log in ("stray", "misled") for least in THRESHOLDS]
        found = [trial.learnt(*one) for one in wanted]
    before = {mode: 100.0 * float((ranks == 1).mean()) for mode, ranks in trial.before.items()}
    print(f"{documents} documents, {len(trial.asked)} questions in the log; H@1 before", before)
    for one in found:
        gains = "  ".join(
            f"{m} {one[m]['h@1']:.2f} ({one[m]['gain']:+.2f} ± {one[m]['standard_error']:.2f})" for m in MODES
        )
        print(
            f"{one['log']:7} >= {one['least_clicks']} clicks, {one['least_share']:.0%}: {one['lessons']:5} learned,"
            f" {one['wrong']:4} wrong  {gains}  n = {one['fused']['n']}"
        )
    print(write("clicks", {"documents": documents, "questions": len(trial.asked), "before": before, "trials": found}))


if __name__ == "__main__":
    main()
