"""The paper's stage 1 in a study: the encoder learns from the initial documents before anything is embedded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from incdsi.documents import Document
from incdsi.evaluation.embedded import cache_home, generated_queries
from incdsi.evaluation.experiments.datasets import Dataset
from incdsi.evaluation.experiments.settings import StudySettings
from incdsi.evaluation.experiments.tasks import Progress
from incdsi.evaluation.splits import Split
from incdsi.text.encoders.locate import HUB_NAME, installed_model
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.training.folders import appearing
from incdsi.training.settings import FinetuneSettings
from incdsi.training.stage1 import train


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What the encoder learns from: initial documents only, their train queries, and validation queries to stop by."""

    documents: list[Document]
    queries: dict[str, list[str]]
    natural: list[str]
    validation: dict[str, list[str]]

    @classmethod
    def of(cls, dataset: Dataset, split: Split) -> Lesson:
        initial = set(split.initial)
        generated = generated_queries(dataset.collection, dataset.generator)
        natural = _texts(dataset, split.train, initial)
        return cls(
            documents=[document for document in dataset.collection.documents if document.id in initial],
            queries={id: [*natural[id], *generated.get(id, [])] for id in split.initial},
            natural=[text for texts in natural.values() for text in texts],
            validation=_texts(dataset, split.val, initial),
        )


def adapted(
    dataset: Dataset,
    split: Split,
    encoder: TorchEncoder,
    settings: StudySettings,
    *,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> TorchEncoder:
    """The encoder finetuned for `encoder_epochs` and kept in the user's cache; a stopped training goes on.

    Natural queries adapt it where there are any, as generated ones resemble the text more than what people ask.
    """
    folder = (cache or cache_home()) / f"{dataset.collection.name}-stage1-{_digest(split, encoder, settings)}"
    kept = folder / "encoder"
    if not kept.exists():
        lesson = Lesson.of(dataset, split)
        model = train(
            lesson.documents,
            lesson.queries,
            encoder=encoder,
            mode="finetune",
            settings=FinetuneSettings(epochs=settings.encoder_epochs, seed=settings.seed),
            validation=lesson.validation,
            adapt_to=lesson.natural or None,
            checkpoint=folder / "checkpoint",
            progress=progress,
        )
        assert isinstance(model.encoder, TorchEncoder)
        with appearing(kept) as unfinished:
            model.encoder.save(unfinished)
    return TorchEncoder.load(kept)


def torch_encoder(name: str) -> TorchEncoder:
    """The model of that name as one that can learn; without a name the default one."""
    return TorchEncoder.load(name or installed_model() or HUB_NAME)


def _texts(dataset: Dataset, query_ids: tuple[str, ...], initial: set[str]) -> dict[str, list[str]]:
    """The texts of these queries by initial document."""
    wanted = set(query_ids)
    texts: dict[str, list[str]] = {id: [] for id in initial}
    for query in dataset.collection.queries:
        if query.id in wanted and query.document_id in initial:
            texts[query.document_id].append(query.text)
    return texts


def _digest(split: Split, encoder: TorchEncoder, settings: StudySettings) -> str:
    """All that the adapted encoder depends on."""
    parts = (split.collection_digest, split.initial, split.train, split.val)
    about = json.dumps([*parts, encoder.fingerprint, settings.encoder_epochs, settings.seed])
    return hashlib.sha256(about.encode()).hexdigest()[:12]
