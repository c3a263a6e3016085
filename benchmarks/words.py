"""`make bench-words`: what stemming is worth, and what it costs.

BM25 alone and fused, each with the words as they are (none), with the light stemmer an index had before, and with
Snowball's English; bm25s with the same Snowball stemmer beside them.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.adding import fill
from benchmarks.index.run import Result, say
from benchmarks.machine import write
from benchmarks.real import RealData, real_data
from incdsi.engine.local import LocalEngine
from incdsi.engine.protocol import View
from incdsi.engine.words import OwnWords
from incdsi.index.quality import WORDS_ALONE, Probe, ranks_by_fusion
from incdsi.info import Quality
from incdsi.lexical import LexicalIndex
from incdsi.lexical.language import Language, find_language
from incdsi.lexical.words import term_key
from incdsi.records import Record
from incdsi_lab.collection import Collection
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home
from incdsi_lab.embedded import cache_home

Ranks = NDArray[np.intp]
SETS = ("squad_plus", "nq_passages")
SPLITS = ("val", "test")
ROUNDS, ADDED = 3, 10_000


class Light(Language):
    """English as it was stemmed before Snowball: plural, -ing, -ed and a final -e cut off."""

    def __init__(self) -> None:
        super().__init__("english")
        self.name = "light"

    def _stemmed(self, word: str) -> str:
        word = _singular(word)
        if len(word) > 5 and word.endswith("ing"):
            return _without_doubling(word[:-3])
        if len(word) > 4 and word.endswith("ed"):
            return _without_doubling(word[:-2])
        return word[:-1] if len(word) > 4 and word.endswith("e") else word


def _singular(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us")):
        return word
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes", "zes")) else word[:-1]


def _without_doubling(word: str) -> str:
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled else word.removesuffix("e")


WAYS: dict[str, Callable[[], Language]] = {
    "none": lambda: find_language("none"),
    "light": Light,
    "english": lambda: find_language("english"),
}


def indexed(language: Language, slots: Sequence[int], texts: Sequence[str]) -> LexicalIndex:
    index = LexicalIndex()
    index.language = language
    index.add_many(slots, texts)
    return index


def own_words(language: Language, records: Sequence[Record]) -> OwnWords:
    own = OwnWords("english")
    own._index.language = language
    own.add([record.words for record in records])
    return own


def cost(collection: Collection) -> Result:
    """CPU seconds to add documents with each stemmer, by turns; nothing is remembered from the turn before."""
    texts = [document.content for document in collection.documents[:ADDED]]
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name in WAYS:
            language = Light() if name == "light" else Language(name)
            term_key.cache_clear()
            gc.collect()
            begin = time.process_time()
            indexed(language, range(len(texts)), texts)
            seconds[name].append(time.process_time() - begin)
    median = {name: float(np.median(some)) for name, some in seconds.items()}
    return {
        "documents": len(texts),
        "rounds": ROUNDS,
        "cpu_seconds": median,
        "english / light": median["english"] / median["light"],
    }


def by_words(collection: Collection) -> Result:
    """BM25 of the texts alone."""
    texts = [document.content for document in collection.documents]
    found: Result = {}
    ranks: dict[str, dict[str, Ranks]] = {}
    for name, make in WAYS.items():
        say(f"{collection.name}: BM25, {name}")
        scores = partial(indexed(make(), range(len(texts)), texts).scores, size=len(texts))
        ranks[name] = {split: _ranks(collection, split, scores) for split in SPLITS}
    ranks["bm25s with PyStemmer"] = _peer(collection, texts)
    for split in SPLITS:
        found[split] = _told({name: some[split] for name, some in ranks.items()})
    return found


def _peer(collection: Collection, texts: Sequence[str]) -> dict[str, Ranks]:
    import bm25s
    import Stemmer

    say(f"{collection.name}: bm25s")
    stemmer, options = Stemmer.Stemmer("english"), {"show_progress": False}
    peer = bm25s.BM25(k1=0.6, b=0.75)
    peer.index(bm25s.tokenize(list(texts), stemmer=stemmer, **options), **options)
    known = peer.vocab_dict

    def scores(text: str) -> NDArray[np.float32]:
        words = bm25s.tokenize([text], stemmer=stemmer, return_ids=False, **options)[0]
        words = [word for word in words if word in known]
        return np.asarray(peer.get_scores(words)) if words else np.zeros(len(texts), np.float32)

    return {split: _ranks(collection, split, scores) for split in SPLITS}


def _ranks(collection: Collection, split: str, scores: Callable[[str], NDArray[np.float32]]) -> Ranks:
    """The rank of each question's document; among equals, the last."""
    ranks = []
    for query, owner in zip(collection.queries, collection.owners, strict=True):
        if query.split == split:
            found = scores(query.text)
            ranks.append(np.count_nonzero(found >= found[owner]))
    return np.array(ranks, dtype=np.intp)


