"""A toy encoder, documents made of a few words, and ways to compare two indexes bit for bit."""

from __future__ import annotations

import functools
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.engine.local import LocalEngine
from incdsi.index import Index
from incdsi.progress import Progress
from incdsi.records import Record

MODES = ("learned", "lexical", "fused")
WORDS = """river mountain boots waterproof hiking tent stove rope lamp map compass bottle jacket glove snow
rain wind forest lake trail summit valley bridge cabin fire food water night star moon""".split()  # noqa: SIM905
PROBES = ("waterproof boots", "a river at night", "snow and wind on the summit", "nothing of all this")


class ToyEncoder:
    """The mean of one random unit vector a word, made unit again: deterministic, quick, no download."""

    def __init__(self, dimension: int = 24, seed: int = 0) -> None:
        self.dimension = dimension
        self.seed = seed
        self.fingerprint = hashlib.sha256(f"toy {dimension} {seed}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        embedded = [_embedded(text, self.dimension, self.seed) for text in texts]
        if progress is not None:
            progress(len(embedded), len(texts))
        return np.stack(embedded) if embedded else np.empty((0, self.dimension), dtype=np.float32)


@functools.lru_cache(maxsize=4096)
def _embedded(text: str, dimension: int, seed: int) -> NDArray[np.float32]:
    total = np.zeros(dimension)
    for word in text.casefold().split() or [""]:
        total += _word(word.strip(".,?!:"), dimension, seed)
    length = np.linalg.norm(total)
    result: NDArray[np.float32] = (total / length if length > 0 else total).astype(np.float32)
    result.flags.writeable = False
    return result


@functools.lru_cache(maxsize=65536)
def _word(word: str, dimension: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng([zlib.crc32(word.encode("utf-8", "surrogatepass")), seed])
    vector = rng.standard_normal(dimension)
    return vector / np.linalg.norm(vector)


TOY = ToyEncoder()


def text_of(id: str, revision: int = 0) -> str:
    """Two sentences that are a function of id and revision, and of no other document."""
    rng = np.random.default_rng(zlib.crc32(f"{id}/{revision}".encode()))
    some = [" ".join(rng.choice(WORDS, 4, replace=False)) for _ in range(2)]
    return f"{some[0]} number {id} edition {revision}. And {some[1]} of {id} in {revision}."


def doc(id: str, revision: int = 0, **metadata: Any) -> Document:
    return Document(id=id, text=text_of(id, revision), metadata=metadata)


def docs(count: int, start: int = 0) -> list[Document]:
    return [
        doc(f"d{number}", 0, number=number, even=number % 2 == 0, lang="en" if number % 3 else "de")
        for number in range(start, start + count)
    ]


def asked(id: str, count: int = 2) -> list[str]:
    """What people asked for a document: its own words and a few common ones."""
    rng = np.random.default_rng(zlib.crc32(f"asked {id}".encode()))
    return [f"{' '.join(rng.choice(WORDS, 2, replace=False))} {id} {number}" for number in range(count)]


def asked_for(documents: Iterable[Document], count: int = 2) -> dict[str, list[str]]:
    return {document.id: asked(document.id, count) for document in documents}


def record(index: Index, id: str) -> Record:
    """Everything stored for a document."""
    return index.engine.get(id)


def vectors(index: Index) -> dict[str, bytes]:
    """The document vectors by id, as stored."""
    return {found.document.id: found.vector.tobytes() for found in index.engine.records()}


def path_of(index: Index) -> Path:
    assert isinstance(index.engine, LocalEngine)
    return index.engine.path


def ids(index: Index, text: str, k: int = 10, **options: Any) -> list[str]:
    return [hit.document_id for hit in index.search(text, k, **options)]


def answers(index: Index, probes: Sequence[str] = PROBES) -> list[tuple[str, str, str, float, str]]:
    """Every document's score for every probe in every mode, in order: equal means bit for bit."""
    return [
        (probe, mode, hit.document_id, hit.score, hit.document.text)
        for probe in probes
        for mode in MODES
        for hit in index.search(probe, k=max(len(index), 1), mode=mode)
    ]


def stored(index: Index) -> dict[str, tuple[Any, ...]]:
    """What the store holds, by id: text, queries with their flags, vector, links."""
    return {
        found.document.id: (
            found.document.text,
            dict(found.document.metadata),
            found.vector.tobytes(),
            [(q.text, q.generated, q.taught, q.held_out, q.preserved, q.own_score) for q in found.queries],
            sorted(set(found.constrained_by)),
        )
        for found in index.engine.records()
    }
