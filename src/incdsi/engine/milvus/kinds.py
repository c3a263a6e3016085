"""How document vectors are searched on the server: all of them, or by an approximate index where there are many.

FLAT looks at every vector. The others look at some: their list may miss a document, and what is listed is scored
exactly all the same. Placing a document never uses them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from incdsi.errors import InvalidInput

CHOICE = "INCDSI_MILVUS_INDEX"  # hnsw, ivf or diskann, and from how many documents on: hnsw:50000
MANY = 100_000  # documents, where only the kind is chosen


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """An index of Milvus: what it is built with, and what a search for so many is done with."""

    name: str
    milvus: str
    build: Mapping[str, int] = field(default_factory=dict)
    look: Callable[[int], Mapping[str, int]] = lambda _: {}

    @property
    def approximate(self) -> bool:
        return self is not FLAT

    def search(self, limit: int) -> dict[str, Any]:
        return {"metric_type": "IP", "params": dict(self.look(limit))}


FLAT = Kind("exact", "FLAT")
_OTHERS = (
    Kind("hnsw", "HNSW", {"M": 16, "efConstruction": 200}, lambda limit: {"ef": max(256, 2 * limit)}),
    Kind("ivf", "IVF_FLAT", {"nlist": 1024}, lambda limit: {"nprobe": 64}),
    Kind("diskann", "DISKANN", {}, lambda limit: {"search_list": max(128, 2 * limit)}),
)


def named(milvus: str) -> Kind:
    """The kind that Milvus calls so; InvalidInput for one that is not used here."""
    for kind in (FLAT, *_OTHERS):
        if kind.milvus == milvus:
            return kind
    known = ", ".join(kind.milvus for kind in (FLAT, *_OTHERS))
    raise InvalidInput(f"document vectors have an index {milvus}, which incdsi cannot search; make it one of {known}")


def wanted(documents: int) -> Kind:
    """What the environment says for an index of so many documents."""
    chosen = os.environ.get(CHOICE, "")
    name, _, least = chosen.partition(":")
    for kind in _OTHERS:
        if name == kind.name and (least.isdecimal() or not least):
            return kind if documents >= int(least or MANY) else FLAT
    if chosen in ("", FLAT.name):
        return FLAT
    raise InvalidInput(f"{CHOICE} is {chosen!r}; write exact, hnsw, ivf or diskann, or hnsw:N for N documents and more")