def fused(data: RealData, folder: Path, documents: int) -> Result:
    """An index that was asked the training questions; the words alone and the fusion, with each stemmer."""
    chosen = np.random.default_rng(0).permutation(len(data.documents))[:documents].tolist()
    index, _ = fill(folder, data, chosen, tuning=False)
    with index:
        assert isinstance(index.engine, LocalEngine)
        by_row = {record.row: record for record in index.engine.records()}
        live = index.engine.live.bench()  # without empty slots: words are added to one after another
        records = [by_row[row] for row in live.rows.tolist()]
        rows = {record.document.id: record.row for record in records}
        found: Result = {"documents": len(records), **{split: {} for split in SPLITS}}
        ranks: dict[str, dict[str, Any]] = {}
        for name, make in WAYS.items():
            live.words = own_words(make(), records)
            for split in SPLITS:
                say(f"{data.collection.name}: fused, {name}, {split}")
                ranks.setdefault(split, {})[name] = _by_fusion(live.view(), data, split, rows)
        for split, some in ranks.items():
            for place, mode in enumerate(("lexical", "fused")):
                found[split][mode] = _told({name: both[place] for name, both in some.items()})
    return found


def _by_fusion(view: View, data: RealData, split: str, rows: dict[str, int]) -> NDArray[np.intp]:
    part = data.part(split)  # type: ignore[arg-type]
    asked = zip(part.texts, part.embeddings, part.owners, strict=True)
    probes = [
        Probe(text=text, embedding=embedding, row=rows[data.documents[owner].id], dense=0.0)
        for text, embedding, owner in asked
        if data.documents[owner].id in rows
    ]
    return ranks_by_fusion(view, probes, (WORDS_ALONE, view.settings.fusion))


def _told(ranks: dict[str, Ranks]) -> Result:
    """Quality of each, and what Snowball gains over each other in H@1, question by question."""
    gains = {}
    for other in (name for name in ranks if name != "english"):
        each = 100.0 * ((ranks["english"] == 1).astype(float) - (ranks[other] == 1))
        gains[f"english - {other}"] = {"h@1": each.mean(), "standard_error": each.std() / np.sqrt(len(each))}
    return {"quality": {name: asdict(Quality.of(some)) for name, some in ranks.items()}, "gains": gains}


def _show(name: str, what: str, found: Result) -> None:
    for way, quality in found["quality"].items():
        print(
            f"{name:12} {what:14} {way:22} H@1 {quality['hits_at_1']:5.2f}  H@10 {quality['hits_at_10']:5.2f}", end=""
        )
        gain = found["gains"].get(f"english - {way}")
        print(
            f"  english gains {gain['h@1']:+.2f} ± {gain['standard_error']:.2f}" if gain else "",
            f" n = {quality['queries']}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fused", nargs="*", default=SETS, help="sets to make an index of, which takes embeddings")
    parser.add_argument("--documents", type=int, default=10**6, help="at most so many in an index, chosen at random")
    arguments = parser.parse_args()
    results: Result = {}
    for name in SETS:
        collection = read_jsonl(data_home() / name, name)
        results[name] = {"cost": cost(collection), "texts alone": by_words(collection)}
        print(f"{name}: CPU seconds to add {results[name]['cost']}")
        for split in SPLITS:
            _show(name, f"texts {split}", results[name]["texts alone"][split])
        if name in arguments.fused:
            with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
                results[name]["index"] = fused(real_data(name), Path(folder) / "index", arguments.documents)
            for split in SPLITS:
                for mode, found in results[name]["index"][split].items():
                    _show(name, f"{mode} {split}", found)
    print(write("words", {"sets": results}))


if __name__ == "__main__":
    main()
