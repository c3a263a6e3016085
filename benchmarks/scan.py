"""One vector against all rows, beside a plain read of the bytes, numpy and faiss: `make bench-scan`.

All of them take turns in one process, round by round, so that what else the machine does disturbs each alike. Ratios
are of processor time, the best of all rounds: faiss and numpy use every core, and on a busy machine wait for them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from benchmarks.machine import machine, write
from incdsi.rows import LocalRows

K = 10
READ = "plain read of the int8 bytes"


def opened(vectors: NDArray[np.float32]) -> LocalRows:
    """Rows as an index has them that was opened: nobody changes them, and they lie together."""
    filled, rows = LocalRows(vectors.shape[1]), LocalRows(vectors.shape[1])
    filled.fill(vectors)
    saved = {name: array[:] for name, array in filled.saved(np.arange(len(vectors))).items()}
    for array in saved.values():
        array.flags.writeable = False
    rows.fill_saved(saved, preserve=False)
    return rows


def contenders(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    rows = opened(vectors)
    numbers = np.ones(vectors.size, dtype=np.int8).view(np.int64)
    codes = numbers.view(np.int8).reshape(vectors.shape)
    found: dict[str, Callable[[], Any]] = {
        READ: numbers.max,
        "simsimd alone": lambda: simsimd.cdist(codes, codes[:1], "dot", out_dtype="float32"),
        "scan (the products of every row)": lambda: rows.scores(query),
        f"scan and exact top {K}": lambda: rows.scores(query).best(K),
        "numpy float32": lambda: vectors @ query,
    }
    if importlib.util.find_spec("faiss"):
        import faiss

        flat = faiss.IndexFlatIP(vectors.shape[1])
        flat.add(vectors)
        found[f"faiss IndexFlatIP, top {K}"] = lambda: flat.search(query[None], K)
        assert flat.search(query[None], K)[1][0].tolist() == rows.scores(query).best(K)[0].tolist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=50)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((arguments.rows, arguments.width), dtype=np.float32)
    timed = contenders(vectors, rng.standard_normal(arguments.width, dtype=np.float32))
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in timed}
    for _ in range(arguments.rounds):
        for name, run in timed.items():
            run()  # what the one before left in the caches is gone
            wall, processor = time.perf_counter(), time.process_time()
            run()
            seconds[name].append((time.perf_counter() - wall, time.process_time() - processor))
    best = {name: 1e3 * np.min(spent, axis=0) for name, spent in seconds.items()}
    cases = {
        name: {
            "best_ms": float(wall),
            "p50_ms": 1e3 * float(np.median(seconds[name], axis=0)[0]),
            "best_cpu_ms": float(processor),
            "times_the_read": float(processor / best[READ][1]),
        }
        for name, (wall, processor) in best.items()
    }
    for name, case in cases.items():
        print(f"{name:<42}" + "".join(f"{value:>10.2f}" for value in case.values()))
    load = os.getloadavg()[0]
    packages = {name: machine(("simsimd", "faiss-cpu"))[name] for name in ("simsimd", "faiss-cpu")}
    told = {"rows": arguments.rows, "width": arguments.width, "load": load, **packages}
    print("written to", write("scan", {**told, "cases": cases}))


if __name__ == "__main__":
    main()
