"""Adds and searches of an index beside faiss and Chroma, its size, and how well it finds: `make bench-index`.

Every part runs in a process of its own, and what an index costs to open and hold is measured in a process
that does nothing else. Filling an index takes embeddings made before (benchmarks.real); every timed add and
every timed search encodes its texts, by OnnxEncoder for ours and by sentence-transformers for the peers.
Synthetic indexes have a toy encoder, whose time is left out of every figure.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import SHARED_DATA, machine, resident_mb, write
from benchmarks.real import SPANS, RealData, real_data
from incdsi import Document, Index
from incdsi.documents import Addition
from incdsi.index.quality import Quality
from incdsi.rows import LocalRows
from incdsi.search import fuse
from incdsi.text.encoders import Encoder, load_encoder
from incdsi.text.generators import Spans

Floats = NDArray[np.float32]
Result = dict[str, Any]
Ranks = NDArray[np.intp]
MODES = ("learned", "lexical", "fused")
CORE = ("constrain", "solve", "commit")
WARM = 5  # adds and searches before the timed ones
PORTION = 128  # documents a peer takes at once, as many as the index commits together


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything; `cut` keeps that many documents of a real set."""

    cut: int | None = None
    singles: int = 200
    batch: int = 1024
    searches: int = 500
    scale: int = 100_000
    rounds: int = 10_000
    rounds_index: int = 2_000


SMALL = Size(cut=60, singles=5, batch=16, searches=10, scale=600, rounds=200, rounds_index=100)


@dataclass(frozen=True, kw_only=True)
class Run:
    """How much, and the folder where this run's indexes are."""

    size: Size
    folder: Path
    small: bool

    def data(self, name: str) -> RealData:
        """A real set; its first documents in a small run, from the copy that `cut_sets` made."""
        return real_data(str(self.folder / name) if self.small else name)

    def child(self, part: str) -> Result:
        """What a part finds in a process of its own; CalledProcessError when it fails."""
        command = [sys.executable, "-m", "benchmarks.index", "--child", part, "--folder", str(self.folder)]
        command += ["--small"] if self.small else []
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found: Result = json.loads(child.stdout.splitlines()[-1])
        return found


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def tenths(what: str) -> Callable[[int, int], None]:
    """A progress callback that says each tenth once."""
    begin, said = time.perf_counter(), 0

    def progress(done: int, total: int) -> None:
        nonlocal said
        if 10 * done // total > said:
            said = 10 * done // total
            say(f"{what}: {done:,} of {total:,} after {time.perf_counter() - begin:.0f} s")

    return progress


def spread(seconds: Sequence[float]) -> Result:
    """Median, 99th percentile and mean in ms, with their number."""
    ms = 1e3 * np.asarray(seconds)
    p50, p99 = np.percentile(ms, [50, 99])
    return {"p50_ms": float(p50), "p99_ms": float(p99), "mean_ms": float(ms.mean()), "n": len(ms)}


def disk_mb(folder: Path) -> dict[str, float]:
    """MB on disk by the first name below the folder."""
    sizes: dict[str, float] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).parts[0]
        sizes[name] = sizes.get(name, 0.0) + path.stat().st_size / 1e6
    return sizes


# Encoders that leave encoding out, or measure it


