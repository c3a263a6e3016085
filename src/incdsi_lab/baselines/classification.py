"""Rows of a classification layer over a frozen encoder, trained by cross-entropy: DSI-DPR and full retraining."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.training.frozen import train_frozen
from incdsi.training.records import Moment
from incdsi.training.settings import FrozenSettings
from incdsi.training.starts import start_rows
from incdsi_lab.baselines.protocol import Floats, Part, Questions
from incdsi_lab.baselines.vectors import VectorMethod


def trained(
    part: Part, settings: FrozenSettings, *, start: Floats | None = None, progress: Progress | None = None
) -> Floats:
    """Document vectors (n, h) trained on the part's queries, from `start` or from where the settings say."""
    if start is None:
        start = start_rows(settings, part.embeddings, part.queries.embeddings, part.queries.owners)

    def observe(moment: Moment) -> None:
        if progress is not None:
            progress(moment.step, moment.total)

    rows, _ = train_frozen(start, part.queries, part.held_out, settings, observe=observe)
    return rows


class _Classifier(VectorMethod):
    """A classification layer; `initial` are rows already trained on the initial documents."""

    def __init__(
        self, settings: FrozenSettings | None = None, *, initial: Floats | None = None, progress: Progress | None = None
    ) -> None:
        super().__init__()
        self._settings = settings or FrozenSettings()
        self._initial = initial
        self._progress = progress
        self._seen: Part | None = None

    def fit(self, initial: Part) -> None:
        self._seen = initial
        with self._watch.step("fit"):
            if self._initial is None:
                self._vectors = trained(initial, self._settings, progress=self._progress)
            else:
                self._vectors = _fitting(self._initial, initial)

    def _together(self, new: Part) -> Part:
        if self._seen is None:
            raise InvalidInput("there are no initial documents yet; call fit first")
        self._seen = self._seen.followed_by(new)
        return self._seen


class Retraining(_Classifier):
    """Everything trained from scratch whenever documents arrive: what the others are measured against."""

    name = "retraining"

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._vectors = trained(self._together(new), self._settings, progress=self._progress)


class DSIDPR(_Classifier):
    """The classification layer trained further on old and new queries; new rows start at their text's embedding."""

    name = "DSI-DPR"

    def __init__(
        self,
        settings: FrozenSettings | None = None,
        *,
        epochs: int = 2,
        initial: Floats | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(settings, initial=initial, progress=progress)
        self._further = replace(self._settings, epochs=epochs)

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            start = extended(self.document_vectors, new, self._settings.scale)
            self._vectors = trained(self._together(new), self._further, start=start, progress=self._progress)


def extended(vectors: Floats, new: Part, scale: float) -> Floats:
    """The vectors with a row for each new document, `scale` times its text's embedding."""
    return np.concatenate([vectors, np.float32(scale) * new.embeddings])


def sample(queries: Questions, count: int, draw: np.random.Generator) -> Questions:
    """`count` of the queries, or all when there are fewer."""
    if count >= len(queries):
        return queries
    return queries.take(np.sort(draw.choice(len(queries), size=count, replace=False)))


def _fitting(rows: Floats, part: Part) -> Floats:
    if rows.shape != part.embeddings.shape:
        raise InvalidInput(f"expected initial rows of shape {part.embeddings.shape}, found {rows.shape}")
    return rows
