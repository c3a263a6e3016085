"""Fill an index in bulk, with stage 1 before it if wanted."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.rows import LocalRows
from incdsi.store import Record, StoredQuery
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator, generate_all

Training = Literal["none", "frozen", "finetune"]


def check_training(train: str) -> None:
    """Refuse a way of training that does not exist."""
    if train not in get_args(Training):
        raise InvalidInput(f"expected train to be one of {', '.join(get_args(Training))}, found {train!r}")


def stage_one(
    documents: Sequence[Document],
    queries: Mapping[str, Sequence[str]],
    *,
    encoder: Encoder,
    generator: Generator,
    mode: str,
    progress: Progress | None,
) -> Any:
    """A trained model of these documents: their queries and the generated ones, by stage 1."""
    # The one call upwards, by name: whoever only adds and searches never imports torch.
    stage1 = importlib.import_module("incdsi.training.stage1")
    together = {id: [*queries.get(id, ()), *made] for id, made in generate_all(documents, generator).items()}
    natural = {text for texts in queries.values() for text in texts}
    return stage1.train(documents, together, encoder=encoder, mode=mode, adapt_to=natural or None, progress=progress)


def taken_over(documents: Sequence[Document], natural: Mapping[str, Sequence[str]], model: Any) -> list[Record]:
    """Records of a trained model's vectors and cached queries; those a document wins are preserved."""
    queries, held_out = model.queries, model.held_out
    rows = LocalRows(model.document_vectors.shape[1])
    rows.fill(model.document_vectors)
    own = np.einsum("ij,ij->i", queries.embeddings, model.document_vectors[queries.owners])
    best, slots = rows.best(queries.embeddings)
    won = (slots == queries.owners) & (own >= best - 1e-5)
    asked = [set(natural.get(document.id, ())) for document in documents]
    stored: list[list[StoredQuery]] = [[] for _ in documents]
    for text, owner, embedding, kept, score in zip(
        queries.texts, queries.owners, queries.embeddings, won, own, strict=True
    ):
        stored[owner].append(
            StoredQuery(
                text=text,
                embedding=embedding,
                generated=text not in asked[owner],
                preserved=bool(kept),
                own_score=float(score),
            )
        )
    for text, owner, embedding in zip(held_out.texts, held_out.owners, held_out.embeddings, strict=True):
        stored[owner].append(
            StoredQuery(text=text, embedding=embedding, generated=text not in asked[owner], held_out=True)
        )
    return [
        Record(document=document, vector=vector, anchor=anchor, queries=tuple(some))
        for document, vector, anchor, some in zip(
            documents, _floats(model.document_vectors), _floats(model.text_embeddings), stored, strict=True
        )
    ]


def _floats(array: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(array, dtype=np.float32)
