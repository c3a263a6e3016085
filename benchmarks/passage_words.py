"""BM25 by the best passage: what counts, and how long a passage is: `python -m benchmarks.passage_words`.

Long documents alone and among short ones, validation questions, words alone. One way is the product's own and is run
through its index; the others are written out here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

from benchmarks.index.run import say
from benchmarks.joined import Asked, Ranks, Told, joined
from benchmarks.machine import write
from incdsi.engine.words import OwnWords
from incdsi.lexical import tokenize
from incdsi.records import passage_text
from incdsi.text.encoders import Encoder, count_tokens, load_encoder
from incdsi.text.passages import Sections
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

Doubles = NDArray[np.float64]
K1, B = 0.6, 0.75
MIXES = ((80, 0), (80, 1500), (30, 4000), (80, 500))  # long documents, short ones


class Words:
    """BM25 of groups of texts with each part of its formula given; the best of a group counts."""

    def __init__(self, groups: Sequence[Sequence[str]], questions: Sequence[str]) -> None:
        self._places: dict[str, int] = {}
        self.sizes = np.array([len(some) for some in groups])
        self.owners = np.repeat(np.arange(len(groups)), self.sizes)
        self.counts, self.asked = self._matrix([text for some in groups for text in some]), self._matrix(questions)
        self.counts.resize(self.counts.shape[0], len(self._places))
        self.lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        self.starts = np.cumsum(self.sizes) - self.sizes

    def _matrix(self, texts: Sequence[str]) -> csr_matrix:
        found = [
            (row, self._places.setdefault(term, len(self._places)), count)
            for row, text in enumerate(texts)
            for term, count in Counter(tokenize(text)).items()
        ]
        rows, columns, counts = zip(*found, strict=True)
        return csr_matrix((np.array(counts, float), (rows, columns)), shape=(len(texts), len(self._places)))

    def rarity(self, *, of_documents: bool) -> Doubles:
        """The weight of each word."""
        rows = self.owners if of_documents else np.arange(len(self.owners))
        pairs = np.unique(np.stack([rows[self.counts.nonzero()[0]], self.counts.nonzero()[1]]), axis=1)
        frequency, all_of_them = np.bincount(pairs[1], minlength=len(self._places)), rows[-1] + 1
        return np.asarray(np.log1p((all_of_them - frequency + 0.5) / (frequency + 0.5)))

    def norms(self, mean: float, *, at_least_mean: bool = False) -> Doubles:
        """Of each text; of one of several perhaps at least that of a mean document."""
        shares = self.lengths / mean
        if at_least_mean:
            shares = np.where(self.sizes[self.owners] > 1, np.maximum(shares, 1.0), shares)
        return np.asarray(K1 * (1 - B + B * shares))

    def mean_of_documents(self) -> float:
        return float(np.mean(np.add.reduceat(self.lengths, self.starts) // self.sizes))

    def scores(self, norms: Doubles, rarity: Doubles) -> Doubles:
        """(questions, groups)"""
        weighed = self.counts.copy()
        rows, columns = np.repeat(np.arange(len(norms)), np.diff(weighed.indptr)), weighed.indices
        weighed.data = weighed.data / (weighed.data + norms[rows]) * rarity[columns]
        return np.asarray(np.maximum.reduceat((self.asked @ weighed.T).toarray(), self.starts, axis=1))

    def limits(self, rarity: Doubles) -> Doubles:
        """What no document reaches, (questions, 1)."""
        return np.asarray(self.asked @ rarity)[:, None] + 1e-9


def compared(asked: Asked, encoder: Encoder) -> dict[str, Told]:
    """Ranks by every way, and what each gains over whole texts."""
    sections = Sections()
    cut = [
        [passage_text(one, piece) for piece in sections.pieces(one.text, partial(count_tokens, encoder))]
        for one in asked.documents[: asked.long]
    ]
    groups = [*cut, *([one.content] for one in asked.documents[asked.long :])]
    whole = Words([[one.content] for one in asked.documents], asked.questions)
    parts = Words(groups, asked.questions)
    of_texts, of_documents = parts.rarity(of_documents=False), parts.rarity(of_documents=True)
    rare = whole.rarity(of_documents=True)
    as_whole = whole.scores(whole.norms(float(whole.lengths.mean())), rare)
    plain = parts.norms(float(parts.lengths.mean()))
    by_text = parts.scores(plain, of_texts)
    mean = parts.mean_of_documents()
    share = by_text / parts.limits(of_texts)
    ways = {
        "each passage counted as a document": by_text,
        "its number of passages held against it": share - 0.02 * np.log(parts.sizes),
        "averaged with whole texts": (share + as_whole / whole.limits(rare)) / 2,
        "lengths by documents": parts.scores(parts.norms(mean), of_texts),
        "no passage shorter than a mean document": parts.scores(parts.norms(mean, at_least_mean=True), of_texts),
        "words counted by documents": parts.scores(parts.norms(mean), of_documents),
    }
    before = asked.ranks(as_whole)
    told = {"whole texts": asked.told(before)}
    told |= {name: asked.told(asked.ranks(scores), before) for name, scores in ways.items()}
    return {**told, "both: the product": asked.told(_product(asked, groups), before)}


def _product(asked: Asked, groups: Sequence[Sequence[str]]) -> Ranks:
    words = OwnWords("english")
    words.add(groups)
    found = (words.scores_and_limit(question, len(groups))[0] for question in asked.questions)
    return asked.ranks(np.stack([words.units.best(one, len(groups)) for one in found]).astype(np.float64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", choices=("val", "test"), default="val")
    parser.add_argument("--mixes", type=int, default=len(MIXES), help="the first so many")
    arguments = parser.parse_args()
    collection, encoder = read_jsonl(data_home() / "squad_plus", "squad_plus"), load_encoder()
    cases = []
    for seed, (long, short) in enumerate(MIXES[: arguments.mixes]):
        asked = joined(collection, long, short, arguments.questions, seed)
        say(f"{asked.long} long documents, {short:,} short ones, {len(asked.questions):,} questions")
        found = compared(asked, encoder)
        for name, told in found.items():
            parts = [
                f"{part} {one['h1']:5.1f} ({one.get('gain', 0):+.1f} ± {one.get('gain_error', 0):.1f})"
                for part, one in told.items()
            ]
            print(f"  {name:<42} {'   '.join(parts)}")
        cases.append({**asked.facts(), "seed": seed, "ways": found})
    print(f"written to {write('passage-words', {'split': arguments.questions, 'mixes': cases})}")


if __name__ == "__main__":
    main()
