"""Documents, questions and encoders: real ones with embeddings made before, synthetic ones with a toy."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.run import WARM, Floats, Size
from benchmarks.real import RealData
from incdsi import Document
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder, encode_each
from incdsi_lab.data import read_jsonl, write_jsonl
from incdsi_lab.data.location import data_home


class Watched:
    """An encoder, and the seconds spent in it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimension = encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.seconds = 0.0

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        begin = time.perf_counter()
        embeddings = self.encoder.encode(texts, progress)
        self.seconds += time.perf_counter() - begin
        return embeddings

    def encode_each(self, texts: Sequence[str]) -> Floats:
        begin = time.perf_counter()
        embeddings = encode_each(self.encoder, texts)
        self.seconds += time.perf_counter() - begin
        return embeddings


class Toy:
    """Unit vectors in clusters of about 50 documents; a text's first word, d<number>, says which document."""

    dimension = 384
    fingerprint = hashlib.sha256(b"incdsi benchmarks: toy encoder 1").hexdigest()

    def __init__(self, documents: int) -> None:
        clusters = max(documents // 50, 1)
        self._centres = np.random.default_rng(0).standard_normal((clusters, self.dimension), dtype=np.float32)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            number = int(text.split(maxsplit=1)[0][1:])
            own, noise = self._normal(number), self._normal(zlib.crc32(text.encode()))
            rows[place] = self._centres[number % len(self._centres)] + 0.7 * own + 0.4 * noise
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _normal(self, seed: int) -> Floats:
        return np.random.default_rng(seed).standard_normal(self.dimension, dtype=np.float32)


def synthetic(start: int, count: int) -> list[Document]:
    """Documents of 20 words, frequent and rare ones as in a language, numbered from `start`."""
    odds = 1 / (10 + np.arange(20_000))
    drawn = np.random.default_rng(start).choice(len(odds), size=(count, 20), p=odds / odds.sum())
    return [
        Document(id=str(number), text=" ".join([f"d{number}", *(f"w{word}" for word in words)]))
        for number, words in enumerate(drawn.tolist(), start=start)
    ]


def one_query(document: Document) -> list[str]:
    """The generator of synthetic indexes: the document's number and five of its words."""
    return [" ".join(document.text.split()[:6])]


def asked_for(document: Document) -> str:
    """A question for a synthetic document with words its generated query has not."""
    words = document.text.split()
    return " ".join([words[0], *words[10:15]])


def questions_of(data: RealData) -> dict[str, list[str]]:
    """The train questions by document id."""
    asked: dict[str, list[str]] = {document.id: [] for document in data.documents}
    for text, owner in zip(data.train.texts, data.train.owners, strict=True):
        asked[data.documents[owner].id].append(text)
    return asked


def test_texts(data: RealData, size: Size) -> list[str]:
    """The test questions to time, the same for every system."""
    chosen = np.random.default_rng(1).permutation(len(data.test.texts))[: WARM + size.searches]
    return [data.test.texts[place] for place in chosen]


def cut_sets(folder: Path, documents: int) -> None:
    """The first documents of each real set with their questions, for a small run."""
    for name in ("squad_plus", "nq_passages", "clinc150"):
        found = read_jsonl(data_home() / name)
        kept = {document.id for document in found.documents[:documents]}
        queries = [query for query in found.queries if query.document_id in kept]
        write_jsonl(replace(found, documents=found.documents[:documents], queries=queries), folder / name)


@dataclass(frozen=True)
class Shares:
    """A real set in random order: what is there before, what comes in a batch, what comes one by one."""

    filled: NDArray[np.intp]
    batch: NDArray[np.intp]
    warm: NDArray[np.intp]
    singles: NDArray[np.intp]

    @classmethod
    def of(cls, data: RealData, size: Size) -> Shares:
        order = np.random.default_rng(0).permutation(len(data.documents))
        ends = len(order) - np.cumsum([size.singles, WARM, size.batch])
        return cls(*np.split(order, ends[::-1]))
