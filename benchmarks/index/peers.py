"""The same documents and questions in faiss and in Chroma."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.run import WARM, Floats, Result, Run, disk_mb, say, spread
from benchmarks.index.sources import (
    Shares,
    test_texts,
)
from benchmarks.machine import resident_mb
from benchmarks.real import RealData

PORTION = 128  # documents a peer takes at once, as many as the index commits together


def peers(run: Run) -> Result:
    """The same documents and questions in faiss (in memory) and Chroma (on disk), text embeddings only."""
    # After this module's own imports: no other part may hold torch.
    import chromadb
    import faiss
    from chromadb.config import Settings
    from sentence_transformers import SentenceTransformer

    from incdsi.text.encoders.fetch import HUB_NAME, installed_model

    data = run.data("squad_plus")
    shares = Shares.of(data, run.size)
    model = SentenceTransformer(str(installed_model() or HUB_NAME), device="cpu")

    def encode(texts: list[str]) -> Floats:
        return np.asarray(model.encode(texts, show_progress_bar=False, normalize_embeddings=True), dtype=np.float32)

    contents = [document.content for document in data.documents]
    flat = faiss.IndexFlatIP(data.encoder.dimension)
    flat.add(data.embeddings[shares.filled])
    before = resident_mb()
    client = chromadb.PersistentClient(str(run.folder / "chroma"), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection("documents", embedding_function=None, configuration={"hnsw": {"space": "ip"}})

    def put(places: NDArray[np.intp]) -> None:
        ids = [data.documents[i].id for i in places]
        collection.add(ids=ids, embeddings=data.embeddings[places], documents=[contents[i] for i in places])

    say("peers: filling Chroma")
    for start in range(0, len(shares.filled), PORTION):
        put(shares.filled[start : start + PORTION])
    chroma_mb = resident_mb() - before
    return {
        "versions": {name: metadata.version(name) for name in ("faiss-cpu", "chromadb", "sentence-transformers")},
        "adds": _peer_adds(shares, contents, encode, flat, put),
        "search": _peer_searches(test_texts(data, run.size), encode, flat, collection, data, shares),
        "chroma_memory_mb": chroma_mb,
        "chroma_disk_mb": sum(disk_mb(run.folder / "chroma").values()),
    }


def _peer_adds(
    shares: Shares,
    contents: list[str],
    encode: Callable[[list[str]], Floats],
    flat: Any,
    put: Callable[[NDArray[np.intp]], None],
) -> Result:
    """One by one and in a batch: encoding, faiss (not durable), Chroma (durable; embeddings made before)."""
    say("peers: adding")
    begin = time.perf_counter()
    embeddings = encode([contents[i] for i in shares.batch])
    encoded = time.perf_counter()
    flat.add(embeddings)
    added = time.perf_counter()
    for start in range(0, len(shares.batch), PORTION):
        put(shares.batch[start : start + PORTION])
    done = time.perf_counter()
    ends = zip(("encode", "faiss", "chroma"), (begin, encoded, added), (encoded, added, done), strict=True)
    batch = {f"{name}_ms": 1e3 * (end - start) / len(shares.batch) for name, start, end in ends}
    seconds: dict[str, list[float]] = {"encode": [], "faiss": [], "chroma": []}
    for place in [*shares.warm, *shares.singles]:
        moments = [time.perf_counter()]
        embedding = encode([contents[place]])
        moments.append(time.perf_counter())
        flat.add(embedding)
        moments.append(time.perf_counter())
        put(np.array([place]))
        moments.append(time.perf_counter())
        for name, spent in zip(seconds, np.diff(moments), strict=True):
            seconds[name].append(float(spent))
    return {"one_by_one": _with_encoding(seconds), "batch": {"documents": len(shares.batch), **batch}}


def _peer_searches(
    texts: list[str],
    encode: Callable[[list[str]], Floats],
    flat: Any,
    collection: Any,
    data: RealData,
    shares: Shares,
) -> Result:
    say("peers: searching")
    order = np.concatenate([shares.filled, shares.batch, shares.warm, shares.singles])
    seconds: dict[str, list[float]] = {"encode": [], "faiss": [], "chroma": []}
    overlap = []
    for text in texts:
        moments = [time.perf_counter()]
        embedding = encode([text])
        moments.append(time.perf_counter())
        _, found = flat.search(embedding, 10)
        moments.append(time.perf_counter())
        hits = collection.query(query_embeddings=embedding, n_results=10)
        moments.append(time.perf_counter())
        for name, spent in zip(seconds, np.diff(moments), strict=True):
            seconds[name].append(float(spent))
        exact = {data.documents[order[place]].id for place in found[0]}
        overlap.append(len(exact.intersection(hits["ids"][0])) / len(exact))
    return {**_with_encoding(seconds), "chroma_share_of_exact_top_10": float(np.mean(overlap))}


def _with_encoding(seconds: dict[str, list[float]]) -> Result:
    timed = {name: np.array(some[WARM:]) for name, some in seconds.items()}
    both = {f"encode + {name}": timed["encode"] + timed[name] for name in ("faiss", "chroma")}
    return {name: spread(some.tolist()) for name, some in {**timed, **both}.items()}
