"""The entry point of stage 1: documents and queries in, a trained model out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder, for_documents
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.text.queries import drop_shared
from incdsi.training.checkpoints import Checkpoints
from incdsi.training.embeddings import Embedder, shifted
from incdsi.training.finetune import train_finetune
from incdsi.training.frozen import train_frozen
from incdsi.training.loop import Outcome
from incdsi.training.model import TrainedModel
from incdsi.training.pairs import (
    EmbeddedPairs,
    Queries,
    TextPairs,
    document_positions,
    flatten,
    hold_out,
    require_queries,
)
from incdsi.training.records import Moment, Observe
from incdsi.training.settings import FinetuneSettings, FrozenSettings, Settings
from incdsi.training.starts import start_rows

Mode = Literal["frozen", "finetune"]
Known = Mapping[str, NDArray[np.float32]]
DEFAULTS: Mapping[str, Settings] = {"frozen": FrozenSettings(), "finetune": FinetuneSettings()}
EMBEDDINGS = "embeddings"
# Settings that change neither the order of sums nor the outcome.
WITHOUT_EFFECT = ("checkpoint_seconds",)


def train(
    documents: Sequence[Document],
    queries: Queries,
    *,
    encoder: Encoder,
    mode: Mode = "frozen",
    settings: Settings | None = None,
    validation: Queries | None = None,
    adapt_to: Collection[str] | None = None,
    checkpoint: Path | str | None = None,
    known: Known | None = None,
    progress: Progress | None = None,
    observe: Observe | None = None,
) -> TrainedModel:
    """Train the initial model on `queries` (document id to texts) and keep its best validation epoch.

    A query shared by several documents is dropped from all of them. Without `validation`, every document with at
    least four queries has one held out, drawn by the seed. A document without queries stays where it starts: at
    `scale` times its text's embedding. Finetuning adapts the encoder to the queries in `adapt_to` (None: to all);
    the others only train the document vectors, beforehand. `checkpoint` is a folder from which a stopped run
    resumes, to the same result. `known` holds embeddings this encoder has already computed, by text. `progress`
    counts texts while encoding, then steps; `observe` sees every step. With several processes, each returns the
    model and one of them should save it.
    """
    settings = _settings(mode, settings, encoder)
    pairs, held_out = _pairs(documents, queries, validation, settings.seed)
    folder = Path(checkpoint) if checkpoint is not None else None
    embedder = _embedder(encoder, folder, known)
    contents = [document.content for document in documents]
    embedded = _Embedded.make(contents, pairs, held_out, embedder, progress)
    start = start_rows(settings, embedded.text, embedded.training.embeddings, pairs.owners)
    joint = pairs if adapt_to is None else pairs.only(adapt_to)
    checkpoints = _checkpoints(folder, settings, embedder.fingerprint, embedded, joint, start)
    watch = _watch(progress, observe)
    if isinstance(settings, FinetuneSettings):
        assert isinstance(encoder, TorchEncoder)
        if settings.frozen_epochs:
            # Repeated when a stopped run resumes: rows that finetuning leaves alone come from here.
            start = _learned_alone(start, embedded, settings, _watch(progress, None), folder)
        encoder, rows, outcome = train_finetune(
            encoder, start, joint, held_out, settings, checkpoints=checkpoints, observe=watch
        )
        embedder = _embedder(encoder, folder, None)
        embedded = _Embedded.make(contents, pairs, held_out, embedder, progress)
    else:
        assert isinstance(settings, FrozenSettings)
        rows, outcome = train_frozen(
            start, embedded.training, embedded.validation, settings, checkpoints=checkpoints, observe=watch
        )
    return _model(rows, embedded, embedder, outcome)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Embedded:
    """All texts of a run, embedded by one encoder."""

    text: NDArray[np.float32]
    training: EmbeddedPairs
    validation: EmbeddedPairs

    @classmethod
    def make(
        cls,
        contents: Sequence[str],
        training: TextPairs,
        validation: TextPairs,
        embedder: Embedder,
        progress: Progress | None,
    ) -> Self:
        asked = [*training.texts, *validation.texts]
        reader, own = embedder, for_documents(embedder.encoder)
        if own is not embedder.encoder:  # what is known is known of queries
            reader = replace(embedder, encoder=own, fingerprint=own.fingerprint, known={})
        first, second = reader.unknown(contents), embedder.unknown(asked)
        text = reader.embed(contents, shifted(progress, 0, first + second))
        queries = embedder.embed(asked, shifted(progress, first, first + second))
        return cls(
            text=text,
            training=training.embedded(queries[: len(training.texts)]),
            validation=validation.embedded(queries[len(training.texts) :]),
        )


def _settings(mode: Mode, settings: Settings | None, encoder: Encoder) -> Settings:
    if mode not in DEFAULTS:
        raise InvalidInput(f"mode must be one of {', '.join(DEFAULTS)}, not {mode!r}")
    settings = settings or DEFAULTS[mode]
    wanted = type(DEFAULTS[mode])
    if not isinstance(settings, wanted):
        raise InvalidInput(f"mode {mode!r} takes {wanted.__name__}, not {type(settings).__name__}")
    if mode == "finetune" and not isinstance(encoder, TorchEncoder):
        raise InvalidInput(
            f"a {type(encoder).__name__} cannot be finetuned; load the model with TorchEncoder.load, "
            "or use mode 'frozen'"
        )
    return settings


def _pairs(
    documents: Sequence[Document], queries: Queries, validation: Queries | None, seed: int
) -> tuple[TextPairs, TextPairs]:
    positions = document_positions(documents)
    require_queries(queries, positions)
    require_queries(validation or {}, positions)
    kept: Queries = drop_shared(queries)
    if validation is None:
        kept, validation = hold_out(kept, seed)
    return flatten(kept, positions), flatten(validation, positions)


def _embedder(encoder: Encoder, folder: Path | None, known: Known | None) -> Embedder:
    return Embedder(
        encoder=encoder,
        fingerprint=encoder.fingerprint,
        known=known or {},
        folder=folder / EMBEDDINGS if folder is not None else None,
    )


def _checkpoints(
    folder: Path | None,
    settings: Settings,
    fingerprint: str,
    embedded: _Embedded,
    joint: TextPairs,
    start: NDArray[np.float32],
) -> Checkpoints | None:
    """The run's checkpoints, named by a digest of everything its outcome depends on."""
    if folder is None:
        return None
    chosen = {name: value for name, value in asdict(settings).items() if name not in WITHOUT_EFFECT}
    digest = hashlib.sha256(json.dumps([type(settings).__name__, chosen, fingerprint]).encode())
    digest.update(json.dumps([embedded.training.texts, joint.texts, embedded.validation.texts]).encode())
    owners = (embedded.training.owners, joint.owners, embedded.validation.owners)
    for array in (start, embedded.training.embeddings, embedded.validation.embeddings, *owners):
        digest.update(np.ascontiguousarray(array).data)
    return Checkpoints(folder=folder, run=digest.hexdigest())


