"""Long documents kept in passages and kept whole, beside chunks in faiss and BM25: `make bench-passages`.

Documents of 2,000 words or more are squad_plus passages of one title, joined; titles that make three or more of them
are drawn, so that documents of one title compete. Nothing is known but the texts. Every test question of a passage
should find the document it went into, at rank 1. The peers use the same model through sentence-transformers, and chunks
of sentences up to 200 words, each with the title before it, as a user would: the document of the best chunk is found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import write
from benchmarks.progress import Countdown
from incdsi import Document, Index
from incdsi.text.encoders import load_encoder
from incdsi.text.encoders.fetch import HUB_NAME, installed_model
from incdsi.text.passages import Sections
from incdsi.text.sentences import sentence_spans
from incdsi_lab.collection import Collection
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

LEAST_WORDS = 2000  # of a document
LEAST_PARTS = 3  # documents of one title
CHUNK = 200  # words of a peer's chunk
Ranks = NDArray[np.intp]


def long_documents(collection: Collection, most: int, seed: int) -> tuple[list[Document], dict[str, str]]:
    """Documents of whole titles, about so many, and which of them each passage went into."""
    titles: dict[tuple[str, str], list[Document]] = {}
    for one in collection.documents:
        titles.setdefault((one.id.split("-")[0], one.title), []).append(one)
    parted = [list(_parts(passages)) for (_, title), passages in titles.items() if title]
    several = [parts for parts in parted if len(parts) >= LEAST_PARTS]
    documents: list[Document] = []
    owners: dict[str, str] = {}
    for place in np.random.default_rng(seed).permutation(len(several)).tolist():
        for number, part in enumerate(several[place] if len(documents) < most else (), start=1):
            id = f"{part[0].title} {number}"
            documents.append(Document(id=id, title=part[0].title, text="\n\n".join(one.text for one in part)))
            owners.update((one.id, id) for one in part)
    return documents, owners


def _parts(passages: Sequence[Document]) -> Iterator[list[Document]]:
    """Passages in order, LEAST_WORDS words or more at a time; what is left over at the end is left out."""
    part: list[Document] = []
    for one in passages:
        part.append(one)
        if sum(len(some.text.split()) for some in part) >= LEAST_WORDS:
            yield part
            part = []


def chunks(document: Document) -> list[str]:
    """Sentences up to CHUNK words together, after the title."""
    found: list[list[str]] = [[]]
    for start, end in sentence_spans(document.text):
        words = document.text[start:end].split()
        if found[-1] and len(found[-1]) + len(words) > CHUNK:
            found.append([])
        found[-1] += words
    return [f"{document.title}\n{' '.join(words)}" for words in found if words]


def peers(documents: Sequence[Document], questions: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Scores (questions, documents) by what a user would put together."""
    import bm25s
    import faiss
    from sentence_transformers import SentenceTransformer

    pieces = [(place, text) for place, document in enumerate(documents) for text in chunks(document)]
    owners, texts = np.array([place for place, _ in pieces]), [text for _, text in pieces]
    model = SentenceTransformer(str(installed_model() or HUB_NAME), device="cpu")
    vectors = model.encode(texts, normalize_embeddings=True)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    scores, found = index.search(model.encode(list(questions), normalize_embeddings=True), len(texts))
    dense = np.empty_like(scores)
    np.put_along_axis(dense, found, scores, axis=1)

    def words(corpus: Sequence[str]) -> NDArray[np.float64]:
        retriever = bm25s.BM25(k1=0.9, b=0.75)
        retriever.index(bm25s.tokenize(list(corpus), show_progress=False), show_progress=False)
        asked = bm25s.tokenize(list(questions), return_ids=False, show_progress=False)
        return np.stack([retriever.get_scores(one) if one else np.zeros(len(corpus)) for one in asked])

    by_words = words(texts)
    ranks = [(-one).argsort(axis=1).argsort(axis=1) for one in (dense, by_words)]
    both = sum(1.0 / (60 + rank) for rank in ranks)
    whole = model.encode([document.content for document in documents], normalize_embeddings=True)
    return {
        "sentence-transformers, whole texts": model.encode(list(questions), normalize_embeddings=True) @ whole.T,
        "sentence-transformers + chunks + faiss": _best(dense, owners),
        "BM25 (bm25s), whole texts": words([document.content for document in documents]),
        "BM25 (bm25s), chunks": _best(by_words, owners),
        "chunks, faiss and BM25 by reciprocal ranks": _best(np.asarray(both), owners),
    }


def _best(scores: NDArray[Any], owners: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each document its best chunk; those of one lie together."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return np.maximum.reduceat(scores, starts, axis=1).astype(np.float64)


def ranks_of(scores: NDArray[Any], right: Sequence[int]) -> Ranks:
    """A tie counts against the right document."""
    own = scores[np.arange(len(scores)), list(right)][:, None]
    return np.count_nonzero(scores >= own, axis=1)


def told(ranks: Ranks, **more: float) -> dict[str, float]:
    right = float(np.mean(ranks == 1))
    error = 100 * float(np.sqrt(right * (1 - right) / len(ranks)))
    return {"h1": 100 * right, "standard_error": error, "h10": 100 * float(np.mean(ranks <= 10)), **more}


def ours(
    documents: Sequence[Document], questions: Sequence[str], right: Sequence[str], show: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """What an index finds with long documents in passages, and whole."""
    encoder, results = load_encoder(), dict[str, dict[str, float]]()
    for name, splitter in (("passages", Sections()), ("whole texts", "none")):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.process_time()
            with Index.create(Path(folder, "index"), encoder, splitter=splitter) as index:
                for document in documents:
                    index.add(document)
                    show(f"ours, {name}")
                seconds = time.process_time() - begin
                for mode in ("fused", "learned", "lexical"):
                    found = [[hit.document_id for hit in index.search(text, 11, mode=mode)] for text in questions]
                    ranks = [ids.index(id) + 1 if id in ids else 99 for ids, id in zip(found, right, strict=True)]
                    results[f"ours, {name}: {mode}"] = told(np.array(ranks), add_cpu_seconds=seconds)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--questions", choices=("val", "test"), default="test")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    collection = read_jsonl(data_home() / "squad_plus", "squad_plus")
    documents, owners = long_documents(collection, arguments.documents, arguments.seed)
    judged = [one for one in collection.queries if one.split == arguments.questions and one.document_id in owners]
    questions, right = [one.text for one in judged], [owners[one.document_id] for one in judged]
    countdown, done = Countdown(2 * len(documents), "documents added"), 0

    def show(note: str) -> None:
        nonlocal done
        done += 1
        countdown.show(done, note)

    results = ours(documents, questions, right, show)
    countdown.end()
    places = {document.id: place for place, document in enumerate(documents)}
    for name, scores in peers(documents, questions).items():
        results[name] = told(ranks_of(scores, [places[id] for id in right]))
    words = [len(document.text.split()) for document in documents]
    print(f"{len(documents)} documents of {min(words):,} to {max(words):,} words, {len(questions):,} questions")
    for name, case in results.items():
        print(f"{name:<46} H@1 {case['h1']:5.1f} ± {case['standard_error']:.1f}   H@10 {case['h10']:5.1f}")
    facts = {
        "documents": len(documents),
        "words": sum(words),
        "questions": len(questions),
        "split": arguments.questions,
    }
    print(f"written to {write('passages', {**facts, 'cases': results})}")


if __name__ == "__main__":
    main()
