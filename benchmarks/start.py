"""One search from a shell: a new process, its imports, the index, the encoder, the answer. `make bench-start`.

Texts and questions are real, and so is the encoder; embeddings are drawn, since where they lie costs nothing here. The
peer loads the same model in sentence-transformers and as many vectors in faiss, with the texts in a JSON file. Runs
alternate, all files are in the page cache, and modules are compiled, as after the first use.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine, write
from incdsi import Document, Index
from incdsi.records import Record, StoredQuery
from incdsi.store import Store
from incdsi.text.encoders.fetch import HUB_NAME, installed_model
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home

Floats = NDArray[np.float32]
Result = dict[str, Any]
Command = Sequence[str]
SETS = ("squad_plus", "nq_passages")
SIZE, RUNS, PORTION, SPANS, LENGTH = 10_000, 10, 1000, 6, 25.0
PEER = """
import json, sys
import faiss
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True)
flat = faiss.read_index(sys.argv[2])
texts = json.load(open(sys.argv[3], encoding="utf-8"))
scores, found = flat.search(model.encode([sys.argv[4]], normalize_embeddings=True, show_progress_bar=False), 10)
for score, place in zip(scores[0], found[0]):
    print(f"{score:.3f}", texts[place][:100])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=SIZE)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--index", type=Path, help="keep the index in this folder, and use it if it is there")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps(machine()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.index or Path(temporary)
        documents, questions = drawn(arguments.documents)
        if not (folder / "index").exists():
            fill(folder, documents, questions)
        commands = commands_of(folder, None if arguments.no_peer else documents)
        asked = [texts[0] for texts in islice(questions.values(), arguments.runs + 1)]
        result = measured(commands, asked, environment(Path(temporary) / "compiled"))
    print(json.dumps(result, indent=1))
    if arguments.documents == SIZE and not arguments.no_peer:
        counts = {"documents": len(documents), "runs": arguments.runs, "load": os.getloadavg()[0]}
        print("written to", write("start", {**counts, **result}))


def drawn(count: int) -> tuple[list[Document], dict[str, list[str]]]:
    """The first documents of the real sets, and what was asked for those of which anything was."""
    documents: list[Document] = []
    asked: dict[str, list[str]] = {}
    for name in SETS:
        found = read_jsonl(data_home() / name, name)
        documents += [replace(one, id=f"{name}-{one.id}") for one in found.documents]
        for query in found.queries:
            asked.setdefault(f"{name}-{query.document_id}", []).append(query.text)
    documents = documents[:count]
    return documents, {one.id: asked[one.id] for one in documents if one.id in asked}


def fill(folder: Path, documents: Sequence[Document], questions: dict[str, list[str]]) -> None:
    """An index of them with its base, their vectors lying where solving would put them."""
    folder.mkdir(exist_ok=True)
    with Index.create(folder / "index", tuning=False) as index:
        width = index.info().dimension
    rows = records(documents, questions, width)
    with Store.open(folder / "index", writer=True) as store:
        while portion := list(islice(rows, PORTION)):
            with store.transaction() as tx:
                for record in portion:
                    tx.insert(record)
    with Index.open(folder / "index") as index:
        index.compact()


def records(documents: Sequence[Document], questions: dict[str, list[str]], width: int) -> Iterator[Record]:
    rng = np.random.default_rng(0)
    for one in documents:
        own = unit(rng.standard_normal(width, dtype=np.float32))
        asked = questions.get(one.id, [])
        spans = one.text.split(". ")[:SPANS]
        queries = []
        for text, generated in chain(((text, False) for text in asked), ((text, True) for text in spans)):
            row = unit(own + 0.8 * unit(rng.standard_normal(width, dtype=np.float32)))
            score = LENGTH * float(row @ own)
            queries.append(StoredQuery(text=text, embedding=row, generated=generated, preserved=True, own_score=score))
        yield Record(document=one, vector=np.float32(LENGTH) * own, anchor=own, queries=tuple(queries))


def unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


def commands_of(folder: Path, documents: Sequence[Document] | None) -> dict[str, Command]:
    """What is typed before the question."""
    own = [sys.executable, "-m", "incdsi.cli", "search", "--index", str(folder / "index")]
    found: dict[str, Command] = {
        "incdsi --version": [sys.executable, "-m", "incdsi.cli", "--version"],
        "incdsi search --mode lexical": [*own, "--mode", "lexical"],
        "incdsi search": own,
    }
    if documents is not None:
        script, vectors, texts = (folder / name for name in ("peer.py", "peer.faiss", "peer.json"))
        import faiss

        store = np.random.default_rng(0).standard_normal((len(documents), 384), dtype=np.float32)
        flat = faiss.IndexFlatIP(store.shape[1])
        flat.add(store)
        faiss.write_index(flat, str(vectors))
        texts.write_text(json.dumps([one.content for one in documents]), encoding="utf-8")
        script.write_text(PEER)
        model = str(installed_model() or HUB_NAME)
        found["sentence-transformers + faiss"] = [sys.executable, str(script), model, str(vectors), str(texts)]
    return found


def environment(compiled: Path) -> dict[str, str]:
    """That of the commands: compiled modules are kept, whatever this process does with its own."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**given, "PYTHONPYCACHEPREFIX": str(compiled)}


def measured(commands: dict[str, Command], questions: Sequence[str], environment: dict[str, str]) -> Result:
    """Wall and processor seconds of each command; the first question compiles modules and warms the page cache."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for question in questions:
        for name, command in commands.items():
            given = [] if name.endswith("--version") else [question]
            spent[name].append(run([*command, *given], environment))
    result: Result = {
        name: {
            "wall_p50_s": float(np.median([wall for wall, _ in some[1:]])),
            "wall_max_s": max(wall for wall, _ in some[1:]),
            "cpu_p50_s": float(np.median([cpu for _, cpu in some[1:]])),
        }
        for name, some in spent.items()
    }
    packages = ("onnxruntime", "tokenizers", "numpy", "faiss-cpu", "sentence-transformers", "torch")
    return {"commands": result, "versions": {name: metadata.version(name) for name in packages}}


def run(command: Command, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the wall and of the processor."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    spent = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return spent, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
