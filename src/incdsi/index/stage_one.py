"""Fill an index in bulk, with stage 1 before it if wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incdsi.confidence import LEAST
from incdsi.documents import Document, Taught, fold
from incdsi.errors import InvalidInput
from incdsi.index.draft import held_out_of
from incdsi.index.placement import MOST_PRESERVED
from incdsi.index.remembered import DEFAULT_GENERATOR
from incdsi.progress import Progress
from incdsi.records import Record, StoredQuery
from incdsi.rows import LocalRows
from incdsi.rows.products import exact
from incdsi.solver.active_set import to_preserve
from incdsi.text.encoders import Encoder, as_encoder
from incdsi.text.generators import Generator, generate_all
from incdsi.text.passages import Splitter, centre, passages_of

if TYPE_CHECKING:
    from incdsi.training.model import TrainedModel

Training = Literal["none", "frozen", "finetune"]


def stage_one(
    documents: Sequence[Document],
    queries: Mapping[str, Sequence[str]],
    *,
    encoder: Encoder | str | Path | None,
    generator: Generator | None,
    mode: Training,
    progress: Progress | None,
) -> TrainedModel | None:
    """Train a model on these documents, with their queries and generated ones; None where there is nothing to train."""
    if mode not in get_args(Training):
        raise InvalidInput(f"train must be one of {', '.join(get_args(Training))}, not {mode!r}")
    if mode == "none":
        return None
    from incdsi.training.stage1 import train  # here, so that adding and searching never import torch

    apart = _apart(queries)
    together = {
        id: [text for text in (*queries.get(id, ()), *made) if fold(text) not in map(fold, apart.get(id, ()))]
        for id, made in generate_all(documents, generator or DEFAULT_GENERATOR).items()
    }
    natural = {text for texts in queries.values() for text in texts}
    return train(
        documents,
        together,
        encoder=as_encoder(encoder, trainable=mode == "finetune"),
        mode=mode,
        validation=apart or None,
        adapt_to=natural or None,
        progress=progress,
    )


def _apart(queries: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What people asked and an index would hold out; nothing where that is too little to choose an epoch by."""
    asked = {id: [text for text in texts if not isinstance(text, Taught)] for id, texts in queries.items()}
    found = {id: apart for id, texts in asked.items() if (apart := held_out_of(id, texts))}
    return found if sum(map(len, found.values())) >= LEAST else {}


def taken_over(
    documents: Sequence[Document], natural: Mapping[str, Sequence[str]], model: TrainedModel, splitter: Splitter
) -> list[Record]:
    """A record for each document: its trained vector, the model's cached queries and its passages."""
    asked = [set(natural.get(document.id, ())) for document in documents]
    stored: list[list[StoredQuery]] = [[] for _ in documents]
    own, preserved = _won(model)
    queries, held_out = model.queries, model.held_out
    for text, owner, embedding, kept, score in zip(
        queries.texts, queries.owners, queries.embeddings, preserved, own, strict=True
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
        Record(
            document=document,
            vector=vector,
            anchor=centre(passages) if passages else anchor,
            queries=tuple(some),
            passages=passages,
        )
        for document, vector, anchor, some, passages in zip(
            documents,
            _floats(model.document_vectors),
            _floats(model.text_embeddings),
            stored,
            passages_of(documents, model.encoder, splitter),
            strict=True,
        )
    ]


def _won(model: TrainedModel) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The own score of every training query, and whether its document is to preserve it."""
    vectors, queries = _floats(model.document_vectors), model.queries
    rows = LocalRows(vectors.shape[1])
    rows.fill(vectors)
    rivals, _ = rows.best(queries.embeddings, without=queries.owners)
    own = exact(queries.embeddings, vectors[queries.owners])
    preserved = np.zeros(len(own), dtype=bool)
    by_document = np.argsort(queries.owners, kind="stable")
    for mine in np.split(by_document, np.cumsum(np.bincount(queries.owners, minlength=len(vectors)))[:-1]):
        preserved[mine] = to_preserve(own[mine], rivals[mine], MOST_PRESERVED)
    return own, preserved


def _floats(array: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(array, dtype=np.float32)
