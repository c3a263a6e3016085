"""What one search uses from its beginning to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document, Hit
from incdsi.errors import InvalidFile, InvalidInput, ModelNotFound, UnknownDocument
from incdsi.index import models
from incdsi.index.live import Live, Preserve, preserve_mean, preserve_nothing, preserve_won
from incdsi.index.placing import Stopwatch
from incdsi.index.settings import KEY, Settings
from incdsi.search import Mode, parts, rank
from incdsi.store import Store
from incdsi.store.filters import Where
from incdsi.text.encoders import Encoder


def stored_settings(store: Store) -> Settings:
    """What the index in that store remembers about itself."""
    stored = store.setting(KEY)
    if not isinstance(stored, Mapping):
        raise InvalidInput(f"expected an index's settings in the store, found {stored!r:.40}; was it made by incdsi?")
    return Settings.from_json(stored)


def opened_encoder(store: Store, given: Encoder | str | Path | None = None) -> Encoder:
    """The encoder an index was built with; when it is swapped for another meanwhile, that one."""
    while True:
        settings = stored_settings(store)
        try:
            return models.open_model(store.path, settings.model, settings.fingerprint, given)
        except (ModelNotFound, InvalidFile):
            if stored_settings(store).fingerprint == settings.fingerprint:
                raise


def preserve_by(settings: Settings) -> Preserve:
    """How the preserve rows of a record are made under these settings."""
    return preserve_won if settings.method == "general" else preserve_mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A score for every slot (n,) with the parts that made it, and which slots hold a document."""

    total: NDArray[np.float32]
    alive: NDArray[np.bool_]
    learned: NDArray[np.float32] | None
    lexical: NDArray[np.float32] | None

    def hit(self, slot: np.intp, number: int, document: Document) -> Hit:
        return Hit(
            document_id=document.id,
            score=float(self.total[slot]),
            rank=number,
            document=document,
            learned=None if self.learned is None else float(self.learned[slot]),
            lexical=None if self.lexical is None else float(self.lexical[slot]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Serving:
    """Settings, encoder and documents that fit together; replaced as one."""

    settings: Settings
    encoder: Encoder
    live: Live

    @classmethod
    def load(cls, store: Store, encoder: Encoder | None, *, writer: bool) -> Self:
        """Everything in a store, under the encoder given if the store still means that one."""
        while True:
            settings = stored_settings(store)
            if encoder is None or encoder.fingerprint != settings.fingerprint:
                encoder = opened_encoder(store)
            live = Live.load(store, settings.dimension, preserve_by(settings) if writer else preserve_nothing)
            if encoder.fingerprint == settings.fingerprint == stored_settings(store).fingerprint:
                return cls(settings=settings, encoder=encoder, live=live)

    def search(self, store: Store, text: str, k: int, where: Where | None, mode: Mode, watch: Stopwatch) -> list[Hit]:
        """The k best documents for a text, read from the store."""
        scores = self._scores(text, mode, watch)
        allowed = scores.alive
        with watch.step("filter"):
            if where is not None:
                allowed = allowed & self.live.among(store.filter_rows(where), len(allowed))
        with watch.step("read"):
            while True:
                slots = rank(scores.total, allowed, k)
                documents = _documents(store, self.live.store_rows(slots).tolist())
                gone = [slot for slot, document in zip(slots, documents, strict=True) if document is None]
                if not gone:
                    break
                allowed = allowed.copy()
                allowed[gone] = False
        return [
            scores.hit(slot, number, document)
            for number, (slot, document) in enumerate(zip(slots, documents, strict=True), start=1)
            if document is not None
        ]

    def _scores(self, text: str, mode: Mode, watch: Stopwatch) -> Scored:
        """Every slot's score."""
        if mode == "lexical":
            with watch.step("lexical"):
                alive = self.live.rows.alive
                lexical = self.live.lexical.scores(text, len(alive))
            return Scored(total=lexical, alive=alive, learned=None, lexical=lexical)
        with watch.step("encode"):
            embedding = self.encoder.encode([text])[0]
        with watch.step("learned"):
            learned = self.live.rows.scores(embedding)
            alive = np.isfinite(learned)
        if mode == "learned":
            return Scored(total=learned, alive=alive, learned=learned, lexical=None)
        with watch.step("lexical"):
            lexical = self.live.lexical.scores(text, len(learned))
        with watch.step("fuse"):
            first, second = parts(learned, lexical, alive, self.settings.lexical_weight)
            return Scored(total=first + second, alive=alive, learned=first, lexical=second)


def _documents(store: Store, rows: Sequence[int]) -> Sequence[Document | None]:
    """The documents in these rows; None for one that was deleted after it was ranked."""
    try:
        return store.documents(rows)
    except UnknownDocument:
        if len(rows) == 1:
            return [None]
        return [document for row in rows for document in _documents(store, [row])]
