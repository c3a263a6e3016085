"""`make bench-encoders ENCODER=PATH`: another encoder beside the default one, on the same documents and questions.

A draw of squad_plus, once by each encoder: an index grown from empty that tunes itself, asked test questions, beside
what anybody could do with the same encoder. Cost stands beside quality: processor time to encode a document with what
is generated from it, and a question alone, and the room an index takes. Differences are question by question.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.index.quality import compared, index_ranks, probes, ranks_by
from benchmarks.index.run import Ranks, Result, say, tenths
from benchmarks.machine import write
from incdsi.text.encoders import Encoder, load_encoder
from incdsi.text.encoders.fetch import DEFAULT
from incdsi_lab.anchors import anchors
from incdsi_lab.baselines.protocol import joined
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home
from incdsi_lab.embedded import Embedded, cache_home, embed, embedded_before
from incdsi_lab.experiments.datasets import draw

SET = "squad_plus"
TIMED = 30  # documents, and questions
REPEATS = 3


def embedded(encoder: Encoder, documents: int) -> Embedded:
    """The draw with its embeddings; from those of the whole set where they were made before."""
    whole = read_jsonl(data_home() / SET, SET)
    drawn = draw(whole, documents, seed=0)
    known = embed(whole, encoder) if embedded_before(whole, encoder) else None
    return embed(drawn, encoder, whole=known, progress=tenths("embedding"))


def cost(data: Embedded) -> Result:
    """Processor milliseconds, the least of some repeats: other work on the machine only ever adds."""
    spans = data.by_document([data.spans])  # as many texts as each document has
    firsts = np.cumsum([0, *(len(some) for some in spans)])
    documents = [
        [data.documents[place].content, *data.spans.texts[firsts[place] : firsts[place + 1]]] for place in range(TIMED)
    ]
    questions = [[text] for text in data.test.texts[:TIMED]]
    return {
        "document_ms": _processor_ms(data.encoder, documents),
        "question_ms": _processor_ms(data.encoder, questions),
        "n": TIMED,
    }


def _processor_ms(encoder: Encoder, batches: Sequence[Sequence[str]]) -> float:
    encoder.encode(batches[0])
    least = [min(_seconds(encoder, batch) for _ in range(REPEATS)) for batch in batches]
    return 1e3 * float(np.median(least))


def _seconds(encoder: Encoder, batch: Sequence[str]) -> float:
    begin = time.process_time()
    encoder.encode(batch)
    return time.process_time() - begin


def judged(data: Embedded, folder: Path) -> tuple[dict[str, Ranks], Result]:
    """The ranks of test questions by way of searching, and how the index was filled."""
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(folder, data, order, tuning=True)
    with index:
        ranks = index_ranks(index, probes(index, data))
        index.compact()
    filling["disk_kb_a_document"] = _index_bytes(folder) / 1e3 / len(data.documents)
    return ranks | ranks_by(anchors(), data, joined([data.train, data.spans]), data.test), filling


def _index_bytes(folder: Path) -> int:
    """What the documents take, without the encoder's own files."""
    return sum(file.stat().st_size for file in folder.glob("*") if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="a model's folder or its name on the hub")
    parser.add_argument("--documents", type=int, default=1000, metavar="N", help="how many to draw (default 1000)")
    arguments = parser.parse_args()
    ranks: dict[str, Ranks] = {}
    found: dict[str, Result] = {}
    names = {DEFAULT: None, Path(arguments.encoder).name: arguments.encoder}
    for name, place in names.items():
        encoder = load_encoder(place)
        say(f"{name}: {encoder.dimension} dimensions")
        data = embedded(encoder, arguments.documents)
        with tempfile.TemporaryDirectory(dir=cache_home(), prefix="encoders-") as folder:
            own, filling = judged(data, Path(folder) / "index")
        found[name] = {"dimension": encoder.dimension, "fill": filling, "cost": cost(data)}
        ranks |= {f"{way}, {name}": some for way, some in own.items()}
    first, second = names
    pairs = [(f"{way}, {second}", f"{way}, {first}") for way in own]
    pairs += [(f"fused, {name}", f"{way}, {name}") for name in names for way in own if way != "fused"]
    result = {"set": SET, "documents": arguments.documents, "encoders": found, **compared(ranks, pairs)}
    for way, quality in result["quality"].items():
        say(f"{way}: {quality['hits_at_1']} {[round(end, 1) for end in quality['h@1_interval']]}")
    print("written to", write("encoders", result))


if __name__ == "__main__":
    main()
