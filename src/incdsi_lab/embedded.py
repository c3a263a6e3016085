"""A collection with the embeddings of everything in it, made once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.durable import appearing_file
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder, for_documents
from incdsi.text.generators import Generator, Spans, generate_all
from incdsi.text.queries import drop_shared
from incdsi.training.embeddings import Embedder
from incdsi_lab.baselines.protocol import Questions, moved_to
from incdsi_lab.collection import Collection, Part

Floats = NDArray[np.float32]
SPANS = 6  # a document: beyond its sentences, clauses repeat what they say and cost as much to encode


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

    def only(self, places: NDArray[np.intp]) -> Embedded:
        """The same with the documents in these places alone, in this order."""
        whole, moved = self.collection, moved_to(places, len(self.documents))
        asked = [query for query in whole.queries if moved[whole.places[query.document_id]] >= 0]
        return replace(
            self,
            collection=replace(whole, documents=[whole.documents[place] for place in places], queries=asked),
            embeddings=self.embeddings[places],
            queries=self.queries.among(moved),
            spans=self.spans.among(moved),
        )

    def by_document(self, questions: Sequence[Questions]) -> list[Floats]:
        """The embeddings of each document's queries, (k, h) each, in the order of the documents."""
        rows = np.concatenate([some.embeddings for some in questions])
        return grouped(rows, np.concatenate([some.owners for some in questions]), len(self.documents))

    @cached_property
    def by_text(self) -> dict[str, dict[str, Floats]]:
        """The embeddings (h,) of each part by text: what a collection drawn from this one need not embed again."""
        contents = [document.content for document in self.documents]
        asked = {
            text: row
            for some in (self.queries, self.spans)
            for text, row in zip(some.texts, some.embeddings, strict=True)
        }
        return {"documents": dict(zip(contents, self.embeddings, strict=True)), "queries": asked, "spans": asked}

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
    whole: Embedded | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """Embed a collection, or take from the cache what was embedded before.

    The cache (by default the user's) goes by encoder and texts; an interrupted run resumes where it stopped. What the
    `whole` has that this collection was drawn from is taken from there, with its share of the seconds.
    Generated queries that several documents share are dropped. `progress` counts characters: a document takes as
    long as a dozen queries.
    """
    folder = (cache or cache_home()) / f"{collection.name}-{encoder.fingerprint[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    generated = generated_queries(collection, generator)
    seconds = {"generate": time.perf_counter() - begin}
    spans = [(text, collection.places[id]) for id, texts in generated.items() for text in texts]
    parts = {
        "documents": [document.content for document in collection.documents],
        "queries": [query.text for query in collection.queries],
        "spans": [text for text, _ in spans],
    }
    made: dict[str, Floats] = {}
    for (part, texts), told in zip(parts.items(), _by_characters(progress, list(parts.values())), strict=True):
        chosen = for_documents(encoder) if part == "documents" else encoder
        timed = _Timed(chosen, folder / f"{part}-{digest(texts)}.seconds")
        known = {} if whole is None else whole.by_text[part]
        embedder = Embedder(encoder=timed, fingerprint=chosen.fingerprint, folder=folder, known=known)
        made[part] = embedder.embed(texts, told)
        seconds[f"encode {part}"] = timed.seconds + _share(whole, part, sum(text in known for text in texts))
    owners = np.array([owner for _, owner in spans], dtype=np.int64)
    return Embedded(
        collection=collection,
        encoder=encoder,
        embeddings=made["documents"],
        queries=Questions.of(parts["queries"], collection.owners, made["queries"], generated=False),
        spans=Questions.of(parts["spans"], owners, made["spans"], generated=True),
        seconds=seconds,
    )


def embedded_before(collection: Collection, encoder: Encoder, cache: Path | None = None) -> bool:
    """Whether all documents of a collection were embedded once."""
    folder = (cache or cache_home()) / f"{collection.name}-{encoder.fingerprint[:12]}"
    return (folder / f"documents-{digest([document.content for document in collection.documents])}.seconds").exists()


def generated_queries(collection: Collection, generator: Generator | None = None) -> dict[str, list[str]]:
    """The generated queries of each document (by default spans of its text), without those that several share."""
    return drop_shared(generate_all(collection.documents, generator or Spans(limit=SPANS)))


def digest(texts: Sequence[str]) -> str:
    """A short name for these texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def cache_home() -> Path:
    """Where embeddings are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "incdsi" / "benchmarks"


def _share(whole: Embedded | None, part: str, taken: int) -> float:
    """The seconds that so many texts of a part took when the whole was embedded."""
    if whole is None:
        return 0.0
    counts = {"documents": len(whole.documents), "queries": len(whole.queries), "spans": len(whole.spans)}
    return whole.seconds.get(f"encode {part}", 0.0) * taken / max(1, counts[part])


class _Timed:
    """An encoder that adds the seconds it takes to a file, so that they outlast the run."""

    def __init__(self, encoder: Encoder, file: Path) -> None:
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint
        self._encoder, self._file = encoder, file

    @property
    def seconds(self) -> float:
        return float(self._file.read_text()) if self._file.exists() else 0.0

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        begin = time.perf_counter()
        rows = self._encoder.encode(texts, progress)
        with appearing_file(self._file) as file:
            file.write(str(self.seconds + time.perf_counter() - begin).encode())
        return rows


class KnownTexts:
    """An encoder that looks up what was embedded before, by its text; what is not among it is encoded, and counted."""

    def __init__(self, data: Embedded) -> None:
        self.dimension, self.fingerprint = data.encoder.dimension, data.encoder.fingerprint
        self.encoded = 0
        self._encoder = data.encoder
        self._known = {_key(text): row for part in data.by_text.values() for text, row in part.items()}

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        missing = {key: text for text in texts if (key := _key(text)) not in self._known}
        if missing:
            self.encoded += len(missing)
            self._known.update(zip(missing, self._encoder.encode(list(missing.values()), progress), strict=True))
        found = [self._known[_key(text)] for text in texts]
        return np.stack(found) if found else np.empty((0, self.dimension), dtype=np.float32)


def _key(text: str) -> str:
    return " ".join(text.split())


def _by_characters(progress: Progress | None, parts: Sequence[Sequence[str]]) -> list[Progress | None]:
    """For each part a progress that counts texts, reported in characters of all parts."""
    if progress is None:
        return [None] * len(parts)
    sizes = [sum(map(len, texts)) for texts in parts]

    def of(before: int, size: int) -> Progress:
        return lambda done, count: progress(before + size * done // count, sum(sizes))

    return [of(sum(sizes[:number]), size) for number, size in enumerate(sizes)]
