"""What a process holds of an index on Milvus, a document: `python -m benchmarks.milvus_memory`.

Documents of squad_plus with all their training questions, on a server; a process of its own opens the index and
searches; another puts everything on a bench as well, as tuning and another encoder do. What a document takes is the
difference between two sizes, over their difference.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.machine import machine, write
from benchmarks.real import real_data
from benchmarks.scale import memory_mb, say
from incdsi import Index
from incdsi.index.migration import migrate
from incdsi.text.encoders import load_encoder
from incdsi_lab.embedded import KnownTexts
from tests.milvus_server import enter, running

SIZES = (1_000, 4_000)
VERBS = ("open", "bench")
PORTION = 256
ASKED = ["who wrote the constitution", "what do plants need to grow", "when was the city founded"]


def held(place: str, verb: str) -> dict[str, float]:
    """MB that this process holds of its own more than before, and at most."""
    encoder = load_encoder()
    encoder.encode(ASKED)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = memory_mb()
    with Index.open(place, encoder) as index:
        assert isinstance(index, Index)
        for text in ASKED:
            index.search(text, 10)
        if verb == "bench":
            bench, records = index.engine.view().bench(), index.engine.records()
            while some := list(islice(records, PORTION)):
                bench.put(some)
        gc.collect()
        after = memory_mb()
    return {"own": after["own"] - before["own"], "peak": after["peak"] - before["all"]}


def measure(folder: Path, address: str) -> dict[str, Any]:
    data = real_data("squad_plus")
    order = np.random.default_rng(0).permutation(len(data.documents))
    told: dict[str, Any] = {"load_before": os.getloadavg()[0], "mb": {}}
    for count in SIZES:
        fill(folder / str(count), data, order[:count], tuning=False)[0].close()
        place = f"milvus://{address}/held{count}"
        migrate(folder / str(count), place, encoder=KnownTexts(data))
        for verb in VERBS:
            command = [sys.executable, "-m", "benchmarks.milvus_memory", "--place", place, "--verb", verb]
            child = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            told["mb"].setdefault(verb, {})[count] = json.loads(child.stdout.splitlines()[-1])
            say(f"{count:,} documents, {verb}: {told['mb'][verb][count]}")
    told["kb_a_document"] = {verb: each(told["mb"][verb], *SIZES) for verb in VERBS}
    return told


def each(mb: dict[int, dict[str, float]], less: int, more: int) -> dict[str, float]:
    """What one document more takes, in KB."""
    return {what: round(1000 * (mb[more][what] - mb[less][what]) / (more - less), 2) for what in mb[more]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--verb", choices=VERBS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    enter("benchmarks.milvus_memory", sys.argv[1:])
    if given.place:
        print(json.dumps(held(given.place, given.verb)))
        return
    with running() as server, tempfile.TemporaryDirectory(prefix="incdsi-milvus-") as folder:
        result = measure(Path(folder), server.address)
    print(json.dumps(machine()), json.dumps(result, indent=1))
    write("milvus-memory", result)


if __name__ == "__main__":
    main()
