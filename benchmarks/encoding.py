"""Encoding throughput against sentence-transformers' own `encode`, one by one and in batches.

    python -m benchmarks.encoding [--queries 300] [--documents 200] [--repeats 3] [--threads 2]

All encoders run in turn on the same texts in the same process, each repeat in another order; the best
repeat counts, because other work on the machine only ever adds time. Quality stands beside time: the
lowest cosine to sentence-transformers' embedding of the same text.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import pydoc
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from benchmarks.machine import machine, write
from incdsi.text.encoders import fetch
from incdsi.text.encoders.export import export_onnx
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

PEER = "sentence-transformers"

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="for every encoder alike")
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    source, queries, documents = texts(settings.queries, settings.documents)
    with tempfile.TemporaryDirectory() as folder:
        encoders, int8 = candidates(Path(folder), settings.threads)
        jobs = {
            "queries, one by one": (queries, True),
            "queries, batches": (queries, False),
            "documents, one by one": (documents, True),
            "documents, batches": (documents, False),
        }
        rows = [
            row
            for name, (batch, single) in jobs.items()
            for row in race(name, batch, single, encoders, settings.repeats)
        ]
    path = write("encoding", {"source": source, "threads": settings.threads, "int8_agreement": int8, "rows": rows})
    show(source, int8, rows)
    print(f"written: {path.name}")


def candidates(folder: Path, threads: int) -> tuple[dict[str, Encode], dict[str, float]]:
    """The peer first, then ours; int8 comes with its measured agreement."""
    path = fetch.installed_model() or fetch.HUB_NAME
    peer = SentenceTransformer(str(path))
    torch_encoder = TorchEncoder.load(path)
    export_onnx(torch_encoder, folder / "float32")
    export_onnx(torch_encoder, folder / "int8", quantise=True)
    exported, small = (OnnxEncoder(folder / name, threads=threads) for name in ("float32", "int8"))
    encoders: dict[str, Encode] = {
        PEER: lambda batch: peer.encode(list(batch), show_progress_bar=False),
        "TorchEncoder": torch_encoder.encode,
        "OnnxEncoder": exported.encode,
        "OnnxEncoder int8": small.encode,
    }
    return encoders, dict(small.manifest.agreement)


def race(
    name: str, batch: list[str], single: bool, encoders: dict[str, Encode], repeats: int
) -> list[dict[str, object]]:
    """One row per encoder: best seconds of the repeats, ratio to the peer, cosine to the peer."""
    best: dict[str, float] = {}
    found: dict[str, NDArray[np.float32]] = {}
    order = list(encoders)
    for encode in encoders.values():
        encode(batch[:8])
    for repeat in range(repeats):
        for label in order[repeat % len(order) :] + order[: repeat % len(order)]:
            start = time.perf_counter()
            found[label] = run(encoders[label], batch, single)
            best[label] = min(best.get(label, np.inf), time.perf_counter() - start)
    return [
        {
            "job": name,
            "encoder": label,
            "n": len(batch),
            "milliseconds_per_text": 1e3 * best[label] / len(batch),
            "texts_per_second": len(batch) / best[label],
            "ratio": best[PEER] / best[label],
            "lowest_cosine": float(cosines(found[PEER], found[label]).min()),
        }
        for label in encoders
    ]


def run(encode: Encode, batch: list[str], single: bool) -> NDArray[np.float32]:
    return np.concatenate([encode([text]) for text in batch]) if single else encode(batch)


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    found: NDArray[np.float32] = (left * right).sum(axis=1) / lengths[0] / lengths[1]
    return found


def texts(queries: int, documents: int) -> tuple[str, list[str], list[str]]:
    """Real queries and documents, spread over the set; docstrings and their first lines without it."""
    folder = data_home() / "squad_plus"
    if folder.is_dir():
        found = read_jsonl(folder)
        asked, written = [query.text for query in found.queries], [document.text for document in found.documents]
        return found.name, spread(asked, queries), spread(written, documents)
    pages = [page for module in pkgutil.iter_modules() if (page := docstring(module.name))]
    return (
        "standard library docstrings",
        spread([page.splitlines()[0] for page in pages], queries),
        spread(pages, documents),
    )


def docstring(module: str) -> str:
    found = sys.modules.get(module)
    return pydoc.getdoc(found) if found is not None else ""


def spread(found: list[str], count: int) -> list[str]:
    step = max(len(found) // count, 1)
    return found[::step][:count]


def show(source: str, int8: dict[str, float], rows: list[dict[str, object]]) -> None:
    print(f"{source}; {json.dumps(machine())}")
    print(f"int8 against torch on the export's samples: {int8}")
    print(f"{'job':24}{'encoder':24}{'n':>6}{'ms/text':>10}{'ratio':>8}{'lowest cosine':>16}")
    for row in rows:
        print(
            f"{row['job']:24}{row['encoder']:24}{row['n']:6}{row['milliseconds_per_text']:10.2f}"
            f"{row['ratio']:8.2f}{row['lowest_cosine']:16.6f}"
        )


if __name__ == "__main__":
    main()
