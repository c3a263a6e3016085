"""Sentences embedded with their document against each by a pass of its own: time, and what is found.

    python -m benchmarks.one_pass [--set squad_plus] [--documents 1500] [--seed 0] [--known]

Everything is embedded once, timed as CPU time; with --known, sentences and questions come from the user's cache, where
`make bench-index` leaves them, and only the texts' own passes are computed: more documents in less time, untimed.
Then two indexes take the same drawn documents with their train
questions, one with each kind of embeddings, and the validation questions of these documents are asked of both. The peer
is sentence-transformers' own embedding of the texts alone. 10 minutes on two quiet cores with 1,500 documents.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.run import Result, tenths
from benchmarks.machine import machine, write
from benchmarks.real import real_data
from incdsi import Document, Index
from incdsi.progress import Progress
from incdsi.text.encoders import fetch, load_encoder
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.generators import Spans
from incdsi.text.one_pass import places_of
from incdsi_lab.collection import Judged
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

Floats = NDArray[np.float32]
MODES = ("learned", "lexical", "fused")
WAYS = {"a pass a sentence": False, "one pass": True}
PORTION = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="squad_plus", help="a folder below the data's home")
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--known", action="store_true", help="take sentences and questions from the user's cache")
    parser.add_argument("--no-peer", action="store_true", help="leave sentence-transformers out (it brings torch)")
    given = parser.parse_args()
    documents, asked, questions = drawn(given.set, given.documents, given.seed)
    print(f"{given.set}: {len(documents)} documents, {len(questions)} validation questions", flush=True)
    before = real_data(given.set).by_text if given.known else {}
    known = Known.of(documents, asked, [question.text for question in questions], before)
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            way: filled(Path(folder) / str(one_pass), way, one_pass, known, documents, asked, questions)
            for way, one_pass in WAYS.items()
        }
    found = {way: row.pop("found") for way, row in rows.items()}
    result = {
        "set": given.set,
        "documents": len(documents),
        "seed": given.seed,
        "encoding": {} if given.known else known.told,
        "ways": rows,
        "h@1, one pass less the other": {
            mode: paired(found["one pass"][mode], found["a pass a sentence"][mode]) for mode in MODES
        },
        "peer_ms": None if given.no_peer else peer_ms(documents),
    }
    path = write(f"one-pass-{given.set}{'-known' if given.known else ''}", result)
    print(json.dumps({**result, "machine": machine()}, indent=1))
    print(f"written: {path.name}")


class Known:
    """The true encoder's embeddings, made once; it tells those of sentences as their document's pass gave them."""

    has_states = True

    def __init__(self, encoder: OnnxEncoder) -> None:
        self._encoder = encoder
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint
        self._vectors: dict[str, Floats] = {}
        self._parts: dict[str, dict[tuple[int, int], Floats | None]] = {}
        self.told: dict[str, float] = {}

    @classmethod
    def of(
        cls,
        documents: list[Document],
        asked: dict[str, list[str]],
        questions: list[str],
        before: dict[str, dict[str, Floats]],
    ) -> Known:
        encoder = load_encoder()
        assert isinstance(encoder, OnnxEncoder)
        known = cls(encoder)
        for vectors in before.values():
            known._vectors.update(vectors)
        spans = {document.id: Spans()(document) for document in documents}
        places = [places_of(document.content, spans[document.id]) for document in documents]
        alone = [text for document in documents for text in spans[document.id]]
        left = [t for doc, some in zip(documents, places, strict=True) for t in spans[doc.id] if t not in some]
        begin = time.process_time()
        for start in range(0, len(documents), PORTION):
            part = slice(start, start + PORTION)
            contents = [document.content for document in documents[part]]
            anchors, parts = encoder.encode_with_parts(contents, [list(some.values()) for some in places[part]])
            for content, anchor, some, own in zip(contents, anchors, places[part], parts, strict=True):
                known._vectors[content] = anchor
                known._parts[content] = dict(zip(some.values(), own, strict=True))
            print(f"  texts: {start + len(contents)} of {len(documents)}", flush=True)
        count = len(documents)
        known.told["texts_ms"] = 1e3 * (time.process_time() - begin) / count
        known.told["sentences_ms"] = known._encoded("sentences", alone) / count
        known.told["spans_a_document"] = len(alone) / count
        known.told["of_which_pooled"] = 1 - len(left) / len(alone)
        characters = sum(map(len, left)) / sum(map(len, alone))
        known.told["one_pass_sentences_ms"] = known.told["sentences_ms"] * characters  # those that are left
        known.told["questions_ms"] = known._encoded("questions", [t for some in asked.values() for t in some]) / count
        known._encoded("validation questions", questions)
        return known

    def _encoded(self, what: str, texts: list[str]) -> float:
        """Embed and remember; CPU milliseconds."""
        begin = time.process_time()
        told, texts = tenths(f"  {what}"), [text for text in texts if text not in self._vectors]
        for start in range(0, len(texts), 8 * PORTION):
            some = texts[start : start + 8 * PORTION]
            self._vectors.update(zip(some, self._encoder.encode(some), strict=True))
            told(start + len(some), len(texts))
        return 1e3 * (time.process_time() - begin)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        new = [text for text in texts if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._vectors[t] for t in texts]) if texts else np.empty((0, self.dimension), np.float32)

    def encode_with_parts(
        self, texts: Sequence[str], parts: Sequence[Sequence[tuple[int, int]]]
    ) -> tuple[Floats, list[list[Floats | None]]]:
        if any(part not in self._parts[text] for text, some in zip(texts, parts, strict=True) for part in some):
            return self._encoder.encode_with_parts(texts, parts)
        found = [[self._parts[text][part] for part in some] for text, some in zip(texts, parts, strict=True)]
        return self.encode(texts), found


def drawn(name: str, count: int, seed: int) -> tuple[list[Document], dict[str, list[str]], list[Judged]]:
    """Some documents, their train questions, and their validation questions."""
    whole = read_jsonl(data_home() / name, name)
    places = np.random.default_rng(seed).permutation(len(whole.documents))[:count]
    documents = [whole.documents[place] for place in places]
    asked: dict[str, list[str]] = {document.id: [] for document in documents}
    questions = []
    for query in whole.queries:
        if query.document_id in asked and query.split == "train":
            asked[query.document_id].append(query.text)
        elif query.document_id in asked and query.split == "val":
            questions.append(query)
    return documents, asked, questions


def filled(
    path: Path,
    way: str,
    one_pass: bool,
    known: Known,
    documents: list[Document],
    asked: dict[str, list[str]],
    questions: list[Judged],
) -> Result:
    """Fill an index that way and ask it."""
    with Index.create(path, known, one_pass=one_pass) as index:
        begin = time.process_time()
        index.add_many(documents, asked, progress=tenths(way))
        spent = time.process_time() - begin
        texts = [query.text for query in questions]
        found = {
            mode: np.array(
                [
                    bool(hits) and hits[0].document_id == query.document_id
                    for query, hits in zip(questions, index.search_many(texts, 1, mode=mode), strict=True)
                ]
            )
            for mode in MODES
        }
        fusion = index.info()
        return {
            "placing_and_tuning_ms": 1e3 * spent / len(documents),
            "h@1": {mode: 100 * float(right.mean()) for mode, right in found.items()},
            "fusion": [fusion.lexical_weight, fusion.nearest_share],
            "found": found,
        }


def paired(left: NDArray[np.bool_], right: NDArray[np.bool_]) -> dict[str, float]:
    """The difference in points, question by question, and its standard error."""
    each = 100.0 * (left.astype(float) - right.astype(float))
    return {"points": float(each.mean()), "standard_error": float(each.std() / np.sqrt(len(each))), "n": len(each)}


def peer_ms(documents: list[Document]) -> float:
    """CPU milliseconds that sentence-transformers takes to embed a document's text alone."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(fetch.installed_model() or fetch.HUB_NAME), device="cpu")
    texts = [document.content for document in documents[:300]]
    model.encode(texts[:8], show_progress_bar=False)
    begin = time.process_time()
    model.encode(texts, show_progress_bar=False)
    return 1e3 * (time.process_time() - begin) / len(texts)


if __name__ == "__main__":
    main()
