"""What an index on Milvus needs from 100 thousand to a billion documents: `python -m benchmarks.milvus_sizes`.

A calculation from measured figures, not a measurement. FLAT looks at every row: a search takes its calls, as long as
they took in the largest run of `make bench-milvus`, and its rows, as long as faiss took for each in `make bench-scan`,
shared by the cores of a query node. Documents are spread over such nodes. A client holds for each document what it held
in `python -m benchmarks.milvus_memory`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

from benchmarks.machine import RESULTS

SIZES = (10**5, 10**6, 10**7, 10**8, 10**9)
NODE, CORES = 10**6, 16  # documents on one query node, and its cores
ROW, TEXT, EMBEDDING, EMBEDDINGS = 1_536, 4_000, 1_600, 11  # bytes of a vector, a text with its queries, an embedding


class Work(NamedTuple):
    """What a verb does: its name in the results, and how many rows a document it looks at."""

    verb: str
    rows: int


WORK = (
    Work("search_learned", 1),
    Work("search_fused", 2 + 2 * EMBEDDINGS),  # two searches of vectors, two of texts
    Work("add", 10 + EMBEDDINGS),  # ten queries among vectors, one vector among preserve rows
)


def measured() -> dict[str, Any]:
    """The largest size that there are results of."""
    found = [json.loads(file.read_text()) for file in RESULTS.glob("milvus-[0-9]*.json")]
    largest: dict[str, Any] = max(found, key=lambda one: int(one["documents"]))
    return largest


def seconds_a_row() -> float:
    scan = json.loads((RESULTS / "scan.json").read_text())
    return float(scan["cases"]["faiss IndexFlatIP, top 10"]["best_cpu_ms"]) / 1000 / int(scan["rows"])


def seconds(run: dict[str, Any], work: Work, documents: int) -> float:
    told = run["server"]
    call = told["search_learned"]["p50_ms"] / told["search_learned"]["calls_each_in_all"] / 1000
    calls = sum(n for kind, n in told[work.verb]["calls_each"].items() if kind != "delete")
    return float(calls * call + min(documents, NODE) * work.rows * seconds_a_row() / CORES)


def bytes_in_a_client() -> float:
    """What one document takes in a client's memory: words, ids, keys and hashes of queries."""
    held = json.loads((RESULTS / "milvus-memory.json").read_text())
    return 1000 * float(held["kb_a_document"]["open"]["own"])


def line(count: int, run: dict[str, Any]) -> str:
    on_server, in_client = count * (ROW + TEXT + EMBEDDINGS * EMBEDDING) / 1e9, count * bytes_in_a_client() / 1e9
    times = " | ".join(f"{1000 * seconds(run, work, count):.0f} ms" for work in WORK)
    return f"| {count:,} | {on_server:,.1f} GB | {in_client:,.1f} GB | {-(-count // NODE):,} | {times} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    run = measured()
    print(f"calls as at {run['documents']:,} documents and a load of {run['load_before']:.0f}")
    print("| documents | on the server | in each client | query nodes | learned search | fused search | addition |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in SIZES:
        print(line(count, run))


if __name__ == "__main__":
    main()
