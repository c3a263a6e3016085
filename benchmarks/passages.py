"""Long documents kept in passages and kept whole, beside chunks in faiss and BM25: `make bench-passages`.

Nothing is known but the texts. Every question of a passage should find the document that the passage went into, at rank
1: among long documents alone, and among short ones as well, where questions of both are asked. The peers use the same
model through sentence-transformers, and chunks of sentences up to 200 words, each with the title before it, as a user
would: the document of the best chunk is found.
"""

from __future__ import annotations

import argparse
import shelve
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.run import say
from benchmarks.joined import Asked, Ranks, Told, joined
from benchmarks.machine import write
from benchmarks.real import RealData, real_data
from incdsi import Document, Index
from incdsi.index.quality import LEARNED_ALONE, WORDS_ALONE, Probe, ranks_by_fusion
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder, count_tokens, tokens_read
from incdsi.text.encoders.fetch import HUB_NAME, installed_model
from incdsi.text.passages import Sections
from incdsi.text.passages.identity import Splitter
from incdsi.text.sentences import sentence_spans
from incdsi_lab.embedded import cache_home

CHUNK = 200  # words of a peer's chunk
PORTION = 64  # texts embedded before they are kept
MODES = ("fused", "learned", "lexical")
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Floats]


class Remembering:
    """An encoder that embeds no text twice, however many indexes are made of it; `known` are embedded already."""

    def __init__(self, encoder: Encoder, known: Mapping[str, Floats]) -> None:
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint
        self.tokens_read = tokens_read(encoder)
        self.count_tokens = partial(count_tokens, encoder)
        self._embed = remembered(encoder.encode, f"passages-{encoder.fingerprint[:12]}", known)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        return self._embed(texts).reshape(len(texts), self.dimension)

    encode_each = encode


def remembered(embed: Embed, name: str, given: Mapping[str, Floats]) -> Embed:
    """The same function, asked for each text once and kept under a name in the user's cache."""
    kept = shelve.open(str(cache_home() / name))  # noqa: SIM115  (as long as the run)
    known = dict(given)

    def found(texts: Sequence[str]) -> Floats:
        for text in texts:
            if text not in known and (key := sha256(text.encode()).hexdigest()) in kept:
                known[text] = kept[key]
        new = list(dict.fromkeys(text for text in texts if text not in known))
        for start in range(0, len(new), PORTION):
            some = new[start : start + PORTION]
            known.update(zip(some, embed(some), strict=True))
            kept.update((sha256(text.encode()).hexdigest(), known[text]) for text in some)
            kept.sync()
        return np.array([known[text] for text in texts], np.float32)

    return found


def ours(asked: Asked, encoder: Encoder) -> dict[str, Told]:
    """What an index finds with long documents in passages, and whole; and what the passages gain."""
    ranks: dict[str, dict[str, Ranks]] = {}
    splitters: dict[str, Splitter] = {"whole texts": "none", "passages": Sections()}
    for name, splitter in splitters.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            Index.create(Path(folder, "index"), encoder, splitter=splitter) as index,
        ):
            say(f"ours, {name}: adding {len(asked.documents):,} documents")
            index.add_many(asked.documents)
            say(f"ours, {name}: asking {len(asked.questions):,} questions")
            ranks[name] = _ranks(index, asked, encoder)
    whole = ranks["whole texts"]
    return {
        **{f"ours, passages: {mode}": asked.told(some, whole[mode]) for mode, some in ranks["passages"].items()},
        **{f"ours, whole texts: {mode}": asked.told(some) for mode, some in whole.items()},
    }


def _ranks(index: Index, asked: Asked, encoder: Encoder) -> dict[str, Ranks]:
    view, rows = index.engine.view(), {record.document.id: record.row for record in index.engine.records()}
    questions = zip(asked.questions, encoder.encode(asked.questions), asked.right, strict=True)
    probes = [
        Probe(text=text, embedding=embedding, row=rows[asked.documents[place].id], dense=0.0)
        for text, embedding, place in questions
    ]
    found = ranks_by_fusion(view, probes, (view.settings.fusion, LEARNED_ALONE, WORDS_ALONE))
    return dict(zip(MODES, found, strict=True))


