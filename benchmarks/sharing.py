"""Encoding while other processes use the cores: what threads and their waiting are worth, alone and beside others.

    python -m benchmarks.sharing [--queries 200] [--documents 20] [--no-peer]

Each kind of session encodes the same queries, one by one, and the same documents, in a process of its own, while 0, 1
and 2 other processes compute without a pause. The kinds take turns, three rounds of each; medians of all their queries.
About five minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmarks.index.run import Result, say, spread
from benchmarks.machine import write
from incdsi.text.encoders import fetch, load_encoder
from incdsi.text.encoders.manifest import GRAPH
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

BUSY = (0, 1, 2)
ROUNDS = 3
WARM = 10
PEER = "sentence-transformers"
STOPS, NEVER, FOR = (
    "session.force_spinning_stop",
    "session.intra_op.allow_spinning",
    "session.intra_op.spin_duration_us",
)
# By name: threads (0: as many as there are cores) and what onnxruntime is told about waiting.
KINDS = {
    "spins within a run": (0, {STOPS: "1"}),
    "spins on after it": (0, {}),
    "spins for 100 us": (0, {STOPS: "1", FOR: "100"}),
    "spins for 20 us": (0, {STOPS: "1", FOR: "20"}),
    "never spins": (0, {NEVER: "0"}),
    "one thread": (1, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--no-peer", action="store_true", help="leave sentence-transformers out (it brings torch)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(encoded(given.child, *texts(given.queries, given.documents))))
        return
    kinds = [*KINDS, *([] if given.no_peer else [PEER])]
    rows = []
    for busy in BUSY:
        found: dict[str, list[Result]] = {kind: [] for kind in kinds}
        for number in range(ROUNDS * len(kinds)):
            kind = kinds[number % len(kinds)]
            say(f"{busy} busy, {kind}")
            with computing(busy):
                found[kind].append(child(kind, given.queries, given.documents))
        rows += [row(kind, busy, some) for kind, some in found.items()]
    for one in rows:
        times = f"{one['query']['p50_ms']:9.2f}{one['query']['p99_ms']:9.2f}{one['document_ms']:9.1f}"
        print(f"{one['encoder']:24}{one['busy']:3} busy{times}")
    print("written to", write("sharing", {"rounds": ROUNDS, "rows": rows}))


def row(kind: str, busy: int, found: list[Result]) -> Result:
    return {
        "encoder": kind,
        "busy": busy,
        "query": spread([seconds for one in found for seconds in one["queries"]]),
        "document_ms": 1e3 * statistics.median(seconds for one in found for seconds in one["documents"]),
    }


def texts(queries: int, documents: int) -> tuple[list[str], list[str]]:
    """Even choices of the questions and documents of squad_plus."""
    found = read_jsonl(data_home() / "squad_plus")
    asked, written = [query.text for query in found.queries], [one.content for one in found.documents]
    return asked[:: len(asked) // (queries + WARM)][: queries + WARM], written[:: len(written) // documents][:documents]


def child(kind: str, queries: int, documents: int) -> Result:
    command = [sys.executable, "-m", "benchmarks.sharing", "--child", kind]
    command += ["--queries", str(queries), "--documents", str(documents)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    result: Result = json.loads(output.splitlines()[-1])
    return result


def encoded(kind: str, queries: list[str], documents: list[str]) -> Result:
    """The seconds that each query and each document takes; the first queries warm up."""
    encode = peer() if kind == PEER else ours(*KINDS[kind])
    return {"queries": timed(encode, queries)[WARM:], "documents": timed(encode, documents)}


def timed(encode: Callable[[list[str]], object], found: Sequence[str]) -> list[float]:
    seconds = []
    for text in found:
        begin = time.perf_counter()
        encode([text])
        seconds.append(time.perf_counter() - begin)
        time.sleep(0.002)  # as between two requests
    return seconds


def ours(threads: int, told: dict[str, str]) -> Callable[[list[str]], object]:
    import onnxruntime

    class Told(OnnxEncoder):
        def _open_session(self, threads: int) -> onnxruntime.InferenceSession:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = threads, 3
            for key, value in told.items():
                options.add_session_config_entry(key, value)
            path = str(self.folder / GRAPH)
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    default = load_encoder()
    assert isinstance(default, OnnxEncoder)
    return Told(default.folder, threads=threads).encode


def peer() -> Callable[[list[str]], object]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(fetch.installed_model() or fetch.HUB_NAME), device="cpu")
    return lambda batch: model.encode(batch, show_progress_bar=False)


@contextmanager
def computing(count: int) -> Iterator[None]:
    """So many processes that compute without a pause."""
    others = [multiprocessing.Process(target=compute, daemon=True) for _ in range(count)]
    for one in others:
        one.start()
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.join()


def compute() -> None:
    while True:
        sum(range(10_000))


if __name__ == "__main__":
    main()
