"""A collection with the embeddings of everything in it, made once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.durable import appearing_file
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator, Spans, generate_all
from incdsi.text.queries import drop_shared
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.collection import Collection, Part

Floats = NDArray[np.float32]
SPANS = 6  # a document: beyond its sentences, clauses repeat what they say and cost as much to encode
CHUNK = 4096  # texts encoded before they are kept: what an interrupted run loses at most


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedded:
    """A collection with the embeddings of its documents' contents (n, h), queries, and generated queries (spans).

    `queries` are in the order of the collection's; `seconds` is what each part cost when it was made.
    """

    collection: Collection
    encoder: Encoder
    embeddings: Floats
    queries: Questions
    spans: Questions
    seconds: dict[str, float]

    @property
    def documents(self) -> Sequence[Document]:
        return self.collection.documents

    @cached_property
    def train(self) -> Questions:
        return self.part("train")

    @cached_property
    def val(self) -> Questions:
        return self.part("val")

    @cached_property
    def test(self) -> Questions:
        return self.part("test")

    def part(self, split: Part) -> Questions:
        """The natural queries of one part."""
        chosen = [place for place, query in enumerate(self.collection.queries) if query.split == split]
        return self.queries.take(np.array(chosen, dtype=np.intp))

    def asked(self, query_ids: Sequence[str]) -> Questions:
        """The natural queries with these ids, in this order."""
        return self.queries.take(np.array([self._query_places[id] for id in query_ids], dtype=np.intp))

    def places(self, document_ids: Sequence[str]) -> NDArray[np.intp]:
        """The places of these documents, in this order."""
        return np.array([self.collection.places[id] for id in document_ids], dtype=np.intp)

    def by_document(self, questions: Sequence[Questions]) -> list[Floats]:
        """The embeddings of each document's queries, (k, h) each, in the order of the documents."""
        rows = np.concatenate([some.embeddings for some in questions])
        return grouped(rows, np.concatenate([some.owners for some in questions]), len(self.documents))

    @cached_property
    def _query_places(self) -> dict[str, int]:
        return {query.id: place for place, query in enumerate(self.collection.queries)}


def grouped(rows: Floats, owners: NDArray[np.integer], documents: int) -> list[Floats]:
    """Each document's own of these rows (m, h), in their order; `owners` (m,) are places of documents."""
    ends = np.cumsum(np.bincount(owners, minlength=documents))
    return np.split(rows[np.argsort(owners, kind="stable")], ends)[:documents]


def embed(
    collection: Collection,
    encoder: Encoder,
    *,
    cache: Path | None = None,
    generator: Generator | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """Embed a collection, or take from the cache what was embedded before.

    The cache (by default in the user's own) goes by encoder and texts; an interrupted run goes on where
    it stopped. Generated queries that belong to more than one document are dropped. `progress` counts
    characters: a document takes as long as a dozen queries.
    """
    kept = EmbeddingCache(collection.name, encoder, cache)
    contents = [document.content for document in collection.documents]
    asked = [query.text for query in collection.queries]
    begin = time.perf_counter()
    generated = generated_queries(collection, generator)
    generating = time.perf_counter() - begin
    spans = [(text, collection.places[id]) for id, texts in generated.items() for text in texts]
    span_texts = [text for text, _ in spans]
    of_documents, of_queries, of_spans = _by_characters(progress, [contents, asked, span_texts])
    return Embedded(
        collection=collection,
        encoder=encoder,
        embeddings=kept.encoded("documents", contents, of_documents),
        queries=Questions.of(asked, collection.owners, kept.encoded("queries", asked, of_queries), generated=False),
        spans=Questions.of(
            span_texts,
            np.array([owner for _, owner in spans], dtype=np.int64),
            kept.encoded("spans", span_texts, of_spans),
            generated=True,
        ),
        seconds={**kept.seconds, "generate": generating},
    )


def generated_queries(collection: Collection, generator: Generator | None = None) -> dict[str, list[str]]:
    """The generated queries of each document (by default spans of its text), without those that several share."""
    return drop_shared(generate_all(collection.documents, generator or Spans(limit=SPANS)))


def digest(texts: Sequence[str]) -> str:
    """What texts are known by."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def cache_home() -> Path:
    """Where embeddings are kept between runs."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return home / "incdsi" / "benchmarks"


class EmbeddingCache:
    """Embeddings by collection, encoder and texts, with the seconds they cost when they were made."""

    def __init__(self, name: str, encoder: Encoder, folder: Path | None = None) -> None:
        self._folder = (folder or cache_home()) / f"{name}-{encoder.fingerprint[:12]}"
        self._encoder = encoder
        self.seconds: dict[str, float] = {}

    def encoded(self, part: str, texts: list[str], progress: Progress | None = None) -> Floats:
        """The embeddings of the texts (n, h), from the cache or made now and kept there."""
        file, cost = (self._folder / f"{part}-{digest(texts)}.{kind}" for kind in ("npy", "seconds"))
        found = _loaded(file, cost, (len(texts), self._encoder.dimension))
        if found is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = self._made(file, cost, texts, progress)
        rows, self.seconds[f"encode {part}"] = found
        if progress is not None and texts:
            progress(len(texts), len(texts))
        return rows

    def _made(self, file: Path, cost: Path, texts: list[str], progress: Progress | None) -> tuple[Floats, float]:
        """Encode in chunks, each kept when it is done, then join them; rows and seconds."""
        chunks = file.with_suffix(".chunks")
        chunks.mkdir(exist_ok=True)
        made, seconds = [np.empty((0, self._encoder.dimension), dtype=np.float32)], 0.0
        for start in range(0, len(texts), CHUNK):
            some = texts[start : start + CHUNK]
            chunk, spent = chunks / f"{start}.npy", chunks / f"{start}.seconds"
            kept = _loaded(chunk, spent, (len(some), self._encoder.dimension))
            if kept is None:
                begin = time.perf_counter()
                rows = self._encoder.encode(some, _shifted(progress, start, len(texts)))
                kept = rows, time.perf_counter() - begin
                _keep(chunk, spent, *kept)
            made.append(kept[0])
            seconds += kept[1]
        joined = np.concatenate(made)
        _keep(file, cost, joined, seconds)
        shutil.rmtree(chunks)
        return joined, seconds


def _loaded(file: Path, cost: Path, shape: tuple[int, int]) -> tuple[Floats, float] | None:
    """Rows and the seconds they cost, or None where they are missing or damaged."""
    try:
        rows, seconds = np.load(file), float(cost.read_text())
    except (OSError, ValueError, EOFError):
        return None
    return (rows, seconds) if rows.shape == shape and rows.dtype == np.float32 else None


def _keep(file: Path, cost: Path, rows: Floats, seconds: float) -> None:
    cost.write_text(str(seconds))
    with appearing_file(file) as stream:
        np.save(stream, rows)


def _by_characters(progress: Progress | None, parts: Sequence[Sequence[str]]) -> list[Progress | None]:
    """For each part what to tell when some of its texts are done, in characters of all parts."""
    if progress is None:
        return [None] * len(parts)
    sizes = [sum(map(len, texts)) for texts in parts]

    def of(before: int, size: int) -> Progress:
        return lambda done, count: progress(before + size * done // count, sum(sizes))

    return [of(sum(sizes[:number]), size) for number, size in enumerate(sizes)]


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
