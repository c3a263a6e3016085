"""The same index in a folder, in Milvus Lite and on a Milvus server, in one run: `make bench-milvus`.

Synthetic documents of `benchmarks.scale`, nine preserve rows each, are stored in a folder and migrated to the other
two. Searches and additions then take turns on all three. Times are by the wall and without the encoder's, and beside
them are the calls made and the rows moved; hits must be those of the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine, write
from benchmarks.scale import Toy, document, fill, questions, say
from incdsi import Index
from incdsi.index.migration import migrate
from tests.milvus_server import enter, running

SIZES = (20_000, 100_000)
SEARCHES, ADDS, BATCHES, BATCH, CLIENTS = 100, 20, 3, 64, 16
Result = dict[str, Any]


def spread(seconds: list[float]) -> Result:
    milliseconds = 1000 * np.array(seconds)
    return {"n": len(seconds), "p50_ms": round(float(np.median(milliseconds)), 2)} | {
        f"p{percent}_ms": round(float(np.percentile(milliseconds, percent)), 2) for percent in (95,)
    }


class Side:
    """An index somewhere, and what is measured of it."""

    def __init__(self, name: str, index: Index) -> None:
        self.name = name
        self.index = index
        self.seconds: dict[str, list[float]] = {}
        self.calls: dict[str, Counter[str]] = {}
        self.moved: dict[str, Counter[str]] = {}
        self.hits: list[list[str]] = []

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        encoder, before, rows = self.index._session.encoder, self._calls(), self._moved()
        found, spent = encoder.timed(work)  # type: ignore[attr-defined]
        self.seconds.setdefault(what, []).append(float(spent[0]))
        self.calls.setdefault(what, Counter()).update(self._calls() - before)
        self.moved.setdefault(what, Counter()).update(self._moved() - rows)
        return found

    def told(self) -> Result:
        result: Result = {}
        for what, seconds in self.seconds.items():
            result[what] = spread(seconds)
            if self.calls[what]:
                count = len(seconds)
                result[what]["calls_each"] = {kind: round(n / count, 2) for kind, n in sorted(self.calls[what].items())}
                result[what]["calls_each_in_all"] = round(self.calls[what].total() / count, 2)
                result[what]["rows_moved_each"] = {kind: round(n / count) for kind, n in self.moved[what].items()}
        return result

    def _calls(self) -> Counter[str]:
        return Counter(getattr(getattr(self.index.engine, "connection", None), "calls", {}))

    def _moved(self) -> Counter[str]:
        return Counter(getattr(getattr(self.index.engine, "connection", None), "moved", {}))


@contextlib.contextmanager
def sides(folder: Path, address: str, count: int, told: Result) -> Iterator[list[Side]]:
    """The three, filled with the same documents."""
    fill(folder / "shop", count)
    places: dict[str, Path | str] = {
        "folder": folder / "shop",
        "lite": f"milvus+lite://{folder / 'lite.db'}/shop",
        "server": f"milvus://{address}/shop{count}",
    }
    for name, place in list(places.items())[1:]:
        begin = time.perf_counter()
        done = migrate(folder / "shop", place, encoder=Toy())
        told[f"migrate_to_{name}"] = {
            "seconds": round(time.perf_counter() - begin, 1),
            "documents": done.documents,
            "searches_that_gave_the_same": done.searches,
        }
        say(f"{count:,} documents in {name}")
    with contextlib.ExitStack() as stack:
        opened = []
        for name, place in places.items():
            begin = time.perf_counter()
            index = stack.enter_context(Index.open(place, Toy(), generator=questions))
            told[f"open_{name}_seconds"] = round(time.perf_counter() - begin, 2)
            opened.append(Side(name, index))  # type: ignore[arg-type]
        yield opened


def measure(folder: Path, address: str, count: int) -> Result:
    told: Result = {"documents": count}
    with sides(folder, address, count, told) as three:
        rng = np.random.default_rng(1)
        texts = [
            " ".join([f"d{number}", *document(int(number)).text.split()[10:14]])
            for number in rng.integers(1, count, SEARCHES)
        ]
        for mode in ("learned", "fused"):
            for text in texts:
                for side in three:
                    hits = side.timed(f"search_{mode}", lambda s=side, t=text, m=mode: s.index.search(t, 10, mode=m))
                    side.hits.append([hit.document_id for hit in hits])
        for side in three:
            begin = time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as clients:
                list(clients.map(lambda text, s=side: s.index.search(text, 10, mode="learned"), texts * 2))
            told.setdefault(f"searches_a_second_by_{CLIENTS}_clients", {})[side.name] = round(
                2 * len(texts) / (time.perf_counter() - begin), 1
            )
        for number in range(count, count + ADDS):
            for side in three:
                side.timed("add", lambda s=side, n=number: s.index.add(document(n)))
        for number in range(BATCHES):
            first = count + ADDS + number * BATCH
            batch = [document(one) for one in range(first, first + BATCH)]
            for side in three:
                side.timed(f"add_batch_of_{BATCH}", lambda s=side, b=batch: s.index.add_many(b))
        told["same_hits_as_the_folder"] = {
            side.name: f"{sum(a == b for a, b in zip(three[0].hits, side.hits, strict=True))} of {len(side.hits)}"
            for side in three[1:]
        }
        vectors = [dict(zip(*side.index.engine.vectors(), strict=True)) for side in three]
        told["furthest_vector_from_the_folders"] = {
            side.name: max(float(np.abs(own[id] - vectors[0][id]).max()) for id in own)
            for side, own in zip(three[1:], vectors[1:], strict=True)
        }
        return told | {side.name: side.told() for side in three}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="others write no results")
    given = parser.parse_args()
    enter("benchmarks.milvus", sys.argv[1:])
    print(json.dumps(machine()))
    results = []
    with running() as server:
        for count in given.sizes:
            with tempfile.TemporaryDirectory(prefix="incdsi-milvus-") as folder:
                results.append(measure(Path(folder), server.address, count))
            print(json.dumps(results[-1], indent=1), flush=True)
    if tuple(given.sizes) == SIZES:
        write("milvus", {"sizes": results})


if __name__ == "__main__":
    main()
