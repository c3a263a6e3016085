"""What an index on Milvus needs from 100 thousand to a billion documents: `python -m benchmarks.milvus_sizes`.

A calculation from what `make bench-milvus` measured on this machine, not a measurement. FLAT looks at every row, so a
call takes a time of its own and a time for each document on a query node; both come from the two largest sizes that
were measured. Documents are spread over nodes like this machine, so that a call takes as long as its slowest node.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS

SIZES = (10**5, 10**6, 10**7, 10**8, 10**9)
NODE = 10**6  # documents on one query node
ROW, TEXT, EMBEDDING, EMBEDDINGS = 1_536, 4_000, 1_600, 11  # bytes of a vector, a text with its queries, an embedding
CLIENT = 300 + 6 * 100  # bytes a document in a client's memory: ids and keys, and 100 postings
TIMED = ("search_learned", "search_fused", "add")


def measured(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The two largest sizes that there are results of, the smaller first."""
    found = [json.loads(file.read_text()) for file in folder.glob("milvus-[0-9]*.json")]
    return sorted(found, key=lambda one: int(one["documents"]))[-2:]


def milliseconds(small: dict[str, Any], large: dict[str, Any], what: str, documents: int) -> float:
    """On a straight line through both sizes; never less than at the smaller one."""
    low, high = (one["server"][what]["p50_ms"] for one in (small, large))
    slope = max(0.0, (high - low) / (large["documents"] - small["documents"]))
    return float(max(low, low + slope * (documents - small["documents"])))


def line(count: int, small: dict[str, Any], large: dict[str, Any]) -> str:
    on_server, in_client = count * (ROW + TEXT + EMBEDDINGS * EMBEDDING) / 1e9, count * CLIENT / 1e9
    times = (f"{milliseconds(small, large, what, min(count, NODE)) / 1000:.1f} s" for what in TIMED)
    nodes = -(-count // NODE)
    return f"| {count:,} | {on_server:,.1f} GB | {in_client:,.1f} GB | {nodes:,} | {' | '.join(times)} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    small, large = measured()
    print(f"from {small['documents']:,} and {large['documents']:,} documents")
    print("| documents | on the server | in each client | query nodes | learned search | fused search | addition |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in SIZES:
        print(line(count, small, large))


if __name__ == "__main__":
    main()
