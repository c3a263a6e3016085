"""Writes the golden files of the current format: `python tests/store/golden/make.py`, once per format."""

from __future__ import annotations

import base64
import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from incdsi.documents import Document
from incdsi.records import Piece, Record, StoredPassage, StoredQuery
from incdsi.store import Store
from incdsi.store.schema import format_version

HERE = Path(__file__).parent


def plain(store: Store) -> dict[str, Any]:
    """Everything a store holds, as JSON can show it."""
    changes = store.changes(0)
    base = store.base()
    return {
        "version": store.version,
        "encoder": store.setting("encoder"),
        "removed": list(changes.removed),
        "records": [record(found) for found in changes.upserts],
        "base": base and {name: array.tolist() for name, array in base.arrays.items()},
    }


def record(found: Record) -> dict[str, Any]:
    """A record as JSON can show it; passages only where there are any, as older formats have none."""
    passages = [
        [one.piece.start, one.piece.end, list(one.piece.headings), one.embedding.tolist()] for one in found.passages
    ]
    return {
        **({"passages": passages} if passages else {}),
        "row": found.row,
        "sequence": found.sequence,
        "id": found.document.id,
        "title": found.document.title,
        "text": found.document.text,
        "metadata": json.loads(json.dumps(found.document.metadata)),
        "vector": found.vector.tolist(),
        "anchor": found.anchor.tolist(),
        "constrained_by": list(found.constrained_by),
        "queries": [
            [q.text, q.embedding.tolist(), q.generated, q.held_out, q.preserved, q.own_score] for q in found.queries
        ],
    }


def fill(store: Store) -> None:
    """A little of everything: an update, a deletion, a re-solved row, a setting, a base."""
    one, two = np.array([1, -0.5], np.float32), np.array([0.25, 3], np.float32)
    query = StoredQuery(text="où?", embedding=two, generated=True, preserved=True, own_score=0.1)
    metadata = {"lang": "fr", "year": 1999, "price": 2.5, "sold": False, "note": None, "tags": ["new", 1], "none": []}
    with store.transaction() as tx:
        tx.insert(Record(document=Document(id="plain", text="first"), vector=one, anchor=two))
        tx.insert(Record(document=Document(id="gone", text="second"), vector=one, anchor=two))
        document = Document(id="full", text="troisième", title="Title", metadata=metadata)
        tx.insert(Record(document=document, vector=two, anchor=one, queries=(query, query), constrained_by=(2, 1)))
        tx.replace("plain", Record(document=Document(id="plain", text="new"), vector=two, anchor=two))
        tx.delete("gone")
        solved = replace(query, preserved=False, own_score=1), replace(query, own_score=2)
        spans = ((0, 4), ("Partie",)), ((4, 9), ("Partie", "Ä"))
        passages = tuple(StoredPassage(piece=Piece(a, b, path), embedding=two) for (a, b), path in spans)
        again = Record(
            document=document, vector=one, anchor=one, queries=solved, passages=passages, constrained_by=(1,)
        )
        tx.replace("full", again)
        tx.set_setting("encoder", {"name": "golden", "dimension": 2})
    store.write_base({"rows": np.array([1, 3]), "document_vectors": np.array([two, one])}, store.version)


def main() -> None:
    name = f"format-{format_version()}"
    with tempfile.TemporaryDirectory() as folder:
        with Store.create(Path(folder, "shop"), {}) as store:
            fill(store)
            expected = plain(store)
        base = Path(folder, "shop", "base.1.bin").read_bytes()
        packed = gzip.compress(Path(folder, "shop", "store.db").read_bytes(), mtime=0)
    (HERE / f"{name}.db.gz").write_bytes(packed)
    expected["base.1.bin"] = base64.b64encode(base).decode()
    (HERE / f"{name}.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
