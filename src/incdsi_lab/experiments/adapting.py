"""The paper's stage 1 in a study: the encoder learns from the initial documents before anything is embedded."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from incdsi.documents import Document
from incdsi.durable import appearing_folder
from incdsi.progress import Progress
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.text.queries import distinct, drop_shared
from incdsi.training.settings import PAPER_MSMARCO, PAPER_NQ, FinetuneSettings
from incdsi.training.stage1 import train
from incdsi_lab.embedded import cache_home, generated_queries
from incdsi_lab.experiments.datasets import Dataset
from incdsi_lab.experiments.settings import StudySettings
from incdsi_lab.splits import Split

CHECKPOINT = "checkpoint"
RECIPES = {"nq320k": PAPER_NQ, "msmarco": PAPER_MSMARCO}


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
        natural = {id: distinct(texts) for id, texts in _texts(dataset, split.train, initial).items()}
        queries = drop_shared({id: [*natural[id], *generated.get(id, [])] for id in split.initial})
        return cls(
            documents=[document for document in dataset.collection.documents if document.id in initial],
            queries=queries,
            natural=[text for id, texts in queries.items() for text in texts if text in natural[id]],
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
) -> tuple[TorchEncoder, float]:
    """The encoder finetuned for `encoder_epochs`, and the seconds that took; kept in the user's cache.

    An interrupted training resumes; the seconds are then those of its last part.
    On the paper's own sets by the paper's settings, which take all queries alike. Elsewhere by ours: natural
    queries adapt it where there are any, as generated ones resemble the text more than what people ask.
    """
    lesson, recipe = Lesson.of(dataset, split), RECIPES.get(dataset.collection.name)
    digest = _digest(lesson, encoder, settings)
    folder = (cache or cache_home()) / f"{dataset.collection.name}-stage1-{digest}"
    kept, cost = folder / "encoder", folder / "seconds"
    if not kept.exists():
        begin = time.perf_counter()
        model = train(
            lesson.documents,
            lesson.queries,
            encoder=encoder,
            mode="finetune",
            settings=replace(recipe or FinetuneSettings(), epochs=settings.encoder_epochs, seed=settings.seed),
            validation=lesson.validation,
            adapt_to=lesson.natural or None if recipe is None else None,
            checkpoint=folder / CHECKPOINT,
            progress=progress,
        )
        assert isinstance(model.encoder, TorchEncoder)
        cost.write_text(str(time.perf_counter() - begin))
        with appearing_folder(kept) as unfinished:
            model.encoder.save(unfinished)
        shutil.rmtree(folder / CHECKPOINT)
    return TorchEncoder.load(kept), float(cost.read_text())


def _texts(dataset: Dataset, query_ids: tuple[str, ...], initial: set[str]) -> dict[str, list[str]]:
    """The texts of these queries by initial document."""
    wanted = set(query_ids)
    texts: dict[str, list[str]] = {id: [] for id in initial}
    for query in dataset.collection.queries:
        if query.id in wanted and query.document_id in initial:
            texts[query.document_id].append(query.text)
    return texts


def _digest(lesson: Lesson, encoder: TorchEncoder, settings: StudySettings) -> str:
    """All that the adapted encoder depends on."""
    texts = [(document.id, document.content) for document in lesson.documents]
    about = [texts, lesson.queries, lesson.natural, lesson.validation, encoder.fingerprint]
    dumped = json.dumps([*about, settings.encoder_epochs, settings.seed], sort_keys=True)
    return hashlib.sha256(dumped.encode()).hexdigest()[:12]
