"""Real documents with real questions, embedded once and kept in the user's cache between benchmarks."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import SHARED_DATA
from incdsi.documents import Document
from incdsi.text.encoders import Encoder, load_encoder
from incdsi.text.generators import Spans, generate_all
from incdsi.text.queries import drop_shared

Floats = NDArray[np.float32]
SPANS = 6  # a document: beyond its sentences, clauses repeat what they say and cost as much to encode


@dataclass(frozen=True)
class Questions:
    """Query texts with the place of the document each should find, and their embeddings."""

    texts: list[str]
    owners: NDArray[np.intp]
    embeddings: Floats

    def where(self, chosen: NDArray[np.bool_]) -> Questions:
        places = np.flatnonzero(chosen)
        return Questions([self.texts[i] for i in places], self.owners[places], self.embeddings[places])


@dataclass(frozen=True)
class RealData:
    """Documents with their texts' embeddings; natural questions by split; spans; seconds spent on encoding."""

    documents: list[Document]
    embeddings: Floats
    train: Questions
    val: Questions
    test: Questions
    spans: Questions
    encoder: Encoder
    seconds: dict[str, float]

    def by_document(self, questions: Sequence[Questions]) -> list[Floats]:
        """The embeddings of each document's queries, (k, h) each."""
        owners = np.concatenate([some.owners for some in questions])
        rows = np.concatenate([some.embeddings for some in questions])
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=len(self.documents)))[:-1]
        return np.split(rows[order], ends)


def real_data(name: str = "squad_plus") -> RealData:
    """The set of that name; FileNotFoundError where it is not at hand."""
    folder = SHARED_DATA / name
    documents = [
        Document(id=row["id"], title=row.get("title", ""), text=row["text"]) for row in _lines(folder / "docs.jsonl.gz")
    ]
    place = {document.id: number for number, document in enumerate(documents)}
    asked = list(_lines(folder / "queries.jsonl.gz"))
    encoder = load_encoder()
    seconds: dict[str, float] = {}
    cache = _Cache(name, encoder, seconds)
    embeddings = cache.encoded("documents", [document.content for document in documents])
    texts = [row["text"] for row in asked]
    natural = Questions(texts, np.array([place[row["doc_id"]] for row in asked]), cache.encoded("queries", texts))
    begin = time.perf_counter()
    generated = drop_shared(generate_all(documents, Spans(limit=SPANS)))
    seconds["generate"] = time.perf_counter() - begin
    spans = [(text, place[id]) for id, some in generated.items() for text in some]
    split = np.array([row["split"] for row in asked])
    return RealData(
        documents=documents,
        embeddings=embeddings,
        train=natural.where(split == "train"),
        val=natural.where(split == "val"),
        test=natural.where(split == "test"),
        spans=Questions(
            [text for text, _ in spans],
            np.array([owner for _, owner in spans]),
            cache.encoded("spans", [text for text, _ in spans]),
        ),
        encoder=encoder,
        seconds=seconds,
    )


class _Cache:
    """Embeddings by data set, encoder and texts, with the seconds they cost when they were made."""

    def __init__(self, name: str, encoder: Encoder, seconds: dict[str, float]) -> None:
        home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        self._folder = home / "incdsi" / "benchmarks" / f"{name}-{encoder.fingerprint[:12]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._encoder = encoder
        self._seconds = seconds

    def encoded(self, part: str, texts: list[str]) -> Floats:
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
        file, cost = (self._folder / f"{part}-{digest}.{kind}" for kind in ("npy", "seconds"))
        if not (file.exists() and cost.exists()):
            begin = time.perf_counter()
            np.save(file, self._encoder.encode(texts))
            cost.write_text(str(time.perf_counter() - begin))
        self._seconds[f"encode {part}"] = float(cost.read_text())
        found: Floats = np.load(file)
        return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
