"""One vector against all rows, beside a plain read of the bytes, numpy and faiss: `make bench-scan`.

All of them take turns in one process, round by round, so that whatever else the machine does disturbs each alike; the
ratios are of the best of all rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine, write
from incdsi.rows import LocalRows

K = 10


def contenders(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    rows = LocalRows(vectors.shape[1])
    rows.fill(vectors)
    numbers = np.ones(vectors.size, dtype=np.int8).view(np.int64)
    found: dict[str, Callable[[], Any]] = {
        "plain read of the int8 bytes": numbers.max,
        "scan (a score and a doubt for every row)": lambda: rows.scores(query),
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
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(arguments.rounds):
        for name, run in timed.items():
            run()  # what the one before left in the caches is gone
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    read = min(seconds["plain read of the int8 bytes"])
    cases = {
        name: {"best_ms": 1e3 * min(all_), "p50_ms": 1e3 * float(np.median(all_)), "times_the_read": min(all_) / read}
        for name, all_ in seconds.items()
    }
    for name, case in cases.items():
        print(f"{name:<42}{case['best_ms']:>8.2f} ms{case['p50_ms']:>8.2f} ms{case['times_the_read']:>8.1f}x")
    load = os.getloadavg()[0]
    packages = {"versions": machine(("simsimd", "faiss-cpu")), "load_while_running": load}
    print("written to", write("scan", {"rows": arguments.rows, "width": arguments.width, **packages, "cases": cases}))


if __name__ == "__main__":
    main()
