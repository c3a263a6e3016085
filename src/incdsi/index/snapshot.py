"""Settings, encoder and documents of one moment: what a search uses from its beginning to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document, Hit
from incdsi.errors import InvalidFile, ModelNotFound, UnknownDocument
from incdsi.filters import Where, parse
from incdsi.index import models
from incdsi.index.draft import require_query
from incdsi.index.live import Live, Preserve, preserve_mean, preserve_nothing, preserve_won
from incdsi.index.settings import Settings, stored_settings
from incdsi.progress import Stopwatch
from incdsi.search import Mode, Ranking, by_learned, by_words, check_mode, fused, lexical_part
from incdsi.store import Store
from incdsi.text.encoders import Encoder


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
class Snapshot:
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

    def search(
        self,
        store: Store,
        text: str,
        k: int,
        where: Where | None,
        mode: str,
        watch: Stopwatch,
        most_bytes: int | None,
    ) -> list[Hit]:
        """The k best documents for a text, read from the store; TooLarge when they have more than `most_bytes`."""
        require_query(text)
        readable = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no reason to find nothing
        ranking = self._ranking(readable, check_mode(mode), watch)
        allowed = ranking.scores.alive
        with watch.step("filter"):
            if where is not None:
                allowed = allowed & self.live.among(store.filter_rows(parse(where)), len(allowed))
        with watch.step("read"):
            while True:
                slots, scores = ranking.scores.best(k, allowed)
                documents = _documents(store, self.live.store_rows(slots).tolist(), most_bytes)
                gone = [slot for slot, document in zip(slots, documents, strict=True) if document is None]
                if not gone:
                    break
                allowed = allowed.copy()
                allowed[gone] = False
        learned, lexical = ranking.parts(slots)
        return [
            Hit(
                document_id=document.id,
                score=float(scores[place]),
                rank=place + 1,
                document=document,
                learned=None if learned is None else float(learned[place]),
                lexical=None if lexical is None else float(lexical[place]),
            )
            for place, document in enumerate(documents)
            if document is not None
        ]

    def _ranking(self, text: str, mode: Mode, watch: Stopwatch) -> Ranking:
        """Every document's score by this way of searching; by words alone, of those that share one with the text."""
        if mode == "lexical":
            with watch.step("lexical"):
                alive = self.live.rows.alive
                lexical = self.live.lexical.scores(text, len(alive))
            if self._moved_on(alive):
                return self._ranking(text, mode, watch)
            return by_words(lexical, alive).among(lexical > 0)
        with watch.step("encode"):
            embedding = self.encoder.encode([text])[0]
        with watch.step("learned"):
            learned, spread = self.live.rows.scores_and_spread(embedding)
        if mode == "learned":
            return by_learned(learned)
        with watch.step("lexical"):
            lexical = self.live.lexical.scores(text, len(learned.alive))
        with watch.step("fuse"):
            weight = self.settings.lexical_weight
            both = fused(learned, spread, lexical_part(lexical, learned.alive, weight), weight)
        if weight < 1.0:
            return both
        return self._ranking(text, mode, watch) if self._moved_on(learned.alive) else both.among(lexical > 0)

    def _moved_on(self, alive: NDArray[np.bool_]) -> bool:
        """Whether documents changed since: the words of one that was replaced are not where it was seen."""
        return not np.array_equal(alive, self.live.rows.alive)


def _documents(store: Store, rows: Sequence[int], most_bytes: int | None) -> Sequence[Document | None]:
    """The documents in these rows; None for one that was deleted after it was ranked."""
    try:
        return store.documents(rows, most_bytes)
    except UnknownDocument:
        if len(rows) == 1:
            return [None]
        return [document for row in rows for document in _documents(store, [row], most_bytes)]
