"""What approximate indexes over document vectors miss, on real documents: `python -m benchmarks.milvus_recall`.

squad_plus, placed by the solver among all training questions, in a folder and on a Milvus server; test questions are
asked of both. `make bench-milvus` does the same with random vectors, which have no neighbourhoods: the worst case.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.machine import machine, write
from benchmarks.real import real_data
from benchmarks.scale import say
from incdsi import Index
from incdsi.engine.milvus.kinds import CHOICE
from incdsi.errors import IncDSIError
from incdsi.index.migration import migrate
from incdsi_lab.embedded import KnownTexts
from tests.milvus_server import enter, running

KINDS, MODES = ("exact", "hnsw", "ivf"), ("learned", "fused")
QUESTIONS = 300
Lists = dict[str, list[list[str]]]


def lists(index: Index, texts: Sequence[str]) -> tuple[Lists, dict[str, float]]:
    """The ten best for each text in each mode, and the median milliseconds of a search."""
    found: Lists = {mode: [] for mode in MODES}
    spent: dict[str, list[float]] = {mode: [] for mode in MODES}
    for mode, text in itertools.product(MODES, texts):
        begin = time.perf_counter()
        hits = index.search(text, 10, mode=mode)
        spent[mode].append(1000 * (time.perf_counter() - begin))
        found[mode].append([hit.document_id for hit in hits])
    return found, {f"{mode}_p50_ms": round(float(np.median(some)), 2) for mode, some in spent.items()}


def recall(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    """How much of the right ten is found."""
    return round(float(np.mean([len({*some} & {*ten}) / len(ten) for some, ten in zip(found, right, strict=True)])), 4)


def measure(folder: Path, address: str, documents: int | None) -> dict[str, Any]:
    data = real_data("squad_plus")
    order = np.random.default_rng(0).permutation(len(data.documents))[:documents]
    fill(folder / "shop", data, order, tuning=False)[0].close()
    chosen = np.random.default_rng(1).permutation(len(data.test))[:QUESTIONS]
    texts, encoder, place = [data.test.texts[one] for one in chosen], KnownTexts(data), f"milvus://{address}/real"
    migrate(folder / "shop", place, encoder=encoder)
    told: dict[str, Any] = {"documents": len(order), "questions": len(texts), "load_before": os.getloadavg()[0]}
    with Index.open(folder / "shop", encoder) as here, Index.open(place, encoder) as there:
        assert isinstance(there, Index)
        right, told["folder"] = lists(here, texts)
        for kind in KINDS:
            os.environ[CHOICE] = f"{kind}:0" if kind != "exact" else kind
            begin = time.perf_counter()
            try:
                there.compact()
            except IncDSIError as error:
                told[kind] = {"refused": str(error)}
                continue
            built = round(time.perf_counter() - begin, 1)
            found, spent = lists(there, texts)
            told[kind] = {f"recall_at_10_{mode}": recall(found[mode], right[mode]) for mode in MODES}
            told[kind] |= {"seconds_to_copy_and_build": built, "info_says": there.info().vector_search, **spent}
            say(f"{kind}: {json.dumps(told[kind])}")
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, help="so many, drawn; then no results are written")
    given = parser.parse_args()
    enter("benchmarks.milvus_recall", sys.argv[1:])
    print(json.dumps(machine()))
    with running() as server, tempfile.TemporaryDirectory(prefix="incdsi-milvus-") as folder:
        result = measure(Path(folder), server.address, given.documents)
        print(json.dumps(result, indent=1))
        if given.documents is None:
            write("milvus-recall", result)


if __name__ == "__main__":
    main()
