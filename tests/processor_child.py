"""What `test_processors.py` runs under other processors: fill an index, or search one, and print what came of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from incdsi.index import Index
from tests.index.index_samples import TOY, asked_for, docs
from tests.rows.screens import use_the_screen_asked_for

QUESTIONS = (
    "waterproof boots",
    "a river at night",
    "snow and wind on the summit",
    "lamp d7 1",
    "cabin d30",
    "d12 moon",
)
MODES = ("learned", "lexical", "fused")


def fill(path: Path) -> None:
    """Batches of all sizes, changes, lessons and a tuning: everything that places a document."""
    documents = docs(160)
    with Index.create(path, TOY) as index:
        for some in (documents[:1], documents[1:40], documents[40:]):
            index.add_many(some, asked_for(some, 4))
        index.delete([f"d{number}" for number in range(0, 60, 7)])
        for number in (1, 2, 3):
            index.teach(f"the lesson of {number}", f"d{number}")
        index.update(docs(1, start=5)[0], ["another question"])
        index.tune()
        index.add_many(docs(9, start=400), asked_for(docs(9, start=400)))


def search(path: Path) -> list[Any]:
    with Index.open(path, TOY) as index:
        return [
            [question, mode, [[hit.document_id, hit.score] for hit in index.search(question, 10, mode=mode)]]
            for question in (*QUESTIONS, "the lesson of 2")
            for mode in MODES
        ]


def modules(path: Path) -> list[str]:
    with Index.create(path, TOY) as index:
        index.add_many(docs(5), asked_for(docs(5)))
        index.search("a river")
    return sorted({"torch", "transformers", "sentence_transformers"} & set(sys.modules))


if __name__ == "__main__":
    use_the_screen_asked_for()
    print(json.dumps({"fill": fill, "search": search, "modules": modules}[sys.argv[1]](Path(sys.argv[2]))))