class Watched:
    """An encoder, and the seconds spent in it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimension = encoder.dimension
        self.fingerprint = encoder.fingerprint
        self.seconds = 0.0

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> Floats:
        begin = time.perf_counter()
        embeddings = self.encoder.encode(texts, progress)
        self.seconds += time.perf_counter() - begin
        return embeddings


class Known:
    """The embeddings of a real set, looked up by text; what is not among them is encoded, and counted."""

    def __init__(self, data: RealData) -> None:
        self.encoder = data.encoder
        self.dimension = data.encoder.dimension
        self.fingerprint = data.encoder.fingerprint
        self.encoded = 0
        contents = [document.content for document in data.documents]
        made = [(contents, data.embeddings), *((some.texts, some.embeddings) for some in (data.train, data.spans))]
        self._known = {_key(text): row for texts, rows in made for text, row in zip(texts, rows, strict=True)}

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> Floats:
        missing = {key: text for text in texts if (key := _key(text)) not in self._known}
        if missing:
            self.encoded += len(missing)
            self._known.update(zip(missing, self.encoder.encode(list(missing.values()), progress), strict=True))
        found = [self._known[_key(text)] for text in texts]
        return np.stack(found) if found else np.empty((0, self.dimension), dtype=np.float32)


def _key(text: str) -> str:
    return " ".join(text.split())


class Toy:
    """Unit vectors in clusters of about 50 documents; a text's first word, d<number>, says which document."""

    dimension = 384
    fingerprint = hashlib.sha256(b"incdsi benchmarks: toy encoder 1").hexdigest()

    def __init__(self, documents: int) -> None:
        clusters = max(documents // 50, 1)
        self._centres = np.random.default_rng(0).standard_normal((clusters, self.dimension), dtype=np.float32)

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> Floats:
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            number = int(text.split(maxsplit=1)[0][1:])
            own, noise = self._normal(number), self._normal(zlib.crc32(text.encode()))
            rows[place] = self._centres[number % len(self._centres)] + 0.7 * own + 0.4 * noise
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _normal(self, seed: int) -> Floats:
        return np.random.default_rng(seed).standard_normal(self.dimension, dtype=np.float32)


# Documents


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


def cut_sets(folder: Path, documents: int) -> None:
    """The first documents of each real set with their questions, for a small run."""
    for name in ("squad_plus", "nq_passages"):
        source, target = SHARED_DATA / name, folder / name
        target.mkdir()
        kept: set[str] = set()
        with gzip.open(source / "docs.jsonl.gz", "rt") as lines, gzip.open(target / "docs.jsonl.gz", "wt") as out:
            for line in islice(lines, documents):
                kept.add(json.loads(line)["id"])
                out.write(line)
        with gzip.open(source / "queries.jsonl.gz", "rt") as lines, gzip.open(target / "queries.jsonl.gz", "wt") as out:
            out.writelines(line for line in lines if json.loads(line)["doc_id"] in kept)


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


# Filling


def fill(path: Path, data: RealData, places: Iterable[int], *, tuning: bool) -> tuple[Index, Result]:
    """A new index of these documents in that order, by embeddings made before, and what it took."""
    Index.create(path, data.encoder, tuning=tuning).close()
    encoder = Known(data)
    index = Index.open(path, encoder, generator=Spans(limit=SPANS))
    documents = [data.documents[place] for place in places]
    asked = questions_of(data)
    tuning_seconds = _watch_tuning(index)
    begin = time.perf_counter()
    additions = index.add_many(
        documents, {document.id: asked[document.id] for document in documents}, progress=tenths("filling")
    )
    wall = time.perf_counter() - begin - sum(tuning_seconds)
    steps = by_step(additions)
    settings = index._settings
    return index, {
        "documents": len(documents),
        "encoder": "embeddings made before",
        "generator": f"at most {SPANS} spans a document",
        "encoded_anyway": encoder.encoded,
        "step_ms": steps,
        "without_encoding_ms": 1e3 * wall / len(documents) - steps["encode"],
        "tuning_ms": 1e3 * sum(tuning_seconds) / len(documents),
        "tuned_at_held_out_queries": settings.tuned_at,
        "hyperparameters": asdict(settings.hyperparameters),
        "lexical_weight": settings.lexical_weight,
    }


def _watch_tuning(index: Index) -> list[float]:
    """A list that takes the seconds of every look at whether tuning is due, tuning included."""
    seconds: list[float] = []
    tune = index._tune_if_due

    def watched(*arguments: Any) -> None:
        begin = time.perf_counter()
        say("tuning, if it is due")
        tune(*arguments)
        seconds.append(time.perf_counter() - begin)

    index._tune_if_due = watched  # type: ignore[method-assign]
    return seconds


def by_step(additions: Sequence[Addition]) -> dict[str, float]:
    """Mean ms a document of each step."""
    return {
        step: 1e3 * float(np.mean([addition.seconds[step] for addition in additions])) for step in additions[0].seconds
    }


def add_one_by_one(index: Index, documents: Sequence[Document], asked: dict[str, list[str]]) -> Result:
    """Spreads of the whole add, of its steps, and of constrain + solve + commit; the first adds warm up."""
    walls, additions = [], []
    for document in documents:
        begin = time.perf_counter()
        additions.append(index.add(document, asked.get(document.id, [])))
        walls.append(time.perf_counter() - begin)
    walls, additions = walls[WARM:], additions[WARM:]
    steps = {step: [addition.seconds[step] for addition in additions] for step in additions[0].seconds}
    core = [sum(addition.seconds[step] for step in CORE) for addition in additions]
    rest = [wall - addition.seconds["encode"] for wall, addition in zip(walls, additions, strict=True)]
    return {
        "whole": spread(walls),
        "without_encoding": spread(rest),
        "core": spread(core),
        **{step: spread(seconds) for step, seconds in steps.items()},
        "status": {name: [a.status for a in additions].count(name) for name in {a.status for a in additions}},
    }


def add_batch(index: Index, documents: Sequence[Document], asked: dict[str, list[str]]) -> Result:
    begin = time.perf_counter()
    additions = index.add_many(documents, {document.id: asked.get(document.id, []) for document in documents})
    whole = 1e3 * (time.perf_counter() - begin) / len(documents)
    steps = by_step(additions)
    return {
        "documents": len(documents),
        "whole_ms": whole,
        "without_encoding_ms": whole - steps["encode"],
        "core_ms": sum(steps[step] for step in CORE),
        "step_ms": steps,
    }


# Parts


def squad(run: Run) -> Result:
    """squad_plus: a batch and one by one into an index of the rest, then reading it in a fresh process."""
    data = run.data("squad_plus")
    shares = Shares.of(data, run.size)
    asked = questions_of(data)
    path = run.folder / "squad"
    index, filling = fill(path, data, shares.filled, tuning=True)
    index.close()
    batch, warm, singles = (
        [data.documents[i] for i in places] for places in (shares.batch, shares.warm, shares.singles)
    )
    with Index.open(path, data.encoder) as index:
        say("adding with the true encoder")
        in_batch = add_batch(index, batch, asked)
        one_by_one = add_one_by_one(index, [*warm, *singles], asked)
        texts = [len(index._store.get(document.id).queries) for document in singles]
    _write_questions(path, test_texts(data, run.size))
    return {
        "documents": len(data.documents),
        "fill": filling,
        "adds": {
            "encoder": "OnnxEncoder",
            "generator": "the index's own",
            "queries_a_document": {"mean": float(np.mean(texts)), "most": max(texts)},
            "one_by_one": one_by_one,
            "batch": in_batch,
        },
        "reading": run.child("read-squad"),
    }


def test_texts(data: RealData, size: Size) -> list[str]:
    """The test questions to time, the same for every system."""
    chosen = np.random.default_rng(1).permutation(len(data.test.texts))[: WARM + size.searches]
    return [data.test.texts[place] for place in chosen]


def scale(run: Run) -> Result:
    """Many synthetic documents of one generated query each."""
    count, encoder = run.size.scale, Toy(run.size.scale)
    path = run.folder / "scale"
    documents = synthetic(0, count)
    later = synthetic(count, WARM + run.size.singles + run.size.batch)
    with Index.create(path, encoder, generator=one_query, tuning=False) as index:
        steps = by_step(index.add_many(documents, progress=tenths("scale, filling")))
    begin = time.perf_counter()
    with Index.open(path, encoder, generator=one_query) as index:
        one_by_one = add_one_by_one(index, later[: WARM + run.size.singles], {})
        in_batch = add_batch(index, later[WARM + run.size.singles :], {})
    say(f"scale, adds: {time.perf_counter() - begin:.0f} s")
    chosen = np.random.default_rng(1).permutation(count)[: WARM + run.size.searches]
    _write_questions(path, [asked_for(documents[place]) for place in chosen])
    return {
        "documents": count,
        "dimension": encoder.dimension,
        "fill": {"step_ms": steps, "without_encoding_ms": sum(ms for step, ms in steps.items() if step != "encode")},
        "adds": {"encoder": "toy, left out", "one_by_one": one_by_one, "batch": in_batch},
        "reading": run.child("read-scale"),
    }


def rounds(run: Run) -> Result:
    """Memory and disk while documents come and go in an index that stays as large as it is."""
    size, encoder = run.size, Toy(run.size.rounds_index)
    path = run.folder / "rounds"
    progress = tenths("add-delete rounds")
    with Index.create(path, encoder, generator=one_query, tuning=False) as index:
        index.add_many(synthetic(0, size.rounds_index))
        start = {"resident_mb": resident_mb(), "disk_mb": sum(disk_mb(path).values())}
        resident = []
        for done in range(0, size.rounds, 100):
            for document in synthetic(size.rounds_index + done, 100):
                index.add(document)
                index.delete(document.id)
            resident.append(resident_mb())
            progress(done + 100, size.rounds)
        end = {"resident_mb": resident[-1], "disk_mb": sum(disk_mb(path).values())}
        index.compact()
    # Empty slots are cleared away in cycles, so the highest of each half are compared, not two moments.
    first, second = (max(half) for half in np.array_split(resident, 2))
    return {
        "documents": size.rounds_index,
        "rounds": size.rounds,
        "start": start,
        "middle": {"resident_mb": resident[len(resident) // 2 - 1]},
        "end": end,
        "highest_mb": {"first half": float(first), "second half": float(second)},
        "growth_mb": float(second - first),
        "resident_mb_every_100_rounds": [round(mb, 1) for mb in resident],
        "disk_mb_after_compact": sum(disk_mb(path).values()),
    }


def _write_questions(path: Path, texts: list[str]) -> None:
    path.with_suffix(".questions").write_text(json.dumps(texts))


def reading(run: Run, name: str) -> Result:
    """Open, hold and search an index in a process that does nothing else; files are in the page cache."""
    path = run.folder / name
    texts = json.loads(path.with_suffix(".questions").read_text())
    encoder = Watched(Toy(run.size.scale) if name == "scale" else load_encoder())
    encoder.encode(texts[:WARM])
    before = resident_mb()
    begin = time.perf_counter()
    LocalRows(encoder.dimension)  # the first one chooses a matrix product; opening would do it otherwise
    choosing = {"seconds": time.perf_counter() - begin, "memory_mb": resident_mb() - before}
    index = Index.open(path, encoder)
    opened = time.perf_counter() - begin
    held = resident_mb() - before
    index.search(texts[0])
    first = time.perf_counter() - begin
    searches = {mode: timed_searches(index, encoder, texts, mode) for mode in MODES}
    searched = resident_mb() - before
    begin = time.perf_counter()
    with index._changing(None):
        writer = time.perf_counter() - begin
    result = {
        "documents": len(index),
        "open_seconds": opened,
        "of_which_choosing_the_product": choosing,
        "base": index._store.base() is not None,
        "open_and_first_search_seconds": first,
        "open_for_writing_seconds": writer,
        "memory_mb": {"opened": held, "searched": searched, "writing": resident_mb() - before},
        "disk_mb": disk_mb(path),
        "search": searches,
    }
    index.close()
    if name != "scale":
        begin = time.perf_counter()
        Index.open(path).close()
        result["open_with_encoder_seconds"] = time.perf_counter() - begin
    return result


def timed_searches(index: Index, encoder: Watched, texts: Sequence[str], mode: str) -> Result:
    walls, encoding = [], []
    for text in texts:
        spent = encoder.seconds
        begin = time.perf_counter()
        index.search(text, mode=mode)
        walls.append(time.perf_counter() - begin)
        encoding.append(encoder.seconds - spent)
    walls, encoding = walls[WARM:], encoding[WARM:]
    return {
        "whole": spread(walls),
        "encode": spread(encoding),
        "without_encoding": spread([wall - spent for wall, spent in zip(walls, encoding, strict=True)]),
        "encode_share": sum(encoding) / sum(walls),
    }


def peers(run: Run) -> Result:
    """The same documents and questions in faiss (in memory) and Chroma (on disk), text embeddings only."""
    # After this module's own imports: no other part may hold torch.
    import chromadb
    import faiss
    from chromadb.config import Settings
    from sentence_transformers import SentenceTransformer

    from incdsi.text.encoders.locate import HUB_NAME, installed_model

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


# Quality


def quality_squad(run: Run) -> Result:
    """From empty in random order, weights it tuned itself, against retraining on all, dense and BM25."""
    from benchmarks.stage1 import trained  # brings torch

    data = run.data("squad_plus")
    filling, ranks = _filled_ranks(run, data, "quality-squad", tuning=True)
    say("quality: retraining on everything")
    ranks["retrained"] = _ranks(trained(data, "frozen").vectors, data.test.embeddings, data.test.owners)
    pairs = [("learned", "retrained"), ("learned", "dense")]
    pairs += [("fused", other) for other in ("lexical", "dense", "learned")]
    return {"fill": filling, **_compared(ranks, pairs)}


def quality_nq(run: Run) -> Result:
    """From empty in random order with the weights an index starts with, where most queries are generated."""
    data = run.data("nq_passages")
    filling, ranks = _filled_ranks(run, data, "quality-nq", tuning=False)
    return {"fill": filling, **_compared(ranks, [("learned", "dense"), ("fused", "lexical"), ("fused", "learned")])}


def _filled_ranks(run: Run, data: RealData, name: str, *, tuning: bool) -> tuple[Result, dict[str, Ranks]]:
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(run.folder / name, data, order, tuning=tuning)
    say(f"quality: {len(data.test.texts)} questions")
    ranks = _index_ranks(index, data)
    index.close()
    ranks["dense"] = _ranks(data.embeddings, data.test.embeddings, data.test.owners)
    return filling, ranks


def _index_ranks(index: Index, data: RealData) -> dict[str, Ranks]:
    """The right document's rank for each test question by mode; as `search` scores, but questions together."""
    live, weight = index._live, index._settings.lexical_weight
    slots = np.flatnonzero(live.rows.alive)
    place = {id: number for number, id in enumerate(index._store.ids(live.store_rows(slots).tolist()))}
    right = np.array([place[data.documents[owner].id] for owner in data.test.owners])
    vectors, everything = live.rows.vectors(slots), np.ones(len(slots), dtype=bool)
    ranks = {mode: np.empty(len(right), dtype=np.intp) for mode in MODES}
    for start in range(0, len(right), 256):
        learned = data.test.embeddings[start : start + 256] @ vectors.T
        for number, scores in enumerate(learned, start=start):
            lexical = live.lexical.scores(data.test.texts[number], len(live.rows.alive))[slots]
            ways = (scores, lexical, fuse(scores, lexical, everything, weight))
            for mode, way in zip(MODES, ways, strict=True):
                ranks[mode][number] = np.count_nonzero(way >= way[right[number]])
    return ranks


def _ranks(vectors: Floats, questions: Floats, right: Ranks) -> Ranks:
    """The rank of each question's document; a tie counts against it."""
    ranks = np.empty(len(right), dtype=np.intp)
    for start in range(0, len(right), 256):
        scores = questions[start : start + 256] @ vectors.T
        own = np.take_along_axis(scores, right[start : start + 256, None], axis=1)
        ranks[start : start + 256] = np.count_nonzero(scores >= own, axis=1)
    return ranks


def _compared(ranks: dict[str, Ranks], pairs: list[tuple[str, str]]) -> Result:
    """Quality by way of searching, and differences of H@1 with their standard errors, question by question."""
    differences = {}
    for left, right in pairs:
        each = 100.0 * ((ranks[left] == 1).astype(float) - (ranks[right] == 1))
        error = float(each.std() / np.sqrt(len(each)))
        differences[f"{left} - {right}"] = {"h@1": float(each.mean()), "standard_error": error, "n": len(each)}
    return {"quality": {way: Quality.of(some).to_json() for way, some in ranks.items()}, "differences": differences}


PARTS: dict[str, Callable[[Run], Result]] = {
    "squad": squad,
    "peers": peers,
    "scale": scale,
    "rounds": rounds,
    "quality-squad": quality_squad,
    "quality-nq": quality_nq,
}
INSIDE: dict[str, Callable[[Run], Result]] = {
    "read-squad": lambda run: reading(run, "squad"),
    "read-scale": lambda run: reading(run, "scale"),
}


# Telling


def ratios(parts: dict[str, Result]) -> dict[str, float]:
    """How many times faster than the peer, by median; under 1 is slower."""
    if not {"squad", "peers"} <= parts.keys():
        return {}
    searches, adds = parts["squad"]["reading"]["search"], parts["squad"]["adds"]
    theirs, their_adds = parts["peers"]["search"], parts["peers"]["adds"]
    found = {
        f"{mode} search / sentence-transformers + {peer}": theirs[f"encode + {peer}"]["p50_ms"]
        / searches[mode]["whole"]["p50_ms"]
        for peer in ("faiss", "chroma")
        for mode in MODES
    }
    for mode in MODES:
        ours = searches[mode]["without_encoding"]["p50_ms"]
        found[f"{mode} search / Chroma, both without encoding"] = theirs["chroma"]["p50_ms"] / ours
    single, batch = adds["one_by_one"], adds["batch"]
    their_single, their_batch = their_adds["one_by_one"], their_adds["batch"]
    for peer in ("faiss", "chroma"):
        found[f"add / sentence-transformers + {peer}, which encode no query"] = (
            their_single[f"encode + {peer}"]["p50_ms"] / single["whole"]["p50_ms"]
        )
    found["add / Chroma, both without encoding"] = (
        their_single["chroma"]["p50_ms"] / single["without_encoding"]["p50_ms"]
    )
    found["batch add / Chroma, both without encoding"] = their_batch["chroma_ms"] / batch["without_encoding_ms"]
    return found


@dataclass(frozen=True)
class Aim:
    """A figure beside what it should be: at most, or at least."""

    what: str
    figure: float
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        return self.figure <= self.most if self.most is not None else self.figure >= (self.least or 0.0)

    def __str__(self) -> str:
        wanted = f"<= {self.most:g}" if self.most is not None else f">= {self.least or 0.0:g}"
        return f"{self.what:<72}{self.figure:>10.3f}  {wanted:<8}{'met' if self.met else 'MISSED'}"


def aims(parts: dict[str, Result]) -> list[Aim]:
    found = []
    if squad_ := parts.get("squad"):
        single, batch = squad_["adds"]["one_by_one"], squad_["adds"]["batch"]
        found += [
            Aim("constrain + solve + commit, one by one, p50 ms", single["core"]["p50_ms"], most=12),
            Aim("constrain + solve + commit, in batches, ms a document", batch["core_ms"], most=3),
            Aim("whole add, one by one, p50 ms", single["whole"]["p50_ms"], most=40),
            Aim("whole add, in batches, ms a document", batch["whole_ms"], most=15),
        ]
    for name, ratio in ratios(parts).items():
        if "faiss" in name and name.startswith(("learned search", "fused search")):
            found.append(Aim(f"times faster: {name}", ratio, least=2))
    if scale_ := parts.get("scale"):
        found.append(Aim(f"open at {scale_['documents']:,}, seconds", scale_["reading"]["open_seconds"], most=1))
    if rounds_ := parts.get("rounds"):
        found.append(
            Aim(f"memory growth over {rounds_['rounds']:,} add-delete rounds, MB", rounds_["growth_mb"], most=5)
        )
    return found + _quality_aims(parts)


def _quality_aims(parts: dict[str, Result]) -> list[Aim]:
    wanted = {
        "quality-squad": {
            "fused - lexical": 4.0,
            "fused - dense": 0.0,
            "fused - learned": 0.0,
            "learned - retrained": -0.5,
            "learned - dense": 0.0,
        },
        "quality-nq": {"learned - dense": 0.0},
    }
    found = []
    for name, differences in wanted.items():
        if part := parts.get(name):
            for pair, least in differences.items():
                one = part["differences"][pair]
                what = f"{name}: {pair}, H@1 (n = {one['n']:,}, standard error {one['standard_error']:.2f})"
                found.append(Aim(what, one["h@1"], least=least))
            ms = part["fill"]["without_encoding_ms"]
            found.append(Aim(f"{name}: filling without encoding and tuning, ms a document", ms, most=15))
            found.append(Aim(f"{name}: the same with tuning", ms + part["fill"]["tuning_ms"], most=15))
    return found


def show(parts: dict[str, Result]) -> None:
    """Ratios first, then aims, then what they come from."""
    for name, ratio in ratios(parts).items():
        print(f"{name:<72}{ratio:>9.2f}x")
    for aim in aims(parts):
        print(aim)
    for name, part in parts.items():
        print(f"\n{name}")
        for line in _lines(part):
            print(f"  {line}")


def _lines(found: Result, above: str = "") -> Iterable[str]:
    """One line a figure or spread, nested names joined."""
    for name, value in found.items():
        label = f"{above}{name.replace('_', ' ')}"
        if isinstance(value, dict) and "p50_ms" in value:
            yield f"{label:<60}p50 {value['p50_ms']:9.2f}  p99 {value['p99_ms']:9.2f} ms  n = {value['n']:,}"
        elif isinstance(value, dict) and "hits_at_1" in value:
            measures = (
                f"H@1 {value['hits_at_1']:6.2f}  H@10 {value['hits_at_10']:6.2f}  MRR@10 {value['mrr_at_10']:6.2f}"
            )
            yield f"{label:<60}{measures}  n = {value['queries']:,}"
        elif isinstance(value, dict) and "standard_error" in value:
            error = value["standard_error"]
            yield f"{label:<60}H@1 {value['h@1']:+6.2f}  standard error {error:.2f}  n = {value['n']:,}"
        elif isinstance(value, dict):
            yield from _lines(value, f"{label}, ")
        elif isinstance(value, float):
            yield f"{label:<60}{value:.3f}"
        elif not isinstance(value, list):
            yield f"{label:<60}{value}"


def work_folder() -> Path:
    """In the user's cache: a temporary folder in memory would make every commit look free."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "incdsi" / "benchmarks"
    home.mkdir(parents=True, exist_ok=True)
    return home


def run_all(run: Run, names: Sequence[str]) -> tuple[dict[str, Result], list[str]]:
    """What each part found, and the parts that failed; one that fails does not stop the others."""
    parts, failed = {}, []
    for name in names:
        say(f"part {name}")
        begin = time.perf_counter()
        try:
            parts[name] = run.child(name)
        except subprocess.CalledProcessError as error:
            say(f"part {name} failed with status {error.returncode}")
            failed.append(name)
            continue
        parts[name]["part_seconds"] = time.perf_counter() - begin
        say(f"part {name} took {parts[name]['part_seconds']:.0f} s")
    return parts, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts; nothing is written")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs; nothing is written")
    parser.add_argument("--child", choices=[*PARTS, *INSIDE], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = SMALL if arguments.small else Size()
    if arguments.child:
        run = Run(size=size, folder=arguments.folder, small=arguments.small)
        print(json.dumps({**PARTS, **INSIDE}[arguments.child](run)))
        return
    print(json.dumps(machine()))
    with tempfile.TemporaryDirectory(dir=work_folder(), prefix="index-") as folder:
        run = Run(size=size, folder=Path(folder), small=arguments.small)
        if size.cut is not None:
            cut_sets(run.folder, size.cut)
        parts, failed = run_all(run, arguments.only)
    show(parts)
    if set(arguments.only) == set(PARTS) and not arguments.small:
        told = [{**asdict(aim), "met": aim.met} for aim in aims(parts)]
        print("written to", write("index", {"ratios": ratios(parts), "aims": told, "failed": failed, "parts": parts}))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
