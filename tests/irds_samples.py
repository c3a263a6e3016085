"""A collection that ir_datasets knows, in local files: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JUDGED = "q1 0 boots 1\nq1 0 stove 0\nq2 0 stove 2\nq3 0 stove 1\n"


@contextmanager
def made(folder: Path, *parts: str, judged: str = JUDGED) -> Iterator[str]:
    """The name of two documents with these parts, which have the same queries; q3 is unknown."""
    import ir_datasets

    (folder / "docs").write_text("boots\tWaterproof boots.\nstove\tA gas stove.\n", encoding="utf-8")
    (folder / "queries").write_text("q1\tdry feet\nq2\ttea on a mountain\n", encoding="utf-8")
    (folder / "qrels").write_text(judged, encoding="utf-8")
    docs = {"docs_tsv": str(folder / "docs")}
    asked = {"queries_tsv": str(folder / "queries"), "qrels_trec": str(folder / "qrels")}
    registered = ir_datasets.registry._registered
    before = dict(registered)
    ir_datasets.registry.register("tiny", ir_datasets.create_dataset(**docs))
    for part in parts:
        ir_datasets.registry.register(f"tiny/{part}", ir_datasets.create_dataset(**docs, **asked))
    try:
        yield "irds:tiny"
    finally:
        registered.clear()
        registered.update(before)
