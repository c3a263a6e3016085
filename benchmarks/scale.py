"""An index of 10,000, 100,000 and a million documents with nine preserve rows each: `make bench-scale`.

Synthetic vectors and texts go through the real store; each measurement has a process of its own. The encoder is a toy,
and its time is left out. Documents are stored without solving for them: their vectors lie where solving would put
them, and those added later are placed by the solver among all others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine, write
from incdsi import Document, Index
from incdsi.progress import Progress
from incdsi.records import Record, StoredQuery
from incdsi.store import Store
from incdsi_lab.embedded import cache_home

Floats = NDArray[np.float32]
Result = dict[str, Any]
T = TypeVar("T")
SIZES = (10_000, 100_000, 1_000_000)
WIDTH, QUERIES, WORDS, LENGTH = 384, 9, 40, 25.0
KB_A_DOCUMENT = 65  # on disk at most: the store, a base, and a new one beside it
PORTION = 2_000
FILLED = "filled.json"


class Toy:
    """Unit vectors; a text's first word, d<number>, says which document it is about."""

    dimension = WIDTH
    fingerprint = hashlib.sha256(b"incdsi benchmarks: scale").hexdigest()

    def __init__(self) -> None:
        self.spent = np.zeros(2)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        begin = clocks()
        rows = [about(int(text.split(maxsplit=1)[0][1:]), hash_of(text)) for text in texts]
        self.spent += clocks() - begin
        return np.stack(rows) if rows else np.empty((0, WIDTH), dtype=np.float32)

    def timed(self, work: Callable[[], T]) -> tuple[T, NDArray[np.float64]]:
        """What the work gives, and its seconds without the encoder's: by the wall, and of the processor."""
        self.spent[:] = 0.0
        begin = clocks()
        found = work()
        return found, clocks() - begin - self.spent


def clocks() -> NDArray[np.float64]:
    return np.array([time.perf_counter(), time.process_time()])


def about(number: int, seed: int) -> Floats:
    """A query for that document: nearer to it than to any other."""
    noise = np.random.default_rng(seed).standard_normal(WIDTH, dtype=np.float32)
    return unit(direction(number) + 0.8 * unit(noise))


def direction(number: int) -> Floats:
    return unit(np.random.default_rng(number).standard_normal(WIDTH, dtype=np.float32))


def unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


def hash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


def document(number: int) -> Document:
    """WORDS words, frequent and rare ones as in a language."""
    words = np.minimum(np.random.default_rng(~number & 0xFFFFFFFF).zipf(1.3, WORDS), 50_000)
    return Document(id=f"d{number}", text=" ".join([f"d{number}", *(f"w{word}" for word in words.tolist())]))


def questions(one: Document) -> list[str]:
    """The generator: the document's number and some of its words."""
    words = one.text.split()
    return [" ".join([words[0], *words[start : start + 4]]) for start in range(1, 4 * QUERIES, 4)]


def records(start: int, stop: int) -> list[Record]:
    made = []
    for number in range(start, stop):
        one, own = document(number), direction(number)
        rng = np.random.default_rng(number + (1 << 40))
        rows = own + 0.8 * rng.standard_normal((QUERIES, WIDTH), dtype=np.float32) / np.float32(np.sqrt(WIDTH))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        vector = np.float32(LENGTH) * own
        queries = tuple(
            StoredQuery(text=text, embedding=row, generated=True, preserved=True, own_score=float(row @ vector))
            for text, row in zip(questions(one), rows, strict=True)
        )
        made.append(Record(document=one, vector=vector, anchor=own, queries=queries))
    return made


def fill(path: Path, count: int) -> Result:
    """Every document into the store, then a base, written by a writer that read everything from the store."""
    Index.create(path, Toy(), generator=questions, tuning=False).close()
    begin = time.perf_counter()
    with Store.open(path, writer=True) as store:
        for start in range(0, count, PORTION):
            with store.transaction() as tx:
                for record in records(start, min(start + PORTION, count)):
                    tx.insert(record)
            say(f"{min(start + PORTION, count):,} documents stored", start % (50 * PORTION) == 0)
    stored = time.perf_counter() - begin
    with Index.open(path, Toy(), generator=questions) as index:
        begin = time.perf_counter()
        index.delete("d0")
        read = time.perf_counter() - begin
        begin = time.perf_counter()
    return {
        "store_seconds": stored,
        "read_from_store_seconds": read,
        "write_base_seconds": time.perf_counter() - begin,
        "disk_mb": disk_mb(path),
    }


def read(path: Path, count: int) -> Result:
    """Open twice, and search; files are in the page cache as far as it goes."""
    encoder, before = Toy(), memory_mb()["all"]
    index, opened_first = encoder.timed(lambda: Index.open(path, encoder, generator=questions))
    index.close()
    index, opened = encoder.timed(lambda: Index.open(path, encoder, generator=questions))
    with index:
        held = memory_mb()
        chosen = np.random.default_rng(1).integers(1, count, 205)
        texts = [" ".join([f"d{number}", *document(int(number)).text.split()[10:14]]) for number in chosen]
        searches = {mode: _searches(index, encoder, texts, mode) for mode in ("learned", "fused", "lexical")}
        return {
            "open_first": seconds_of(opened_first),
            "open": seconds_of(opened),
            "search": searches,
            "memory_mb": {"before": before, "opened": held, "searched": memory_mb()},
        }