def _learned_alone(
    start: NDArray[np.float32], embedded: _Embedded, settings: FinetuneSettings, watch: Observe, folder: Path | None
) -> NDArray[np.float32]:
    """The document vectors after frozen training; it takes minutes, so it is not checkpointed."""
    frozen = FrozenSettings(epochs=settings.frozen_epochs, seed=settings.seed, memory=settings.memory)
    try:
        rows, _ = train_frozen(start, embedded.training, embedded.validation, frozen, observe=watch)
    except KeyboardInterrupt as stopped:
        kept = "nothing was kept" if folder is None else f"what was embedded is in {folder}"
        sentence = f"training stopped while the document vectors learned alone; {kept}: train again with the same input"
        raise KeyboardInterrupt(sentence) from stopped
    return rows


def _watch(progress: Progress | None, observe: Observe | None) -> Observe:
    def watch(moment: Moment) -> None:
        if progress is not None:
            progress(moment.step, moment.total)
        if observe is not None:
            observe(moment)

    return watch


def _model(rows: NDArray[np.float32], embedded: _Embedded, embedder: Embedder, outcome: Outcome) -> TrainedModel:
    return TrainedModel(
        document_vectors=rows,
        text_embeddings=embedded.text,
        queries=embedded.training,
        held_out=embedded.validation,
        encoder=embedder.encoder,
        encoder_fingerprint=embedder.fingerprint,
        best_epoch=outcome.best_epoch,
        epochs=outcome.epochs,
    )
