"""The same index in a folder, in Milvus Lite and on a Milvus server, in one run: `make bench-milvus`.

Synthetic documents of `benchmarks.scale`, nine preserve rows each, are stored in a folder and migrated to the other
two. Searches and additions then take turns on all three. Times are by the wall and without the encoder's, and beside
them are the calls made and the rows moved; hits must be those of the folder. At the end the server's document vectors
get each approximate index in turn: how much of the folder's lists it finds, and whether documents are still placed
where the folder places them.

Lite looks at every row in Python, so that a fused search there takes a second from 20,000 documents on: it is asked a
few times only, by one client, and left out of larger sizes. What does not fit into `--minutes` is left out and said to
be: approximate indexes first, each of which copies everything.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.index.run import tenths
from benchmarks.machine import machine, write
from benchmarks.scale import Toy, document, fill, questions, say
from incdsi import Index
from incdsi.engine.milvus.kinds import CHOICE
from incdsi.errors import IncDSIError
from incdsi.index.migration import COMPARED, migrate
from tests.milvus_server import enter, running

SIZES = (2_000, 20_000, 100_000)
LITE = 20_000  # documents, and Lite is left out where there are more
MINUTES = 15  # for one size
SEARCHES, ADDS, BATCHES, BATCH, CLIENTS = 100, 20, 3, 64, 16
FEW = 10  # searches, comparisons and additions in Lite
KINDS = ("hnsw", "ivf")
Result = dict[str, Any]


class Side:
    """An index somewhere, and what is measured of it."""

    def __init__(self, name: str, index: Any) -> None:
        self.name = name
        self.index = index
        self.most = FEW if name == "lite" else SEARCHES  # times that it is asked the same
        self.seconds: dict[str, list[float]] = {}
        self.calls: dict[str, Counter[str]] = {}
        self.moved: dict[str, Counter[str]] = {}
        self.hits: dict[str, list[list[str]]] = {}

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        encoder, before, rows = self.index._session.encoder, self._counted("calls"), self._counted("moved")
        found, spent = encoder.timed(work)
        self.seconds.setdefault(what, []).append(float(spent[0]))
        self.calls.setdefault(what, Counter()).update(self._counted("calls") - before)
        self.moved.setdefault(what, Counter()).update(self._counted("moved") - rows)
        return found

    def search(self, what: str, text: str, mode: str) -> None:
        found = self.timed(what, lambda: self.index.search(text, 10, mode=mode))
        self.hits.setdefault(what, []).append([hit.document_id for hit in found])

    def told(self) -> Result:
        return {what: self._told(what) for what in self.seconds}

    def _told(self, what: str) -> Result:
        count, milliseconds = len(self.seconds[what]), 1000 * np.array(self.seconds[what])
        p50, p95 = np.percentile(milliseconds, [50, 95]).round(2).tolist()
        told: Result = {"n": count, "p50_ms": p50, "p95_ms": p95}
        if calls := self.calls[what]:
            told["calls_each"] = {kind: round(n / count, 2) for kind, n in sorted(calls.items())}
            told["calls_each_in_all"] = round(calls.total() / count, 2)
            told["rows_moved_each"] = {kind: round(n / count) for kind, n in self.moved[what].items()}
        return told

    def _counted(self, what: str) -> Counter[str]:
        return Counter(getattr(getattr(self.index.engine, "connection", None), what, {}))


@contextlib.contextmanager
def sides(folder: Path, address: str, count: int, without: Sequence[str], told: Result) -> Iterator[list[Side]]:
    """The three, filled with the same documents."""
    fill(folder / "shop", count)
    places: dict[str, Path | str] = {
        "folder": folder / "shop",
        "lite": f"milvus+lite://{folder / 'lite.db'}/shop",
        "server": f"milvus://{address}/shop{count}",
    }
    if count > LITE:
        del places["lite"]
    wanted = {name: place for name, place in places.items() if name not in without}
    for name, place in list(wanted.items())[1:]:
        begin = time.perf_counter()
        with patch("incdsi.index.migration.COMPARED", FEW if name == "lite" else COMPARED):
            done = migrate(folder / "shop", place, encoder=Toy(), progress=tenths(f"to {name}"))
        told[f"migrate_to_{name}"] = {
            "seconds": round(time.perf_counter() - begin, 1),
            "documents": done.documents,
            "searches_that_gave_the_same": done.searches,
        }
        say(f"{count:,} documents in {name} after {time.perf_counter() - begin:.0f} s")
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch("incdsi.engine.milvus.lease.LIVES_FOR", 3600.0))  # no call is a sign of life
        opened = []
        for name, place in wanted.items():
            begin = time.perf_counter()
            opened.append(Side(name, stack.enter_context(Index.open(place, Toy(), generator=questions))))
            told[f"open_{name}_seconds"] = round(time.perf_counter() - begin, 2)
            say(f"{name} opened in {time.perf_counter() - begin:.0f} s")
        yield opened


def asked(count: int) -> list[str]:
    """The beginnings of texts, each of a document."""
    chosen = np.random.default_rng(1).integers(1, count, SEARCHES)
    return [" ".join([f"d{number}", *document(int(number)).text.split()[10:14]]) for number in chosen]


def search(three: Sequence[Side], texts: Sequence[str], told: Result) -> None:
    """One client, then sixteen."""
    for mode, (number, text), side in itertools.product(("learned", "fused"), enumerate(texts), three):
        if number < side.most:
            side.search(f"search_{mode}", text, mode)
    for mode, side in itertools.product(("learned", "fused"), [side for side in three if side.most > FEW]):
        begin = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(lambda text, s=side, m=mode: s.index.search(text, 10, mode=m), texts))
        each = told.setdefault(f"searches_a_second_by_{CLIENTS}_clients", {}).setdefault(mode, {})
        each[side.name] = round(len(texts) / (time.perf_counter() - begin), 1)


def add(three: Sequence[Side], first: int, ones: int, batches: int) -> None:
    """Documents one by one, then in batches, to each; the first makes a writer of it and does not count."""
    for side in three:
        side.index.add(document(first))
    first += 1
    for number, side in itertools.product(range(first, first + ones), three):
        if number - first < side.most:
            side.timed("add", partial(_add_one, side.index, number))
    for begin in range(first + ones, first + ones + batches * BATCH, BATCH):
        batch = [document(one) for one in range(begin, begin + BATCH)]
        for side in (side for side in three if side.most > FEW or begin == first + ones):
            side.timed(f"add_batch_of_{BATCH}", partial(side.index.add_many, batch))


def _add_one(index: Index, number: int) -> None:
    index.add(document(number))


def furthest(side: Side, folder: Side, numbers: range) -> float:
    """The largest difference between a vector here and in the folder, of documents that were added to both."""
    ids = [id for number in numbers if (id := document(number).id) in side.index]
    pairs = ((side.index.engine.get(id).vector, folder.index.engine.get(id).vector) for id in ids)
    return max(float(np.abs(here - there).max()) for here, there in pairs)


def recall(side: Side, folder: Side, what: str, of: str) -> float:
    """How much of the folder's ten best is among the ten best here."""
    pairs = zip(side.hits[what], folder.hits[of], strict=True)  # the same texts
    return round(float(np.mean([len({*found} & {*right}) / len(right) for found, right in pairs])), 4)