def _searches(index: Index, encoder: Toy, texts: Sequence[str], mode: str) -> Result:
    seconds, found = [], 0
    for text in texts:
        hits, spent = encoder.timed(partial(index.search, text, mode=mode))
        seconds.append(spent)
        found += hits[0].document_id == text.split(maxsplit=1)[0]
    return {**spread(seconds[5:]), "found_first": found / len(texts)}


def change(path: Path, count: int) -> Result:
    """Become a writer, add one by one and in a batch, delete one by one and many, close with a new base."""
    encoder, before = Toy(), memory_mb()["all"]
    index = Index.open(path, encoder, generator=questions)
    _, become = encoder.timed(lambda: index.delete("d1"))
    held, later = memory_mb(), [document(number) for number in range(count, count + 300)]
    adds = [encoder.timed(partial(index.add, one)) for one in later[:44]][4:]
    _, batch = encoder.timed(lambda: index.add_many(later[44:]))
    deletes = [encoder.timed(partial(index.delete, f"d{number}"))[1] for number in range(2, 32)]
    _, many = encoder.timed(lambda: index.delete([f"d{number}" for number in range(32, 132)]))
    result = {
        "become_writer": seconds_of(become),
        "add_one_by_one": spread([spent for _, spent in adds]),
        "add_steps_ms": {
            step: 1e3 * float(np.median([addition.seconds[step] for addition, _ in adds]))
            for step in adds[0][0].seconds
        },
        "add_in_a_batch_each": seconds_of(batch / len(later[44:])),
        "delete_one_by_one": spread(deletes),
        "delete_100_at_once": seconds_of(many),
        "memory_mb": {"before": before, "writing": held, "changed": memory_mb()},
    }
    index.close()
    return result


def seconds_of(spent: NDArray[np.float64]) -> Result:
    return {"seconds": float(spent[0]), "cpu_seconds": float(spent[1])}


def spread(spent: Sequence[NDArray[np.float64]]) -> Result:
    """By the wall, and of the processor: the latter tells more where others use the machine too."""
    (p50, p99), (cpu, _) = np.percentile(1e3 * np.stack(spent), [50, 99], axis=0).T
    return {"p50_ms": float(p50), "p99_ms": float(p99), "cpu_p50_ms": float(cpu), "n": len(spent)}


def memory_mb() -> dict[str, float]:
    """What this process holds: its own, pages of files, both, and the most there ever was of both."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"own": "RssAnon", "files": "RssFile", "all": "VmRSS", "peak": "VmHWM"}
    return {name: int(lines[key].split()[0]) * 1024 / 1e6 for name, key in names.items()}


def disk_mb(path: Path) -> dict[str, float]:
    return {file.name: file.stat().st_size / 1e6 for file in path.iterdir() if file.is_file()}


def say(text: str, really: bool = True) -> None:
    if really:
        print(f"  {text}", file=sys.stderr, flush=True)


MEASURED: dict[str, Callable[[Path, int], Result]] = {"fill": fill, "read": read, "change": change}


def measure(count: int, folder: Path) -> Result:
    """Everything at one size; what was filled before is not filled again."""
    filled = folder / FILLED
    result: Result = {"documents": count, "fill": json.loads(filled.read_text()) if filled.exists() else None}
    for name in [name for name in MEASURED if result.get(name) is None]:
        result[name] = measured(name, count, folder)
    return result


def measured(name: str, count: int, folder: Path) -> Result:
    """One measurement, in a process of its own."""
    say(f"{count:,}: {name}, at a load of {os.getloadavg()[0]:.1f}")
    command = [sys.executable, "-m", "benchmarks.scale", "--child", name, "--folder", str(folder)]
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # as the command line and the server have it
    child = subprocess.run(
        [*command, "--sizes", str(count)], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    return {"load": os.getloadavg()[0], **json.loads(child.stdout.splitlines()[-1])}


def fill_ahead(count: int, folder: Path) -> None:
    """Fill there, while others use the machine, and leave it; it can be measured once."""
    folder.mkdir(parents=True)
    (folder / FILLED).write_text(json.dumps(measured("fill", count, folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--child", choices=MEASURED, help=argparse.SUPPRESS)
    parser.add_argument(
        "--folder",
        type=Path,
        help="one size in two runs: the first fills an index in this new folder, the second measures and removes it",
    )
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(MEASURED[arguments.child](arguments.folder / "index", arguments.sizes[0])))
        return
    if arguments.folder and len(arguments.sizes) > 1:
        parser.error("--folder takes one size; say which with --sizes")
    if arguments.folder and arguments.folder.exists() and not (arguments.folder / FILLED).exists():
        parser.error(f"{arguments.folder} was not filled by this benchmark; name a new folder")
    print(json.dumps(machine()))
    if arguments.folder and not arguments.folder.exists():
        fill_ahead(arguments.sizes[0], arguments.folder)
        return
    home = cache_home()
    home.mkdir(parents=True, exist_ok=True)
    for count in arguments.sizes:
        room = shutil.disk_usage(home).free
        if not arguments.folder and room < 1000 * KB_A_DOCUMENT * count:
            say(f"{count:,} documents left out: they need {KB_A_DOCUMENT * count / 1e6:.0f} GB of disk")
            continue
        with tempfile.TemporaryDirectory(dir=home) as folder:
            result = measure(count, arguments.folder or Path(folder))
        print(json.dumps(result, indent=1), flush=True)
        if count in SIZES:
            print("written to", write(f"scale-{count}", result))
    if arguments.folder:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
