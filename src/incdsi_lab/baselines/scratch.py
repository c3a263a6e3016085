"""DSI-Scratch: encoder and classification layer trained further, with DSI++ style replay of old queries."""

from __future__ import annotations

import numpy as np

from incdsi.progress import Progress
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.training.finetune import train_finetune
from incdsi.training.records import Moment
from incdsi.training.settings import FinetuneSettings, FrozenSettings
from incdsi_lab.baselines.classification import extended, sample, trained
from incdsi_lab.baselines.protocol import Floats, Part, Questions, joined
from incdsi_lab.baselines.vectors import VectorMethod

CHOSEN_BY = 1000  # held-out queries that choose the epoch: embedding them costs as much as learning from a third


class DSIScratch(VectorMethod):
    """New documents' queries and as many old ones, for `epochs`, through encoder and rows.

    `initial` are rows already trained on the initial documents; the encoder is copied, never
    changed. At most `per_document` queries an epoch for each new document, replayed ones included, bound the time on
    a machine without a GPU. New rows start at the text's embedding by the first encoder, however far it has moved.
    """

    name = "DSI-Scratch"

    def __init__(
        self,
        encoder: TorchEncoder,
        settings: FinetuneSettings | None = None,
        *,
        per_document: float = float("inf"),
        initial: Floats | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__()
        self._encoder = encoder
        self._settings = settings or FinetuneSettings()
        self._per_document = per_document
        self._initial, self._progress = initial, progress
        self._old: Part | None = None
        self._adapted = False

    def fit(self, initial: Part) -> None:
        """Rows by frozen training: what stage 1 of the others begins with as well."""
        with self._watch.step("fit"):
            self._vectors = self._initial if self._initial is not None else trained(initial, FrozenSettings())
        self._old = initial

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            start = extended(self.document_vectors, new, self._settings.scale)
            assert self._old is not None
            queries, held_out = self._lesson(self._old, new)
            self._encoder, self._vectors, _ = train_finetune(
                self._encoder, start, queries, held_out, self._settings, observe=self._observe
            )
            self._old, self._adapted = self._old.followed_by(new), True

    def embedded(self, queries: Questions) -> Floats:
        if not self._adapted:
            return queries.embeddings
        return self._encoder.encode(queries.texts, self._progress)

    def _lesson(self, old: Part, new: Part) -> tuple[Questions, Questions]:
        draw = np.random.default_rng([self._settings.seed, len(old), len(new)])
        most = min(len(new.queries), self._per_document * len(new) / 2)
        learned = sample(new.queries, max(1, int(most)), draw).moved(len(old))
        replayed = sample(old.queries, len(learned), draw)
        both = joined([old.held_out, new.held_out.moved(len(old))])
        return _by_owner(joined([learned, replayed])), _by_owner(sample(both, CHOSEN_BY, draw))

    def _observe(self, moment: Moment) -> None:
        if self._progress is not None:
            self._progress(moment.step, moment.total)


def _by_owner(questions: Questions) -> Questions:
    return questions.take(np.argsort(questions.owners, kind="stable"))