def approximate(server: Side, folder: Side, texts: Sequence[str], first: int, until: float) -> Result:
    """Each index over document vectors that Milvus builds here, as long as there is time."""
    result: Result = {"exact": {"recall_at_10": {}}}
    for text in texts:
        folder.search("again", text, "learned")
        folder.search("again_fused", text, "fused")
        server.search("learned_by_exact", text, "learned")
    result["exact"]["recall_at_10"] = recall(server, folder, "learned_by_exact", "again")
    for number, kind in enumerate(KINDS):
        if time.monotonic() > until:
            result[kind] = {"left_out": "no time"}
            continue
        os.environ[CHOICE] = f"{kind}:0"
        begin = time.perf_counter()
        try:
            server.index.compact()
        except IncDSIError as error:
            result[kind] = {"refused": str(error)}
            continue
        built = round(time.perf_counter() - begin, 1)
        say(f"{kind} after {built:.0f} s")
        for text, mode in itertools.product(texts, ("learned", "fused")):
            server.search(f"{mode}_by_{kind}", text, mode)
        added = range(first + 2 * number, first + 2 * number + 2)
        add([server, folder], added.start, 1, 0)
        result[kind] = {
            "seconds_to_copy_and_build": built,
            "info_says": server.index.engine.vector_search,
            "recall_at_10": recall(server, folder, f"learned_by_{kind}", "again"),
            "recall_at_10_fused": recall(server, folder, f"fused_by_{kind}", "again_fused"),
            "furthest_vector_of_an_addition_from_the_folders": furthest(server, folder, added),
        }
    os.environ.pop(CHOICE, None)
    return result


def measure(folder: Path, address: str, count: int, without: Sequence[str], minutes: float) -> Iterator[Result]:
    """What there is to tell after the three were compared, and once more after each index was."""
    begin = time.monotonic()
    told: Result = {"documents": count, "load_before": os.getloadavg()[0]}
    with sides(folder, address, count, without, told) as three:
        texts = asked(count)
        search(three, texts, told)
        say("searched")
        add(three, count, ADDS, BATCHES)
        say("added")
        told["same_hits_as_the_folder"] = {side.name: same(side, three[0]) for side in three[1:]}
        added = range(count, count + 1 + ADDS + BATCHES * BATCH)
        told["furthest_vector_from_the_folders"] = {side.name: furthest(side, three[0], added) for side in three[1:]}
        told["minutes"] = round((time.monotonic() - begin) / 60, 1)
        yield told | {side.name: side.told() for side in three}
        if "approximate" not in without:
            each = 1.5 * told["migrate_to_server"]["seconds"]  # an index is as much to copy, and then to build
            until = begin + 60 * minutes - each
            told["index_of_document_vectors"] = approximate(three[-1], three[0], texts, added.stop, until)
            told["minutes"] = round((time.monotonic() - begin) / 60, 1)
            yield told | {side.name: side.told() for side in three}


def same(side: Side, folder: Side) -> str:
    """How many searches found the same in the same order as in the folder."""
    pairs = [pair for what, found in side.hits.items() for pair in zip(found, folder.hits[what], strict=False)]
    return f"{sum(found == right for found, right in pairs)} of {len(pairs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="others write no results")
    parser.add_argument("--without", nargs="+", choices=("lite", "approximate"), default=(), help="leave these out")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="that one size may take")
    given = parser.parse_args()
    enter("benchmarks.milvus", sys.argv[1:])
    print(json.dumps(machine()))
    for count in given.sizes:
        with running() as server, tempfile.TemporaryDirectory(prefix="incdsi-milvus-") as folder:
            for result in measure(Path(folder), server.address, count, given.without, given.minutes):
                print(json.dumps(result, indent=1), flush=True)
                if count in SIZES:
                    write(f"milvus-{count}", result)


if __name__ == "__main__":
    main()