def chunks(document: Document) -> list[str]:
    """Sentences up to CHUNK words together, after the title."""
    found: list[list[str]] = [[]]
    for start, end in sentence_spans(document.text):
        words = document.text[start:end].split()
        if found[-1] and len(found[-1]) + len(words) > CHUNK:
            found.append([])
        found[-1] += words
    return [f"{document.title}\n{' '.join(words)}" for words in found if words]


def peers(asked: Asked, embed: Embed) -> dict[str, Told]:
    """What a user would put together finds."""
    import faiss

    pieces = [(place, text) for place, document in enumerate(asked.documents) for text in chunks(document)]
    owners, texts = np.array([place for place, _ in pieces]), [text for _, text in pieces]
    contents = [document.content for document in asked.documents]
    say(f"peers: embedding {len(texts):,} chunks, {len(contents):,} texts and {len(asked.questions):,} questions")
    vectors, questions, whole = embed(texts), embed(asked.questions), embed(contents)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    scores, found = index.search(questions, len(texts))
    dense = np.empty_like(scores)
    np.put_along_axis(dense, found, scores, axis=1)
    by_words = _bm25s(texts, asked.questions)
    both = sum(1.0 / (60 + (-one).argsort(axis=1).argsort(axis=1)) for one in (dense, by_words))
    cases = {
        "sentence-transformers, whole texts": (questions @ whole.T).astype(np.float64),
        "sentence-transformers + chunks + faiss": _best(dense, owners),
        "BM25 (bm25s), whole texts": _bm25s(contents, asked.questions),
        "BM25 (bm25s), chunks": _best(by_words, owners),
        "chunks, faiss and BM25 by reciprocal ranks": _best(np.asarray(both), owners),
    }
    return {name: asked.told(asked.ranks(scores)) for name, scores in cases.items()}


def _bm25s(corpus: Sequence[str], questions: Sequence[str]) -> Doubles:
    import bm25s

    retriever = bm25s.BM25(k1=0.9, b=0.75)
    retriever.index(bm25s.tokenize(list(corpus), show_progress=False), show_progress=False)
    asked = bm25s.tokenize(list(questions), return_ids=False, show_progress=False)
    return np.stack([retriever.get_scores(one) if one else np.zeros(len(corpus)) for one in asked])


def _best(scores: NDArray[Any], owners: NDArray[np.intp]) -> Doubles:
    """Of each document its best chunk; those of one lie together."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return np.maximum.reduceat(scores, starts, axis=1).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60, help="long ones, about so many")
    parser.add_argument("--short", type=int, default=500)
    parser.add_argument("--questions", choices=("val", "test"), default="test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    data = real_data("squad_plus")
    mixed = joined(data.collection, arguments.documents, arguments.short, arguments.questions, arguments.seed)
    encoder, embed = Remembering(data.encoder, _embedded(data)), None if arguments.no_peers else _peers_model()
    facts = {**mixed.facts(), "split": arguments.questions, "seed": arguments.seed}
    file, cases = "passages" if embed else f"passages-{arguments.questions}", dict[str, dict[str, Told]]()
    for name, asked in (("long alone", mixed.long_alone), ("long among short", mixed)):
        cases[name] = {**ours(asked, encoder), **(peers(asked, embed) if embed else {})}
        _show(name, cases[name])
        print(f"written to {write(file, {**facts, 'cases': cases})}")


def _embedded(data: RealData) -> dict[str, Floats]:
    """Everything of the set that is embedded already."""
    contents = zip((one.content for one in data.documents), data.embeddings, strict=True)
    asked = (pair for some in (data.queries, data.spans) for pair in zip(some.texts, some.embeddings, strict=True))
    return {**dict(contents), **dict(asked)}


def _peers_model() -> Embed:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(installed_model() or HUB_NAME), device="cpu")

    def embed(texts: Sequence[str]) -> Floats:
        return np.asarray(model.encode(list(texts), normalize_embeddings=True))

    return remembered(embed, "passages-sentence-transformers", {})


def _show(name: str, found: dict[str, Told]) -> None:
    print(f"{name}, H@1")
    for case, told in found.items():
        parts = [
            f"{part} {one['h1']:5.1f} ± {one['standard_error']:.1f} (n = {one['n']:,})" for part, one in told.items()
        ]
        print(f"  {case:<46} {'   '.join(parts)}")


if __name__ == "__main__":
    main()
